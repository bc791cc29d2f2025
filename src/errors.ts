// errors.ts — everything that duroxide-ts throws. Callers branch on `code`, never on the text.
//
// Two worlds, never mixed: recorded failures are data (`ErrorDetails`, in histories); what is thrown is a class below.

import type { ErrorDetails } from "./history/error-details.js";
import { displayMessage } from "./history/error-details.js";

/** The codes of all errors that duroxide-ts throws. They stay as they are; the texts may change. */
export type ErrorCode =
  /** A value, id or name was refused before anything was written. */
  | "DUROXIDE_INVALID_INPUT"
  /** An option is unknown, misspelled or out of range. */
  | "DUROXIDE_INVALID_OPTIONS"
  /** Two registrations collide, or one is malformed. */
  | "DUROXIDE_REGISTRATION"
  /** The store failed, or refused. */
  | "DUROXIDE_PROVIDER"
  /** Stored text cannot be read. */
  | "DUROXIDE_CODEC"
  /** A history breaks the rules that every history keeps. */
  | "DUROXIDE_INVALID_HISTORY"
  /** Code does not take the decisions that a history records. */
  | "DUROXIDE_REPLAY_DIVERGED"
  /** An instance of that id exists, and the caller asked to be told. */
  | "DUROXIDE_ALREADY_EXISTS"
  /** The provider offers no management. */
  | "DUROXIDE_MANAGEMENT_NOT_AVAILABLE"
  /** The store knows no such instance or execution. */
  | "DUROXIDE_NOT_FOUND"
  /** What runs is deleted by force only. */
  | "DUROXIDE_STILL_RUNNING"
  /** A sub-orchestration is deleted with its root only. */
  | "DUROXIDE_SUB_ORCHESTRATION"
  /** A wait reached its deadline. */
  | "DUROXIDE_TIMEOUT"
  /** A wait was given up by its signal. */
  | "DUROXIDE_ABORTED"
  /** An instance, or a sub-orchestration, failed. */
  | "DUROXIDE_ORCHESTRATION_FAILED"
  /** Inside an orchestration: an activity failed. */
  | "DUROXIDE_ACTIVITY_FAILED"
  /** Inside an orchestration: an activity took longer than its retry policy allows. */
  | "DUROXIDE_ACTIVITY_TIMEOUT"
  /** Inside an activity: why its signal was aborted. */
  | "DUROXIDE_ACTIVITY_CANCELLED"
  /** Inside an orchestration: a cancelled task is awaited. */
  | "DUROXIDE_TASK_CANCELLED"
  /** Inside an orchestration: a call whose answer no history records. */
  | "DUROXIDE_NONDETERMINISTIC_CALL"
  /** Code broke a rule. */
  | "DUROXIDE_MISUSE";

/**
 * The base of all errors thrown by duroxide-ts.
 *
 * @example
 * try {
 *   await handle.result({ timeoutMs: 30_000 });
 * } catch (error) {
 *   if (!(error instanceof DuroxideError) || error.code !== "DUROXIDE_TIMEOUT") throw error;
 *   report(await handle.status());
 * }
 */
export abstract class DuroxideError extends Error {
  /** What happened. Branch on it, never on the text. */
  abstract readonly code: ErrorCode;
}

/**
 * A value, id or name was refused before anything was written.
 *
 * @example
 * const refused = await client.raiseEvent("order-1", "measured", Number.NaN).catch((error: unknown) => error);
 * if (refused instanceof InvalidInputError) report(refused.message); // data of event 'measured': $ is NaN …
 */
export class InvalidInputError extends DuroxideError {
  override readonly name = "InvalidInputError";
  readonly code = "DUROXIDE_INVALID_INPUT";
}

/** An option is unknown, misspelled or out of range. Nothing was started. */
export class InvalidOptionsError extends DuroxideError {
  override readonly name = "InvalidOptionsError";
  readonly code = "DUROXIDE_INVALID_OPTIONS";
}

/**
 * Two registrations collide, or one is malformed. `problems` lists all of them.
 *
 * @example
 * try {
 *   Registry.of({ orchestrations, activities });
 * } catch (error) {
 *   if (error instanceof RegistrationError) for (const problem of error.problems) report(problem);
 * }
 */
export class RegistrationError extends DuroxideError {
  override readonly name = "RegistrationError";
  readonly code = "DUROXIDE_REGISTRATION";
  constructor(readonly problems: readonly string[]) {
    super(problems.join("; "));
  }
}

/** Stored text is no event, work item or failure that this version understands. */
export class CodecError extends DuroxideError {
  override readonly name = "CodecError";
  readonly code = "DUROXIDE_CODEC";
}

/** A history breaks the rules that every history keeps: it was damaged, put together wrongly, or is none. */
export class InvalidHistoryError extends DuroxideError {
  override readonly name = "InvalidHistoryError";
  readonly code = "DUROXIDE_INVALID_HISTORY";
  constructor(
    /** Null where no event says whose history it is. */
    readonly instanceId: string | null,
    /** Everything that is wrong, in the order of the events. */
    readonly problems: readonly string[],
  ) {
    const problem = problems.join("; ");
    const what =
      instanceId === null ? capitalized(problem) : `The history of instance '${instanceId}' is not valid: ${problem}`;
    super(`${what}.`);
  }
}

function capitalized(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** A place where code and history part. */
export interface Divergence {
  readonly instanceId: string;
  readonly executionId: number;
  /** Null where no single event is to blame. */
  readonly eventId: number | null;
  /** What history does there: `records ActivityScheduled(name="Charge", input="12")`. Null: `decided` says it all. */
  readonly recorded: string | null;
  /** What the code does now: `decides ActivityScheduled(name="Refund", input="12")`, `fails with 'no such order'`. */
  readonly decided: string;
  /** What helps, where that is known. */
  readonly remedy: string | null;
}

/** Code does not take the decisions that a history records: instances that run on it would fail. */
export class ReplayDivergedError extends DuroxideError {
  override readonly name = "ReplayDivergedError";
  readonly code = "DUROXIDE_REPLAY_DIVERGED";
  constructor(
    /** One for each execution that was found to diverge. */
    readonly divergences: readonly Divergence[],
  ) {
    super(divergences.map(describeDivergence).join("\n"));
  }
}

function describeDivergence(divergence: Divergence): string {
  const { instanceId, executionId, eventId, recorded, decided, remedy } = divergence;
  const place = `Instance '${instanceId}', execution ${executionId}${eventId === null ? "" : `, event ${eventId}`}`;
  const what = recorded === null ? decided : `history ${recorded}, but the code now ${decided}`;
  return `${place}: ${what}.${remedy === null ? "" : ` ${remedy}`}`;
}

/**
 * An instance of that id exists already, and the caller asked to be told.
 *
 * @example
 * try {
 *   await client.start(checkout, { instanceId: "order-1", input: order, ifExists: "fail" });
 * } catch (error) {
 *   if (!(error instanceof AlreadyExistsError)) throw error;
 *   report(`${error.instanceId} was ordered before`);
 * }
 */
export class AlreadyExistsError extends DuroxideError {
  override readonly name = "AlreadyExistsError";
  readonly code = "DUROXIDE_ALREADY_EXISTS";
  constructor(readonly instanceId: string) {
    super(`Instance '${instanceId}' exists already. Choose another instanceId, or start with ifExists: "use".`);
  }
}

/** The provider offers no management: instances run on it, but nobody can list, delete or prune them through it. */
export class ManagementNotAvailableError extends DuroxideError {
  override readonly name = "ManagementNotAvailableError";
  readonly code = "DUROXIDE_MANAGEMENT_NOT_AVAILABLE";
  constructor(readonly providerName: string) {
    super(`The provider '${providerName}' offers no management. Ask hasManagementCapability() first, or use another.`);
  }
}

/**
 * The store knows no such instance, or no such execution of it. An instance is known from its first turn on.
 *
 * @example
 * const info = await client.getInstanceInfo("order-1").catch((error: unknown) => {
 *   if (error instanceof InstanceNotFoundError) return null;
 *   throw error;
 * });
 */
export class InstanceNotFoundError extends DuroxideError {
  override readonly name = "InstanceNotFoundError";
  readonly code = "DUROXIDE_NOT_FOUND";
  constructor(
    readonly instanceId: string,
    /** Null where the instance as a whole was asked for. */
    readonly executionId: number | null = null,
    options?: ErrorOptions,
  ) {
    super(
      executionId === null
        ? `Instance '${instanceId}' not found. Check the id; an instance is known from its first turn on.`
        : `Execution ${executionId} of instance '${instanceId}' not found. listExecutions tells which there are.`,
      options,
    );
  }
}

/**
 * The instance or one of its descendants still runs, so it was not deleted. `cause` names the one.
 *
 * @example
 * try {
 *   await client.deleteInstance("order-1");
 * } catch (error) {
 *   if (!(error instanceof InstanceStillRunningError)) throw error;
 *   await client.cancel(error.instanceId, "no longer needed");
 * }
 */
export class InstanceStillRunningError extends DuroxideError {
  override readonly name = "InstanceStillRunningError";
  readonly code = "DUROXIDE_STILL_RUNNING";
  constructor(
    readonly instanceId: string,
    options?: ErrorOptions,
  ) {
    const remedy = "Cancel it and wait for its end, or delete it with force: true.";
    super(`Instance '${instanceId}', or a sub-orchestration of it, is still running. ${remedy}`, options);
  }
}

/** The instance is a sub-orchestration, so it cannot be deleted by itself. */
export class SubOrchestrationError extends DuroxideError {
  override readonly name = "SubOrchestrationError";
  readonly code = "DUROXIDE_SUB_ORCHESTRATION";
  constructor(
    readonly instanceId: string,
    options?: ErrorOptions,
  ) {
    super(`Instance '${instanceId}' is a sub-orchestration. Delete the root of its tree instead.`, options);
  }
}

/**
 * A wait reached its deadline. The instance goes on; wait again, or look at its status.
 *
 * @example
 * const receipt = await handle.result({ timeoutMs: 1_000 }).catch((error: unknown) => {
 *   if (error instanceof TimeoutError) return "your order is on its way";
 *   throw error;
 * });
 */
export class TimeoutError extends DuroxideError {
  override readonly name = "TimeoutError";
  readonly code = "DUROXIDE_TIMEOUT";
}

/**
 * A wait was given up because the caller's AbortSignal fired. `cause` is its reason.
 *
 * @example
 * const stopping = new AbortController();
 * const waiting = handle.result({ signal: stopping.signal });
 * stopping.abort("the process ends");
 * await waiting.catch((error: unknown) => {
 *   if (error instanceof AbortedError) report(error.cause); // "the process ends"
 * });
 */
export class AbortedError extends DuroxideError {
  override readonly name = "AbortedError";
  readonly code = "DUROXIDE_ABORTED";
}

/**
 * An instance (or a sub-orchestration) failed. `details` is the recorded failure.
 *
 * @example
 * try {
 *   await handle.result();
 * } catch (error) {
 *   if (!(error instanceof OrchestrationFailedError)) throw error;
 *   const { details } = error;
 *   const isCancelled = details.category === "application" && details.kind.type === "Cancelled";
 *   if (!isCancelled) report(details);
 * }
 */
export class OrchestrationFailedError extends DuroxideError {
  override readonly name = "OrchestrationFailedError";
  readonly code = "DUROXIDE_ORCHESTRATION_FAILED";
  constructor(
    readonly instanceId: string,
    readonly details: ErrorDetails,
  ) {
    super(displayMessage(details));
  }
}

/**
 * An activity failed. Thrown into orchestration code; the message is what the activity threw.
 *
 * @example
 * const pay = orchestration("Pay", async (ctx, order: { id: string; amount: number }) => {
 *   try {
 *     return await ctx.scheduleActivity(charge, order);
 *   } catch (error) {
 *     if (error instanceof ActivityFailedError && error.message === "card declined") return null;
 *     throw error;
 *   }
 * });
 */
export class ActivityFailedError extends DuroxideError {
  override readonly name = "ActivityFailedError";
  readonly code = "DUROXIDE_ACTIVITY_FAILED";
  constructor(
    readonly activityName: string,
    readonly details: ErrorDetails,
  ) {
    super(displayMessage(details));
  }
}

/**
 * One attempt of an activity took longer than its retry policy allows. The attempt was cancelled.
 *
 * @example
 * try {
 *   await ctx.scheduleActivity(charge, order, { retry: { maxAttempts: 1, timeout: "10s" } });
 * } catch (error) {
 *   if (!(error instanceof ActivityTimeoutError)) throw error;
 *   ctx.setCustomStatus("the bank takes its time");
 * }
 */
export class ActivityTimeoutError extends DuroxideError {
  override readonly name = "ActivityTimeoutError";
  readonly code = "DUROXIDE_ACTIVITY_TIMEOUT";
  constructor(
    readonly activityName: string,
    readonly timeoutMs: number,
  ) {
    super(`timeout: activity timed out: '${activityName}' took longer than ${timeoutMs} ms`);
  }
}

/**
 * Why an activity's signal was aborted. `reason` tells a cancellation from a lost lock or a shutdown.
 *
 * @example
 * const download = activity("Download", async (ctx, url: string) => {
 *   ctx.signal.addEventListener("abort", () => {
 *     const why: unknown = ctx.signal.reason;
 *     if (why instanceof ActivityCancelledError) ctx.trace.info(`giving up: ${why.reason}`);
 *   });
 *   return (await fetch(url, { signal: ctx.signal })).text();
 * });
 */
export class ActivityCancelledError extends DuroxideError {
  override readonly name = "ActivityCancelledError";
  readonly code = "DUROXIDE_ACTIVITY_CANCELLED";
  constructor(
    readonly reason: "cancelled" | "lock-lost" | "shutdown",
    message: string,
  ) {
    super(message);
  }
}

/**
 * A durable task that was cancelled by the orchestration is awaited nevertheless. Code of a branch that lost its race
 * gets it at its await; clean-up in `finally` runs, but can schedule nothing more.
 */
export class TaskCancelledError extends DuroxideError {
  override readonly name = "TaskCancelledError";
  readonly code = "DUROXIDE_TASK_CANCELLED";
}

/**
 * Orchestration code called something whose answer no history records, such as `Date.now()`. The orchestration fails with
 * it at the call, in development: see `RuntimeOptions.determinismGuard`. Nothing is thrown there: what code does afterwards counts
 * for nothing.
 *
 * @example
 * const stamp = (fact: Fact): void => {
 *   if (fact.type === "orchestration-ended" && fact.error instanceof NondeterministicCallError) report(fact.error.stack);
 * };
 */
export class NondeterministicCallError extends DuroxideError {
  override readonly name = "NondeterministicCallError";
  readonly code = "DUROXIDE_NONDETERMINISTIC_CALL";
  constructor(
    /** What was called: `Date.now()`. */
    readonly call: string,
    readonly orchestrationName: string,
    readonly instanceId: string,
    advice: string,
  ) {
    super(`${call} was called in orchestration '${orchestrationName}' (instance '${instanceId}'): ${advice}`);
  }
}

/** Orchestration code broke a rule of the engine: a foreign await, `ctx` outside a turn, a wrong argument. */
export class MisuseError extends DuroxideError {
  override readonly name = "MisuseError";
  readonly code = "DUROXIDE_MISUSE";
}

/** What went wrong in the store. */
export type ProviderErrorKind =
  /** The lock token is unknown, expired or taken over: somebody else owns the work now. */
  | "lock-lost"
  /** An event id is taken already in this execution. */
  | "duplicate-event"
  /** No such instance or execution. */
  | "not-found"
  /** What runs is deleted by force only. */
  | "still-running"
  /** A child is deleted with its root only. */
  | "sub-orchestration"
  /** The deletion would leave a child behind. */
  | "orphans"
  /** Stored data cannot be decoded. */
  | "corrupt"
  /** The payload codec cannot encode or decode a text: a key is missing or wrong, or the text was changed. */
  | "payload-codec"
  /** The call or the store is wrong and stays wrong: bad argument, no database, newer schema, read-only file. */
  | "invalid"
  /** The same call may succeed later: busy, connection lost, disk full. */
  | "transient";

/**
 * A storage operation failed. Branch on `kind`; `retryable` says whether the same call may succeed later.
 *
 * @example
 * try {
 *   await client.start(checkout, { instanceId: "order-1", input: order });
 * } catch (error) {
 *   if (!(error instanceof ProviderError && error.retryable)) throw error;
 *   report("The store is busy. Starting again under the same id starts once.");
 * }
 */
export class ProviderError extends DuroxideError {
  override readonly name = "ProviderError";
  readonly code = "DUROXIDE_PROVIDER";
  constructor(
    readonly kind: ProviderErrorKind,
    readonly operation: string,
    message: string,
    options?: ErrorOptions,
  ) {
    super(`${operation}: ${message}`, options);
  }
  /** Whether the same call may succeed later. */
  get retryable(): boolean {
    return this.kind === "transient";
  }
}

/** What anything thrown says of itself: an Error's message, a string, or the value's text. Never throws. */
export function messageOf(thrown: unknown): string {
  try {
    if (thrown instanceof Error) return String(thrown.message === "" ? thrown.name : thrown.message);
    if (typeof thrown === "string") return thrown;
    const isObject = typeof thrown === "object" && thrown !== null;
    return (isObject ? JSON.stringify(thrown) : undefined) ?? String(thrown);
  } catch {
    return textOfLastResort(thrown);
  }
}

/** Cycles, hostile getters, revoked proxies: some values cannot even be asked for their class. */
function textOfLastResort(thrown: unknown): string {
  try {
    return Object.prototype.toString.call(thrown);
  } catch {
    return `[${typeof thrown}]`;
  }
}

/** Ends a `switch` over a union: the compiler proves that it cannot be reached. */
export function unreachable(value: never): never {
  throw new TypeError(`unreachable: ${messageOf(value)}`);
}
