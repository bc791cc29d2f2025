// What `npm publish` would upload: all that users and their tools need, and nothing else.

import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { publint } from "publint";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { filesUnder, isSource, MANIFEST, packAsPublished, unpack } from "./packing.js";

/** What building, testing and trying the examples leave in a working tree. */
const LITTER = [
  ".ci/run",
  "coverage/index.html",
  "demo/demo.ts",
  "dist-demo/demo.js",
  "dist/of-an-earlier-build.js",
  "examples/json-file-provider/node_modules/zod/index.js",
  "examples/json-file-provider/out/json-file-provider.js",
  "scripts/validate.mjs",
  "test/clock.test.ts",
];

/** Sources and maps are most of it. Twice that would be a mistake: something large that nobody asked for. */
const LARGEST_TARBALL_BYTES = 1_600_000;

const folder = mkdtempSync(join(tmpdir(), "duroxide-contents-"));
const contents = join(folder, "contents");
let tarball: string;
let copy: string;

beforeAll(async () => {
  ({ tarball, copy } = await packAsPublished(folder, LITTER));
  await unpack(tarball, contents);
}, 60_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the packed package", () => {
  test("holds the build, its sources, the documents and the examples, and nothing else", () => {
    const modules = filesUnder(join(copy, "src")).map((file) => file.replace(/\.ts$/, ""));
    const built = modules.flatMap((module) =>
      ["js", "js.map", "d.ts", "d.ts.map"].map((end) => `dist/${module}.${end}`),
    );
    const folders = ["src", "docs", "examples"].flatMap((name) =>
      filesUnder(join(copy, name)).map((file) => `${name}/${file}`),
    );
    const documents = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE"];
    const expected = [...built, ...folders.filter(isOurs), ...documents, "package.json"];

    expect(filesUnder(contents)).toEqual(expected.sort());
  });

  test("is of a reasonable size", () => {
    expect(statSync(tarball).size).toBeLessThan(LARGEST_TARBALL_BYTES);
  });

  test("holds the source of everything that its source maps and declaration maps name", () => {
    const maps = filesUnder(contents).filter((file) => file.endsWith(".map"));
    const missing = maps.flatMap((map) => {
      const { sourceRoot = "", sources } = JSON.parse(readFileSync(join(contents, map), "utf8")) as SourceMap;
      const files = sources.map((source) => join(contents, dirname(map), sourceRoot, source));
      return files.filter((file) => !isFileIn(contents, file)).map((file) => `${map}: ${file}`);
    });

    expect(maps.length).toBeGreaterThan(300);
    expect(missing).toEqual([]);
  });

  test("names its map in every script and every declaration", () => {
    const outputs = filesUnder(join(contents, "dist")).filter((file) => !file.endsWith(".map"));
    const lastLine = (file: string) =>
      readFileSync(join(contents, "dist", file), "utf8")
        .trimEnd()
        .split("\n")
        .at(-1);
    const unmapped = outputs.filter((file) => lastLine(file) !== `//# sourceMappingURL=${file.split("/").at(-1)}.map`);

    expect(unmapped).toEqual([]);
  });
});

describe("the linters of packages", () => {
  test("publint has nothing to say, not even a suggestion", async () => {
    const bytes = readFileSync(tarball);
    const data = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
    const { messages } = await publint({ pack: { tarball: data }, level: "suggestion" });

    expect(messages).toEqual([]);
  });

  test("are the types wrong? Not for whoever imports: each entry point resolves to types and code", async () => {
    const analysis = await checkPackage(createPackageFromTarballData(readFileSync(tarball)));
    if (analysis.types === false) throw new Error("The package has no types.");
    // ES modules only: `require` and the resolution of before `exports` are not promised to TypeScript.
    const isPromised = (kind: string) => kind !== "node10" && kind !== "node16-cjs";
    const problems = analysis.problems.filter((problem) =>
      "resolutionKind" in problem ? isPromised(problem.resolutionKind) : true,
    );

    expect(problems).toEqual([]);
    expect(Object.keys(analysis.entrypoints)).toEqual(Object.keys(MANIFEST.exports));
    for (const [path, { resolutions }] of Object.entries(analysis.entrypoints)) {
      const { types, code } = targetsOf(path);
      for (const kind of ["node16-esm", "bundler"] as const) {
        const { resolution, implementationResolution } = resolutions[kind];
        expect([resolution?.fileName, implementationResolution?.fileName]).toEqual([types, code]);
      }
    }
  }, 60_000);
});

interface SourceMap {
  readonly sourceRoot?: string;
  readonly sources: readonly string[];
}

function isOurs(file: string): boolean {
  return file.split("/").every(isSource) && !file.endsWith("/.gitignore");
}

function isFileIn(root: string, file: string): boolean {
  return file.startsWith(root) && (statSync(file, { throwIfNoEntry: false })?.isFile() ?? false);
}

/** What an entry point must resolve to, as the analysis names files. */
function targetsOf(path: string): { readonly types: string; readonly code: string } {
  const target = MANIFEST.exports[path]!;
  const named = (file: string) => join("/node_modules", MANIFEST.name, file).replaceAll("\\", "/");
  return typeof target === "string"
    ? { types: named(target), code: named(target) }
    : { types: named(target.types), code: named(target.default) };
}
