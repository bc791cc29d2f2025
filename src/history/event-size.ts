// history/event-size.ts — how much an event weighs, by its payload: the one text in it that users decide about.

import { unreachable } from "../errors.js";
import type { Event, EventOf } from "./event.js";
import { failureText } from "./failure-size.js";
import { byteLength, type Limits } from "./limits.js";

/** What an event takes in a store beside its payload: names, ids, times, and the row that it is in. Rounded up. */
const BYTES_BESIDE_PAYLOAD = 256;

/**
 * What an event adds to `maxHistoryBytes`. An estimate: JSON in JSON has more quotes, and each store its own format.
 * `sizeOf`: how texts are measured, where a bound is enough.
 */
export function eventBytes(event: Event, sizeOf: (text: string) => number = byteLength): number {
  const payload = BYTES_BESIDE_PAYLOAD + sizeOf(payloadOf(event));
  return event.type === "OrchestrationStarted" ? payload + broughtAlongBytes(event, sizeOf) : payload;
}

/** The input, output, result, data, message, value or status of an event; empty where it has none. */
export function payloadOf(event: Event): string {
  switch (event.type) {
    case "OrchestrationStarted":
    case "OrchestrationContinuedAsNew":
    case "ActivityScheduled":
    case "SubOrchestrationScheduled":
    case "OrchestrationChained":
      return event.input;
    case "OrchestrationCompleted":
      return event.output;
    case "ActivityCompleted":
    case "SubOrchestrationCompleted":
      return event.result;
    case "OrchestrationFailed":
    case "ActivityFailed":
    case "SubOrchestrationFailed":
      return failureText(event.details);
    case "ExternalEvent":
    case "ExternalEventPersistent":
      return event.data;
    case "OrchestrationCancelRequested":
      return event.reason;
    case "CustomStatusUpdated":
      return event.status ?? "";
    case "KeyValueSet":
      return event.value;
    case "ActivityCancelRequested":
    case "SubOrchestrationCancelRequested":
    case "ExternalSubscribed":
    case "ExternalSubscribedCancelled":
    case "ExternalSubscribedPersistent":
    case "ExternalSubscribedPersistentCancelled":
    case "TimerCreated":
    case "TimerFired":
    case "KeyValueCleared":
    case "KeyValuesCleared":
      return "";
    default:
      return unreachable(event);
  }
}

/** Which limit the payload of an event is held to. */
export function payloadLimitOf(event: Event): keyof Limits {
  switch (event.type) {
    case "CustomStatusUpdated":
      return "maxCustomStatusBytes";
    case "KeyValueSet":
      return "maxKvValueBytes";
    default:
      return "maxPayloadBytes";
  }
}

/** The mailbox messages and the custom status that continue-as-new brought along. */
function broughtAlongBytes(start: EventOf<"OrchestrationStarted">, sizeOf: (text: string) => number): number {
  let bytes = sizeOf(start.initialCustomStatus ?? "");
  for (const [name, data] of start.carryForwardEvents ?? []) bytes += sizeOf(name) + sizeOf(data);
  return bytes;
}
