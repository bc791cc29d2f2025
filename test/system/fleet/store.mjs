// fleet/store.mjs — the store that processes share: how it is set up, how each process opens it, and how one looks into it.
//
// A spec is what a process must know: { kind: "postgres", url, applicationName } or { kind: "sqlite", file }.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { PostgresProvider } from "duroxide-ts/postgres";
import { SqliteProvider } from "duroxide-ts/sqlite";
import pg from "pg";
import { loadDriver } from "../../../dist/providers/sqlite/driver.js";
import { startPostgres } from "../../../scripts/postgres-server.mjs";

export const STORES = ["sqlite", "postgres"];

const OPEN_AGAIN_MS = 100;

/**
 * A new store. `folder` is for whatever belongs to the run; it goes with the store. `server` is null where there is none.
 */
export async function startStore(kind, applicationName) {
  if (kind === "postgres") {
    const server = await startPostgres({ durable: true });
    const spec = { kind, url: server.url, applicationName };
    return { spec, server, folder: dirname(server.dataDir), close: () => server.close() };
  }
  const folder = mkdtempSync(join(tmpdir(), `duroxide-${applicationName}-`));
  const spec = { kind, file: join(folder, "store.db") };
  return { spec, server: null, folder, close: async () => rmSync(folder, { recursive: true, force: true }) };
}

/** A store that is away is waited for, as whoever supervises a service would. */
export async function openProvider(spec) {
  for (;;) {
    try {
      return await openOnce(spec);
    } catch (error) {
      if (error.kind !== "transient") throw error;
      await pause(OPEN_AGAIN_MS);
    }
  }
}

function openOnce(spec) {
  if (spec.kind === "sqlite") return SqliteProvider.open(spec.file);
  return PostgresProvider.open(spec.url, { applicationName: spec.applicationName });
}

/** Looks into the tables, past the provider: `work(query)`, where `query(sql)` answers with rows. */
export async function lookInto(spec, work) {
  return spec.kind === "sqlite" ? lookIntoFile(spec.file, work) : lookIntoServer(spec.url, work);
}

async function lookIntoFile(file, work) {
  const connection = (await loadDriver()).open(file);
  try {
    return await work(async (sql) => connection.prepare(sql).all());
  } finally {
    connection.close();
  }
}

async function lookIntoServer(url, work) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(async (sql) => (await client.query(sql)).rows);
  } finally {
    await client.end();
  }
}

/** What our table is called in that store. */
export function tableIn(spec, name) {
  return spec.kind === "sqlite" ? `duroxide_${name}` : `duroxide.${name}`;
}
