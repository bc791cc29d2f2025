// provider/kit/instrumented-provider.ts — a provider that also tells how long its calls took and how they ended.
//
//   I1. Transparent: same answers, same errors, nothing retried; nothing delayed, but where `pause` asks for it.
//   I2. Only the calls that cost something and say something are told: the operations that the metrics name.

import type { Clock } from "../../clock.js";
import { messageOf } from "../../errors.js";
import type { Fact } from "../../observer.js";
import type { Provider, WakeSource } from "../provider.js";
import { type ProviderOperation, ProviderWrapper } from "./provider-wrapper.js";

/** Asked before each call that is told. */
export interface Pause {
  /** Null, or what to wait for first. `now`: for whoever has just looked at the clock. */
  take(now: number): Promise<void> | null;
  /** When this is. */
  readonly turn: number;
  /** A call has been answered that was made then. */
  answered(turn: number): void;
}

const NO_PAUSE: Pause = Object.freeze({ take: () => null, turn: 0, answered: () => {} });

/** Wraps a provider so that its calls are reported as `provider-call` facts, timed by `clock`. */
export function instrument(
  provider: Provider,
  clock: Clock,
  emit: (fact: Fact) => void,
  pause: Pause = NO_PAUSE,
): Provider {
  return new InstrumentedProvider(provider, clock, emit, pause);
}

/** What is told (I2), by the name that the metrics have for it. */
const TOLD: Readonly<Partial<Record<ProviderOperation, string>>> = Object.freeze({
  enqueueForOrchestrator: "enqueue_orchestrator",
  fetchOrchestrationItem: "fetch_orchestration_item",
  ackOrchestrationItem: "ack_orchestration_item",
  fetchWorkItem: "fetch_work_item",
  ackWorkItem: "ack_work_item",
  renewSessionLock: "renew_session_lock",
  cleanupOrphanedSessions: "cleanup_orphaned_sessions",
  read: "read",
});

class InstrumentedProvider extends ProviderWrapper {
  readonly #clock: Clock;
  readonly #emit: (fact: Fact) => void;
  readonly #pause: Pause;

  constructor(inner: Provider, clock: Clock, emit: (fact: Fact) => void, pause: Pause) {
    super(inner);
    this.#pause = pause;
    this.#clock = clock;
    this.#emit = emit;
  }

  /** It changes no answer: so whatever is told of an instance is as true of this one. */
  override get wake(): WakeSource | null {
    return this.inner.wake;
  }

  protected override around<T>(operation: ProviderOperation, call: () => Promise<T>): Promise<T> {
    const told = TOLD[operation];
    return told === undefined ? call() : this.#told(told, call);
  }

  #told<T>(operation: string, call: () => Promise<T>): Promise<T> {
    const now = this.#clock.now();
    const pause = this.#pause.take(now);
    if (pause === null) return this.#timed(operation, call, now);
    return pause.then(() => this.#timed(operation, call, this.#clock.now()));
  }

  #timed<T>(operation: string, call: () => Promise<T>, startedAt: number): Promise<T> {
    const { turn } = this.#pause;
    const called = begun(call);
    // First, so that it is told before the caller goes on. The caller gets the answer itself, not one that comes later.
    void called.then(
      (answer) => {
        this.#pause.answered(turn);
        this.#tell(operation, startedAt, countItems(operation, answer), null);
      },
      (error: unknown) => {
        this.#tell(operation, startedAt, 0, error instanceof Error ? error : new Error(messageOf(error)));
      },
    );
    return called;
  }

  #tell(operation: string, startedAt: number, items: number, error: Error | null): void {
    try {
      const durationMs = this.#clock.now() - startedAt;
      this.#emit({ type: "provider-call", provider: this.inner.name, operation, durationMs, items, error });
    } catch {
      // Of a clock that throws whoever asks it next hears.
    }
  }
}

/** A provider may throw instead, or answer with what is only like a promise, or with nothing at all: that is no success. */
function begun<T>(call: () => Promise<T>): Promise<T> {
  try {
    const called: PromiseLike<T> | undefined = call();
    if (typeof called?.then !== "function")
      throw new TypeError("the provider has answered with something that is no promise");
    return Promise.resolve(called);
  } catch (error) {
    return Promise.reject(error);
  }
}

/** What a fetch brought; the other operations bring nothing. */
function countItems(operation: string, answer: unknown): number {
  const isFetch = operation === TOLD.fetchOrchestrationItem || operation === TOLD.fetchWorkItem;
  return isFetch && answer !== null ? 1 : 0;
}
