// engine/orchestration-context.ts — what an orchestration may do. Everything it learns and decides goes through here.

import type { ActivityDefinition, CallArguments, EventDefinition, OrchestrationDefinition } from "../define.js";
import type { Duration } from "../duration.js";
import type { DurableTask } from "./durable-task.js";

export type { Duration };

/** How long to wait between the attempts of an activity. All delays are durable timers. */
export type Backoff =
  | { readonly kind: "none" }
  | { readonly kind: "fixed"; readonly delay: Duration }
  | { readonly kind: "linear"; readonly base: Duration; readonly max?: Duration }
  | { readonly kind: "exponential"; readonly base?: Duration; readonly multiplier?: number; readonly max?: Duration };

/**
 * How often and when the orchestration tries a failed activity again. Attempts and pauses stand in the history: after a
 * crash a retry goes on where it was. Only what the activity itself threw is tried again, and a
 * timeout if `retryOnTimeout` says so.
 *
 * @example
 * const patient: RetryPolicy = { maxAttempts: 10, backoff: { kind: "fixed", delay: "1m" }, timeout: "10s" };
 * const receipt = await ctx.scheduleActivity(charge, order, { retry: patient });
 */
export interface RetryPolicy {
  /** Tries in all, the first included. @default 3 */
  readonly maxAttempts?: number;
  /** @default exponential: 100 ms, doubled each time, at most 30 s */
  readonly backoff?: Backoff;
  /** Of each attempt. One that takes longer is cancelled; the call fails with ActivityTimeoutError. @default none */
  readonly timeout?: Duration;
  /** Whether an attempt that timed out is tried again like one that failed. @default false */
  readonly retryOnTimeout?: boolean;
  /** Asked after each failure; false gives up at once. Must be deterministic. @default every failure is tried again */
  readonly shouldRetry?: (error: Error, attempt: number) => boolean;
}

/** How an activity is called, its input apart. */
export interface CallActivityOptions {
  /** @default none: the first failure is thrown */
  readonly retry?: RetryPolicy;
  /** Runs on the worker that owns this session; activities of one session share a worker. @default any worker */
  readonly sessionId?: string;
  /** Runs only on workers that serve this tag. @default those that serve work without a tag */
  readonly tag?: string;
}

/** How a sub-orchestration is started, its input apart. */
export interface SubOrchestrationOptions {
  /** @default `<parent>::sub::<event id>` */
  readonly instanceId?: string;
  /** @default the definition's own, or else the registry's choice when the child starts */
  readonly version?: string;
}

/** How an orchestration is started that lives on its own. */
export interface DetachedOptions<I> {
  /** An instance that exists under this id already stays as it is. */
  readonly instanceId: string;
  readonly input?: I;
  /** @default the definition's own, or else the registry's choice when it starts */
  readonly version?: string;
}

/** A branch: a durable task, a promise made of them, or a function that is started in a cancellation scope of its own. */
export type Branch<T> = PromiseLike<T> | (() => PromiseLike<T> | T);
/** What a branch comes to: the value of its task or promise, or what its function returns. */
export type BranchValue<B> = B extends () => infer R ? Awaited<R> : Awaited<B>;

/** The first branch to finish, by its place. */
export type RaceByIndex<B extends readonly unknown[]> = {
  [K in Extract<keyof B, `${number}`>]: {
    readonly index: K extends `${infer N extends number}` ? N : never;
    readonly value: BranchValue<B[K]>;
  };
}[Extract<keyof B, `${number}`>] extends infer R
  ? [R] extends [never]
    ? { readonly index: number; readonly value: BranchValue<B[number]> }
    : R
  : never;

/** The first branch to finish, by its name. */
export type RaceByName<B extends object> = {
  [K in keyof B]: { readonly winner: K; readonly value: BranchValue<B[K]> };
}[keyof B];

/**
 * The instance's own key-value store: survives turns, continue-as-new and completion. Clients and other orchestrations
 * read what is committed.
 *
 * @example
 * const visits = (ctx.kv.get<number>("visits") ?? 0) + 1;
 * ctx.kv.set("visits", visits);
 */
export interface KvStore {
  /** A value as JSON. Undefined where there is none. */
  get<T = unknown>(key: string): T | undefined;
  /**
   * Committed with the turn, like every other decision.
   *
   * @throws DUROXIDE_INVALID_INPUT for a key of no or too many bytes, or a value that JSON cannot carry
   */
  set(key: string, value: unknown): void;
  /** The stored text itself, for values shared with other runtimes. */
  getText(key: string): string | undefined;
  /** Stores the text as it is, without JSON. */
  setText(key: string, text: string): void;
  /** Does nothing where there is no value. */
  delete(key: string): void;
  /** Deletes every key. */
  clear(): void;
  has(key: string): boolean;
  /** Sorted. */
  keys(): string[];
  readonly size: number;
  /** Deletes every key last written before that time, in sorted order; answers how many. */
  pruneUpdatedBefore(timeMs: number): number;
}

/** Writes to the log, but not again on replay. */
export interface ReplaySafeTrace {
  debug(message: string): void;
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

/**
 * What an orchestration may do. Valid only inside the function that received it.
 *
 * Every task that it hands out is recorded in the history, at the call. After a crash the code runs again from the
 * beginning, and gets the recorded outcomes.
 */
export interface OrchestrationContext {
  readonly instanceId: string;
  /** 1 for the first execution; continue-as-new counts up. */
  readonly executionId: number;
  readonly orchestrationName: string;
  /** The version that this execution is pinned to. */
  readonly orchestrationVersion: string;
  /** True while code is re-run over what history already records. */
  readonly isReplaying: boolean;
  /** This instance's own values. Those of others: `readKv`. */
  readonly kv: KvStore;
  /** Writes to the log; a replay stays silent. */
  readonly trace: ReplaySafeTrace;

  // Where a call fits no form, tsc speaks of the last one: so the typed form stands last.

  /** By name, for an activity of which there is no definition here. Its types are what you say. */
  scheduleActivity<O = unknown>(name: string, input?: unknown, options?: CallActivityOptions): DurableTask<O>;
  /**
   * Schedules an activity. It runs at least once; its outcome is recorded exactly once.
   *
   * What it throws is thrown here as an ActivityFailedError with the same message.
   *
   * @throws DUROXIDE_INVALID_INPUT at the call, for an input that JSON cannot carry or the schema refuses
   * @throws DUROXIDE_INVALID_OPTIONS at the call, for an option that is unknown or wrong
   * @throws DUROXIDE_ACTIVITY_FAILED at the await, if it failed and no retry helped
   * @throws DUROXIDE_ACTIVITY_TIMEOUT at the await, if an attempt took longer than its retry policy allows
   * @example
   * const receipt = await ctx.scheduleActivity(charge, order, { retry: { maxAttempts: 5 } });
   */
  scheduleActivity<I, O>(
    activity: ActivityDefinition<I, O>,
    ...args: CallArguments<I, CallActivityOptions>
  ): DurableTask<O>;

  /**
   * Fires no earlier than `delay` from now, even across restarts.
   *
   * @throws DUROXIDE_INVALID_INPUT at the call, for what is no duration
   * @example
   * await ctx.scheduleTimer("3d");
   */
  scheduleTimer(delay: Duration): DurableTask<void>;

  /**
   * Waits for an event raised from now on. Each event answers the oldest open wait of its name; an event that
   * nobody waits for is recorded and lost. For messages that must not be lost use `dequeueEvent`.
   *
   * @throws DUROXIDE_INVALID_INPUT at the call for a bad name, at the await for data that the schema refuses
   * @example
   * const { ok } = await ctx.waitForEvent(approval);
   */
  waitForEvent<T = unknown>(event: EventDefinition<T> | string): DurableTask<T>;

  /**
   * Takes the next message of a durable mailbox. Messages wait until somebody takes them, across continue-as-new.
   *
   * @throws DUROXIDE_INVALID_INPUT at the call for a bad name, at the await for data that the schema refuses
   * @example
   * const message = await ctx.dequeueEvent<{ sku: string; count: number }>("cart");
   */
  dequeueEvent<T = unknown>(queue: EventDefinition<T> | string): DurableTask<T>;

  /** By name, for an orchestration of which there is no definition here. Its types are what you say. */
  scheduleSubOrchestration<O = unknown>(
    name: string,
    input?: unknown,
    options?: SubOrchestrationOptions,
  ): DurableTask<O>;
  /**
   * Runs another orchestration as a child: cancelled with its parent, its failure thrown here.
   *
   * @throws DUROXIDE_INVALID_INPUT at the call, for a bad id or version, or an input that cannot be carried
   * @throws DUROXIDE_ORCHESTRATION_FAILED at the await, if the child failed; `details` is its recorded failure
   * @example
   * const receipts = await ctx.all([1, 2].map((part) => ctx.scheduleSubOrchestration("CheckoutPart", part)));
   */
  scheduleSubOrchestration<I, O>(
    orchestration: OrchestrationDefinition<I, O>,
    ...args: CallArguments<I, SubOrchestrationOptions>
  ): DurableTask<O>;

  /**
   * Starts an orchestration that lives on its own. Nothing is awaited, and it outlives this one.
   *
   * @throws DUROXIDE_INVALID_INPUT for a bad id or version, or an input that cannot be carried
   * @example
   * ctx.startOrchestration(checkout, { instanceId: `checkout-${order.id}`, input: order });
   */
  startOrchestration<I>(orchestration: OrchestrationDefinition<I, unknown> | string, options: DetachedOptions<I>): void;

  /**
   * Ends this execution and starts the next with a fresh history: `return ctx.continueAsNew(state)`.
   * Mailbox messages that nobody took, the custom status and the key-value store go along. The next execution runs in
   * the version that is named, or else in the one that the registry chooses for a new start.
   *
   * @throws DUROXIDE_INVALID_INPUT at the call, for a bad version, or an input that JSON cannot carry
   * @example
   * const heartbeat = orchestration("Heartbeat", async (ctx, beats: number): Promise<void> => {
   *   await ctx.scheduleActivity("Beat");
   *   await ctx.scheduleTimer("1h");
   *   return ctx.continueAsNew(beats + 1);
   * });
   */
  continueAsNew(input?: unknown, options?: { readonly version?: string }): DurableTask<never>;

  /**
   * Waits for all. The first failure fails it and cancels what is still open.
   *
   * @example
   * const [receipt] = await ctx.all([ctx.scheduleActivity(charge, order), ctx.scheduleActivity(reserve, order)]);
   */
  all<const B extends readonly Branch<unknown>[]>(
    branches: B,
  ): DurableTask<{ -readonly [K in keyof B]: BranchValue<B[K]> }>;
  /**
   * By name: the answer has the keys that the branches have.
   *
   * @example
   * const { receipt } = await ctx.all({
   *   receipt: ctx.scheduleActivity(charge, order),
   *   reserved: ctx.scheduleActivity(reserve, order),
   * });
   */
  all<B extends Readonly<Record<string, Branch<unknown>>>>(
    branches: B,
  ): DurableTask<{ [K in keyof B]: BranchValue<B[K]> }>;

  /**
   * Takes the first branch to finish, well or badly, and cancels the others before going on.
   *
   * @throws DUROXIDE_INVALID_INPUT at the call, where there is no branch
   * @example
   * const { index } = await ctx.race([ctx.waitForEvent(approval), ctx.scheduleTimer("3d")]);
   */
  race<const B extends readonly Branch<unknown>[]>(branches: B): DurableTask<RaceByIndex<B>>;
  /**
   * By name: `winner` tells which, and `value` has its type.
   *
   * @example
   * const first = await ctx.race({ answer: ctx.waitForEvent(approval), late: ctx.scheduleTimer("3d") });
   * const isApproved = first.winner === "answer" && first.value.ok;
   */
  race<B extends Readonly<Record<string, Branch<unknown>>>>(branches: B): DurableTask<RaceByName<B>>;

  /** A text for whoever asks how far this is. Null: none. */
  readonly customStatus: string | null;
  /**
   * Committed with the turn, and kept over continue-as-new. Clients see it with the status, and can wait for a change.
   *
   * @throws DUROXIDE_INVALID_INPUT for a status that is no text
   * @example
   * ctx.setCustomStatus(JSON.stringify({ step: "charging", done: 1, of: 3 }));
   */
  setCustomStatus(status: string): void;
  /** Back to none. */
  resetCustomStatus(): void;

  /**
   * Another instance's committed value, as it is when it is read; null where there is none. What was read is recorded.
   *
   * @throws DUROXIDE_INVALID_INPUT at the call, for a bad id or key
   * @example
   * const stock = await ctx.readKv<number>("warehouse", "stock");
   */
  readKv<T = unknown>(instanceId: string, key: string): DurableTask<T | null>;

  /**
   * Wall-clock time in milliseconds, recorded: the same on every replay.
   *
   * @example
   * const deadline = (await ctx.utcNow()) + 86_400_000;
   */
  utcNow(): DurableTask<number>;
  /**
   * A random UUID, recorded: the same on every replay.
   *
   * @example
   * const requestId = await ctx.newGuid();
   */
  newGuid(): DurableTask<string>;
}
