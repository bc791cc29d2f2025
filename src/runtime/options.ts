// runtime/options.ts — what a runtime can be told, what it assumes otherwise, and why.

import { randomUUID } from "node:crypto";
import { type Clock, systemClock } from "../clock.js";
import { InvalidOptionsError } from "../errors.js";
import { ENGINE_VERSION } from "../history/event.js";
import {
  byteLength,
  DEFAULT_LIMITS,
  isName,
  LIMIT_CHECKS,
  type Limits,
  MAX_NAME_BYTES,
  MAX_WORKER_TAGS,
} from "../history/limits.js";
import type { Observer } from "../observer.js";
import {
  checkOptions,
  integerBetween,
  isArrayOf,
  isBoolean,
  isClock,
  isFunction,
  isObject,
  isString,
  type OptionCheck,
} from "../options.js";
import type { SemVer, SemVerRange, TagFilter } from "../provider/provider.js";
import type { VersionPolicies } from "./registry.js";
import { compareSemVer, formatSemVer, parseSemVer } from "./semver.js";
import type { UnregisteredBackoff } from "./unregistered-backoff.js";

/** How a runtime works. All of it optional; the defaults suit one process of a small service. */
export interface RuntimeOptions {
  /** Instances whose turns may be in progress at once. 0: this process runs no orchestrations. @default 16 */
  readonly orchestrationConcurrency?: number;
  /** Activities that may run at once. 0: this process runs no activities. @default 32 */
  readonly workerConcurrency?: number;
  /** The least time between two looks into an empty queue, for providers that cannot wait. @default 100 */
  readonly minPollIntervalMs?: number;
  /** How long a provider that can wait for work may do so before it answers that there is none. @default 30_000 */
  readonly longPollTimeoutMs?: number;
  /** How long an instance stays ours without a sign of life. @default 5_000 */
  readonly orchestratorLockTimeoutMs?: number;
  /** How long before its end an instance's lock is renewed. One not shorter than the lock is ignored. @default 2_000 */
  readonly orchestratorLockRenewalBufferMs?: number;
  /** How long an activity stays ours without a sign of life. @default 30_000 */
  readonly workerLockTimeoutMs?: number;
  /** How long before its end an activity's lock is renewed. One not shorter than the lock is ignored. @default 5_000 */
  readonly workerLockRenewalBufferMs?: number;
  /** Fetches of the same work after which it is failed as poison, without being run again. @default 10 */
  readonly maxAttempts?: number;
  /** How long work is left alone that nobody here can do: doubled with every attempt. @default 1_000 to 60_000 */
  readonly unregisteredBackoff?: Partial<UnregisteredBackoff>;
  /** How long a cancelled activity may take to end before its slot goes on without it. @default 10_000 */
  readonly activityCancellationGraceMs?: number;
  /**
   * Engine versions whose histories this runtime takes. Never above its own: it cannot know how those replay.
   * @default 0.0.0 to its own
   */
  readonly supportedReplayVersions?: { readonly min?: string; readonly max?: string };
  /** How long a session stays with a worker without a sign of life. @default 30_000 */
  readonly sessionLockTimeoutMs?: number;
  /** How long before its end a session's lock is renewed. One not shorter than the lock is ignored. @default 5_000 */
  readonly sessionLockRenewalBufferMs?: number;
  /** How long a session without activities stays with its worker. @default 300_000 */
  readonly sessionIdleTimeoutMs?: number;
  /** How often sessions that nobody owns any more are removed. @default 300_000 */
  readonly sessionCleanupIntervalMs?: number;
  /** Distinct sessions with activities in flight here. @default 10 */
  readonly maxSessionsPerRuntime?: number;
  /**
   * A name for this process that survives its restart: it then keeps its sessions, and all its slots share them.
   * @default null: every slot owns its own sessions
   */
  readonly workerNodeId?: string | null;
  /** Which tagged activities run here. @default those without a tag */
  readonly tagFilter?: TagFilter;
  /** Memory for instances that wait between turns, so that they need no replay. 0: none. @default 64 MiB */
  readonly warmCacheBytes?: number;
  /**
   * How large things may be. A warning (`limit-near`) comes at half of each. Raise with care: other processes have limits
   * too, and so have clients. @default `DEFAULT_LIMITS`
   */
  readonly limits?: Partial<Limits>;
  /** By name of orchestration: which version a start that names none gets. @default "latest" for all */
  readonly versionPolicies?: VersionPolicies;
  /**
   * Fails orchestrations whose code calls what no history records: `Date.now()`, `new Date()`, `Math.random()`,
   * `crypto.randomUUID()`, timers, `fetch` and the like, with a NondeterministicCallError that says what to use instead. An
   * instance that has a history already goes on: the call is told to observers, as `nondeterministic-call`.
   * @default true, but false where the environment says NODE_ENV=production when the runtime starts
   */
  readonly determinismGuard?: boolean;
  /** How long `shutdown` waits for activities in flight before it gives them back. @default 5_000 */
  readonly shutdownGraceMs?: number;
  /** Told everything that happens. @default none */
  readonly observers?: readonly Observer[];
  /** @default the system's clock */
  readonly clock?: Clock;
  /** Makes unique ids. @default random UUIDs */
  readonly newId?: () => string;
}

/** All options, checked and filled in. */
export interface ResolvedRuntimeOptions
  extends Required<Omit<RuntimeOptions, "supportedReplayVersions" | "unregisteredBackoff" | "limits">> {
  readonly supportedReplayVersions: SemVerRange;
  readonly unregisteredBackoff: UnregisteredBackoff;
  readonly limits: Limits;
}

const MiB = 1_048_576;
const DAY_MS = 86_400_000;
const OWN_VERSION: SemVer = parseSemVer(ENGINE_VERSION)!;

/** What a runtime does unless told otherwise, with the reasons. */
export const DEFAULT_RUNTIME_OPTIONS: ResolvedRuntimeOptions = Object.freeze({
  /** Turns of one process run one after the other; the slots only overlap their storage calls. */
  orchestrationConcurrency: 16,
  /** Activities mostly wait for I/O: slots are cheap, and few of them starve the queue. */
  workerConcurrency: 32,
  /** Ten looks a second into an empty queue: unnoticed by people, bearable for any store. */
  minPollIntervalMs: 100,
  /** Well below the idle timeouts of proxies and load balancers. */
  longPollTimeoutMs: 30_000,
  /** A turn takes milliseconds: after a crash nobody waits longer than this. */
  orchestratorLockTimeoutMs: 5_000,
  /** Two seconds for a slow renewal before the lock is gone. */
  orchestratorLockRenewalBufferMs: 2_000,
  /** Tolerates long pauses of the process; after a crash an activity is run again half a minute later. */
  workerLockTimeoutMs: 30_000,
  workerLockRenewalBufferMs: 5_000,
  /** With the backoff below, about five minutes of a rolling deployment before work is given up. */
  maxAttempts: 10,
  unregisteredBackoff: Object.freeze({ baseMs: 1_000, maxMs: 60_000 }),
  /** Long enough for a request to end; a slot is not lost for longer. */
  activityCancellationGraceMs: 10_000,
  supportedReplayVersions: Object.freeze({ min: Object.freeze({ major: 0, minor: 0, patch: 0 }), max: OWN_VERSION }),
  sessionLockTimeoutMs: 30_000,
  sessionLockRenewalBufferMs: 5_000,
  /** What a session keeps in memory should survive a person's pause. */
  sessionIdleTimeoutMs: 300_000,
  sessionCleanupIntervalMs: 300_000,
  /** Sessions hold resources; a process that takes all of them leaves none for its peers. */
  maxSessionsPerRuntime: 10,
  workerNodeId: null,
  /** Tags mean special workers: whoever did not ask for such work does not get it. */
  tagFilter: Object.freeze({ kind: "default-only" }),
  /** Some thousands of small instances, at about 9 KB each, and no burden for a small container. */
  warmCacheBytes: 64 * MiB,
  limits: DEFAULT_LIMITS,
  versionPolicies: Object.freeze({}),
  /** A mistake should cost a developer minutes, not an operator a night. Read when a runtime starts. */
  get determinismGuard() {
    return process.env.NODE_ENV !== "production";
  },
  /** Most activities end within it, and it fits twice into the ten seconds that container runtimes give. */
  shutdownGraceMs: 5_000,
  observers: Object.freeze([]),
  clock: systemClock,
  newId: randomUUID,
});

/**
 * Checks the options and fills in the defaults. `alsoKnown`: what else the same object may carry.
 *
 * @throws InvalidOptionsError
 */
export function resolveRuntimeOptions(
  given: RuntimeOptions,
  alsoKnown: Readonly<Record<string, OptionCheck>> = {},
): ResolvedRuntimeOptions {
  checkOptions(WHAT, given, { ...alsoKnown, ...CHECKS });
  const { supportedReplayVersions, unregisteredBackoff, limits, ...plain } = given;
  const resolved: ResolvedRuntimeOptions = {
    ...withDefaults(DEFAULT_RUNTIME_OPTIONS, plain),
    supportedReplayVersions: resolveReplayVersions(supportedReplayVersions ?? {}),
    unregisteredBackoff: withDefaults(DEFAULT_RUNTIME_OPTIONS.unregisteredBackoff, unregisteredBackoff ?? {}),
    limits: withDefaults(DEFAULT_LIMITS, limits ?? {}),
  };
  checkSessionIdleTimeout(resolved);
  return Object.freeze(resolved);
}

const WHAT = "Runtime.start";

const milliseconds = integerBetween(0, DAY_MS);
const someMilliseconds = integerBetween(1, DAY_MS);
const anyCount = integerBetween(0, Number.MAX_SAFE_INTEGER);

const CHECKS: Readonly<Record<keyof RuntimeOptions, OptionCheck>> = {
  orchestrationConcurrency: integerBetween(0, 10_000),
  workerConcurrency: integerBetween(0, 10_000),
  minPollIntervalMs: someMilliseconds,
  longPollTimeoutMs: milliseconds,
  orchestratorLockTimeoutMs: someMilliseconds,
  orchestratorLockRenewalBufferMs: milliseconds,
  workerLockTimeoutMs: someMilliseconds,
  workerLockRenewalBufferMs: milliseconds,
  maxAttempts: integerBetween(1, 1_000_000),
  unregisteredBackoff: nested("unregisteredBackoff", { baseMs: someMilliseconds, maxMs: someMilliseconds }),
  activityCancellationGraceMs: milliseconds,
  supportedReplayVersions: nested("supportedReplayVersions", { min: isSemVer, max: isSemVer }),
  sessionLockTimeoutMs: someMilliseconds,
  sessionLockRenewalBufferMs: milliseconds,
  sessionIdleTimeoutMs: someMilliseconds,
  sessionCleanupIntervalMs: someMilliseconds,
  maxSessionsPerRuntime: integerBetween(0, 1_000_000),
  workerNodeId: isNodeId,
  tagFilter: isTagFilter,
  warmCacheBytes: anyCount,
  limits: nested("limits", LIMIT_CHECKS),
  versionPolicies: isObject,
  determinismGuard: isBoolean,
  shutdownGraceMs: milliseconds,
  observers: isArrayOfFunctions,
  clock: isClock,
  newId: isFunction,
};

function nested(name: string, fields: Readonly<Record<string, OptionCheck>>): OptionCheck {
  return (value) => {
    checkOptions(`${WHAT}, ${name}`, value, fields);
    return null;
  };
}

function isSemVer(value: unknown): string | null {
  return typeof value === "string" && parseSemVer(value) !== null ? null : "must be a version such as '1.2.3'";
}

function isNodeId(value: unknown): string | null {
  if (value === null) return null;
  return isString(value) ?? (value === "" ? "must not be empty" : null);
}

function isTagFilter(value: unknown): string | null {
  const filter = value as TagFilter | null;
  switch (filter?.kind) {
    case "default-only":
    case "any":
    case "none":
      return null;
    case "tags":
    case "default-and":
      return isTagList(filter.tags);
    default:
      return "must have the kind 'default-only', 'tags', 'default-and', 'any' or 'none'";
  }
}

function isTagList(tags: unknown): string | null {
  if (!Array.isArray(tags) || tags.length === 0 || tags.length > MAX_WORKER_TAGS) {
    return `must list 1 to ${MAX_WORKER_TAGS} tags`;
  }
  const isSized = (tag: unknown): boolean => typeof tag === "string" && tag !== "" && byteLength(tag) <= MAX_NAME_BYTES;
  if (!isArrayOf(tags, isSized)) return `must list tags of 1 to ${MAX_NAME_BYTES} bytes`;
  return isArrayOf(tags, isName) ? null : "must list tags that an activity can have: well-formed text without NUL";
}

function isArrayOfFunctions(value: unknown): string | null {
  return isArrayOf(value, (element) => typeof element === "function") ? null : "must be an array of functions";
}

/** Of what is given, only what the defaults name; undefined counts as not given. */
function withDefaults<T extends object>(defaults: T, given: Partial<T>): T {
  const known = Object.keys(defaults) as (keyof T)[];
  const said = known.filter((name) => given[name] !== undefined).map((name) => [name, given[name]]);
  return { ...defaults, ...Object.fromEntries(said) };
}

function resolveReplayVersions(given: { readonly min?: string; readonly max?: string }): SemVerRange {
  const { min, max } = DEFAULT_RUNTIME_OPTIONS.supportedReplayVersions;
  const range: SemVerRange = {
    min: given.min === undefined ? min : parseSemVer(given.min)!,
    max: given.max === undefined ? max : parseSemVer(given.max)!,
  };
  if (compareSemVer(range.max, OWN_VERSION) > 0) {
    throw new InvalidOptionsError(
      `${WHAT}: option 'supportedReplayVersions' ends at ${formatSemVer(range.max)}, above this engine's own version ${ENGINE_VERSION}. It cannot know how newer histories replay; upgrade duroxide-ts instead.`,
    );
  }
  if (compareSemVer(range.min, range.max) > 0) {
    throw new InvalidOptionsError(
      `${WHAT}: option 'supportedReplayVersions' is empty: ${formatSemVer(range.min)} is above ${formatSemVer(range.max)}.`,
    );
  }
  return range;
}

/** A session must not count as idle between two renewals of an activity that uses it. */
function checkSessionIdleTimeout(options: ResolvedRuntimeOptions): void {
  const renewalMs = options.workerLockTimeoutMs - options.workerLockRenewalBufferMs;
  const leastMs = renewalMs < 0 ? 1_000 : renewalMs;
  if (options.sessionIdleTimeoutMs > leastMs) return;
  throw new InvalidOptionsError(
    `${WHAT}: option 'sessionIdleTimeoutMs' (${options.sessionIdleTimeoutMs}) must exceed workerLockTimeoutMs − workerLockRenewalBufferMs (${leastMs}), or sessions in use would count as idle.`,
  );
}
