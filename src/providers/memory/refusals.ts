// providers/memory/refusals.ts — what the store refuses to write, and how it says so. All of it before the first write.

import { ProviderError } from "../../errors.js";
import type { Event } from "../../history/event.js";
import type { WorkItem } from "../../history/work-item.js";
import type { ExecutionRecord } from "./execution-record.js";

/** @throws ProviderError "invalid" for an event id that is not a positive integer, "duplicate-event" for one in use */
export function checkEvents(operation: string, execution: ExecutionRecord | null, events: readonly Event[]): void {
  const seen = new Set<number>();
  for (const { eventId, type } of events) {
    if (!Number.isSafeInteger(eventId) || eventId < 1) {
      throw new ProviderError("invalid", operation, `${type} has event id ${eventId}; ids are integers from 1 on.`);
    }
    if (seen.has(eventId) || execution?.has(eventId)) {
      throw new ProviderError(
        "duplicate-event",
        operation,
        `Event id ${eventId} (${type}) is taken in this execution.`,
      );
    }
    seen.add(eventId);
  }
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

export function lockLost(operation: string, lockToken: string): ProviderError {
  const message = `Invalid lock token '${lockToken}': unknown, expired or taken over. Nothing was written; fetch again.`;
  return new ProviderError("lock-lost", operation, message);
}
