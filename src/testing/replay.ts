// testing/replay.ts — whether today's code still fits a history of yesterday.

import type { OrchestrationDefinition } from "../define.js";
import { yieldToEventLoop } from "../engine/drain.js";
import { guardRejections } from "../engine/rejection-guard.js";
import { InvalidInputError } from "../errors.js";
import type { Event, EventOf } from "../history/event.js";
import type { KvEntry } from "../history/kv-entry.js";
import { DEFAULT_LIMITS, LIMIT_CHECKS, type Limits } from "../history/limits.js";
import { encodePayload } from "../history/payload.js";
import { checkOptions, isObject } from "../options.js";
import { Registry, type ResolvedOrchestration } from "../runtime/registry.js";
import { eventsOf, type History } from "./exported-history.js";
import { ReplayCheck, type Replayed, type ReplaySubject } from "./replay-check.js";

/** An orchestration, or several of which a history's own name and version choose one. */
export type ReplayedCode = OrchestrationDefinition | readonly OrchestrationDefinition[];

/** What the history of an execution does not tell. */
export interface ReplayOptions {
  /**
   * What was in the key-value store when the execution began: values, or entries with their times. Only executions after
   * the first can find something there. @default nothing
   */
  readonly kv?: Readonly<Record<string, unknown>> | ReadonlyMap<string, KvEntry>;
  /** As the runtime had them. @default those of a runtime */
  readonly limits?: Partial<Limits>;
}

/**
 * Leads code through a recorded history, as a runtime would after a crash, and compares: every decision, in order; custom
 * status, key-values and the ids of children; what was given up; and the end. Stricter than a runtime, which goes on where
 * that is safe. Times are not compared, nor versions that were asked for: no history records them. No store is needed, and
 * no activity runs.
 *
 * A history that has not ended must leave the code waiting, with no new decision. One that the runtime ended (poison, a
 * broken limit, nondeterminism, a failure that was nobody's in the application) must fit up to there.
 *
 * @throws DUROXIDE_REPLAY_DIVERGED where code and history part; the message says at which event, what history records and
 *   what the code does
 * @throws DUROXIDE_INVALID_HISTORY, DUROXIDE_CODEC for what is no history
 * @throws DUROXIDE_INVALID_INPUT if it is of another orchestration or version
 * @throws DUROXIDE_REGISTRATION for definitions that no runtime would take
 * @throws DUROXIDE_INVALID_OPTIONS for an option that is unknown, or out of range
 * @example
 * import { readFileSync } from "node:fs";
 * const result = await replay(readFileSync("order-1.jsonl", "utf8"), checkout);
 * if (result.status === "waiting") report(result.waitingFor); // ["a timer", "event 'shipped'"]
 */
export async function replay(
  history: History,
  orchestration: ReplayedCode,
  options: ReplayOptions = {},
): Promise<Replayed> {
  const check = new ReplayCheck(subjectOf("replay", history, orchestration, options));
  return keepingRejections(() => check.whole());
}

/** `what`: whom the options are for. */
export function subjectOf(
  what: string,
  history: History,
  orchestration: ReplayedCode,
  options: ReplayOptions,
): ReplaySubject {
  checkOptions(what, options, { kv: isObject, limits: isObject });
  checkOptions(`${what}: limits`, options.limits, LIMIT_CHECKS);
  const events = eventsOf(history);
  return {
    events,
    handler: handlerFor(events, orchestration),
    kv: entriesOf(options.kv ?? {}, what),
    limits: { ...DEFAULT_LIMITS, ...options.limits },
  };
}

/** What a helper promise of replayed code throws too early is no end of the process: as in a runtime. */
export async function keepingRejections<T>(work: () => Promise<T>): Promise<T> {
  const release = guardRejections(() => {});
  try {
    return await work();
  } finally {
    await yieldToEventLoop(); // Node tells late.
    release();
  }
}

/** Null: the registry has none for this history. */
export function resolveFor(events: readonly Event[], registry: Registry): ResolvedOrchestration | null {
  const { name, version } = startOf(events);
  return registry.resolveOrchestration(name, version === NO_VERSION ? null : version);
}

export function startOf(events: readonly Event[]): EventOf<"OrchestrationStarted"> {
  return events[0] as EventOf<"OrchestrationStarted">; // The history is valid.
}

/** What histories say that were pinned to no version. */
const NO_VERSION = "0.0.0";

function handlerFor(events: readonly Event[], orchestration: ReplayedCode): ReplaySubject["handler"] {
  const orchestrations = Array.isArray(orchestration) ? orchestration : [orchestration];
  const registry = Registry.of({ orchestrations });
  const resolved = resolveFor(events, registry);
  if (resolved !== null) return resolved.handler;
  const { instanceId, name, version } = startOf(events);
  const given = registry.orchestrationNames().flatMap((known) => {
    return registry.orchestrationVersions(known).map((other) => `'${known}' ${other}`);
  });
  throw new InvalidInputError(
    `The history of instance '${instanceId}' is of orchestration '${name}' ${version}, but given is ${given.join(", ") || "none"}. Give the code that has this name and version.`,
  );
}

/** `what`: whom the values are for. */
export function entriesOf(kv: NonNullable<ReplayOptions["kv"]>, what: string): ReadonlyMap<string, KvEntry> {
  if (kv instanceof Map) {
    for (const [key, entry] of kv as ReadonlyMap<unknown, unknown>) checkEntry(key, entry, what);
    return kv;
  }
  const entries = Object.entries(kv).map(([key, value]): [string, KvEntry] => [
    key,
    { value: encodePayload(value, `${what}: key '${key}'`), lastUpdatedAtMs: 0 },
  ]);
  return new Map(entries);
}

/** Who has values, not entries, is to give an object. */
function checkEntry(key: unknown, entry: unknown, what: string): void {
  const { value, lastUpdatedAtMs } = (entry ?? {}) as Partial<KvEntry>;
  if (typeof key === "string" && typeof value === "string" && Number.isSafeInteger(lastUpdatedAtMs)) return;
  throw new InvalidInputError(
    `${what}: key '${String(key)}': in a Map, an entry { value, lastUpdatedAtMs } is expected, its value as JSON text. Values as they are go into an object.`,
  );
}
