// provider/kit/refusals.ts — what every store refuses to write, and how it says so.

import { ProviderError } from "../../errors.js";
import type { Event } from "../../history/event.js";
import type { WorkItem } from "../../history/work-item.js";

/**
 * Ids of events are integers from 1 on.
 *
 * @throws ProviderError "invalid"
 * @example
 * checkEventIds("appendWithExecution", await provider.read("order-1"));
 */
export function checkEventIds(operation: string, events: readonly Event[]): void {
  for (const { eventId, type } of events) {
    if (Number.isSafeInteger(eventId) && eventId >= 1) continue;
    throw new ProviderError("invalid", operation, `${type} has event id ${eventId}; ids are integers from 1 on.`);
  }
}

/**
 * What an event id that the execution has already is refused with.
 *
 * @example
 * const [first] = await provider.read("order-1");
 * if (first !== undefined) throw eventTaken("appendWithExecution", first);
 */
export function eventTaken(operation: string, { eventId, type }: Event, options?: ErrorOptions): ProviderError {
  const message = `Event id ${eventId} (${type}) is taken in this execution.`;
  return new ProviderError("duplicate-event", operation, message, options);
}

/**
 * Messages only.
 *
 * @throws ProviderError "invalid" for an activity
 * @example
 * checkOrchestratorItem("enqueueForOrchestrator", { type: "CancelInstance", instance: "order-1", reason: "too late" });
 */
export function checkOrchestratorItem(operation: string, item: WorkItem): void {
  if (item.type !== "ActivityExecute") return;
  throw new ProviderError("invalid", operation, "ActivityExecute belongs into the worker queue.");
}

/**
 * Activities only.
 *
 * @throws ProviderError "invalid" for a message
 * @example
 * const call = { instance: "order-1", executionId: 1, id: 2, name: "Charge", input: "12" };
 * checkWorkerItem("enqueueForWorker", { type: "ActivityExecute", ...call });
 */
export function checkWorkerItem(operation: string, item: WorkItem): void {
  if (item.type === "ActivityExecute") return;
  throw new ProviderError("invalid", operation, `${item.type} belongs into the orchestrator queue.`);
}

/**
 * What an activity may be acked with.
 *
 * @throws ProviderError "invalid" for anything but its completion or failure
 * @example
 * const call = { instance: "order-1", executionId: 1, id: 2 };
 * checkCompletion("ackWorkItem", { type: "ActivityCompleted", ...call, result: "null" });
 */
export function checkCompletion(operation: string, item: WorkItem): void {
  if (item.type === "ActivityCompleted" || item.type === "ActivityFailed") return;
  throw new ProviderError("invalid", operation, `${item.type} is not the completion of an activity.`);
}

/**
 * What an ack or a renewal without a live lock is refused with.
 *
 * @example
 * const locks = new Map<string, string>(); // instance by token
 * const ack = (token: string): void => {
 *   if (!locks.delete(token)) throw lockLost("ackOrchestrationItem", token);
 * };
 */
export function lockLost(operation: string, lockToken: string): ProviderError {
  const message = `Invalid lock token '${lockToken}': unknown, expired or taken over. Nothing was written; fetch again.`;
  return new ProviderError("lock-lost", operation, message);
}

/**
 * What a question about an instance without a row is refused with.
 *
 * @example
 * throw instanceNotFound("getInstanceInfo", "order-1");
 */
export function instanceNotFound(operation: string, instance: string): ProviderError {
  return new ProviderError("not-found", operation, `Instance '${instance}' not found.`);
}

/**
 * What a question about an unknown execution is refused with.
 *
 * @example
 * throw executionNotFound("getExecutionInfo", "order-1", 7);
 */
export function executionNotFound(operation: string, instance: string, executionId: number): ProviderError {
  return new ProviderError("not-found", operation, `Execution ${executionId} of instance '${instance}' not found.`);
}

/**
 * What a deletion without force of something that has not ended is refused with.
 *
 * @example
 * throw stillRunning("deleteInstancesAtomic", "order-1");
 */
export function stillRunning(operation: string, instance: string): ProviderError {
  const message = `Instance '${instance}' is still running. Cancel it and wait for its end, or use force.`;
  return new ProviderError("still-running", operation, message);
}

/**
 * What a deletion is refused with that would leave a child behind.
 *
 * @example
 * throw wouldOrphan("deleteInstancesAtomic", "order-1::sub::5", "order-1");
 */
export function wouldOrphan(operation: string, child: string, parent: string): ProviderError {
  const message = `'${child}' is a child of '${parent}' and would be an orphan; delete the whole tree. Nothing was deleted.`;
  return new ProviderError("orphans", operation, message);
}
