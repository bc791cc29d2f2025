// providers/postgres/server-check.ts — whether a server, a database and the settings of a role are such that our SQL works.
//
// Settings may be those of the server, the database, the role, or the connection. We cannot set our own: behind a pooler
// they would become those of everybody, and when a connection starts poolers refuse them. So they are looked at.

import { ProviderError } from "../../errors.js";
import { quoteIdentifier } from "./options.js";

/** What the server says of itself. */
export interface ServerFacts {
  readonly version: number;
  readonly encoding: string;
  readonly isReplica: boolean;
  readonly role: string;
  readonly database: string;
  readonly isolation: string;
  readonly readOnly: string;
  readonly arrayNulls: string;
  /** Where names are looked up, in this order: a JSON list of schemas. */
  readonly searchPath: string;
}

/** The first with everything that our SQL uses, and the oldest that we have reason to expect. */
const OLDEST_SERVER = 130_000;

export const selectServerFacts = `
  SELECT pg_catalog.current_setting('server_version_num')::int AS version,
         pg_catalog.current_setting('server_encoding') AS encoding,
         pg_catalog.pg_is_in_recovery() AS "isReplica",
         session_user AS role,
         pg_catalog.current_database() AS database,
         pg_catalog.current_setting('transaction_isolation') AS isolation,
         pg_catalog.current_setting('transaction_read_only') AS "readOnly",
         pg_catalog.current_setting('array_nulls') AS "arrayNulls",
         pg_catalog.to_json(pg_catalog.current_schemas(true))::text AS "searchPath"
`;

/** @throws ProviderError "invalid"; "transient" for a replica, which may be about to take over */
export function checkServer(facts: ServerFacts, label: string): void {
  const { version, encoding, isReplica } = facts;
  if (version < OLDEST_SERVER) {
    const found = `${label} is PostgreSQL ${Math.floor(version / 10_000)}`;
    throw invalid(`${found}. Version ${OLDEST_SERVER / 10_000} or newer is needed`);
  }
  if (encoding !== "UTF8") {
    const message = `the database ${label} has the encoding ${encoding}, which cannot hold every text`;
    throw invalid(`${message}. Create one with: ENCODING 'UTF8' TEMPLATE template0`);
  }
  if (isReplica) {
    const message = `${label} is a replica, or has yet to take over from one; try again later, or name the primary server`;
    throw new ProviderError("transient", "open", message);
  }
  checkSettings(facts, label);
}

function checkSettings(facts: ServerFacts, label: string): void {
  // Every statement of a function must see what was committed while the one before it waited for a lock.
  if (facts.isolation !== "read committed") {
    const message = `${label} begins transactions as ${facts.isolation}, and the provider needs read committed`;
    throw wrongSetting(message, facts, "default_transaction_isolation = 'read committed'");
  }
  if (facts.readOnly !== "off") {
    throw wrongSetting(`${label} begins transactions as read-only`, facts, "default_transaction_read_only = off");
  }
  // Lists are sent as text, in which null must not become the word.
  if (facts.arrayNulls !== "on") throw wrongSetting(`${label} takes no nulls in arrays`, facts, "array_nulls = on");
  const first = schemasOf(facts).find((schema) => !/^pg_temp_\d+$/.test(schema)); // It has no functions and operators.
  if (first !== "pg_catalog") {
    const message = `${label} looks into schema '${first}' before pg_catalog: the functions of anybody could come before the system's`;
    throw wrongSetting(message, facts, 'search_path = "$user", public');
  }
}

function schemasOf({ searchPath }: ServerFacts): readonly string[] {
  return JSON.parse(searchPath) as readonly string[];
}

/** The settings of a role in a database come before all others but the connection's own. */
function wrongSetting(message: string, { role, database }: ServerFacts, setting: string): ProviderError {
  const statement = `ALTER ROLE ${quoteIdentifier(role)} IN DATABASE ${quoteIdentifier(database)} SET ${setting}`;
  return invalid(`${message}. Run: ${statement}. Or change it where the connection's options set it`);
}

function invalid(message: string): ProviderError {
  return new ProviderError("invalid", "open", message);
}
