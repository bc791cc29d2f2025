// providers/postgres/driver.ts — the part of `pg` that we use. Its types stay inside: users compile without @types/pg.

import { messageOf, ProviderError } from "../../errors.js";

export interface PgResult {
  readonly rows: readonly unknown[];
}

/** Reads one column's text. */
export type PgTypeParser = (text: string) => unknown;

export interface PgClientConfig {
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string;
  readonly password: () => Promise<string>;
  readonly ssl: boolean | object;
  readonly application_name: string;
  readonly options: string | undefined;
  /** 0: it is not sent. */
  readonly statement_timeout: number;
  readonly connectionTimeoutMillis: number;
  readonly keepAlive: boolean;
  readonly keepAliveInitialDelayMillis: number;
  readonly enableChannelBinding: boolean;
  readonly types: { getTypeParser(oid: number, format?: string): PgTypeParser };
}

export interface PgPoolConfig extends PgClientConfig {
  readonly max: number;
  readonly idleTimeoutMillis: number;
  /** Connections that nobody uses keep no process alive. */
  readonly allowExitOnIdle: boolean;
  /** What the pool makes its connections of. */
  readonly Client: PgClientClass;
}

export interface PgNotification {
  readonly channel: string;
  readonly payload?: string;
}

export interface PgStatement {
  readonly text: string;
  readonly values: readonly unknown[];
  /** The server remembers it by this. */
  readonly name?: string;
}

export interface PgClient {
  connect(callback: (error?: Error | null) => void): void;
  query(statement: PgStatement): Promise<PgResult | readonly PgResult[]>;
  end(): Promise<void>;
  /** Whether its socket keeps the process alive. */
  ref(): void;
  unref(): void;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "end", listener: () => void): unknown;
  on(event: "notification", listener: (message: PgNotification) => void): unknown;
  /** What the server, or a pooler before it, has called this connection. */
  readonly processID?: number | null;
  /** The client that libpq drives has none. */
  readonly connection?: { readonly stream: { readonly writable: boolean; destroy(): void } };
}

export interface PgPooledClient extends PgClient {
  /** With `true` the connection is closed, and no one else gets it. */
  release(destroy: boolean): void;
}

export interface PgPool {
  connect(): Promise<PgPooledClient>;
  end(): Promise<void>;
  on(event: "error", listener: (error: Error) => void): unknown;
}

export type PgClientClass = new (config: PgClientConfig) => PgClient;

export interface PgDriver {
  readonly Client: PgClientClass;
  readonly Pool: new (config: PgPoolConfig) => PgPool;
  readonly types: { getTypeParser(oid: number, format?: string): PgTypeParser };
}

/** Loaded when a provider is opened: who uses another store needs no `pg`. Before 8.15 it has but a default export. */
const installed = async (): Promise<PgDriver> => ((await import("pg")) as unknown as { default: PgDriver }).default;

/** @throws ProviderError "invalid" where `pg` is not installed */
export async function loadDriver(load: () => Promise<PgDriver> = installed): Promise<PgDriver> {
  try {
    return await load();
  } catch (error) {
    const message = `the PostgreSQL driver 'pg' could not be loaded (${messageOf(error)}). Run: npm install pg`;
    throw new ProviderError("invalid", "open", message, { cause: error });
  }
}

// The ids of types, as pg_type has them. They never change.
const BOOL = 16;
const INT8 = 20;
const INT2 = 21;
const INT4 = 23;
const OID = 26;
const FLOAT4 = 700;
const FLOAT8 = 701;
const INT4_ARRAY = 1007;
const TEXT_ARRAY = 1009;
const INT8_ARRAY = 1016;

/**
 * Numbers, booleans and arrays of numbers and text; everything else stays the text that the server sent, JSON and
 * timestamps too. The driver's parsers can be changed for a whole process by anybody; ours are per connection.
 */
export function columnTypes({ types }: PgDriver): PgClientConfig["types"] {
  const textArray = types.getTypeParser(TEXT_ARRAY) as (text: string) => (string | null)[];
  const numberArray: PgTypeParser = (text) => textArray(text).map((item) => (item === null ? null : Number(item)));
  const parsers = new Map<number, PgTypeParser>([
    [BOOL, (text) => text === "t"],
    ...[INT2, INT4, INT8, OID, FLOAT4, FLOAT8].map((oid): [number, PgTypeParser] => [oid, Number]),
    ...[INT4_ARRAY, INT8_ARRAY].map((oid): [number, PgTypeParser] => [oid, numberArray]),
    [TEXT_ARRAY, textArray],
  ]);
  return { getTypeParser: (oid) => parsers.get(oid) ?? asText };
}

const asText: PgTypeParser = (text) => text;
