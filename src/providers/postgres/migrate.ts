// providers/postgres/migrate.ts — brings a schema to this version, however many processes start at the same time.
//
//   M1. A schema that is up to date is only read: whoever may not create anything can use it.
//   M2. What is missing is applied in one transaction, under an advisory lock: one process applies it, the others wait and
//       find it done.
//   M3. A schema that is newer than this code is refused.

import { createHash } from "node:crypto";
import { ProviderError } from "../../errors.js";
import type { Connections } from "./connections.js";
import { MIGRATIONS, type Migration } from "./migrations/index.js";
import { BODY_QUOTE, type PostgresSettings, quoteIdentifier, resolveSchema } from "./options.js";

/** One step from an empty schema to the present one. */
export interface PostgresMigration {
  /** Steps are applied in this order, each once. */
  readonly version: number;
  readonly name: string;
  /** A script for `psql --single-transaction`. It also records that it was applied. */
  readonly sql: string;
}

type Query = <Row>(text: string, values?: readonly (string | number)[]) => Promise<readonly Row[]>;

const OPERATION = "open";

/** The highest version that this code knows. */
const LATEST = MIGRATIONS.at(-1)?.version ?? 0;

/** Where what was applied is recorded, and the schema itself. */
const createLedger = `
CREATE SCHEMA IF NOT EXISTS {schema};
CREATE TABLE IF NOT EXISTS {schema}.duroxide_migrations (
  version    integer PRIMARY KEY,
  name       text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now()
);
`;

const selectLedger = `
  SELECT 1 FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
  WHERE n.nspname = $1 AND c.relname = 'duroxide_migrations'
`;
const selectApplied = `SELECT COALESCE(max(version), 0) AS version FROM {schema}.duroxide_migrations`;

/**
 * The SQL of all migrations, for those who apply them by hand: with a role that may create, so that the role of the
 * application need not. Open the provider with `migrate: false` then.
 *
 * @throws DUROXIDE_INVALID_OPTIONS for a name that no schema can have
 * @example
 * for (const { version, name, sql } of migrations({ schema: "billing" })) report(`-- ${version} ${name}\n${sql}`);
 */
export function migrations(options: { readonly schema?: string } = {}): readonly PostgresMigration[] {
  const quotedSchema = quoteIdentifier(resolveSchema("migrations", options));
  return MIGRATIONS.map((migration) => ({
    version: migration.version,
    name: migration.name,
    sql: scriptFor(migration, quotedSchema),
  }));
}

/** @throws ProviderError "invalid" for a schema that is newer, or older and not to be changed */
export async function migrate(connections: Connections, settings: PostgresSettings): Promise<void> {
  const { schema } = settings;
  const query: Query = (text, values) => connections.query(OPERATION, text, values);
  const found = await appliedVersion(query, settings);
  checkKnown(found, schema);
  if (found === LATEST) return; // M1
  if (!settings.migrate) throw behind(found, schema);
  await connections.transaction(OPERATION, async (inTransaction) => {
    await inTransaction("SELECT pg_advisory_xact_lock($1::bigint)", [lockKey(schema)]); // M2
    const applied = await appliedVersion(inTransaction, settings);
    checkKnown(applied, schema);
    for (const migration of MIGRATIONS) {
      if (migration.version > applied) await inTransaction(scriptFor(migration, settings.quotedSchema));
    }
  });
}

async function appliedVersion(query: Query, { schema, quotedSchema }: PostgresSettings): Promise<number> {
  const ledger = await query(selectLedger, [schema]);
  if (ledger.length === 0) return 0;
  const [row] = await query<{ readonly version: number }>(inSchema(selectApplied, quotedSchema));
  return row?.version ?? 0;
}

function scriptFor({ version, name, script }: Migration, quotedSchema: string): string {
  const record = `INSERT INTO {schema}.duroxide_migrations (version, name) VALUES (${version}, '${name}');\n`;
  return inSchema(`${version === 1 ? createLedger : ""}${script}\n${record}`, quotedSchema);
}

/**
 * Puts the schema in place of its placeholder, whatever its name holds: the bodies of functions get quotes that no name may
 * contain, and within a literal, such as the name of a sequence, single quotes are doubled as those of literals are.
 */
export function inSchema(script: string, quotedSchema: string): string {
  return script
    .replaceAll("$$", () => BODY_QUOTE)
    .replaceAll("'{schema}.", () => `'${quotedSchema.replaceAll("'", "''")}.`)
    .replaceAll("{schema}", () => quotedSchema);
}

/** The same in all processes, another one for each schema; text, because it may be larger than a JavaScript integer. */
function lockKey(schema: string): string {
  return createHash("sha256").update(`duroxide-ts migrations ${schema}`).digest().readBigInt64BE().toString();
}

/** M3 */
function checkKnown(applied: number, schema: string): void {
  if (applied <= LATEST) return;
  const message = `the schema '${schema}' has version ${applied}, and this version of duroxide-ts knows none above ${LATEST}`;
  throw new ProviderError("invalid", OPERATION, `${message}. Update duroxide-ts, or use another schema`);
}

function behind(applied: number, schema: string): ProviderError {
  const message = `the schema '${schema}' has version ${applied}, this version of duroxide-ts needs ${LATEST}`;
  const advice = "Apply what migrations() returns, or open with migrate: true";
  return new ProviderError("invalid", OPERATION, `${message}. ${advice}`);
}
