// providers/postgres/options.ts — what a user may choose about a store in PostgreSQL.

import { randomUUID } from "node:crypto";
import { type Clock, systemClock } from "../../clock.js";
import { InvalidOptionsError } from "../../errors.js";
import {
  checkOptions,
  integerBetween,
  isBoolean,
  isClock,
  isFunction,
  isString,
  type OptionCheck,
  oneOf,
  shown,
} from "../../options.js";
import { STARTS_GO_AHEAD, type StartsGoAhead } from "../../provider/kit/proven-starts.js";
import { type PostgresTarget, resolveListenTarget, resolveTarget } from "./target.js";

export type { PostgresConnection, PostgresPassword, PostgresTls } from "./target.js";

/**
 * How a waiting provider hears of work. `listen`: the server tells it. `poll`: it looks. `local`: this process alone uses
 * the schema, and knows.
 *
 * @example
 * const wakeUps: PostgresWakeUps = "poll";
 */
export type PostgresWakeUps = "listen" | "poll" | "local";

/**
 * What a store in PostgreSQL may be told.
 *
 * @example
 * const options: PostgresOptions = { schema: "billing", maxConnections: 20, onWarning: report };
 */
export interface PostgresOptions {
  /** Where the tables are: a store of its own for each name. @default "duroxide" */
  readonly schema?: string;
  /** Whether the schema is made and brought up to date. If not, it is only looked at. @default true */
  readonly migrate?: boolean;
  /** How many connections are open at once, at most. One more is used to listen. @default 10 */
  readonly maxConnections?: number;
  /** How long a call waits for a connection, before it fails as `transient`. @default 10000 */
  readonly connectTimeoutMs?: number;
  /**
   * How long a statement may take, before it fails as `transient`. 0: as long as it takes, and nothing about it is sent to
   * the server: for poolers that refuse parameters when a connection starts. @default 30000
   */
  readonly statementTimeoutMs?: number;
  /** A connection that nobody has used for so long is closed. @default 60000 */
  readonly idleTimeoutMs?: number;
  /** What `pg_stat_activity` calls our connections. @default "duroxide-ts" */
  readonly applicationName?: string;
  /** How this provider hears of work that others have made. @default "listen" */
  readonly wakeUps?: PostgresWakeUps;
  /**
   * A direct connection to listen on, where the other one leads through a pooler in transaction mode. What it leaves out
   * (user, password, database, TLS) is as in the other one. @default the same connection
   */
  readonly listenConnectionString?: string;
  /** The longest time between two looks for work of which nobody told. @default 1000 */
  readonly pollIntervalMs?: number;
  /**
   * Whether a start may be committed together with its first turn, which takes one commit less. `proven`: where an orchestration of that name
   * has begun a hundred times in this process; one of 32 is stored first all the same. `always` and `never` are what they say. A first turn
   * that ends the process is counted as an attempt only if its start was stored before. @default "proven"
   */
  readonly startsGoAhead?: StartsGoAhead;
  /** @default the system's clock */
  readonly clock?: Clock;
  /** Where lock tokens come from. @default random UUIDs */
  readonly newId?: () => string;
  /** Told what was dropped or set aside, of a lost or useless listening connection, and of a clock that is off. @default nobody is */
  readonly onWarning?: (message: string) => void;
}

export interface PostgresSettings {
  readonly target: PostgresTarget;
  /** Where to listen: often the same. */
  readonly listenTarget: PostgresTarget;
  readonly schema: string;
  /** As SQL names it: `"duroxide"`. */
  readonly quotedSchema: string;
  readonly migrate: boolean;
  readonly maxConnections: number;
  readonly connectTimeoutMs: number;
  readonly statementTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly applicationName: string;
  readonly wakeUps: PostgresWakeUps;
  readonly pollIntervalMs: number;
  readonly startsGoAhead: StartsGoAhead;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly onWarning: (message: string) => void;
}

type Chosen = Omit<PostgresSettings, "target" | "listenTarget" | "quotedSchema">;

/** Beside the tables of the application, not among them. */
const DEFAULT_SCHEMA = "duroxide";

export const POSTGRES_DEFAULTS: Chosen = Object.freeze({
  schema: DEFAULT_SCHEMA,
  migrate: true,
  /** Calls are batched: few connections carry much, and servers allow a hundred for all their users together. */
  maxConnections: 10,
  /** A server that restarts, or a name that is being looked up, needs seconds. */
  connectTimeoutMs: 10_000,
  /** Far longer than any statement of ours; shorter than forever, which is what a lost answer would take. */
  statementTimeoutMs: 30_000,
  /** Making a connection costs the server a process: a quiet minute does not close what the next burst needs. */
  idleTimeoutMs: 60_000,
  applicationName: "duroxide-ts",
  wakeUps: "listen",
  /** What is lost when a wake-up is: a second. One look is one index scan. */
  pollIntervalMs: 1_000,
  /** What has begun a hundred times does not end its process; nor does it stay unknown for ever, if it does. */
  startsGoAhead: "proven",
  clock: systemClock,
  newId: randomUUID,
  /** Nothing is printed in a user's process unless asked for. */
  onWarning: () => {},
});

const WHAT = "PostgresProvider.open";
const LONGEST_WAIT_MS = 86_400_000;
const MOST_CONNECTIONS = 1_000;
/** PostgreSQL cuts longer names off, silently. */
const LONGEST_NAME_BYTES = 63;

/** @throws InvalidOptionsError, which never shows a password */
export function resolveOptions(connection: unknown, options: PostgresOptions | undefined): PostgresSettings {
  const target = resolveTarget(WHAT, connection);
  checkOptions(WHAT, options, {
    schema: isSchemaName,
    migrate: isBoolean,
    maxConnections: integerBetween(1, MOST_CONNECTIONS),
    connectTimeoutMs: integerBetween(1, LONGEST_WAIT_MS),
    statementTimeoutMs: integerBetween(0, LONGEST_WAIT_MS),
    idleTimeoutMs: integerBetween(1, LONGEST_WAIT_MS),
    applicationName: isApplicationName,
    wakeUps: oneOf("listen", "poll", "local"),
    listenConnectionString: isSecretString,
    pollIntervalMs: integerBetween(1, LONGEST_WAIT_MS),
    startsGoAhead: oneOf(...STARTS_GO_AHEAD),
    clock: isClock,
    newId: isFunction,
    onWarning: isFunction,
  });
  const { listenConnectionString, ...given } = options ?? {};
  const listenTarget =
    listenConnectionString === undefined ? target : resolveListenTarget(WHAT, listenConnectionString, target);
  if (listenTarget !== target && given.wakeUps !== undefined && given.wakeUps !== "listen") {
    throw new InvalidOptionsError(
      `${WHAT}: option 'listenConnectionString' is of no use with wakeUps ${shown(given.wakeUps)}. Leave one of them out.`,
    );
  }
  const chosen: Chosen = { ...POSTGRES_DEFAULTS, ...defined(target.defaults), ...defined(given) };
  return { ...chosen, target, listenTarget, quotedSchema: quoteIdentifier(chosen.schema) };
}

/** @throws InvalidOptionsError for a name that no schema can have */
export function resolveSchema(what: string, options: { readonly schema?: string }): string {
  checkOptions(what, options, { schema: isSchemaName });
  return options.schema ?? POSTGRES_DEFAULTS.schema;
}

/** A name as SQL takes it, whatever is in it. */
export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

function defined<T extends object>(values: T): { [Key in keyof T]: Exclude<T[Key], undefined> } {
  const given = Object.entries(values).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as { [Key in keyof T]: Exclude<T[Key], undefined> };
}

/** What the bodies of functions are quoted with. */
export const BODY_QUOTE = "$duroxide$";

const isSchemaName: OptionCheck = (value) => {
  if (typeof value !== "string") return isString(value);
  if (value === "") return "must not be empty";
  if (value.includes("\0")) return "must not contain a NUL character";
  if (/\p{Surrogate}/u.test(value)) return "must be well-formed text: it has half of a surrogate pair";
  if (Buffer.byteLength(value) > LONGEST_NAME_BYTES) return `must have at most ${LONGEST_NAME_BYTES} bytes`;
  if (value.includes(BODY_QUOTE)) return `must not contain '${BODY_QUOTE}'`;
  if (/^pg_/i.test(value)) return `must not begin with 'pg_', which PostgreSQL keeps for itself, not ${shown(value)}`;
  return null;
};

/** The server would put question marks for what is not printable, and cut the rest off. */
const isApplicationName: OptionCheck = (value) => {
  if (typeof value !== "string") return isString(value);
  return /^[ -~]{1,63}$/.test(value) ? null : `must be 1 to 63 printable ASCII characters, not ${shown(value)}`;
};

/** As `isString`; but what is there may hold a password. */
const isSecretString: OptionCheck = (value) =>
  typeof value === "string" ? null : `must be a string, not ${Array.isArray(value) ? "an array" : typeof value}`;
