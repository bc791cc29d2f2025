// Type tests: the files `*.test-d.ts` beside this one are compiled and never run. A wrong type is an error of the compiler,
// and so is a misuse that it lets pass: `@ts-expect-error` must expect something.
//
// They are compiled twice: here against the declarations that are published (`npm test` has just built them), and by
// `npm run typecheck` against the sources.

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { ROOT, run, TSC } from "../package/packing.js";

const FOLDER = fileURLToPath(new URL(".", import.meta.url));
const TYPE_TESTS = readdirSync(FOLDER).filter((file) => file.endsWith(".test-d.ts"));

describe("the types that users see", () => {
  test("are what the type tests say", async () => {
    expect(TYPE_TESTS.length).toBeGreaterThan(0);
    expect(await saidOf(FOLDER)).toBe("");
  });

  test.each(TYPE_TESTS)("%s fails wherever a type is another than it says, and wherever a misuse passes", async (file) => {
    const folder = mkdtempSync(join(ROOT, ".docs-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const { text, falsified } = falsify(readFileSync(join(FOLDER, file), "utf8"));
    writeFileSync(join(folder, file), text);
    const tsconfig = { extends: `../test/types/tsconfig.json`, include: [file] };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(tsconfig));

    const said = (await saidOf(folder)).replaceAll(`${basename(folder)}/`, "");
    const blamed = new Set([...said.matchAll(/\.test-d\.ts\((\d+),/g)].map(([, line]) => Number(line)));

    expect(falsified.length).toBeGreaterThan(10);
    expect(falsified.filter((line) => !blamed.has(line)).map((line) => text.split("\n")[line - 1])).toEqual([]);
  });
});
