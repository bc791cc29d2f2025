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

export interface RetryPolicy {
  /** Tries in all, the first included. @default 3 */
  readonly maxAttempts?: number;
  /** @default exponential: 100 ms, doubled each time, at most 30 s */
  readonly backoff?: Backoff;
  /** For each attempt. An attempt that takes longer is cancelled, and the call fails with ActivityTimeoutError. */
  readonly timeout?: Duration;
  /** Whether an attempt that timed out is tried again like one that failed. @default false */
  readonly retryOnTimeout?: boolean;
  /** Asked after each failure; false gives up at once. Must be deterministic. */
  readonly shouldRetry?: (error: Error, attempt: number) => boolean;
}

export interface CallActivityOptions {
  readonly retry?: RetryPolicy;
  /** Runs on the worker that owns this session; activities of one session share a worker. */
  readonly sessionId?: string;
  /** Runs only on workers that serve this tag. */
  readonly tag?: string;
}

export interface SubOrchestrationOptions {
  /** @default `<parent>::sub::<event id>` */
  readonly instanceId?: string;
  /** @default the registry's choice when the child starts */
  readonly version?: string;
}

export interface DetachedOptions<I> {
  readonly instanceId: string;
  readonly input?: I;
  readonly version?: string;
}

/** A branch: a durable task, a promise made of them, or a function that is started in a cancellation scope of its own. */
export type Branch<T> = PromiseLike<T> | (() => PromiseLike<T> | T);
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

/** The instance's own key-value store: survives turns, continue-as-new and completion. */
export interface KvStore {
  /** A value as JSON. Undefined where there is none. */
  get<T = unknown>(key: string): T | undefined;
  set(key: string, value: unknown): void;
  /** The stored text itself, for values shared with other runtimes. */
  getText(key: string): string | undefined;
  setText(key: string, text: string): void;
  delete(key: string): void;
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

/** What an orchestration may do. Valid only inside the function that received it. */
export interface OrchestrationContext {
  readonly instanceId: string;
  /** 1 for the first execution; continue-as-new counts up. */
  readonly executionId: number;
  readonly orchestrationName: string;
  /** The version that this execution is pinned to. */
  readonly orchestrationVersion: string;
  /** True while code is re-run over what history already records. */
  readonly isReplaying: boolean;
  readonly kv: KvStore;
  readonly trace: ReplaySafeTrace;

  /** Schedules an activity. It runs at least once; its outcome is recorded exactly once. */
  scheduleActivity<I, O>(
    activity: ActivityDefinition<I, O>,
    ...args: CallArguments<I, CallActivityOptions>
  ): DurableTask<O>;
  scheduleActivity<O = unknown>(name: string, input?: unknown, options?: CallActivityOptions): DurableTask<O>;

  /** Fires no earlier than `delay` from now, even across restarts. */
  scheduleTimer(delay: Duration): DurableTask<void>;

  /**
   * Waits for an event raised from now on. Each event answers the oldest open wait of its name; an event that
   * nobody waits for is recorded and lost. For messages that must not be lost use `dequeueEvent`.
   */
  waitForEvent<T = unknown>(event: EventDefinition<T> | string): DurableTask<T>;

  /** Takes the next message of a durable mailbox. Messages wait until somebody takes them, across continue-as-new. */
  dequeueEvent<T = unknown>(queue: EventDefinition<T> | string): DurableTask<T>;

  /** Runs another orchestration as a child: cancelled with its parent, its failure thrown here. */
  scheduleSubOrchestration<I, O>(
    orchestration: OrchestrationDefinition<I, O>,
    ...args: CallArguments<I, SubOrchestrationOptions>
  ): DurableTask<O>;
  scheduleSubOrchestration<O = unknown>(
    name: string,
    input?: unknown,
    options?: SubOrchestrationOptions,
  ): DurableTask<O>;

  /** Starts an orchestration that lives on its own. Nothing is awaited, and it outlives this one. */
  startOrchestration<I>(orchestration: OrchestrationDefinition<I, unknown> | string, options: DetachedOptions<I>): void;

  /**
   * Ends this execution and starts the next with a fresh history: `return ctx.continueAsNew(state)`.
   * Mailbox messages that nobody took, the custom status and the key-value store go along.
   */
  continueAsNew(input?: unknown, options?: { readonly version?: string }): DurableTask<never>;

  /** Waits for all. The first failure fails it and cancels what is still open. */
  all<const B extends readonly Branch<unknown>[]>(
    branches: B,
  ): DurableTask<{ -readonly [K in keyof B]: BranchValue<B[K]> }>;
  all<B extends Readonly<Record<string, Branch<unknown>>>>(
    branches: B,
  ): DurableTask<{ [K in keyof B]: BranchValue<B[K]> }>;

  /** Takes the first branch to finish, well or badly, and cancels the others before going on. */
  race<const B extends readonly Branch<unknown>[]>(branches: B): DurableTask<RaceByIndex<B>>;
  race<B extends Readonly<Record<string, Branch<unknown>>>>(branches: B): DurableTask<RaceByName<B>>;

  /** A text for whoever asks how far this is. Null: none. */
  readonly customStatus: string | null;
  setCustomStatus(status: string): void;
  resetCustomStatus(): void;

  /** Another instance's committed value, as it is when it is read; null where there is none. */
  readKv<T = unknown>(instanceId: string, key: string): DurableTask<T | null>;

  /** Wall-clock time in milliseconds, recorded: the same on every replay. */
  utcNow(): DurableTask<number>;
  /** A random UUID, recorded: the same on every replay. */
  newGuid(): DurableTask<string>;
}
