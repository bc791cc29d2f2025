// providers/sqlite/migrations.ts — brings a file to the schema of this version, whoever else opens it at the same time.

import { ProviderError } from "../../errors.js";
import type { Database } from "./database.js";
import { MIGRATIONS } from "./schema.js";

const createMigrationsTable = `
  CREATE TABLE IF NOT EXISTS duroxide_migrations (
    version    INTEGER NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL,
    applied_at INTEGER NOT NULL
  ) STRICT
`;
const hasMigrationsTable = `SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'duroxide_migrations'`;
const latestMigration = `SELECT MAX(version) AS version FROM duroxide_migrations`;
const recordMigration = `INSERT INTO duroxide_migrations (version, name, applied_at) VALUES (?, ?, ?)`;

/** Changes nothing, but fails where the file can only be read. Better to hear of it now than at the first turn. */
const tryToWrite = `UPDATE duroxide_migrations SET version = version WHERE FALSE`;

/** Applies what is missing, in one transaction. */
export async function migrate(database: Database, now: number): Promise<void> {
  await database.write("open", (db) => {
    const applied = appliedVersion(db);
    checkKnown(applied);
    db.execute(createMigrationsTable);
    db.run(tryToWrite);
    for (const { version, name, script } of MIGRATIONS) {
      if (version <= applied) continue;
      db.execute(script);
      db.run(recordMigration, version, name, now);
    }
  });
}

function checkKnown(applied: number): void {
  const latest = MIGRATIONS.at(-1)?.version ?? 0;
  if (applied <= latest) return;
  const message = `the file has schema version ${applied}, and this version of duroxide-ts knows none above ${latest}`;
  throw new ProviderError("invalid", "open", `${message}. Update duroxide-ts, or open another file`);
}

function appliedVersion(db: Database): number {
  if (db.get(hasMigrationsTable) === undefined) return 0;
  return db.get<{ readonly version: number | null }>(latestMigration)?.version ?? 0;
}
