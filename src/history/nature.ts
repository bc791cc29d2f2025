// history/nature.ts — what each kind of event is to its execution.

import type { Event, EventType } from "./event.js";

/** Brought by a message, decided by code, a note that something was given up, or the beginning or the end. */
export type Nature = "start" | "arrival" | "decision" | "breadcrumb" | "end";

export function natureOf(event: Event): Nature {
  return NATURES[event.type];
}

/** Whether there are events of that kind. */
export function isEventType(text: string): text is EventType {
  return Object.hasOwn(NATURES, text);
}

const NATURES: Readonly<Record<EventType, Nature>> = {
  OrchestrationStarted: "start",
  OrchestrationCompleted: "end",
  OrchestrationFailed: "end",
  OrchestrationContinuedAsNew: "end",
  OrchestrationCancelRequested: "arrival",
  ActivityScheduled: "decision",
  ActivityCompleted: "arrival",
  ActivityFailed: "arrival",
  ActivityCancelRequested: "breadcrumb",
  TimerCreated: "decision",
  TimerFired: "arrival",
  ExternalSubscribed: "decision",
  ExternalEvent: "arrival",
  ExternalSubscribedCancelled: "breadcrumb",
  ExternalSubscribedPersistent: "decision",
  ExternalEventPersistent: "arrival",
  ExternalSubscribedPersistentCancelled: "breadcrumb",
  SubOrchestrationScheduled: "decision",
  SubOrchestrationCompleted: "arrival",
  SubOrchestrationFailed: "arrival",
  SubOrchestrationCancelRequested: "breadcrumb",
  OrchestrationChained: "decision",
  CustomStatusUpdated: "decision",
  KeyValueSet: "decision",
  KeyValueCleared: "decision",
  KeyValuesCleared: "decision",
};
