// provider/kit/provider-wrapper.ts — a provider in front of another: everything is handed on, until a subclass says otherwise.
//
//   W1. By itself it changes nothing: same answers, same errors, same management, same wakes.
//   W2. Every operation goes through `around`, so that one method is enough to see, delay or fail all of them.
//   W3. What an instance has come to is never told past the methods, which may change it or keep it back: whoever watches hears that
//       there is something to look for.

import type { Event } from "../../history/event.js";
import type { ActivityExecute, OrchestratorItem } from "../../history/work-item.js";
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

/** The methods of a provider that reach the store. */
export type ProviderOperation = {
  [Name in keyof Provider & string]: Provider[Name] extends (...args: never[]) => Promise<unknown> ? Name : never;
}[keyof Provider & string];

/**
 * The base of providers that stand in front of another one. Override a single method to change what it does, or `around`
 * to do something before and after all of them.
 *
 * @example
 * class CountingProvider extends ProviderWrapper {
 *   calls = 0;
 *   protected override around<T>(operation: ProviderOperation, call: () => Promise<T>): Promise<T> {
 *     this.calls += 1;
 *     return super.around(operation, call);
 *   }
 * }
 */
export class ProviderWrapper implements Provider {
  /** What everything is handed on to. */
  protected readonly inner: Provider;

  constructor(inner: Provider) {
    this.inner = inner;
  }

  /** Makes every call. `call` hands it on to the inner provider, once for every time it is called. W2 */
  protected around<T>(_operation: ProviderOperation, call: () => Promise<T>): Promise<T> {
    return call();
  }

  get name(): string {
    return this.inner.name;
  }

  get version(): string {
    return this.inner.version;
  }

  get admin(): ProviderAdmin | null {
    return this.inner.admin;
  }

  get wake(): WakeSource | null {
    const { wake } = this.inner;
    if (wake === null) return null;
    return {
      watchInstance: (instance, listener) =>
        wake.watchInstance(instance, (change) => listener(typeof change === "object" ? "state" : change)), // W3
      get changes() {
        return wake.changes;
      },
    };
  }

  enqueueForOrchestrator(item: OrchestratorItem, options?: EnqueueOptions): Promise<EnqueueOutcome> {
    return this.around("enqueueForOrchestrator", () => this.inner.enqueueForOrchestrator(item, options));
  }

  fetchOrchestrationItem(options: FetchOrchestrationOptions): Promise<LockedOrchestrationItem | null> {
    return this.around("fetchOrchestrationItem", () => this.inner.fetchOrchestrationItem(options));
  }

  ackOrchestrationItem(lockToken: string, turn: TurnCommit): Promise<void> {
    return this.around("ackOrchestrationItem", () => this.inner.ackOrchestrationItem(lockToken, turn));
  }

  abandonOrchestrationItem(lockToken: string, options?: AbandonOptions): Promise<void> {
    return this.around("abandonOrchestrationItem", () => this.inner.abandonOrchestrationItem(lockToken, options));
  }

  renewOrchestrationItemLock(lockToken: string, extendForMs: number): Promise<void> {
    return this.around("renewOrchestrationItemLock", () =>
      this.inner.renewOrchestrationItemLock(lockToken, extendForMs),
    );
  }

  enqueueForWorker(item: ActivityExecute): Promise<void> {
    return this.around("enqueueForWorker", () => this.inner.enqueueForWorker(item));
  }

  fetchWorkItem(options: FetchWorkOptions): Promise<LockedWorkItem | null> {
    return this.around("fetchWorkItem", () => this.inner.fetchWorkItem(options));
  }

  ackWorkItem(lockToken: string, completion: OrchestratorItem | null): Promise<void> {
    return this.around("ackWorkItem", () => this.inner.ackWorkItem(lockToken, completion));
  }

  abandonWorkItem(lockToken: string, options?: AbandonOptions): Promise<void> {
    return this.around("abandonWorkItem", () => this.inner.abandonWorkItem(lockToken, options));
  }

  renewWorkItemLock(lockToken: string, extendForMs: number): Promise<ExecutionState> {
    return this.around("renewWorkItemLock", () => this.inner.renewWorkItemLock(lockToken, extendForMs));
  }

  renewSessionLock(
    ownerIds: readonly string[],
    options: { readonly extendForMs: number; readonly idleTimeoutMs: number },
  ): Promise<number> {
    return this.around("renewSessionLock", () => this.inner.renewSessionLock(ownerIds, options));
  }

  cleanupOrphanedSessions(options: { readonly idleTimeoutMs: number }): Promise<number> {
    return this.around("cleanupOrphanedSessions", () => this.inner.cleanupOrphanedSessions(options));
  }

  read(instance: string): Promise<readonly Event[]> {
    return this.around("read", () => this.inner.read(instance));
  }

  readWithExecution(instance: string, executionId: number): Promise<readonly Event[]> {
    return this.around("readWithExecution", () => this.inner.readWithExecution(instance, executionId));
  }

  appendWithExecution(instance: string, executionId: number, events: readonly Event[]): Promise<void> {
    return this.around("appendWithExecution", () => this.inner.appendWithExecution(instance, executionId, events));
  }

  getInstanceStatus(instance: string): Promise<InstanceStatus | null> {
    return this.around("getInstanceStatus", () => this.inner.getInstanceStatus(instance));
  }

  getCustomStatus(
    instance: string,
    lastSeenVersion: number,
  ): Promise<{ readonly status: string | null; readonly version: number } | null> {
    return this.around("getCustomStatus", () => this.inner.getCustomStatus(instance, lastSeenVersion));
  }

  getKvValue(instance: string, key: string): Promise<string | null> {
    return this.around("getKvValue", () => this.inner.getKvValue(instance, key));
  }

  getKvAllValues(instance: string): Promise<ReadonlyMap<string, string>> {
    return this.around("getKvAllValues", () => this.inner.getKvAllValues(instance));
  }

  getInstanceStats(instance: string): Promise<InstanceStats | null> {
    return this.around("getInstanceStats", () => this.inner.getInstanceStats(instance));
  }

  [Symbol.asyncDispose](): PromiseLike<void> {
    return this.inner[Symbol.asyncDispose]();
  }
}
