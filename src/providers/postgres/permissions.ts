// providers/postgres/permissions.ts — what the role that we connect as may do in a schema, and the grants that it lacks.
//
// The functions of the schema act with the rights of whoever calls them. So the role needs rights on what is behind them,
// too; none of them to create anything.

import { ProviderError } from "../../errors.js";
import type { Query } from "./connections.js";
import { MIGRATIONS } from "./migrations/index.js";
import { type PostgresSettings, quoteIdentifier } from "./options.js";

/** Where it stands which migrations were applied. */
export const LEDGER = "duroxide_migrations";

/** A schema as the catalog knows it, for the role that asks. */
export interface SchemaState {
  readonly role: string;
  readonly exists: boolean;
  readonly hasLedger: boolean;
  readonly mayUse: boolean;
  readonly mayReadLedger: boolean;
  readonly mayUseTables: boolean;
  readonly mayUseSequences: boolean;
  readonly mayUseFunctions: boolean;
}

/** In a schema that others use, too, theirs do not count. */
const OURS = {
  tables: namesOf(/^CREATE TABLE \{schema\}\.(\w+)/gm),
  sequences: namesOf(/^CREATE SEQUENCE \{schema\}\.(\w+)/gm),
  functions: namesOf(/^CREATE FUNCTION \{schema\}\.(\w+)/gm),
};

/** One row, whether there is such a schema or not. What is not there needs no right. */
const selectState = `
  SELECT current_user AS role,
         n.oid IS NOT NULL AS "exists",
         ledger.oid IS NOT NULL AS "hasLedger",
         COALESCE(has_schema_privilege(n.oid, 'USAGE'), false) AS "mayUse",
         COALESCE(has_table_privilege(ledger.oid, 'SELECT'), false) AS "mayReadLedger",
         NOT EXISTS (
           SELECT 1 FROM pg_catalog.pg_class AS c
           WHERE c.relnamespace = n.oid AND c.relname = ANY ($3::text[]) AND NOT (
             has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
             AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE')
           )
         ) AS "mayUseTables",
         NOT EXISTS (
           SELECT 1 FROM pg_catalog.pg_class AS c
           WHERE c.relnamespace = n.oid AND c.relname = ANY ($4::text[])
             -- It raises for what is no sequence, and conditions have no order.
             AND CASE WHEN c.relkind = 'S' THEN NOT has_sequence_privilege(c.oid, 'USAGE') ELSE false END
         ) AS "mayUseSequences",
         NOT EXISTS (
           SELECT 1 FROM pg_catalog.pg_proc AS p
           WHERE p.pronamespace = n.oid AND p.proname = ANY ($5::text[]) AND NOT has_function_privilege(p.oid, 'EXECUTE')
         ) AS "mayUseFunctions"
  FROM (SELECT 1) AS one
  LEFT JOIN pg_catalog.pg_namespace AS n ON n.nspname = $1
  LEFT JOIN pg_catalog.pg_class AS ledger ON ledger.relnamespace = n.oid AND ledger.relname = $2
`;

export async function schemaState(query: Query, schema: string): Promise<SchemaState> {
  const [state] = await query<SchemaState>(selectState, [schema, LEDGER, OURS.tables, OURS.sequences, OURS.functions]);
  return state!;
}

/** @throws ProviderError "invalid" when it cannot be seen which migrations were applied */
export function checkReadable(state: SchemaState, settings: PostgresSettings): void {
  if (!state.mayUse || !state.mayReadLedger) throw notAllowed(state, settings);
}

/** @throws ProviderError "invalid" when something that the provider does would be refused */
export function checkUsable(state: SchemaState, settings: PostgresSettings): void {
  const { mayUse, mayReadLedger, mayUseTables, mayUseSequences, mayUseFunctions } = state;
  if (!(mayUse && mayReadLedger && mayUseTables && mayUseSequences && mayUseFunctions)) {
    throw notAllowed(state, settings);
  }
}

/** The server has refused to create something. */
export function mayNotMigrate(state: SchemaState, settings: PostgresSettings, cause: unknown): ProviderError {
  const { schema, quotedSchema, target } = settings;
  const role = quoteIdentifier(state.role);
  const grant = state.exists
    ? `GRANT USAGE, CREATE ON SCHEMA ${quotedSchema} TO ${role}`
    : `GRANT CREATE ON DATABASE ${quoteIdentifier(target.database)} TO ${role}`;
  const what = state.hasLedger ? "change" : "make";
  const message = `user '${state.role}' may not ${what} schema '${schema}' at ${target.label}`;
  const other = state.hasLedger
    ? "Or let its owner open it once"
    : "Or apply what migrations() returns as somebody who may";
  const advice = `Run: ${grant}. ${other}, and open with migrate: false`;
  return new ProviderError("invalid", "open", `${message}. ${advice}`, { cause });
}

function notAllowed(state: SchemaState, { schema, quotedSchema, target }: PostgresSettings): ProviderError {
  const role = quoteIdentifier(state.role);
  const missing = [
    ...(state.mayUse ? [] : [`USAGE ON SCHEMA ${quotedSchema}`]),
    ...(state.mayUseTables && state.mayReadLedger
      ? []
      : [`SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${quotedSchema}`]),
    ...(state.mayUseSequences ? [] : [`USAGE ON ALL SEQUENCES IN SCHEMA ${quotedSchema}`]),
    ...(state.mayUseFunctions ? [] : [`EXECUTE ON ALL FUNCTIONS IN SCHEMA ${quotedSchema}`]),
  ];
  const grants = missing.map((right) => `GRANT ${right} TO ${role}`).join("; ");
  const message = `user '${state.role}' may not work in schema '${schema}' at ${target.label}`;
  return new ProviderError("invalid", "open", `${message}. As the owner of the schema, run: ${grants}`);
}

function namesOf(statement: RegExp): readonly string[] {
  return MIGRATIONS.flatMap(({ script }) => Array.from(script.matchAll(statement), ([, name]) => name!));
}
