// provider/kit/refusals.ts — what every store refuses to write, and how it says so.

import { ProviderError } from "../../errors.js";
import type { Event } from "../../history/event.js";
import type { WorkItem } from "../../history/work-item.js";

/** Ids of events are integers from 1 on. @throws ProviderError "invalid" */
export function checkEventIds(operation: string, events: readonly Event[]): void {
  for (const { eventId, type } of events) {
    if (Number.isSafeInteger(eventId) && eventId >= 1) continue;
    throw new ProviderError("invalid", operation, `${type} has event id ${eventId}; ids are integers from 1 on.`);
  }
}

/** What an event id that the execution has already is refused with. */
export function eventTaken(operation: string, { eventId, type }: Event, options?: ErrorOptions): ProviderError {
  const message = `Event id ${eventId} (${type}) is taken in this execution.`;
  return new ProviderError("duplicate-event", operation, message, options);
}

/** Messages only. @throws ProviderError "invalid" for an activity */
export function checkOrchestratorItem(operation: string, item: WorkItem): void {
  if (item.type !== "ActivityExecute") return;
  throw new ProviderError("invalid", operation, "ActivityExecute belongs into the worker queue.");
}

/** Activities only. @throws ProviderError "invalid" for a message */
export function checkWorkerItem(operation: string, item: WorkItem): void {
  if (item.type === "ActivityExecute") return;
  throw new ProviderError("invalid", operation, `${item.type} belongs into the orchestrator queue.`);
}

/** What an activity may be acked with. @throws ProviderError "invalid" for anything but its completion or failure */
export function checkCompletion(operation: string, item: WorkItem): void {
  if (item.type === "ActivityCompleted" || item.type === "ActivityFailed") return;
  throw new ProviderError("invalid", operation, `${item.type} is not the completion of an activity.`);
}

/** What an ack or a renewal without a live lock is refused with. */
export function lockLost(operation: string, lockToken: string): ProviderError {
  const message = `Invalid lock token '${lockToken}': unknown, expired or taken over. Nothing was written; fetch again.`;
  return new ProviderError("lock-lost", operation, message);
}

/** What a question about an instance without a row is refused with. */
export function instanceNotFound(operation: string, instance: string): ProviderError {
  return new ProviderError("not-found", operation, `Instance '${instance}' not found.`);
}

/** What a question about an unknown execution is refused with. */
export function executionNotFound(operation: string, instance: string, executionId: number): ProviderError {
  return new ProviderError("not-found", operation, `Execution ${executionId} of instance '${instance}' not found.`);
}

/** What a deletion without force of something that has not ended is refused with. */
export function stillRunning(operation: string, instance: string): ProviderError {
  const message = `Instance '${instance}' is still running. Cancel it and wait for its end, or use force.`;
  return new ProviderError("still-running", operation, message);
}

/** What a deletion is refused with that would leave a child behind. */
export function wouldOrphan(operation: string, child: string, parent: string): ProviderError {
  const message = `'${child}' is a child of '${parent}' and would be an orphan; delete the whole tree. Nothing was deleted.`;
  return new ProviderError("orphans", operation, message);
}
