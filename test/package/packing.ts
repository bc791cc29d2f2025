// Packs this package the way that npm does, for tests that look at it from outside. No registry is asked.

import { execFile } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
export const TSC = join(ROOT, "node_modules/typescript/bin/tsc");
export const run = promisify(execFile);

/** What tests read of a package.json. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly files: readonly string[];
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>;
}

export const MANIFEST = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as Manifest;

/** The entry points that hold code, as users import them, each with its declarations. */
export const ENTRY_POINTS = Object.entries(MANIFEST.exports).flatMap(([path, target]) =>
  typeof target === "string" ? [] : [{ name: MANIFEST.name + path.slice(1), types: join(ROOT, target.types) }],
);

/** Packs `dist` as it stands, which `npm test` has just built. Answers the tarball's path. */
export function packAsBuilt(destination: string): Promise<string> {
  return pack(ROOT, destination, ["--ignore-scripts"]);
}

/**
 * Packs what `npm publish` would upload: a copy of the sources, built by the package's own `prepack`. In the copy lies
 * `litter`, too: files that must not be packed.
 */
export async function packAsPublished(
  destination: string,
  litter: readonly string[],
): Promise<{ readonly tarball: string; readonly copy: string }> {
  const copy = join(destination, "copy");
  const needed = [...MANIFEST.files.filter((entry) => !entry.startsWith("!") && entry !== "dist"), "package.json"];
  for (const entry of [...needed, "tsconfig.json", "tsconfig.build.json"]) {
    cpSync(join(ROOT, entry), join(copy, entry), { recursive: true, filter: isSource });
  }
  symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"), "junction");
  for (const file of litter) {
    mkdirSync(dirname(join(copy, file)), { recursive: true });
    writeFileSync(join(copy, file), "");
  }
  return { tarball: await pack(copy, destination, []), copy };
}

/** Unpacks a tarball into a folder, as `npm install` would. */
export async function unpack(tarball: string, into: string): Promise<void> {
  mkdirSync(into, { recursive: true });
  await run("tar", ["-xzf", tarball, "-C", into, "--strip-components=1"]);
}

/** All files under a folder, sorted, with forward slashes. */
export function filesUnder(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .map((file) => file.replaceAll("\\", "/"))
    .sort();
}

/** Whether a path is ours, and not what trying an example leaves behind. */
export function isSource(path: string): boolean {
  return !["node_modules", "out"].includes(basename(path));
}

async function pack(folder: string, destination: string, flags: readonly string[]): Promise<string> {
  await run("npm", ["pack", ...flags, "--pack-destination", destination], {
    cwd: folder,
    shell: process.platform === "win32",
  });
  return join(destination, `${MANIFEST.name}-${MANIFEST.version}.tgz`);
}
