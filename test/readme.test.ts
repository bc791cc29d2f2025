// The first thing a new user tries is the README's example. It must compile and work, as it stands.

import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const run = promisify(execFile);

/** Two blocks of code: the program, and how to close by hand what it opens. */
const [PROGRAM = "", CLOSING_BY_HAND = ""] = [
  ...readFileSync(join(ROOT, "README.md"), "utf8").matchAll(/```ts\n([\s\S]*?)```/g),
].map(([, code]) => code);

test("the README's example compiles, runs to its end, and prints its result and nothing else", async () => {
  await expectToWork(PROGRAM);
});

test("the README's example works without `await using`, too", async () => {
  const [definitions = "", , rest = ""] = PROGRAM.split(/((?:await using .*\n)+)/);
  const byHand = definitions + CLOSING_BY_HAND.replace("// … as above", rest);
  expect(byHand).not.toContain("using");
  expect(rest).toContain("client.start");

  await expectToWork(byHand);
});

async function expectToWork(example: string): Promise<void> {
  const folder = mkdtempSync(join(ROOT, ".readme-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "example.ts"), example);
  const compilerOptions = { noEmit: false, rootDir: ".", outDir: "out", paths: {}, noUnusedLocals: true };
  const tsconfig = { extends: "../tsconfig.json", compilerOptions, include: ["example.ts"] };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(tsconfig));

  await run(process.execPath, [join(ROOT, "node_modules/typescript/bin/tsc"), "-p", folder]);
  const { stdout, stderr } = await run(process.execPath, ["out/example.js"], { cwd: folder });

  expect(stdout).toMatch(/^shipped, paid 12 \(order-1:1:\d+\)\n$/);
  expect(stderr).toBe("");
}
