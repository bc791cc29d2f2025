// observer.ts — one typed stream of facts. Logs, metrics and traces are subscribers; nothing else reports anything.
//
//   O1. A fact is reported after it happened (a turn after its commit), once.
//   O2. A subscriber that throws, or is async and rejects, harms nobody: it is reported to the others as
//       `observer-failed`, once per observer.

import type { NondeterministicCallError } from "./errors.js";
import type { ErrorDetails } from "./history/error-details.js";
import type { Limits } from "./history/limits.js";

/** Where a fact belongs. */
export interface InstanceRef {
  readonly instanceId: string;
  readonly executionId: number;
}

/** The execution that a fact is about, and the code that it runs. */
export interface OrchestrationRef extends InstanceRef {
  readonly orchestrationName: string;
  readonly orchestrationVersion: string;
}

/** The call of an activity that a fact is about, and who runs it. */
export interface ActivityRef extends OrchestrationRef {
  readonly activityName: string;
  /** The event that scheduled it. */
  readonly activityId: number;
  /** The slot of the runtime that runs it. */
  readonly workerId: string;
  /** 1 for the first try; counts crashes, lost locks and abandons, not the orchestration's own retries. */
  readonly attempt: number;
  readonly tag: string | null;
  readonly sessionId: string | null;
}

/** How an execution ended. `cancelled` is a failure that somebody asked for. */
export type OrchestrationEnding = "completed" | "failed" | "cancelled" | "continuedAsNew";

/**
 * Something that happened in a runtime, told to its observers after it happened, once. New versions may tell more.
 *
 * @example
 * const slow = (fact: Fact): void => {
 *   if (fact.type === "activity-ended" && fact.durationMs > 10_000) report(fact.ref);
 * };
 * await using runtime = await Runtime.start({ provider, orchestrations, activities, observers: [slow] });
 */
export type Fact =
  | {
      readonly type: "runtime-started";
      readonly runtimeId: string;
      readonly providerName: string;
      readonly providerVersion: string;
      readonly engineVersion: string;
      /** Of which engines it takes the histories. */
      readonly replayVersions: { readonly min: string; readonly max: string };
    }
  | { readonly type: "runtime-stopped"; readonly runtimeId: string; readonly outcome: "drained" | "forced" }
  | {
      readonly type: "orchestration-started";
      readonly ref: OrchestrationRef;
      readonly initiatedBy: "client" | "continueAsNew" | "suborchestration";
    }
  | {
      readonly type: "turn-committed";
      readonly ref: OrchestrationRef;
      readonly durationMs: number;
      readonly newEvents: number;
      /** Messages that the turn took in. */
      readonly messages: number;
      /** The instance was still in memory: no history was read or replayed. */
      readonly isWarm: boolean;
    }
  | {
      readonly type: "orchestration-ended";
      readonly ref: OrchestrationRef;
      readonly ending: OrchestrationEnding;
      readonly details: ErrorDetails | null;
      /** From `OrchestrationStarted` to the terminal event. */
      readonly durationMs: number;
      readonly historyEvents: number;
      /** Turns of this execution as far as this runtime can tell: batches of arrivals in the history. */
      readonly turns: number;
      /** What its function threw, with its stack; absent where it failed for another reason. Stands in no history. */
      readonly error?: unknown;
    }
  | {
      readonly type: "suborchestration-ended";
      readonly ref: OrchestrationRef;
      readonly childName: string;
      readonly outcome: "success" | "failed";
      readonly durationMs: number;
    }
  /** The instance was given back, to be fetched again no earlier than `delayMs` from now. */
  | {
      readonly type: "turn-abandoned";
      readonly instanceId: string;
      readonly why:
        | "unregistered"
        | "incompatible-version"
        | "corrupt-history"
        | "awaiting-continuation"
        | "stale-cache"
        | "store-failed"
        | "shutdown";
      readonly attempt: number;
      readonly delayMs: number;
      readonly message: string;
    }
  /** Somebody else has the instance now; what this turn decided is void. */
  | { readonly type: "turn-lock-lost"; readonly instanceId: string }
  /** Nobody can receive them: late or doubled answers, messages to what has ended or never started. */
  | {
      readonly type: "messages-dropped";
      readonly instanceId: string;
      readonly why: string;
      readonly count: number;
      /** Which was the first, where one can tell: its kind, and the event that it answers. */
      readonly first?: string;
    }
  /** Beside the `orchestration-ended` of the same failure. */
  | { readonly type: "orchestration-poisoned"; readonly instanceId: string; readonly details: ErrorDetails }
  | { readonly type: "activity-started"; readonly ref: ActivityRef }
  /** `skipped`: it never ran, because nobody wants it any more. `abandoned`: given back for others to run. */
  | {
      readonly type: "activity-ended";
      readonly ref: ActivityRef;
      readonly outcome: "success" | "failed" | "cancelled" | "lock-lost" | "skipped" | "abandoned";
      readonly durationMs: number;
      readonly details: ErrorDetails | null;
      /** Of a failed one: what it threw, with its stack. Stands in no history. */
      readonly error?: unknown;
    }
  /** It ignored its signal for the grace period. Its slot goes on without it, and its outcome is ignored. */
  | { readonly type: "activity-detached"; readonly ref: ActivityRef; readonly graceMs: number }
  /**
   * An orchestration here has scheduled an activity that this runtime has not registered, though its options let it
   * take activities: another worker must have it. Told once for each name of an activity.
   */
  | {
      readonly type: "unregistered-activity-scheduled";
      readonly ref: OrchestrationRef;
      readonly activityName: string;
    }
  /** Nobody here can run it; it was given back. */
  | {
      readonly type: "activity-unregistered";
      readonly ref: ActivityRef;
      readonly delayMs: number;
    }
  /** It was fetched too often and is failed without being run again. */
  | { readonly type: "activity-poisoned"; readonly ref: ActivityRef; readonly details: ErrorDetails }
  /**
   * An execution has used half of a limit; what breaks one fails. Told once for an execution and a limit, as far as can be
   * told: of keys, every process that takes up the execution tells again; and what no process lives to tell, none tells.
   */
  | {
      readonly type: "limit-near";
      readonly ref: OrchestrationRef;
      readonly limit: keyof Limits;
      /** In the unit of the limit: how many there are, or how large the largest is. */
      readonly value: number;
      readonly max: number;
    }
  /** What user code said through `ctx.trace`. */
  | {
      readonly type: "trace";
      readonly source: "orchestration" | "activity";
      readonly level: "debug" | "info" | "warn" | "error";
      readonly message: string;
      readonly ref: OrchestrationRef | ActivityRef;
    }
  /**
   * The determinism guard has let a call pass, because the instance had a history already: a replay may take another way.
   * Told once for a call, as long as the execution stays in memory. `error` says what was called, where, and what to use.
   */
  | {
      readonly type: "nondeterministic-call";
      readonly ref: OrchestrationRef;
      readonly error: NondeterministicCallError;
    }
  /** A promise of an orchestration rejected and nobody awaits it. It was kept from ending the process. */
  | { readonly type: "rejection-kept"; readonly instanceId: string; readonly message: string }
  | {
      readonly type: "provider-call";
      readonly provider: string;
      readonly operation: string;
      /** Of a fetch: with the time it waited for work. */
      readonly durationMs: number;
      /** What a fetch handed out; 0 for everything else. */
      readonly items: number;
      readonly error: Error | null;
    }
  /** The store failed a loop of the runtime, which goes on after a pause. */
  | { readonly type: "loop-failed"; readonly loop: string; readonly error: unknown; readonly retryInMs: number }
  /** As `Runtime.refreshGauges` measured them. */
  | {
      readonly type: "queue-depths";
      readonly orchestratorQueue: number;
      readonly workerQueue: number;
      /** Instances that have started and not ended, in the whole store, where it can tell. */
      readonly activeOrchestrations?: number;
    }
  /** Another observer threw or rejected; told once for each. */
  | { readonly type: "observer-failed"; readonly error: unknown };

/** The kinds of facts. */
export type FactType = Fact["type"];

/** Receives every fact. Called synchronously: keep it short. */
export type Observer = (fact: Fact) => void;

/** Fans one stream out to many observers. */
export class ObserverStream {
  readonly #observers = new Set<Observer>();
  readonly #failed = new WeakSet<Observer>();

  constructor(observers: readonly Observer[] = []) {
    for (const observer of observers) this.#observers.add(observer);
  }

  /** Returns the way to stop. */
  subscribe(observer: Observer): () => void {
    this.#observers.add(observer);
    return () => void this.#observers.delete(observer);
  }

  readonly emit = (fact: Fact): void => {
    for (const observer of this.#observers) {
      try {
        const answer: unknown = observer(fact);
        if (answer instanceof Promise) answer.catch((error: unknown) => this.#report(observer, error));
      } catch (error) {
        this.#report(observer, error);
      }
    }
  };

  #report(observer: Observer, error: unknown): void {
    if (this.#failed.has(observer)) return; // O2
    this.#failed.add(observer);
    for (const other of this.#observers) {
      if (other === observer) continue;
      tellOfFailure(other, error);
    }
  }
}

/** Where it is broken, too, that is reported when its own turn comes. */
function tellOfFailure(observer: Observer, error: unknown): void {
  try {
    const answer: unknown = observer({ type: "observer-failed", error });
    if (answer instanceof Promise) answer.catch(() => {});
  } catch {
    // See above.
  }
}
