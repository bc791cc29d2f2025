// provider/kit/instrumented-provider.ts — a provider that also tells how long its calls took and how they ended.
//
//   I1. Transparent: same answers, same errors, nothing retried; nothing delayed, but where `pause` asks for it.
//   I2. Only the calls that cost something and say something are told: the operations that the metrics name.

import type { Clock } from "../../clock.js";
import { messageOf } from "../../errors.js";
import type { Event } from "../../history/event.js";
import type { ActivityExecute, OrchestratorItem } from "../../history/work-item.js";
import type { Fact } from "../../observer.js";
import type { ProviderAdmin } from "../admin.js";
import type {
  AbandonOptions,
  EnqueueOptions,
  EnqueueOutcome,
  ExecutionState,
  FetchOrchestrationOptions,
  FetchWorkOptions,
  InstanceStats,
  InstanceStatus,
  LockedOrchestrationItem,
  LockedWorkItem,
  Provider,
  TurnCommit,
  WakeSource,
} from "../provider.js";

/** Asked before each call that is told: null, or what to wait for first. */
export type Pause = () => Promise<void> | null;

/** Wraps a provider so that its calls are reported as `provider-call` facts, timed by `clock`. */
export function instrument(
  provider: Provider,
  clock: Clock,
  emit: (fact: Fact) => void,
  pause: Pause = () => null,
): Provider {
  return new InstrumentedProvider(provider, clock, emit, pause);
}

class InstrumentedProvider implements Provider {
  readonly #inner: Provider;
  readonly #clock: Clock;
  readonly #emit: (fact: Fact) => void;
  readonly #pause: Pause;

  constructor(inner: Provider, clock: Clock, emit: (fact: Fact) => void, pause: Pause) {
    this.#pause = pause;
    this.#inner = inner;
    this.#clock = clock;
    this.#emit = emit;
  }

  get name(): string {
    return this.#inner.name;
  }

  get version(): string {
    return this.#inner.version;
  }

  get admin(): ProviderAdmin | null {
    return this.#inner.admin;
  }

  get wake(): WakeSource | null {
    return this.#inner.wake;
  }

  // Told (I2)

  enqueueForOrchestrator(item: OrchestratorItem, options?: EnqueueOptions): Promise<EnqueueOutcome> {
    return this.#told("enqueue_orchestrator", () => this.#inner.enqueueForOrchestrator(item, options));
  }

  fetchOrchestrationItem(options: FetchOrchestrationOptions): Promise<LockedOrchestrationItem | null> {
    return this.#told("fetch_orchestration_item", () => this.#inner.fetchOrchestrationItem(options), countItem);
  }

  ackOrchestrationItem(lockToken: string, turn: TurnCommit): Promise<void> {
    return this.#told("ack_orchestration_item", () => this.#inner.ackOrchestrationItem(lockToken, turn));
  }

  fetchWorkItem(options: FetchWorkOptions): Promise<LockedWorkItem | null> {
    return this.#told("fetch_work_item", () => this.#inner.fetchWorkItem(options), countItem);
  }

  ackWorkItem(lockToken: string, completion: OrchestratorItem | null): Promise<void> {
    return this.#told("ack_work_item", () => this.#inner.ackWorkItem(lockToken, completion));
  }

  renewSessionLock(
    ownerIds: readonly string[],
    options: { readonly extendForMs: number; readonly idleTimeoutMs: number },
  ): Promise<number> {
    return this.#told("renew_session_lock", () => this.#inner.renewSessionLock(ownerIds, options));
  }

  cleanupOrphanedSessions(options: { readonly idleTimeoutMs: number }): Promise<number> {
    return this.#told("cleanup_orphaned_sessions", () => this.#inner.cleanupOrphanedSessions(options));
  }

  read(instance: string): Promise<readonly Event[]> {
    return this.#told("read", () => this.#inner.read(instance));
  }

  // Handed on

  abandonOrchestrationItem(lockToken: string, options?: AbandonOptions): Promise<void> {
    return this.#inner.abandonOrchestrationItem(lockToken, options);
  }

  renewOrchestrationItemLock(lockToken: string, extendForMs: number): Promise<void> {
    return this.#inner.renewOrchestrationItemLock(lockToken, extendForMs);
  }

  enqueueForWorker(item: ActivityExecute): Promise<void> {
    return this.#inner.enqueueForWorker(item);
  }

  abandonWorkItem(lockToken: string, options?: AbandonOptions): Promise<void> {
    return this.#inner.abandonWorkItem(lockToken, options);
  }

  renewWorkItemLock(lockToken: string, extendForMs: number): Promise<ExecutionState> {
    return this.#inner.renewWorkItemLock(lockToken, extendForMs);
  }

  readWithExecution(instance: string, executionId: number): Promise<readonly Event[]> {
    return this.#inner.readWithExecution(instance, executionId);
  }

  appendWithExecution(instance: string, executionId: number, events: readonly Event[]): Promise<void> {
    return this.#inner.appendWithExecution(instance, executionId, events);
  }

  getInstanceStatus(instance: string): Promise<InstanceStatus | null> {
    return this.#inner.getInstanceStatus(instance);
  }

  getCustomStatus(
    instance: string,
    lastSeenVersion: number,
  ): Promise<{ readonly status: string | null; readonly version: number } | null> {
    return this.#inner.getCustomStatus(instance, lastSeenVersion);
  }

  getKvValue(instance: string, key: string): Promise<string | null> {
    return this.#inner.getKvValue(instance, key);
  }

  getKvAllValues(instance: string): Promise<ReadonlyMap<string, string>> {
    return this.#inner.getKvAllValues(instance);
  }

  getInstanceStats(instance: string): Promise<InstanceStats | null> {
    return this.#inner.getInstanceStats(instance);
  }

  [Symbol.asyncDispose](): PromiseLike<void> {
    return this.#inner[Symbol.asyncDispose]();
  }

  async #told<T>(operation: string, call: () => Promise<T>, count: (answer: T) => number = countNothing): Promise<T> {
    const pause = this.#pause();
    if (pause !== null) await pause;
    const startedAt = this.#clock.now();
    try {
      const answer = await call();
      this.#tell(operation, startedAt, count(answer), null);
      return answer;
    } catch (error) {
      this.#tell(operation, startedAt, 0, error instanceof Error ? error : new Error(messageOf(error)));
      throw error;
    }
  }

  #tell(operation: string, startedAt: number, items: number, error: Error | null): void {
    const durationMs = this.#clock.now() - startedAt;
    this.#emit({ type: "provider-call", provider: this.#inner.name, operation, durationMs, items, error });
  }
}

function countItem(answer: object | null): number {
  return answer === null ? 0 : 1;
}

function countNothing(): number {
  return 0;
}
