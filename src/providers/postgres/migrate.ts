// providers/postgres/migrate.ts — brings a schema to this version, however many processes start at the same time.
//
//   M1. A schema that is up to date is only read: whoever may not create anything can use it.
//   M2. What is missing is applied in one transaction, under an advisory lock: one process applies it, the others wait and
//       find it done. Whatever fails or ends in between, there is all of it or nothing.
//   M3. A schema that is newer than this code is refused, and so is one in which our names belong to others. Neither is
//       changed.
//   M4. Whoever opens a schema may do there all that the provider does.

import { createHash } from "node:crypto";
import { messageOf, ProviderError } from "../../errors.js";
import type { Connections, Query } from "./connections.js";
import { sqlStateOf } from "./driver-errors.js";
import { MIGRATIONS, type Migration } from "./migrations/index.js";
import { BODY_QUOTE, type PostgresSettings, quoteIdentifier, resolveSchema } from "./options.js";
import { checkReadable, checkUsable, LEDGER, mayNotMigrate, type SchemaState, schemaState } from "./permissions.js";

/** One step from an empty schema to the present one. */
export interface PostgresMigration {
  /** Steps are applied in this order, each once. */
  readonly version: number;
  readonly name: string;
  /** A script for `psql --single-transaction`. It also records that it was applied. */
  readonly sql: string;
}

const OPERATION = "open";

/** The highest version that this code knows. */
const LATEST = MIGRATIONS.at(-1)?.version ?? 0;

/** The schema itself, and where what was applied is recorded. A schema that exists may belong to whoever may make none. */
const createLedger = `
DO $$
BEGIN
  IF pg_catalog.to_regnamespace('{schema}') IS NULL THEN CREATE SCHEMA {schema}; END IF;
END
$$;
CREATE TABLE IF NOT EXISTS {schema}.${LEDGER} (
  version    integer PRIMARY KEY,
  name       text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now()
);
`;

const selectApplied = `SELECT version FROM {schema}.${LEDGER}`;

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

/** @throws ProviderError "invalid" for a schema that is newer, that is older and not to be changed, or that is not ours */
export async function migrate(connections: Connections, settings: PostgresSettings): Promise<void> {
  const query: Query = (text, values) => connections.query(OPERATION, text, values);
  const state = await schemaState(query, settings.schema);
  const missing = await missingMigrations(query, state, settings);
  if (missing.length === 0) return checkUsable(state, settings); // M1, M4
  if (!settings.migrate) throw behind(missing, settings);
  try {
    await connections.transaction(OPERATION, (inTransaction) => applyMissing(inTransaction, settings));
  } catch (error) {
    throw explained(error, state, settings);
  }
  checkUsable(await schemaState(query, settings.schema), settings);
}

/** M2 */
async function applyMissing(query: Query, settings: PostgresSettings): Promise<void> {
  await query("SELECT pg_advisory_xact_lock($1::bigint)", [lockKey(settings.schema)]);
  const state = await schemaState(query, settings.schema);
  const missing = await missingMigrations(query, state, settings);
  for (const migration of missing) await query(scriptFor(migration, settings.quotedSchema));
}

/** In their order. Whoever applies them by hand may leave one out. */
async function missingMigrations(
  query: Query,
  state: SchemaState,
  settings: PostgresSettings,
): Promise<readonly Migration[]> {
  if (!state.hasLedger) return MIGRATIONS;
  checkReadable(state, settings);
  const rows = await query<{ readonly version: number }>(inSchema(selectApplied, settings.quotedSchema));
  const applied = new Set(rows.map(({ version }) => version));
  checkKnown(Math.max(0, ...applied), settings);
  return MIGRATIONS.filter(({ version }) => !applied.has(version));
}

function scriptFor({ version, name, script }: Migration, quotedSchema: string): string {
  const record = `INSERT INTO {schema}.${LEDGER} (version, name) VALUES (${version}, '${name}');\n`;
  return inSchema(`${version === 1 ? createLedger : ""}${script}\n${record}`, quotedSchema);
}

/**
 * Puts the schema in place of its placeholder, whatever its name holds: the bodies of functions get quotes that no name may
 * contain, and within a literal, such as the name of a sequence, the name is escaped as literals are. In one pass: a name
 * may look like a placeholder.
 */
export function inSchema(script: string, quotedSchema: string): string {
  return script.replace(/\$\$|'\{schema\}|\{schema\}/g, (place) => {
    if (place === "$$") return BODY_QUOTE;
    return place === "{schema}" ? quotedSchema : openLiteral(quotedSchema);
  });
}

/** Without the E, what a backslash means would be a matter of settings. */
function openLiteral(text: string): string {
  return `E'${text.replaceAll("\\", "\\\\").replaceAll("'", "''")}`;
}

/** The same in all processes, another one for each schema; text, because it may be larger than a JavaScript integer. */
function lockKey(schema: string): string {
  return createHash("sha256").update(`duroxide-ts migrations ${schema}`).digest().readBigInt64BE().toString();
}

/** M3 */
function checkKnown(applied: number, { schema, target }: PostgresSettings): void {
  if (applied <= LATEST) return;
  const message = `the schema '${schema}' at ${target.label} has version ${applied}, and this version of duroxide-ts knows none above ${LATEST}`;
  throw new ProviderError("invalid", OPERATION, `${message}. Update duroxide-ts, or use another schema`);
}

function behind(missing: readonly Migration[], { schema, target }: PostgresSettings): ProviderError {
  const steps = missing.map(({ version, name }) => `${version} (${name})`).join(", ");
  const message = `the schema '${schema}' at ${target.label} lacks what this version of duroxide-ts needs: migration ${steps}`;
  const advice = "Apply what migrations() returns for these, or open with migrate: true";
  return new ProviderError("invalid", OPERATION, `${message}. ${advice}`);
}

/** Why a migration failed, where it is for somebody to act. */
function explained(error: unknown, state: SchemaState, settings: PostgresSettings): unknown {
  switch (sqlStateOf(error)) {
    case "42501":
      return mayNotMigrate(state, settings, error);
    case "42P07":
    case "42710":
    case "42723":
      return taken(error as ProviderError, settings); // M3
    default:
      return error;
  }
}

function taken(error: ProviderError, { schema, target }: PostgresSettings): ProviderError {
  const message = `schema '${schema}' at ${target.label} has something by a name that the provider needs (${messageOf(error.cause)})`;
  return new ProviderError("invalid", OPERATION, `${message}. Nothing was changed. Choose another schema`, {
    cause: error,
  });
}
