// test/simulation/planted/plant.ts — a copy of the sources with a bug in it, and whether the simulation finds it.

import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Patch, PlantedBug } from "./bugs.js";

const REPO = fileURLToPath(new URL("../../..", import.meta.url));
const COPIED = ["src", "test/simulation", "test/engine/random-program.ts", "tsconfig.json", "tsconfig.simulation.json"];

const run = promisify(execFile);

/** What the simulation says of the first seed that goes wrong; null: none of so many does. */
export async function findPlanted(bug: PlantedBug, seeds: number): Promise<string | null> {
  const copy = await mkdtemp(join(tmpdir(), "duroxide-planted-"));
  try {
    for (const path of [...COPIED, "package.json"]) await cp(join(REPO, path), join(copy, path), { recursive: true });
    await symlink(join(REPO, "node_modules"), join(copy, "node_modules"));
    for (const patch of bug.patches) await apply(copy, patch);
    await run(process.execPath, [join(REPO, "node_modules/typescript/bin/tsc"), "-p", "tsconfig.simulation.json"], {
      cwd: copy,
    });
    return await firstFailure(copy, seeds);
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}

async function apply(copy: string, { file, find, replace }: Patch): Promise<void> {
  const path = join(copy, "src", file);
  const pieces = (await readFile(path, "utf8")).split(find);
  if (pieces.length !== 2) throw new Error(`The text of a planted bug stands ${pieces.length - 1} times in ${file}.`);
  await writeFile(path, pieces.join(replace));
}

async function firstFailure(copy: string, seeds: number): Promise<string | null> {
  const main = join(copy, "dist-simulation/test/simulation/main.js");
  try {
    await run(process.execPath, [main, "--first", "--seeds", String(seeds)]);
    return null;
  } catch (error) {
    const { code, stdout, stderr } = error as { code?: number; stdout?: string; stderr?: string };
    if (code !== 1 || stdout === undefined) throw error;
    if (!stdout.startsWith("seed ")) throw new Error(`The simulation itself failed: ${stdout}${stderr}`);
    return stdout;
  }
}
