// engine/matching.ts — whether what the code asks for now is what history says it asked for then.
//
//   M1. Requests match in order, kind by kind; a mismatch names both sides and the event id.
//   M2. Not compared: fire times (history's stays), the status text, timestamps, requested versions, what is retried.

import type { Event, EventPayload } from "../history/event.js";
import { type Action, AUTO_CHILD_PREFIX } from "./action.js";
import { NondeterminismError } from "./nondeterminism.js";

/** @throws NondeterminismError unless the action is the one that the event records */
export function assertMatches(action: Action | undefined, event: Event): void {
  if (action === undefined) throw new NondeterminismError(missingAction(event));
  const difference = compare(action, event);
  if (difference === null) return;
  const kind = mismatchName(event);
  throw new NondeterminismError(
    `${kind}: event ${event.eventId}: action=${describeAction(action)} vs event=${describeEvent(event)}${difference === "" ? "" : ` (${difference} differs)`}`,
  );
}

/** Null: the same. Otherwise the name of what differs; empty when the kinds do. */
export function compare(action: Action, event: Event): string | null {
  switch (event.type) {
    case "ActivityScheduled":
      if (action.type !== "CallActivity") return "";
      return differing(
        ["name", action.name, event.name],
        ["input", action.input, event.input],
        ["session", action.sessionId, event.sessionId],
        ["tag", action.tag, event.tag],
      );
    case "TimerCreated":
      return action.type === "CreateTimer" ? null : "";
    case "ExternalSubscribed":
      return action.type === "WaitExternal" ? differing(["name", action.name, event.name]) : "";
    case "ExternalSubscribedPersistent":
      return action.type === "DequeueEvent" ? differing(["name", action.name, event.name]) : "";
    case "SubOrchestrationScheduled":
      if (action.type !== "StartSubOrchestration") return "";
      return (
        differing(["name", action.name, event.name], ["input", action.input, event.input]) ??
        compareChildId(action.instance, event.instance)
      );
    case "OrchestrationChained":
      if (action.type !== "StartOrchestrationDetached") return "";
      return differing(
        ["name", action.name, event.name],
        ["instance", action.instance, event.instance],
        ["input", action.input, event.input],
      );
    case "CustomStatusUpdated":
      return action.type === "UpdateCustomStatus" ? null : "";
    case "KeyValueSet":
      if (action.type !== "SetKeyValue") return "";
      return differing(["key", action.key, event.key], ["value", action.value, event.value]);
    case "KeyValueCleared":
      return action.type === "ClearKeyValue" ? differing(["key", action.key, event.key]) : "";
    case "KeyValuesCleared":
      return action.type === "ClearKeyValues" ? null : "";
    default:
      return "";
  }
}

function differing(...fields: readonly (readonly [string, string | undefined, string | undefined])[]): string | null {
  return fields.find(([, asked, recorded]) => asked !== recorded)?.[0] ?? null;
}

function compareChildId(asked: string | null, recorded: string): string | null {
  const isSame = asked === null ? recorded.startsWith(AUTO_CHILD_PREFIX) : asked === recorded;
  return isSame ? null : "instance";
}

function missingAction(event: Event): string {
  const what = event.type === "OrchestrationChained" ? "OrchestrationChained" : "schedule";
  return `history ${what} but no emitted action: event ${event.eventId} records ${describeEvent(event)}, but the code did not ask for it`;
}

function mismatchName(event: Event): string {
  switch (event.type) {
    case "CustomStatusUpdated":
      return "custom status mismatch";
    case "KeyValueSet":
      return "kv set mismatch";
    case "KeyValueCleared":
      return "kv clear mismatch";
    case "KeyValuesCleared":
      return "kv clear_all mismatch";
    default:
      return "schedule mismatch";
  }
}

export function describeAction(action: Action): string {
  const { type, ...fields } = action;
  return `${type}${describeFields({ ...fields, retryOf: undefined })}`; // M2: not recorded, so not compared.
}

export function describeEvent(event: Event): string {
  const { eventId, sourceEventId, instanceId, executionId, timestampMs, duroxideVersion, ...payload } = event;
  return describePayload(payload);
}

export function describePayload({ type, ...fields }: EventPayload): string {
  return `${type}${describeFields(fields)}`;
}

const LONGEST_VALUE = 200;

function describeFields(fields: object): string {
  const texts = Object.entries(fields)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => `${name}=${shorten(JSON.stringify(value))}`);
  return `(${texts.join(", ")})`;
}

function shorten(text: string): string {
  return text.length <= LONGEST_VALUE ? text : `${text.slice(0, LONGEST_VALUE)}… (${text.length} characters)`;
}
