// test/runtime/events.ts — short ways to write down histories and messages.

import { ENGINE_VERSION, type Event, type EventPayload } from "../../src/history/event.js";
import type { ParentLink, StartOrchestration } from "../../src/history/work-item.js";

export const INSTANCE = "order-1";

/** Numbered from 1 unless an event names its own id. */
export function history(...payloads: (EventPayload & { readonly id?: number; readonly source?: number })[]): Event[] {
  return payloads.map(({ id, source, ...payload }, index) => ({
    ...payload,
    eventId: id ?? index + 1,
    sourceEventId: source ?? null,
    instanceId: INSTANCE,
    executionId: 1,
    timestampMs: 1_000 + index,
    duroxideVersion: ENGINE_VERSION,
  }));
}

export function started(parent: Partial<ParentLink> = {}): EventPayload {
  return {
    type: "OrchestrationStarted",
    name: "Order",
    version: "1.0.0",
    input: "null",
    parentInstance: null,
    parentId: null,
    ...parent,
  };
}

export function startMessage(changes: Partial<StartOrchestration> = {}): StartOrchestration {
  return {
    type: "StartOrchestration",
    instance: INSTANCE,
    orchestration: "Order",
    input: "null",
    version: null,
    parentInstance: null,
    parentId: null,
    executionId: 1,
    ...changes,
  };
}
