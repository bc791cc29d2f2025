// test/providers/sqlite-store.ts — a store on a file of its own for one test, and a look into that file.

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { raised } from "../../src/provider-tests/builders.js";
import { create, takeTurn } from "../../src/provider-tests/steps.js";
import { type SqliteOptions, SqliteProvider } from "../../src/providers/sqlite/index.js";

export interface SqliteStore {
  readonly provider: SqliteProvider;
  readonly file: string;
}

/** Closed and removed when the test is over. */
export async function openStore(options: SqliteOptions = {}): Promise<SqliteStore> {
  const directory = await mkdtemp(join(tmpdir(), "duroxide-sqlite-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const file = join(directory, "store.db");
  const provider = await SqliteProvider.open(file, { durability: "process-crash", ...options });
  onTestFinished(() => provider.close());
  return { provider, file };
}

/** Instances that run and are locked: their tokens, in the order of the names. */
export async function lockedTurns(provider: SqliteProvider, names: readonly string[]): Promise<string[]> {
  const tokens: string[] = [];
  for (const name of names) {
    await create(provider, name);
    await provider.enqueueForOrchestrator(raised(name));
    tokens.push((await takeTurn(provider)).lockToken);
  }
  return tokens;
}

/** How many transactions were committed, as the write-ahead log tells: the last frame of each says how large the file is now. */
export async function commitsIn(file: string): Promise<number> {
  const log = await readFile(`${file}-wal`);
  const frameBytes = 24 + log.readUInt32BE(8);
  let commits = 0;
  for (let frame = 32; frame + frameBytes <= log.length; frame += frameBytes) {
    if (log.readUInt32BE(frame + 4) > 0) commits += 1;
  }
  return commits;
}
