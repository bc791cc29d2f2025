// test/power-cut/recording.ts — the workload, recorded: everything that it did to its store, and what it had promised when.

import { mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { SqliteDurability, WriterChoice } from "../../src/providers/sqlite/index.js";
import { Disk } from "./disk.js";
import { DATABASE, LOG, type Operation } from "./operation.js";
import { record } from "./strace.js";

export interface Recording {
  readonly durability: SqliteDurability;
  readonly writer: WriterChoice;
  /** How many orchestrations were started. */
  readonly instances: number;
  readonly operations: readonly Operation[];
}

export async function recordWorkload(
  durability: SqliteDurability,
  instances: number,
  writer: WriterChoice = "never",
): Promise<Recording> {
  const parent = await realpath(await mkdtemp(join(tmpdir(), "duroxide-power-cut-")));
  try {
    const folder = await mkdtemp(join(parent, "store-"));
    const marks = join(parent, "marks");
    const file = join(folder, DATABASE);
    const operations: Operation[] = [];
    for (const life of ["first", "second"]) {
      const program = [path("../../scripts/run-typescript.mjs"), path("./workload-program.ts")];
      const command = [process.execPath, ...program, file, marks, durability, String(instances), writer, life];
      await record(command, { folder, marks }, operations);
    }
    await checkComplete(operations, folder);
    return { durability, writer, instances, operations };
  } finally {
    await rm(parent, { recursive: true, force: true });
  }
}

function path(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}

/** What the operations amount to is what the program left behind: nothing was written in a way that escaped us. */
async function checkComplete(operations: readonly Operation[], folder: string): Promise<void> {
  const disk = new Disk();
  for (const operation of operations) disk.apply(operation);
  const files = disk.now();
  for (const name of [DATABASE, LOG]) {
    const left = await readFile(join(folder, name));
    if (files.get(name)?.equals(left) !== true) throw new Error(`The recording does not amount to '${name}'.`);
  }
}
