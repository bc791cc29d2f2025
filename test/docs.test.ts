// The pages show code that people will copy. It compiles, against the package as it is published.

import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { Declarations } from "./package/declarations.js";
import { blocksIn, compile, importableFrom } from "./package/examples.js";
import { ENTRY_POINTS, ROOT } from "./package/packing.js";

/** The README, what lies beside it, and the guides. */
const PAGES = [...markdownIn(ROOT), ...markdownIn(join(ROOT, "docs")), ...markdownIn(join(ROOT, "docs/decisions"))].map(
  (file) => ({ file, text: readFileSync(file, "utf8") }),
);

describe("the code on the pages", () => {
  test("compiles, each block as a module of its own", async () => {
    const blocks = PAGES.flatMap(({ file, text }) => blocksIn(file, text));
    const skeleton = blocks.find(({ file }) => file.endsWith("writing-a-provider.md"))!;

    expect(blocks.length).toBeGreaterThan(12);
    expect(await compile(blocks, importableFrom(openDeclarations()), { "my-provider": skeleton })).toBe("");
  });

  test("is fenced as what it is, so that none of it escapes the compiler", () => {
    const fences = PAGES.flatMap(({ file, text }) => fencesIn(text).map((language) => `${file}: ${language}`));
    const known = /: (ts|sh|text)$/;
    expect(fences.filter((fence) => !known.test(fence))).toEqual([]);
  });

  test("is pointed at, file and line, where it does not compile", async () => {
    const page = "# Title\n\n```ts\nconst right = 1;\nconst wrong: string = right;\n```\n";
    const problems = await compile(blocksIn(join(ROOT, "docs/made-up.md"), page), []);
    expect(problems).toMatch(/^docs\/made-up\.md:5:7: error TS2322: .*'number'.*'string'/);
  });
});

function markdownIn(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".md"))
    .map((name) => join(folder, name));
}

/** What each fenced block says it is. */
function fencesIn(text: string): string[] {
  return [...text.matchAll(/^\s*```(.*)\n[\s\S]*?^\s*```$/gm)].map(([, language]) => language!);
}

function openDeclarations(): Declarations {
  const folder = mkdtempSync(join(tmpdir(), "duroxide-docs-"));
  const declarations = new Declarations(
    join(ROOT, "dist"),
    ENTRY_POINTS.map(({ types }) => types),
    folder,
  );
  onTestFinished(() => {
    declarations.close();
    rmSync(folder, { recursive: true, force: true });
  });
  return declarations;
}
