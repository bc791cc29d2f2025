// runtime/log.ts — facts as structured log records, for a sink that the user chooses. Nothing prints by itself.
//
// Fields are flat, in the words that operators search for: `instance_id`, `activity_name`, `duration_ms` …

import type { Clock } from "../clock.js";
import { messageOf, ProviderError, unreachable } from "../errors.js";
import { displayMessage, type ErrorDetails } from "../history/error-details.js";
import type { ActivityRef, Fact, Observer, OrchestrationRef } from "../observer.js";

/** How urgent a record is, from the least to the most. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** What a record is about, flat: `instance_id`, `activity_name`, `duration_ms` … `stack`: where user code threw. */
export type LogFields = Readonly<Record<string, string | number | boolean>>;

/** One thing to be logged, for any logger. */
export interface LogRecord {
  /** When it was reported; absent where no clock was given. */
  readonly timeMs?: number;
  readonly level: LogLevel;
  /** `duroxide::orchestration` and `duroxide::activity` carry what users trace; the rest is the system's own. */
  readonly target: string;
  readonly message: string;
  readonly fields: LogFields;
}

/** What is logged, and with which time. */
export interface LogOptions {
  /** What is less urgent is left out. @default "info" */
  readonly level?: LogLevel;
  /** Stamps the records. @default none: the sink stamps them */
  readonly clock?: Clock;
}

const URGENCY: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3 };

/**
 * An observer that turns facts into log records and hands them to `sink`.
 *
 * @example
 * const log = logTo((record) => process.stderr.write(`${formatLogLine(record)}\n`), { level: "debug" });
 * await using runtime = await Runtime.start({ provider, observers: [log] });
 */
export function logTo(sink: (record: LogRecord) => void, options: LogOptions = {}): Observer {
  const threshold = URGENCY[options.level ?? "info"];
  const { clock } = options;
  return (fact) => {
    const level = levelOf(fact);
    if (URGENCY[level] < threshold) return;
    const time = clock === undefined ? {} : { timeMs: clock.now() };
    sink({ ...time, level, target: targetOf(fact), message: messageFor(fact), fields: fieldsOf(fact) });
  };
}

/**
 * One line: time, level, target, message, then `field=value`. Line breaks in values are escaped.
 *
 * @example
 * const log = logTo((record) => console.error(formatLogLine(record)));
 */
export function formatLogLine({ timeMs, level, target, message, fields }: LogRecord): string {
  const time = timeMs === undefined ? [] : [new Date(timeMs).toISOString()];
  const pairs = Object.entries(fields).map(([name, value]) => `${name}=${quoteIfNeeded(String(value))}`);
  return [...time, level.toUpperCase().padEnd(5), `${target}:`, onOneLine(message), ...pairs].join(" ");
}

function levelOf(fact: Fact): LogLevel {
  switch (fact.type) {
    case "trace":
      return fact.level;
    case "runtime-started":
    case "runtime-stopped":
    case "activity-detached":
      return "info";
    case "orchestration-started":
    case "turn-committed":
    case "suborchestration-ended":
    case "activity-started":
    case "queue-depths":
      return "debug";
    case "orchestration-ended":
      return failureLevel(fact.details);
    case "turn-abandoned":
      return ABANDON_LEVEL[fact.why];
    case "activity-ended":
      return ACTIVITY_LEVEL[fact.outcome];
    case "provider-call":
      return providerCallLevel(fact.error);
    case "messages-dropped":
      return fact.why === "no-matching-schedule" ? "error" : "warn"; // It may have been meant for another store.
    case "turn-lock-lost":
    case "orchestration-poisoned":
    case "unregistered-activity-scheduled":
    case "activity-unregistered":
    case "activity-poisoned":
    case "limit-near":
    case "nondeterministic-call":
    case "rejection-kept":
    case "loop-failed":
      return "warn";
    case "observer-failed":
      return "error";
    default:
      return unreachable(fact);
  }
}

/** What user code decides is a warning; what it cannot help is an error. */
function failureLevel(details: ErrorDetails | null): LogLevel {
  if (details === null) return "debug";
  return details.category === "application" ? "warn" : "error";
}

/** A lost lock is told again, with its consequences, by whoever lost it. */
function providerCallLevel(error: Error | null): LogLevel {
  if (error === null) return "debug";
  return error instanceof ProviderError && error.kind === "lock-lost" ? "debug" : "warn";
}

const ABANDON_LEVEL = {
  unregistered: "warn",
  "incompatible-version": "warn",
  "corrupt-history": "warn",
  "store-failed": "warn",
  "awaiting-continuation": "debug",
  "stale-cache": "debug",
  shutdown: "info",
} as const satisfies Record<Extract<Fact, { type: "turn-abandoned" }>["why"], LogLevel>;

const ACTIVITY_LEVEL = {
  success: "debug",
  skipped: "debug",
  failed: "warn",
  "lock-lost": "warn",
  cancelled: "info",
  abandoned: "info",
} as const satisfies Record<Extract<Fact, { type: "activity-ended" }>["outcome"], LogLevel>;

function targetOf(fact: Fact): string {
  if (fact.type === "trace") return `duroxide::${fact.source}`;
  return fact.type === "provider-call" ? `duroxide::providers::${fact.provider}` : "duroxide::runtime";
}

function messageFor(fact: Fact): string {
  switch (fact.type) {
    case "runtime-started":
      return `duroxide runtime (${fact.engineVersion}) starting with provider ${fact.providerName} (${fact.providerVersion})`;
    case "runtime-stopped":
      return `duroxide runtime stopped (${fact.outcome})`;
    case "orchestration-started":
      return "orchestration started";
    case "turn-committed":
      return "turn committed";
    case "orchestration-ended":
      return fact.ending === "continuedAsNew" ? "orchestration continued as new" : `orchestration ${fact.ending}`;
    case "suborchestration-ended":
      return "sub-orchestration ended";
    case "turn-abandoned":
      return `turn abandoned (${fact.why}): ${fact.message}`;
    case "turn-lock-lost":
      return "turn discarded: the instance's lock was lost";
    case "messages-dropped":
      return `messages dropped (${fact.why})`;
    case "orchestration-poisoned":
      return "orchestration poisoned";
    case "activity-started":
      return "activity started";
    case "activity-ended":
      return ACTIVITY_MESSAGE[fact.outcome];
    case "activity-detached":
      return "activity still running after its grace period: detached, its outcome will be ignored";
    case "unregistered-activity-scheduled":
      return `activity '${fact.activityName}' of orchestration '${fact.ref.orchestrationName}' is not registered with this runtime: register it here, or run a worker elsewhere that has it (workerConcurrency: 0 silences this)`;
    case "activity-unregistered":
      return "activity not registered here: left for others, or for a newer version. Register it with a runtime on this store.";
    case "activity-poisoned":
      return "activity poisoned: too many attempts";
    case "limit-near":
      return `half of limits.${fact.limit} is used: what exceeds it will fail`;
    case "trace":
      return fact.message;
    case "nondeterministic-call":
      return fact.error.message;
    case "rejection-kept":
      return "a promise of an orchestration was rejected before it was awaited; kept for the await";
    case "provider-call":
      return fact.error === null ? `${fact.operation} succeeded` : `${fact.operation} failed`;
    case "loop-failed":
      return "failed, will try again";
    case "queue-depths":
      return "queue depths";
    case "observer-failed":
      return "an observer threw; its later failures are not reported";
    default:
      return unreachable(fact);
  }
}

const ACTIVITY_MESSAGE = {
  success: "activity completed",
  failed: "activity failed",
  cancelled: "activity cancelled, its outcome is ignored",
  "lock-lost": "activity lost its lock, its outcome is ignored",
  skipped: "activity skipped: its execution is over",
  abandoned: "activity given back, to be run again",
} as const;

function fieldsOf(fact: Fact): LogFields {
  switch (fact.type) {
    case "runtime-started":
      return {
        runtime_id: fact.runtimeId,
        provider: fact.providerName,
        provider_version: fact.providerVersion,
        engine_version: fact.engineVersion,
        replay_versions: `${fact.replayVersions.min} to ${fact.replayVersions.max}`,
      };
    case "runtime-stopped":
      return { runtime_id: fact.runtimeId, outcome: fact.outcome };
    case "orchestration-started":
      return { ...refFields(fact.ref), initiated_by: fact.initiatedBy };
    case "turn-committed":
      return {
        ...refFields(fact.ref),
        duration_ms: fact.durationMs,
        new_events: fact.newEvents,
        messages: fact.messages,
        is_warm: fact.isWarm,
      };
    case "orchestration-ended":
      return {
        ...refFields(fact.ref),
        outcome: fact.ending,
        duration_ms: fact.durationMs,
        history_events: fact.historyEvents,
        turns: fact.turns,
        ...detailFields(fact.details),
        ...stackFields(fact.error),
      };
    case "suborchestration-ended":
      return {
        ...refFields(fact.ref),
        child_orchestration: fact.childName,
        outcome: fact.outcome,
        duration_ms: fact.durationMs,
      };
    case "turn-abandoned":
      return { instance_id: fact.instanceId, attempt: fact.attempt, delay_ms: fact.delayMs };
    case "turn-lock-lost":
      return { instance_id: fact.instanceId };
    case "messages-dropped":
      return {
        instance_id: fact.instanceId,
        count: fact.count,
        ...(fact.first === undefined ? {} : { first: fact.first }),
      };
    case "orchestration-poisoned":
      return { instance_id: fact.instanceId, ...detailFields(fact.details) };
    case "activity-started":
      return refFields(fact.ref);
    case "activity-ended":
      return {
        ...refFields(fact.ref),
        outcome: fact.outcome,
        duration_ms: fact.durationMs,
        ...detailFields(fact.details),
        ...stackFields(fact.error),
      };
    case "activity-detached":
      return { ...refFields(fact.ref), grace_ms: fact.graceMs };
    case "unregistered-activity-scheduled":
      return { ...refFields(fact.ref), activity_name: fact.activityName };
    case "activity-unregistered":
      return { ...refFields(fact.ref), delay_ms: fact.delayMs };
    case "activity-poisoned":
      return { ...refFields(fact.ref), ...detailFields(fact.details) };
    case "limit-near":
      return { ...refFields(fact.ref), limit: fact.limit, value: fact.value, max: fact.max };
    case "trace":
      return refFields(fact.ref);
    case "nondeterministic-call":
      return { ...refFields(fact.ref), ...stackFields(fact.error) };
    case "rejection-kept":
      return { instance_id: fact.instanceId, error: fact.message };
    case "provider-call":
      return { operation: fact.operation, duration_ms: fact.durationMs, ...errorFields(fact.error) };
    case "loop-failed":
      return { worker_id: fact.loop, retry_in_ms: fact.retryInMs, ...errorFields(fact.error) };
    case "queue-depths":
      return { orchestrator_queue: fact.orchestratorQueue, worker_queue: fact.workerQueue };
    case "observer-failed":
      return errorFields(fact.error);
    default:
      return unreachable(fact);
  }
}

function refFields(ref: OrchestrationRef | ActivityRef): LogFields {
  const orchestration = {
    instance_id: ref.instanceId,
    execution_id: ref.executionId,
    orchestration_name: ref.orchestrationName,
    orchestration_version: ref.orchestrationVersion,
  };
  if (!("activityName" in ref)) return orchestration;
  return {
    ...orchestration,
    activity_name: ref.activityName,
    activity_id: ref.activityId,
    worker_id: ref.workerId,
    attempt: ref.attempt,
    ...(ref.tag === null ? {} : { activity_tag: ref.tag }),
    ...(ref.sessionId === null ? {} : { session_id: ref.sessionId }),
  };
}

function detailFields(details: ErrorDetails | null): LogFields {
  return details === null ? {} : { error_type: details.category, error: displayMessage(details) };
}

/** Where user code threw. Anything may be thrown, even what cannot be asked for a stack. */
function stackFields(thrown: unknown): LogFields {
  try {
    return thrown instanceof Error && typeof thrown.stack === "string" ? { stack: thrown.stack } : {};
  } catch {
    return {};
  }
}

function errorFields(error: unknown): LogFields {
  if (error === null) return {};
  const type = error instanceof ProviderError ? error.kind : error instanceof Error ? error.name : typeof error;
  return { error_type: type, error: messageOf(error) };
}

function quoteIfNeeded(value: string): string {
  return onOneLine(value === "" || /[\s"=]/.test(value) ? JSON.stringify(value) : value);
}

/** No text of a user's breaks the line or speaks to the terminal. */
function onOneLine(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029]/gu, (control) => {
    return `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}
