// The first thing a new user tries is the README's example. It must compile and work, as it stands.

import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const run = promisify(execFile);

test("the README's example compiles, runs to its end, and prints its result and nothing else", async () => {
  const folder = mkdtempSync(join(ROOT, ".readme-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [, example = ""] = /```ts\n([\s\S]*?)```/.exec(readFileSync(join(ROOT, "README.md"), "utf8")) ?? [];
  writeFileSync(join(folder, "example.ts"), example);
  const compilerOptions = { noEmit: false, rootDir: ".", outDir: "out", paths: {}, noUnusedLocals: false };
  const tsconfig = { extends: "../tsconfig.json", compilerOptions, include: ["example.ts"] };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(tsconfig));

  await run(process.execPath, [join(ROOT, "node_modules/typescript/bin/tsc"), "-p", folder]);
  const { stdout, stderr } = await run(process.execPath, ["out/example.js"], { cwd: folder });

  expect(stdout).toMatch(/^shipped, paid 12 \(order-1:1:\d+\)\n$/);
  expect(stderr).toBe("");
});
