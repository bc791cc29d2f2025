// history/event.ts — the facts of one execution, in order. The words every other part speaks.
//
//   E1. Events are immutable and append-only; `eventId` is strictly increasing within an execution.
//   E2. Only the runtime numbers events; a provider stores and returns them verbatim.
//   E3. `type` is the reference's wire tag. A kind never changes its meaning; a new meaning is a new kind.

import type { ErrorDetails } from "./error-details.js";

/** Event id of the first event of every execution, always `OrchestrationStarted`. */
export const INITIAL_EVENT_ID = 1;
/** The first execution of every instance; continue-as-new starts the next. */
export const INITIAL_EXECUTION_ID = 1;
/** Event id of the failure that is appended to a history that cannot be decoded. */
export const CORRUPT_HISTORY_EVENT_ID = 99_999;
/** The replay semantics that this code writes and understands. It changes only when replay changes. */
export const ENGINE_VERSION = "0.1.30";

/** What every event says beside what happened: which, of what, when. */
export interface EventEnvelope {
  /** Counts up from 1 within an execution. */
  readonly eventId: number;
  /** The scheduling event that this completion or breadcrumb answers. */
  readonly sourceEventId: number | null;
  readonly instanceId: string;
  readonly executionId: number;
  /** Wall clock at creation. For people; replay never looks at it. */
  readonly timestampMs: number;
  /** The engine that wrote it. */
  readonly duroxideVersion: string;
}

/** A queue message that continue-as-new carries over: queue name and data. */
export type CarriedEvent = readonly [name: string, data: string];

/**
 * What happened, by kind. Inputs, outputs, results and data are texts: JSON as it is stored.
 *
 * Of activities, timers, waits and sub-orchestrations, what answers one or tells that it was given up names the event
 * that asked for it in `sourceEventId`.
 */
export type EventPayload =
  | {
      readonly type: "OrchestrationStarted";
      readonly name: string;
      readonly version: string;
      readonly input: string;
      readonly parentInstance: string | null;
      readonly parentId: number | null;
      readonly parentExecutionId?: number;
      readonly carryForwardEvents?: readonly CarriedEvent[];
      readonly initialCustomStatus?: string;
    }
  | { readonly type: "OrchestrationCompleted"; readonly output: string }
  | { readonly type: "OrchestrationFailed"; readonly details: ErrorDetails }
  | { readonly type: "OrchestrationContinuedAsNew"; readonly input: string }
  | { readonly type: "OrchestrationCancelRequested"; readonly reason: string }
  | {
      readonly type: "ActivityScheduled";
      readonly name: string;
      readonly input: string;
      readonly sessionId?: string;
      readonly tag?: string;
    }
  | { readonly type: "ActivityCompleted"; readonly result: string }
  | { readonly type: "ActivityFailed"; readonly details: ErrorDetails }
  | { readonly type: "ActivityCancelRequested"; readonly reason: string }
  | { readonly type: "TimerCreated"; readonly fireAtMs: number }
  | { readonly type: "TimerFired"; readonly fireAtMs: number }
  /** A `waitForEvent` was opened. */
  | { readonly type: "ExternalSubscribed"; readonly name: string }
  | { readonly type: "ExternalEvent"; readonly name: string; readonly data: string }
  | { readonly type: "ExternalSubscribedCancelled"; readonly reason: string }
  /** A `dequeueEvent` was opened. */
  | { readonly type: "ExternalSubscribedPersistent"; readonly name: string }
  | { readonly type: "ExternalEventPersistent"; readonly name: string; readonly data: string }
  | { readonly type: "ExternalSubscribedPersistentCancelled"; readonly reason: string }
  | {
      readonly type: "SubOrchestrationScheduled";
      readonly name: string;
      /** The automatic suffix (`sub::5`), or the explicit id verbatim. */
      readonly instance: string;
      readonly input: string;
    }
  | { readonly type: "SubOrchestrationCompleted"; readonly result: string }
  | { readonly type: "SubOrchestrationFailed"; readonly details: ErrorDetails }
  | { readonly type: "SubOrchestrationCancelRequested"; readonly reason: string }
  /** An orchestration was started that lives on its own. */
  | {
      readonly type: "OrchestrationChained";
      readonly name: string;
      readonly instance: string;
      readonly input: string;
    }
  | { readonly type: "CustomStatusUpdated"; readonly status: string | null }
  | {
      readonly type: "KeyValueSet";
      readonly key: string;
      readonly value: string;
      readonly lastUpdatedAtMs: number;
    }
  | { readonly type: "KeyValueCleared"; readonly key: string }
  | { readonly type: "KeyValuesCleared" };

/**
 * One event of a history: a fact that is never changed.
 *
 * @example
 * const history = await client.readHistory("order-1");
 * const activities = history.flatMap((event) => (event.type === "ActivityScheduled" ? [event.name] : []));
 */
export type Event = EventEnvelope & EventPayload;
/** The kinds of events. */
export type EventType = EventPayload["type"];
/** An event of one kind. */
export type EventOf<T extends EventType> = EventEnvelope & Extract<EventPayload, { readonly type: T }>;

/** Whether the event ends its execution. */
export function isTerminal(event: Event): boolean {
  return (
    event.type === "OrchestrationCompleted" ||
    event.type === "OrchestrationFailed" ||
    event.type === "OrchestrationContinuedAsNew"
  );
}
