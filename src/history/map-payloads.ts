// history/map-payloads.ts — which texts of events, messages and failures are users' own, and a way to replace all of them.
//
//   M1. Users' own: inputs, outputs, results, data of events and mailboxes, key-values, the custom status, why an
//       instance was cancelled, and the words of failures. They may hold anything, and nothing but users' code and its replay looks at them.
//   M2. Everything else stays as it is, because stores and operators look at it: kinds, ids, names, versions, tags, sessions, queues,
//       keys, times, categories of failures, and the engine's own words for why something was given up.
//   M3. What is mapped is a copy; what came in is not changed. A new kind of event or message does not compile until it is told here.

import { unreachable } from "../errors.js";
import type { ApplicationErrorKind, ErrorDetails, PoisonMessageType } from "./error-details.js";
import type { CarriedEvent, Event } from "./event.js";
import type { WorkItem } from "./work-item.js";

/** Replaces one text of a user. */
export type MapText = (text: string) => string;

export function mapEventPayloads(event: Event, map: MapText): Event {
  switch (event.type) {
    case "OrchestrationStarted":
      return { ...event, input: map(event.input), ...mappedCarried(event, map), ...mappedInitialStatus(event, map) };
    case "OrchestrationCompleted":
      return { ...event, output: map(event.output) };
    case "OrchestrationContinuedAsNew":
    case "ActivityScheduled":
    case "SubOrchestrationScheduled":
    case "OrchestrationChained":
      return { ...event, input: map(event.input) };
    case "ActivityCompleted":
    case "SubOrchestrationCompleted":
      return { ...event, result: map(event.result) };
    case "OrchestrationFailed":
    case "ActivityFailed":
    case "SubOrchestrationFailed":
      return { ...event, details: mapErrorPayloads(event.details, map) };
    case "OrchestrationCancelRequested":
      return { ...event, reason: map(event.reason) };
    case "ExternalEvent":
    case "ExternalEventPersistent":
      return { ...event, data: map(event.data) };
    case "CustomStatusUpdated":
      return event.status === null ? event : { ...event, status: map(event.status) };
    case "KeyValueSet":
      return { ...event, value: map(event.value) };
    case "TimerCreated":
    case "TimerFired":
    case "ExternalSubscribed":
    case "ExternalSubscribedPersistent":
    case "ActivityCancelRequested":
    case "SubOrchestrationCancelRequested":
    case "ExternalSubscribedCancelled":
    case "ExternalSubscribedPersistentCancelled":
    case "KeyValueCleared":
    case "KeyValuesCleared":
      return event;
    default:
      return unreachable(event);
  }
}

export function mapWorkItemPayloads<Item extends WorkItem>(item: Item, map: MapText): Item {
  return mappedWorkItem(item, map) as Item; // M3: of the same kind.
}

function mappedWorkItem(item: WorkItem, map: MapText): WorkItem {
  switch (item.type) {
    case "StartOrchestration":
    case "ActivityExecute":
      return { ...item, input: map(item.input) };
    case "ContinueAsNew": {
      const carryForwardEvents = item.carryForwardEvents.map((carried) => mapCarried(carried, map));
      return { ...item, input: map(item.input), carryForwardEvents, ...mappedInitialStatus(item, map) };
    }
    case "ActivityCompleted":
    case "SubOrchCompleted":
      return { ...item, result: map(item.result) };
    case "ActivityFailed":
    case "SubOrchFailed":
      return { ...item, details: mapErrorPayloads(item.details, map) };
    case "ExternalRaised":
    case "QueueMessage":
      return { ...item, data: map(item.data) };
    case "CancelInstance":
      return { ...item, reason: map(item.reason) };
    case "TimerFired":
      return item;
    default:
      return unreachable(item);
  }
}

function mapErrorPayloads(details: ErrorDetails, map: MapText): ErrorDetails {
  switch (details.category) {
    case "infrastructure":
      return { ...details, message: map(details.message) };
    case "configuration":
      return details.message === null ? details : { ...details, message: map(details.message) };
    case "application":
      return { ...details, kind: mapKind(details.kind, map), message: map(details.message) };
    case "poison":
      return { ...details, messageType: mapPoison(details.messageType, map), message: map(details.message) };
    default:
      return unreachable(details);
  }
}

function mapKind(kind: ApplicationErrorKind, map: MapText): ApplicationErrorKind {
  return kind.type === "Cancelled" ? { ...kind, reason: map(kind.reason) } : kind;
}

/** Why a history cannot be read may quote it. */
function mapPoison(type: PoisonMessageType, map: MapText): PoisonMessageType {
  return type.type === "FailedDeserialization" ? { ...type, error: map(type.error) } : type;
}

function mapCarried([name, data]: CarriedEvent, map: MapText): CarriedEvent {
  return [name, map(data)];
}

/** Absent stays absent. */
function mappedCarried(
  { carryForwardEvents: carried }: { readonly carryForwardEvents?: readonly CarriedEvent[] },
  map: MapText,
) {
  return carried === undefined ? {} : { carryForwardEvents: carried.map((each) => mapCarried(each, map)) };
}

function mappedInitialStatus({ initialCustomStatus: status }: { readonly initialCustomStatus?: string }, map: MapText) {
  return status === undefined ? {} : { initialCustomStatus: map(status) };
}
