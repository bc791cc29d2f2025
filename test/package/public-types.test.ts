// The types that users see: no `any` in them, words on every export, and examples that compile.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { Declarations } from "./declarations.js";
import { compile, examplesIn, importableFrom } from "./examples.js";
import { ENTRY_POINTS, ROOT } from "./packing.js";

const DIST = join(ROOT, "dist");

const folder = mkdtempSync(join(tmpdir(), "duroxide-types-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the public types", () => {
  let declarations: Declarations;
  beforeAll(() => {
    declarations = new Declarations(
      DIST,
      ENTRY_POINTS.map(({ types }) => types),
      folder,
    );
  });
  afterAll(() => declarations.close());

  test("hold no `any`", () => {
    expect(declarations.files().length).toBeGreaterThan(50);
    expect(declarations.anyTypes()).toEqual([]);
  });

  test("mention no type that cannot be imported", () => {
    const internals = [
      "ResolvedOrchestration (mentioned by Registry)", // What a registry answers to the runtime.
      "RuntimeSurroundings (mentioned by TestRuntime)", // In its constructor, which is for worlds.
    ];
    const unexported = declarations.unexported(ENTRY_POINTS.map(({ types }) => types));
    expect(unexported.toSorted()).toEqual(internals);
  });

  test("have a TSDoc comment on every export of every entry point", () => {
    const exported = ENTRY_POINTS.flatMap(({ name: entryPoint, types }) =>
      declarations.exportsOf(types).map((found) => ({ ...found, entryPoint })),
    );
    const undocumented = exported.filter(({ documentation }) => documentation === "");

    expect(exported.length).toBeGreaterThan(200);
    expect(undocumented.map(({ entryPoint, name, file }) => `${entryPoint}: ${name} (${file})`)).toEqual([]);
  });

  test("have examples that compile", async () => {
    const examples = declarations.files().flatMap(({ fileName, text }) => examplesIn(fileName, text));

    expect(examples.length).toBeGreaterThan(100);
    expect(await compile(examples, importableFrom(declarations))).toBe("");
  });
});

describe("these checks", () => {
  const root = join(folder, "fixture");
  const entry = join(root, "index.d.ts");
  const outer = `
    export { inner as renamed } from "./inner.js";
    /** Of any kind: \`any\`. */
    export declare const said: "any";
    /** Has words. */
    export declare function documented(any: string): Promise<any>;
    // No TSDoc.
    export interface Undocumented { readonly any: unknown }
    /** Says what nobody can name. */
    export declare class Mentioning<T> extends Base { readonly own: T; readonly inner: Own["x"] | Promise<Own> }
    declare class Base {}
    interface Own { readonly x: Mentioning<string> }
    export {};
  `;
  const inner = `
    /**
     * @example
     * const wrong: number = "text";
     */
    export declare const inner: readonly (string | any)[];
  `;

  function openFixture(): Declarations {
    mkdirSync(root, { recursive: true });
    writeFileSync(entry, outer);
    writeFileSync(join(root, "inner.d.ts"), inner);
    const opened = new Declarations(root, [entry], root);
    onTestFinished(() => opened.close());
    return opened;
  }

  test("find an `any` wherever it is a type, and only there", () => {
    expect(openFixture().anyTypes().toSorted()).toEqual(["index.d.ts:6", "inner.d.ts:6"]);
  });

  test("find a type that is mentioned and cannot be imported", () => {
    expect(openFixture().unexported([entry])).toEqual(["Own (mentioned by Mentioning)"]);
  });

  test("find what has no words, behind another name too", () => {
    const undocumented = openFixture()
      .exportsOf(entry)
      .filter(({ documentation }) => documentation === "");
    expect(undocumented.map(({ name }) => name).toSorted()).toEqual(["Undocumented", "renamed"]);
  });

  test("find an example that does not compile, and say where it stands", async () => {
    const problems = await compile(examplesIn(join(DIST, "inner.d.ts"), inner), []);
    expect(problems).toMatch(/^dist\/inner\.d\.ts:4:7: error TS2322: .*'string'.*'number'/);
  });
});
