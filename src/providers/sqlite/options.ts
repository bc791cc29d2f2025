// providers/sqlite/options.ts — what a user may choose about a SQLite store.

import { randomBytes } from "node:crypto";
import { resolve } from "node:path";
import { type Clock, systemClock } from "../../clock.js";
import { InvalidOptionsError } from "../../errors.js";
import { checkOptions, integerBetween, isClock, isFunction, oneOf } from "../../options.js";
import { STARTS_GO_AHEAD, type StartsGoAhead } from "../../provider/kit/proven-starts.js";

/** What a commit survives. `full`: a power cut. `process-crash`: the end of the process, but not a power cut. */
export type SqliteDurability = "full" | "process-crash";

/** When a thread of its own writes. `auto`: where it pays. */
export type WriterChoice = "auto" | "always" | "never";

/** What a store in a SQLite file may be told. */
export interface SqliteOptions {
  /** What a resolved call survives. @default "full" */
  readonly durability?: SqliteDurability;
  /** How long an operation waits while another process writes, before it fails as `transient`. @default 5000 */
  readonly busyTimeoutMs?: number;
  /**
   * How often a waiting provider looks whether another process has changed the file. 0: never, for a file that only
   * this process uses. Changes of this process are seen at once, whatever it says. @default 50
   */
  readonly crossProcessPollMs?: number;
  /** The file grows no larger; what would need more fails as `transient` and changes nothing. @default no limit */
  readonly maxDatabaseBytes?: number;
  /**
   * Whether a start may be committed together with its first turn, which takes one commit less. `proven`: where an orchestration of that name
   * has begun a hundred times in this process; one of 32 is stored first all the same. `always` and `never` are what they say. A first turn
   * that ends the process is counted as an attempt only if its start was stored before. @default "proven"
   */
  readonly startsGoAhead?: StartsGoAhead;
  /**
   * Whether a thread of its own writes and syncs, while the event loop goes on. `auto`: while many calls share each transaction, which takes
   * some ten megabytes of memory; not on Node 20. `always` is for tests, `never` for whoever wants no thread. @default "auto"
   */
  readonly writerThread?: WriterChoice;
  /** @default the system's clock */
  readonly clock?: Clock;
  /** Where lock tokens come from. @default random, then counted */
  readonly newId?: () => string;
  /** Told what was dropped or set aside. @default nobody is */
  readonly onWarning?: (message: string) => void;
}

export interface SqliteSettings {
  readonly durability: SqliteDurability;
  readonly busyTimeoutMs: number;
  readonly crossProcessPollMs: number;
  readonly maxDatabaseBytes: number | null;
  readonly startsGoAhead: StartsGoAhead;
  readonly writerThread: WriterChoice;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly onWarning: (message: string) => void;
}

export const SQLITE_DEFAULTS: SqliteSettings = Object.freeze({
  /** An acknowledged turn that is lost is the one thing that durable execution must not do. */
  durability: "full",
  /** Longer than a checkpoint of another process takes on a slow disk, shorter than the locks of a turn. */
  busyTimeoutMs: 5_000,
  /** A look is one at a counter in shared memory: cheap, twenty times a second. 50 ms are not noticeable. */
  crossProcessPollMs: 50,
  /** The disk is the limit. */
  maxDatabaseBytes: null,
  /** What has begun a hundred times does not end its process; nor does it stay unknown for ever, if it does. */
  startsGoAhead: "proven",
  /** More can be done where there is much to do; where there is little, nothing is different. */
  writerThread: "auto",
  clock: systemClock,
  newId: secretSource(),
  /** Nothing is printed in a user's process unless asked for. */
  onWarning: () => {},
});

const LONGEST_WAIT_MS = 3_600_000;
/** Less does not hold the empty schema and a few turns. */
const SMALLEST_DATABASE_BYTES = 1_048_576;

/** `sqlite:app.db`, `postgres://…`; but not `C:\app.db`. */
const URL_OF_A_STORE = /^[a-z][a-z\d+.-]+:/i;

/** @throws InvalidOptionsError */
export function resolveOptions(file: unknown, options: SqliteOptions | undefined): SqliteSettings {
  if (typeof file !== "string" || file === "") {
    const what = file === "" ? "an empty text" : file instanceof URL ? "a URL; use fileURLToPath(url)" : typeof file;
    throw new InvalidOptionsError(`SqliteProvider.open: the file must be a path or ":memory:", not ${what}.`);
  }
  const [scheme] = URL_OF_A_STORE.exec(file) ?? [];
  if (scheme !== undefined && !isFileUri(file)) {
    // The rest is not shown: it may hold a password.
    throw new InvalidOptionsError(
      `SqliteProvider.open: '${scheme}…' looks like a URL. Pass a path, such as "./app.db"; a file that is really called so is "./${scheme}…".`,
    );
  }
  checkOptions("SqliteProvider.open", options, {
    durability: oneOf("full", "process-crash"),
    busyTimeoutMs: integerBetween(0, LONGEST_WAIT_MS),
    crossProcessPollMs: integerBetween(0, LONGEST_WAIT_MS),
    maxDatabaseBytes: integerBetween(SMALLEST_DATABASE_BYTES, Number.MAX_SAFE_INTEGER),
    startsGoAhead: oneOf(...STARTS_GO_AHEAD),
    writerThread: oneOf("auto", "always", "never"),
    clock: isClock,
    newId: isFunction,
    onWarning: isFunction,
  });
  const given = Object.entries(options ?? {}).filter(([, value]) => value !== undefined);
  return { ...SQLITE_DEFAULTS, ...Object.fromEntries(given) };
}

/** The whole path, so that messages tell which file is meant. What is no path stays as it is. */
export function absolutePath(file: string): string {
  return file === ":memory:" || isFileUri(file) ? file : resolve(file);
}

/** SQLite's own form of a URL, which some drivers understand. */
export function isFileUri(file: string): boolean {
  return /^file:/i.test(file);
}

/** Lock tokens are made by the thousand: unpredictable once for each process, and counted from there. */
function secretSource(): () => string {
  const source = randomBytes(15).toString("base64url");
  let made = 0;
  return () => {
    made += 1;
    return `${source}-${made.toString(36)}`;
  };
}
