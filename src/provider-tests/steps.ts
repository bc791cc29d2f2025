// provider-tests/steps.ts — the moves that nearly every case makes: fetch with the usual options, create, poke.

import { ProviderError } from "../errors.js";
import type {
  ExecutionMetadata,
  ExecutionStatus,
  FetchOrchestrationOptions,
  FetchWorkOptions,
  LockedOrchestrationItem,
  LockedWorkItem,
  Provider,
  TurnCommit,
} from "../provider/provider.js";
import { continueAsNew, NAMED, raised, start, started, turn } from "./builders.js";
import type { CaseContext } from "./case-context.js";
import { BrokenPromiseError } from "./checks.js";

/** Far longer than any test advances its clock without meaning to outlive a lock. */
export const LONG_LOCK_MS = 30_000;

export function fetchTurn(
  provider: Provider,
  options: Partial<FetchOrchestrationOptions> = {},
): Promise<LockedOrchestrationItem | null> {
  return provider.fetchOrchestrationItem({ lockTimeoutMs: LONG_LOCK_MS, ...options });
}

/** Like `fetchTurn`, where there must be one. */
export async function takeTurn(
  provider: Provider,
  options: Partial<FetchOrchestrationOptions> = {},
): Promise<LockedOrchestrationItem> {
  const locked = await fetchTurn(provider, options);
  if (locked === null) throw new BrokenPromiseError("expected an orchestration item, the provider has none to give");
  return locked;
}

export function fetchWork(provider: Provider, options: Partial<FetchWorkOptions> = {}): Promise<LockedWorkItem | null> {
  return provider.fetchWorkItem({ lockTimeoutMs: LONG_LOCK_MS, ...options });
}

/** Like `fetchWork`, where there must be some. */
export async function takeWork(provider: Provider, options: Partial<FetchWorkOptions> = {}): Promise<LockedWorkItem> {
  const locked = await fetchWork(provider, options);
  if (locked === null) throw new BrokenPromiseError("expected a work item, the provider has none to give");
  return locked;
}

const MOST_TRIES = 20;

/** Under contention a store may ask to try again: it has then locked nothing. */
export async function patiently<T>(t: CaseContext, fetch: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await fetch();
    } catch (error) {
      if (!(error instanceof ProviderError) || !error.retryable || tries === MOST_TRIES) throw error;
      await t.wait(10);
    }
  }
}

/** Starts the instance and commits its first turn: it exists, and it runs. */
export async function create(provider: Provider, instance: string, fields: Partial<TurnCommit> = {}): Promise<void> {
  await begin(provider, instance, { metadata: NAMED, ...fields });
}

/** As `create`, but without the metadata that would make the instance known: only its history tells of it. */
export async function begin(provider: Provider, instance: string, fields: Partial<TurnCommit> = {}): Promise<void> {
  await provider.enqueueForOrchestrator(start(instance));
  await commitNext(provider, instance, { events: [started(instance)], ...fields });
}

/** Wakes the instance and commits a turn of it. */
export async function runTurn(provider: Provider, instance: string, fields: Partial<TurnCommit> = {}): Promise<void> {
  await provider.enqueueForOrchestrator(raised(instance));
  await commitNext(provider, instance, fields);
}

/** Fetches the instance, which must be the next in line, and commits a turn of it. */
export async function commitNext(
  provider: Provider,
  instance: string,
  fields: Partial<TurnCommit> = {},
): Promise<void> {
  const { item, lockToken } = await takeTurn(provider);
  if (item.instance !== instance)
    throw new BrokenPromiseError(`expected a turn of '${instance}', got '${item.instance}'`);
  await provider.ackOrchestrationItem(lockToken, turn(fields));
}

/** Ends the instance's current execution and begins the next. */
export async function continueExecution(provider: Provider, instance: string, next: number): Promise<void> {
  await runTurn(provider, instance, { executionId: next - 1, metadata: { ...NAMED, status: "ContinuedAsNew" } });
  await provider.enqueueForOrchestrator(continueAsNew(instance));
  const events = [started(instance, { executionId: next })];
  await commitNext(provider, instance, { executionId: next, events, metadata: NAMED });
}

/** Starts the instance and ends it in the same turn: completed, where the metadata does not say otherwise. */
export async function createEnded(
  provider: Provider,
  instance: string,
  metadata: ExecutionMetadata = {},
): Promise<void> {
  await create(provider, instance, { metadata: { ...NAMED, status: "Completed", output: "done", ...metadata } });
}

/** An instance with executions 1 to `count`, one event each: all continued as new but the last, which has this status. */
export async function createExecutions(
  provider: Provider,
  instance: string,
  count: number,
  last: ExecutionStatus = "Completed",
): Promise<void> {
  for (let executionId = 1; executionId <= count; executionId += 1) {
    const status = executionId < count ? "ContinuedAsNew" : last;
    await provider.enqueueForOrchestrator(executionId === 1 ? start(instance) : continueAsNew(instance));
    const events = [started(instance, { executionId })];
    await commitNext(provider, instance, { executionId, events, metadata: { ...NAMED, status } });
  }
}
