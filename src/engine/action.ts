// engine/action.ts — the decisions that orchestration code takes, and the events that record them.

import { unreachable } from "../errors.js";
import type { Event, EventPayload } from "../history/event.js";
import { natureOf } from "../history/nature.js";

export type Action =
  | {
      readonly type: "CallActivity";
      readonly name: string;
      readonly input: string;
      readonly sessionId?: string;
      readonly tag?: string;
      /** Tried again: the event of the first attempt. Not recorded, only handed to the worker. */
      readonly retryOf?: number;
    }
  | { readonly type: "CreateTimer"; readonly fireAtMs: number }
  | { readonly type: "WaitExternal"; readonly name: string }
  | { readonly type: "DequeueEvent"; readonly name: string }
  | {
      readonly type: "StartSubOrchestration";
      readonly name: string;
      readonly version: string | null;
      /** Null: derived from the event id. */
      readonly instance: string | null;
      readonly input: string;
    }
  | {
      readonly type: "StartOrchestrationDetached";
      readonly name: string;
      readonly version: string | null;
      readonly instance: string;
      readonly input: string;
    }
  | { readonly type: "UpdateCustomStatus"; readonly status: string | null }
  | { readonly type: "SetKeyValue"; readonly key: string; readonly value: string; readonly lastUpdatedAtMs: number }
  | { readonly type: "ClearKeyValue"; readonly key: string }
  | { readonly type: "ClearKeyValues" };

/** Marks the id of a child that nobody named. */
export const AUTO_CHILD_PREFIX = "sub::";

/**
 * The event that records an action. Child ids name the execution too, from the second on: event ids start anew with
 * each execution, and the first one's children may still be there.
 */
export function payloadOf(action: Action, eventId: number, executionId: number): EventPayload {
  switch (action.type) {
    case "CallActivity": {
      const { name, input, sessionId, tag } = action;
      if (sessionId === undefined && tag === undefined) return { type: "ActivityScheduled", name, input };
      return {
        type: "ActivityScheduled",
        name,
        input,
        ...(sessionId === undefined ? {} : { sessionId }),
        ...(tag === undefined ? {} : { tag }),
      };
    }
    case "CreateTimer":
      return { type: "TimerCreated", fireAtMs: action.fireAtMs };
    case "WaitExternal":
      return { type: "ExternalSubscribed", name: action.name };
    case "DequeueEvent":
      return { type: "ExternalSubscribedPersistent", name: action.name };
    case "StartSubOrchestration": {
      const suffix = executionId === 1 ? `${eventId}` : `${executionId}_${eventId}`;
      const instance = action.instance ?? `${AUTO_CHILD_PREFIX}${suffix}`;
      return { type: "SubOrchestrationScheduled", name: action.name, instance, input: action.input };
    }
    case "StartOrchestrationDetached":
      return { type: "OrchestrationChained", name: action.name, instance: action.instance, input: action.input };
    case "UpdateCustomStatus":
      return { type: "CustomStatusUpdated", status: action.status };
    case "SetKeyValue":
      return {
        type: "KeyValueSet",
        key: action.key,
        value: action.value,
        lastUpdatedAtMs: action.lastUpdatedAtMs,
      };
    case "ClearKeyValue":
      return { type: "KeyValueCleared", key: action.key };
    case "ClearKeyValues":
      return { type: "KeyValuesCleared" };
    default:
      return unreachable(action);
  }
}

/** The full instance id of a child, from what its scheduling event says. */
export function childInstance(parent: string, recorded: string): string {
  return recorded.startsWith(AUTO_CHILD_PREFIX) ? `${parent}::${recorded}` : recorded;
}

/** Whether an event records a decision of orchestration code, so that an action must match it. */
export function isDecision(event: Event): boolean {
  return natureOf(event) === "decision";
}
