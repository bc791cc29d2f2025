// The guides for authors of providers show code that people will copy. It compiles, against the package as it is published.

import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const run = promisify(execFile);

test("the skeleton of a provider and the examples of how to test it compile together", async () => {
  const folder = mkdtempSync(join(ROOT, ".docs-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [skeleton = "", ...more] = codeIn("writing-a-provider.md");
  const examples = codeIn("testing-a-provider.md");
  expect([more.length, examples.length]).toEqual([0, 3]);

  writeFileSync(join(folder, "my-provider.ts"), skeleton);
  for (const [index, example] of examples.entries()) writeFileSync(join(folder, `example-${index}.ts`), example);
  const tsconfig = { extends: "../tsconfig.json", compilerOptions: { paths: {} }, include: ["*.ts"] };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(tsconfig));

  const { stdout } = await run(process.execPath, [join(ROOT, "node_modules/typescript/bin/tsc"), "-p", folder]);
  expect(stdout).toBe("");
});

function codeIn(page: string): string[] {
  const text = readFileSync(join(ROOT, "docs", page), "utf8");
  return [...text.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code]) => code!);
}
