// provider/kit/refusals.ts — what every store refuses to write, and how it says so.

import { ProviderError } from "../../errors.js";
import type { Event } from "../../history/event.js";
import type { WorkItem } from "../../history/work-item.js";
import type { InstanceFilter, PruneOptions } from "../admin.js";

export function checkEventIds(operation: string, events: readonly Event[]): void {
  for (const { eventId, type } of events) {
    if (Number.isSafeInteger(eventId) && eventId >= 1) continue;
    throw new ProviderError("invalid", operation, `${type} has event id ${eventId}; ids are integers from 1 on.`);
  }
}

export function eventTaken(operation: string, { eventId, type }: Event, options?: ErrorOptions): ProviderError {
  const message = `Event id ${eventId} (${type}) is taken in this execution.`;
  return new ProviderError("duplicate-event", operation, message, options);
}

export function checkOrchestratorItem(operation: string, item: WorkItem): void {
  if (item.type !== "ActivityExecute") return;
  throw new ProviderError("invalid", operation, "ActivityExecute belongs into the worker queue.");
}

export function checkWorkerItem(operation: string, item: WorkItem): void {
  if (item.type === "ActivityExecute") return;
  throw new ProviderError("invalid", operation, `${item.type} belongs into the orchestrator queue.`);
}

export function checkCompletion(operation: string, item: WorkItem): void {
  if (item.type === "ActivityCompleted" || item.type === "ActivityFailed") return;
  throw new ProviderError("invalid", operation, `${item.type} is not the completion of an activity.`);
}

export function checkInstanceFilter(operation: string, filter: InstanceFilter): void {
  const { instanceIds, completedBeforeMs, limit } = filter;
  if (instanceIds !== undefined && !Array.isArray(instanceIds)) {
    throw new ProviderError("invalid", operation, "instanceIds must be an array; leave it out for any instance.");
  }
  checkCount(operation, "completedBeforeMs", completedBeforeMs);
  checkCount(operation, "limit", limit);
}

export function checkPruneOptions(operation: string, { keepLast, completedBeforeMs }: PruneOptions): void {
  checkCount(operation, "keepLast", keepLast);
  checkCount(operation, "completedBeforeMs", completedBeforeMs);
}

function checkCount(operation: string, name: string, value: number | undefined): void {
  if (value === undefined || (Number.isSafeInteger(value) && value >= 0)) return;
  throw new ProviderError("invalid", operation, `${name} is ${value}; an integer from 0 on is expected.`);
}

export function lockLost(operation: string, lockToken: string): ProviderError {
  const message = `Invalid lock token '${lockToken}': unknown, expired or taken over. Nothing was written; fetch again.`;
  return new ProviderError("lock-lost", operation, message);
}

export function instanceNotFound(operation: string, instance: string): ProviderError {
  return new ProviderError("not-found", operation, `Instance '${instance}' not found.`);
}

export function executionNotFound(operation: string, instance: string, executionId: number): ProviderError {
  return new ProviderError("not-found", operation, `Execution ${executionId} of instance '${instance}' not found.`);
}

export function stillRunning(operation: string, instance: string): ProviderError {
  const message = `Instance '${instance}' is still running. Cancel it and wait for its end, or use force.`;
  return new ProviderError("still-running", operation, message);
}

export function wouldOrphan(operation: string, child: string, parent: string): ProviderError {
  const message = `'${child}' is a child of '${parent}' and would be an orphan; delete the whole tree. Nothing was deleted.`;
  return new ProviderError("orphans", operation, message);
}
