// test/engine/recorded-arrivals.ts — the arrivals of a recorded history as the messages that once brought them.

import type { Event } from "../../src/history/event.js";
import type { OrchestratorItem } from "../../src/history/work-item.js";

/** The arrivals that follow a position without a decision in between: one batch, as far as `isSameBatch` agrees. */
export function nextBatch(
  events: readonly Event[],
  from: number,
  isSameBatch: (first: Event, next: Event) => boolean = () => true,
): OrchestratorItem[] {
  const batch: OrchestratorItem[] = [];
  for (const event of events.slice(from)) {
    const message = messageOf(event);
    if (message === null || !isSameBatch(events[from]!, event)) break;
    batch.push(message);
  }
  return batch;
}

/** Null for what no message brings. */
export function messageOf(event: Event): OrchestratorItem | null {
  const { instanceId: instance, executionId } = event;
  const id = event.sourceEventId ?? 0;
  const parent = { parentInstance: instance, parentExecutionId: executionId, parentId: id };
  switch (event.type) {
    case "ActivityCompleted":
      return { type: "ActivityCompleted", instance, executionId, id, result: event.result };
    case "ActivityFailed":
      return { type: "ActivityFailed", instance, executionId, id, details: event.details };
    case "TimerFired":
      return { type: "TimerFired", instance, executionId, id, fireAtMs: event.fireAtMs };
    case "ExternalEvent":
      return { type: "ExternalRaised", instance, name: event.name, data: event.data };
    case "ExternalEventPersistent":
      return { type: "QueueMessage", instance, name: event.name, data: event.data };
    case "SubOrchestrationCompleted":
      return { type: "SubOrchCompleted", ...parent, result: event.result };
    case "SubOrchestrationFailed":
      return { type: "SubOrchFailed", ...parent, details: event.details };
    case "OrchestrationCancelRequested":
      return { type: "CancelInstance", instance, reason: event.reason };
    default:
      return null;
  }
}
