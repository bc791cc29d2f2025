// The examples in TSDoc comments and on the pages of the documentation, as modules that can be compiled.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import type { Declarations } from "./declarations.js";
import { ENTRY_POINTS, ROOT, run, TSC } from "./packing.js";

/** One `@example`, or one block of code on a page. */
export interface Example {
  readonly file: string;
  /** Of the tag, or of the fence: the code begins on the next one. */
  readonly line: number;
  readonly code: string;
}

/** What an entry point exports, for the examples to import. */
export interface Importable {
  readonly entryPoint: string;
  readonly entryFile: string;
  readonly names: ReadonlySet<string>;
}

/**
 * The people in the examples, so that each example need not introduce them. Names that the package exports are imported
 * for an example; everything else it brings itself.
 */
const CAST = `
  declare const provider: import("duroxide-ts").Provider;
  declare const client: import("duroxide-ts").Client;
  declare const runtime: import("duroxide-ts").Runtime;
  declare const ctx: import("duroxide-ts").OrchestrationContext;
  declare const handle: import("duroxide-ts").OrchestrationHandle<string>;
  declare const clock: import("duroxide-ts/testing").VirtualClock;
  interface Order { readonly id: string; readonly amount: number }
  declare const order: Order;
  declare const checkout: import("duroxide-ts").OrchestrationDefinition<Order, string>;
  declare const reserve: import("duroxide-ts").ActivityDefinition<Order, void>;
  declare const charge: import("duroxide-ts").ActivityDefinition<Order, string>;
  declare const ship: import("duroxide-ts").ActivityDefinition<string, string>;
  declare const refund: import("duroxide-ts").ActivityDefinition<string, void>;
  declare const approval: import("duroxide-ts").EventDefinition<{ readonly ok: boolean }>;
  declare const orchestrations: readonly import("duroxide-ts").OrchestrationDefinition[];
  declare const activities: readonly import("duroxide-ts").ActivityDefinition[];
  declare const world: import("duroxide-ts/testing").TestWorld;
  declare const MyProvider: { open(options?: object): Promise<import("duroxide-ts").Provider> };
  declare function report(what: unknown): void;
`;

/** Every example in the TSDoc comments of a declaration file. */
export function examplesIn(file: string, text: string): Example[] {
  return [...text.matchAll(/\/\*\*[\s\S]*?\*\//g)].flatMap((comment) => {
    const firstLine = text.slice(0, comment.index).split("\n").length;
    const lines = comment[0]
      .split("\n")
      .map((line) => line.replace(/^\s*(\/\*\*|\*\/|\* ?)/, "").replace(/\s*\*\/$/, ""));
    const starts = lines.flatMap((line, index) => (line.startsWith("@example") ? [index] : []));
    return starts.map((start) => {
      const length = lines.slice(start + 1).findIndex((line) => /^@[a-z]/.test(line));
      const body = lines.slice(start + 1, length === -1 ? undefined : start + 1 + length);
      const code = body.map((line) => (line.startsWith("```") ? "" : line)).join("\n");
      return { file, line: firstLine + start, code };
    });
  });
}

/** Every block of TypeScript on a page. */
export function blocksIn(file: string, text: string): Example[] {
  return [...text.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map((block) => {
    return { file, line: text.slice(0, block.index).split("\n").length, code: block[1]! };
  });
}

/** What examples may use without importing it: whatever an entry point exports. */
export function importableFrom(declarations: Declarations): Importable[] {
  return ENTRY_POINTS.map(({ name: entryPoint, types: entryFile }) => {
    const names = new Set(declarations.exportsOf(entryFile).map(({ name }) => name));
    return { entryPoint, entryFile, names };
  });
}

/**
 * Compiles each example as a module of its own, strictly. Answers what the compiler says, and of which line: nothing, if
 * all is well. `neighbours`: examples that others import, by the name under which they do.
 */
export async function compile(
  examples: readonly Example[],
  importable: readonly Importable[],
  neighbours: Readonly<Record<string, Example>> = {},
): Promise<string> {
  // In the package's own folder, where its name resolves to its declarations.
  const folder = mkdtempSync(join(ROOT, ".docs-"));
  try {
    for (const example of examples) {
      const module = `${importsFor(example, importable)}\n${example.code}\nexport {};\n`;
      writeFileSync(join(folder, `${nameOf(example)}.ts`), module);
    }
    for (const [name, example] of Object.entries(neighbours)) {
      writeFileSync(join(folder, `${name}.ts`), `export * from "./${nameOf(example)}.js";\n`);
    }
    writeFileSync(join(folder, "cast.ts"), CAST);
    const compilerOptions = {
      paths: {},
      moduleDetection: "legacy", // The cast is no module, so that all know it.
      noUnusedLocals: false,
      noUnusedParameters: false,
      verbatimModuleSyntax: false,
      isolatedModules: false,
    };
    const tsconfig = { extends: "../tsconfig.json", compilerOptions, include: ["*.ts"] };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(tsconfig));
    return inPlace(await saidBy(run(process.execPath, [TSC, "--pretty", "false", "-p", folder])), examples);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A file name for the example: `dist-client-client-d-ts-103`. */
function nameOf({ file, line }: Example): string {
  return `${placeOf(file).replaceAll(/[^\w]+/g, "-")}-${line}`;
}

function placeOf(file: string): string {
  return relative(ROOT, file).replaceAll("\\", "/");
}

/** Points at the examples where they stand, `docs/running.md:7:12`, instead of at the modules made of them. */
function inPlace(said: string, examples: readonly Example[]): string {
  const byName = new Map(examples.map((example) => [nameOf(example), example]));
  return said.replaceAll(/^.*?([\w-]+)\.ts\((\d+),(\d+)\)/gm, (module, name: string, row: string, column: string) => {
    const example = byName.get(name);
    // The first row of a module holds its imports.
    return example === undefined ? module : `${placeOf(example.file)}:${example.line + Number(row) - 1}:${column}`;
  });
}

/** What the example uses and does not declare. Its own entry point comes first, where two export one name. */
function importsFor({ file, code }: Example, importable: readonly Importable[]): string {
  const words = new Set(code.match(/[\w$]+/g));
  const own = importable.filter(({ entryFile }) => entryFile === file);
  const taken = new Set<string>();
  const imports = [...own, ...importable].map(({ entryPoint, names }) => {
    const used = [...words].filter((word) => names.has(word) && !taken.has(word) && !isDeclaredIn(code, word));
    for (const name of used) taken.add(name);
    return used.length === 0 ? "" : `import { ${used.join(", ")} } from "${entryPoint}";`;
  });
  return imports.join("");
}

function isDeclaredIn(code: string, name: string): boolean {
  const declared = new RegExp(`\\b(const|let|class|function|interface|type)\\s+${name}\\b`);
  const imported = new RegExp(`^import\\b[^;]*\\b${name}\\b[^;]*\\bfrom\\b`, "m");
  return declared.test(code) || imported.test(code);
}

async function saidBy(compilation: Promise<{ readonly stdout: string }>): Promise<string> {
  try {
    return (await compilation).stdout;
  } catch (error) {
    return String((error as { readonly stdout?: string }).stdout);
  }
}
