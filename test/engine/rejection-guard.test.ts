// Rejections in orchestration code never end the worker; everybody else's still do. Architecture §6, rule 4.
//
// Each scenario runs in a process of its own (rejections.mjs), because vitest listens to unhandled rejections itself.

import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const PROGRAM = fileURLToPath(new URL("./rejections.mjs", import.meta.url));

let built = "";

beforeAll(() => {
  built = mkdtempSync(join(tmpdir(), "duroxide-rejections-"));
  const tsc = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin", "tsc");
  const emit = ["--outDir", built, "--noCheck", "--declaration", "false", "--declarationMap", "false"];
  execFileSync(process.execPath, [tsc, "-p", "tsconfig.build.json", ...emit], { cwd: ROOT });
}, 60_000);

afterAll(() => rmSync(built, { recursive: true, force: true }));

function run(scenario: string, ...flags: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [...flags, PROGRAM, built, scenario], {
    encoding: "utf8",
    env: { ...process.env, NODE_OPTIONS: "" },
  });
  const seen: unknown = stdout === "" ? null : JSON.parse(stdout);
  return { status, seen, stderr };
}

describe("a helper promise that fails a turn before it is awaited", () => {
  test("is kept for the later await, reported once, and warned about by nobody", () => {
    expect(run("helper, guarded")).toEqual({
      status: 0,
      seen: { result: "caught: failed early", kept: [["guarded", "failed early"]], warnings: [] },
      stderr: "",
    });
  });

  test("would have ended the process without the guard", () => {
    expect(run("helper, unguarded")).toMatchObject({ status: 1, seen: null });
  });

  test("may never be awaited at all", () => {
    expect(run("helper never awaited")).toMatchObject({
      status: 0,
      seen: { result: "done", kept: [["guarded", "failed early"]] },
    });
  });
});

test("a durable task that fails while nobody awaits it needs no guard", () => {
  expect(run("task never awaited, unguarded")).toMatchObject({ status: 0, seen: { result: "done", kept: [] } });
});

test("an async foreign callback that uses ctx does not end the process", () => {
  expect(run("ctx in an async callback")).toMatchObject({
    status: 0,
    seen: { kept: [["guarded", expect.stringContaining("outside a turn")]] },
  });
});

test("a rejection that activity code leaves behind does not end the process either", () => {
  expect(run("activity code")).toMatchObject({ status: 0, seen: { kept: [["of an activity", "floating"]] } });
});

describe("a rejection that is not ours", () => {
  test("ends the process as if there were no guard", () => {
    const { status, stderr } = run("foreign error");

    expect(status).toBe(1);
    expect(stderr).toContain("Error: not ours");
  });

  test("ends the process also where it is no error", () => {
    const { status, stderr } = run("foreign value");

    expect(status).toBe(1);
    expect(stderr).toContain("a mere text");
    expect(stderr).toContain("ERR_UNHANDLED_REJECTION");
  });

  test.each(["warn", "none"])("is Node's own business under --unhandled-rejections=%s", (mode) => {
    const { status, stderr } = run("foreign error", `--unhandled-rejections=${mode}`);

    expect(status).toBe(0);
    expect(stderr.includes("UnhandledPromiseRejectionWarning")).toBe(mode === "warn");
  });

  test("is left to whoever else listens", () => {
    expect(run("foreign, with another listener")).toMatchObject({
      status: 0,
      seen: { listener: "Error: not ours", kept: [] },
    });
  });

  test("that is handled late is warned about as ever", () => {
    expect(run("foreign, handled late")).toMatchObject({
      status: 0,
      seen: { warning: "PromiseRejectionHandledWarning", kept: [] },
    });
  });
});

test("the guard listens while anybody needs it, and is gone afterwards", () => {
  expect(run("guard released")).toMatchObject({
    status: 0,
    seen: {
      counts: [
        [0, 0],
        [1, 1],
        [1, 1],
        [0, 0],
      ],
      kept: [["guarded", "failed early"]],
    },
  });
});
