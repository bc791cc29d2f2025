// A provider that lives in a folder of its own, knows only the published package, and is tested by a runner of its own.

import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { isSource, packAsBuilt, ROOT, run, TSC, unpack } from "../package/packing.js";

const EXAMPLE = join(ROOT, "examples/json-file-provider");

test("a third-party provider compiles against the packed package and passes the suite under node:test", async () => {
  const folder = mkdtempSync(join(tmpdir(), "duroxide-third-party-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  cpSync(EXAMPLE, folder, { recursive: true, filter: isSource });
  await unpackInto(join(folder, "node_modules"));

  await run(process.execPath, [TSC, "-p", folder]);
  const files = ["out/json-file-provider.test.js", "out/survives.test.js"];
  // Not a part of this run: `node --test` would otherwise report to its parent instead of saying it.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const flags = ["--test", "--test-reporter=tap"];
  const { stdout } = await run(process.execPath, [...flags, ...files], { cwd: folder, env, maxBuffer: 64 * 2 ** 20 });

  const count = (what: string) => Number(new RegExp(`^# ${what} (\\d+)$`, "m").exec(stdout)?.[1]);
  expect(count("fail")).toBe(0);
  expect(count("pass")).toBeGreaterThan(450);
  const reasons = [...stdout.matchAll(/# SKIP (.*)$/gm)].map(([, reason]) => reason!.replaceAll("\\", ""));
  expect(new Set(reasons)).toEqual(new Set(["is about providers that poll long", "the factory has no `openAnother`"]));
}, 120_000);

/** What `npm install` would put there, without asking a registry. */
async function unpackInto(modules: string): Promise<void> {
  mkdirSync(modules);
  await unpack(await packAsBuilt(modules), join(modules, "duroxide-ts"));
  for (const name of ["@types", "undici-types"]) symlinkSync(join(ROOT, "node_modules", name), join(modules, name));
}
