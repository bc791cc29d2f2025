// The direction of imports is the architecture: a part may know only what stands below it.

import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const SRC = fileURLToPath(new URL("../src/", import.meta.url));

/** Files at the root of src that anybody may import. Definitions name the contexts that engine and runtime declare. */
const FOR_ALL = [
  "errors",
  "clock",
  "observer",
  "options",
  "duration",
  "schema",
  "define",
  "time-ordered-id",
  "linked-set",
];

const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  history: [],
  engine: ["history"],
  provider: ["history"],
  client: ["provider", "history"],
  runtime: ["engine", "provider", "client", "history"],
  "providers/memory": ["provider", "history"],
  "providers/sqlite": ["provider", "history"],
  "providers/postgres": ["provider", "history"],
  "provider-tests": [
    "provider",
    "client",
    "runtime",
    "history",
    "testing",
    "providers/memory",
    "providers/sqlite",
    "providers/postgres",
  ],
  testing: ["engine", "provider", "client", "runtime", "history", "providers/memory", "providers/sqlite"],
};

/** What the files at the root themselves may import. `index` is the public face and sees everything. */
const ROOT_MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  errors: ["history"],
  clock: [],
  observer: ["history"],
  options: [],
  duration: [],
  schema: [],
  define: ["history", "engine (types)", "runtime (types)"],
  "time-ordered-id": [],
  "linked-set": [],
  index: Object.keys(MAY_IMPORT),
};

interface Import {
  readonly from: string;
  readonly to: string;
  readonly isTypeOnly: boolean;
}

test("no file imports from a part above its own", () => {
  const offences = allImports().filter((found) => !isAllowed(found));
  expect(offences.map(({ from, to }) => `${from} → ${to}`)).toEqual([]);
});

test("only the clock reads the time or sets timers, and nothing writes to the console", () => {
  const forbidden = /\bDate\.now\(|\bnew Date\(\)|\bperformance\.now\(|\bsetTimeout\(|\bsetInterval\(|\bconsole\./;
  const offences = sourceFiles()
    .filter((file) => file !== "clock.ts")
    .filter((file) => forbidden.test(withoutComments(readFileSync(join(SRC, file), "utf8"))));
  expect(offences).toEqual([]);
});

function isAllowed({ from, to, isTypeOnly }: Import): boolean {
  const importer = partOf(from);
  const imported = partOf(to);
  if (importer === imported) return true;
  const isRoot = !from.includes("/");
  const allowed = isRoot ? (ROOT_MAY_IMPORT[rootName(from)] ?? []) : (MAY_IMPORT[importer] ?? []);
  if (!to.includes("/")) return FOR_ALL.includes(rootName(to)) && rootName(to) !== rootName(from);
  return allowed.includes(imported) || (isTypeOnly && allowed.includes(`${imported} (types)`));
}

function partOf(file: string): string {
  const parts = file.split("/");
  if (parts.length === 1) return `root:${rootName(file)}`;
  return parts[0] === "providers" ? `providers/${parts[1]}` : parts[0]!;
}

function rootName(file: string): string {
  return file.replace(/\.ts$/, "");
}

function allImports(): Import[] {
  return sourceFiles().flatMap((from) => {
    const text = withoutComments(readFileSync(join(SRC, from), "utf8"));
    const statements = text.matchAll(/^(?:import|export)\s+(type\s)?[^;]*?from\s+"(\.[^"]+)"/gm);
    return [...statements].map(([, type, target]) => ({
      from,
      to: relative(SRC, join(SRC, dirname(from), target!)).replace(/\.js$/, ".ts"),
      isTypeOnly: type !== undefined,
    }));
  });
}

function sourceFiles(): string[] {
  return readdirSync(SRC, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => file.replaceAll("\\", "/"));
}

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/(^|\s)\/\/.*$/gm, "$1");
}
