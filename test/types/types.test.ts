// Type tests: the files `*.test-d.ts` beside this one are compiled and never run. A wrong type is an error of the compiler,
// and so is a misuse that it lets pass, because `@ts-expect-error` must have something to expect.
//
// They are compiled twice: here against the declarations that are published (`npm test` has just built them), and by
// `npm run typecheck` against the sources.

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { ROOT, run, TSC } from "../package/packing.js";

const FOLDER = fileURLToPath(new URL(".", import.meta.url));
const TYPE_TESTS = readdirSync(FOLDER).filter((file) => file.endsWith(".test-d.ts"));

test("the types that users see are what the type tests say", async () => {
  expect(TYPE_TESTS.length).toBeGreaterThan(0);
  expect(await compile(FOLDER)).toBe("");
});

test("every expectation of a type test fails where the type is another", async () => {
  const folder = mkdtempSync(join(ROOT, ".docs-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(
    join(folder, "tsconfig.json"),
    JSON.stringify({ extends: "../test/types/tsconfig.json", include: ["*.ts"] }),
  );
  const expected = TYPE_TESTS.map((file) => {
    const text = readFileSync(join(FOLDER, file), "utf8");
    const expectations = /\.(toEqualTypeOf|toExtend)</g;
    writeFileSync(join(folder, file), text.replaceAll(expectations, ".not.$1<"));
    return [file, [...text.matchAll(expectations)].length];
  });

  const said = await compile(folder);
  const errors = TYPE_TESTS.map((file) => [file, said.split("\n").filter((line) => line.includes(`${file}(`)).length]);
  expect(errors).toEqual(expected);
});

/** What the compiler says: nothing, if all is well. */
async function compile(folder: string): Promise<string> {
  return run(process.execPath, [TSC, "--pretty", "false", "-p", folder]).then(
    ({ stdout }) => stdout,
    ({ stdout }: { readonly stdout: string }) => stdout,
  );
}
