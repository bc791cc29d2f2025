// history/event-codec.ts — events as the reference writes them: one flat JSON object, envelope first, then the payload.
//
//   C1. The order of the fields is the reference's, so that a history written by either is the same text.
//   C2. Nullable fields are written as `null`; optional ones are left out when absent.

import { unreachable } from "../errors.js";
import { decodeErrorDetails, encodeErrorDetails } from "./error-details-codec.js";
import type { Event, EventPayload, EventType } from "./event.js";
import { unknownType, WireObject, wireInteger } from "./wire-object.js";

/**
 * The text of an event, as it is stored.
 *
 * @throws `DUROXIDE_CODEC` when a number is not one that the wire can carry.
 * @example
 * const lines = (await provider.read("order-1")).map(encodeEvent);
 */
export function encodeEvent(event: Event): string {
  const id = wireInteger(event.eventId, "event: event_id");
  const source = wireInteger(event.sourceEventId, "event: source_event_id");
  const execution = wireInteger(event.executionId, "event: execution_id");
  const time = wireInteger(event.timestampMs, "event: timestamp_ms");
  const instance = JSON.stringify(event.instanceId);
  const version = JSON.stringify(event.duroxideVersion);
  // Put together: one object of both, made only to be written, takes a third longer.
  const envelope = `{"event_id":${id},"source_event_id":${source},"instance_id":${instance},"execution_id":${execution},"timestamp_ms":${time},"duroxide_version":${version},`;
  return envelope + JSON.stringify(encodePayload(event)).slice(1);
}

/**
 * Reads a stored event. Fields that this version does not know are ignored.
 *
 * @throws `DUROXIDE_CODEC` when the text is no event that this version understands.
 * @example
 * const lines = (await provider.read("order-1")).map(encodeEvent);
 * const history = lines.map(decodeEvent);
 */
export function decodeEvent(text: string): Event {
  const unnamed = WireObject.parse(text, "event: ");
  const eventId = unnamed.integer("event_id");
  const wire = unnamed.moved(`event ${eventId}: `);
  return {
    eventId,
    sourceEventId: wire.nullableInteger("source_event_id"),
    instanceId: wire.text("instance_id"),
    executionId: wire.integer("execution_id"),
    timestampMs: wire.integer("timestamp_ms"),
    duroxideVersion: wire.text("duroxide_version"),
    ...decodePayload(wire),
  };
}

/** `JSON.stringify` leaves out what is `undefined`: that is how absent optional fields stay off the wire. */
function encodePayload(event: EventPayload): object {
  const type = event.type;
  switch (event.type) {
    case "OrchestrationStarted":
      return {
        type,
        name: event.name,
        version: event.version,
        input: event.input,
        parent_instance: event.parentInstance,
        parent_id: wireInteger(event.parentId, "OrchestrationStarted.parent_id"),
        parent_execution_id: wireInteger(event.parentExecutionId, "OrchestrationStarted.parent_execution_id"),
        carry_forward_events: event.carryForwardEvents,
        initial_custom_status: event.initialCustomStatus,
      };
    case "OrchestrationCompleted":
      return { type, output: event.output };
    case "OrchestrationContinuedAsNew":
      return { type, input: event.input };
    case "ActivityScheduled":
      return { type, name: event.name, input: event.input, session_id: event.sessionId, tag: event.tag };
    case "ActivityCompleted":
    case "SubOrchestrationCompleted":
      return { type, result: event.result };
    case "OrchestrationFailed":
    case "ActivityFailed":
    case "SubOrchestrationFailed":
      return { type, details: encodeErrorDetails(event.details) };
    case "OrchestrationCancelRequested":
    case "ActivityCancelRequested":
    case "SubOrchestrationCancelRequested":
    case "ExternalSubscribedCancelled":
    case "ExternalSubscribedPersistentCancelled":
      return { type, reason: event.reason };
    case "TimerCreated":
    case "TimerFired":
      return { type, fire_at_ms: wireInteger(event.fireAtMs, `${type}.fire_at_ms`) };
    case "ExternalSubscribed":
    case "ExternalSubscribedPersistent":
      return { type, name: event.name };
    case "ExternalEvent":
    case "ExternalEventPersistent":
      return { type, name: event.name, data: event.data };
    case "SubOrchestrationScheduled":
    case "OrchestrationChained":
      return { type, name: event.name, instance: event.instance, input: event.input };
    case "CustomStatusUpdated":
      return { type, status: event.status };
    case "KeyValueSet":
      return {
        type,
        key: event.key,
        value: event.value,
        last_updated_at_ms: wireInteger(event.lastUpdatedAtMs, "KeyValueSet.last_updated_at_ms"),
      };
    case "KeyValueCleared":
      return { type, key: event.key };
    case "KeyValuesCleared":
      return { type };
    default:
      return unreachable(event);
  }
}

function decodePayload(envelope: WireObject): EventPayload {
  // Whatever else the text may say falls through to the end, where the compiler proves that no kind is forgotten.
  const type = envelope.text("type") as EventType;
  const wire = envelope.moved(envelope.at(`${type}.`));
  switch (type) {
    case "OrchestrationStarted":
      return decodeStarted(wire);
    case "OrchestrationCompleted":
      return { type, output: wire.text("output") };
    case "OrchestrationContinuedAsNew":
      return { type, input: wire.text("input") };
    case "ActivityScheduled":
      return decodeActivityScheduled(wire);
    case "ActivityCompleted":
    case "SubOrchestrationCompleted":
      return { type, result: wire.text("result") };
    case "OrchestrationFailed":
    case "ActivityFailed":
    case "SubOrchestrationFailed":
      return { type, details: decodeErrorDetails(wire.value("details"), wire.at("details.")) };
    case "OrchestrationCancelRequested":
    case "ActivityCancelRequested":
    case "SubOrchestrationCancelRequested":
    case "ExternalSubscribedCancelled":
    case "ExternalSubscribedPersistentCancelled":
      return { type, reason: wire.text("reason") };
    case "TimerCreated":
    case "TimerFired":
      return { type, fireAtMs: wire.integer("fire_at_ms") };
    case "ExternalSubscribed":
    case "ExternalSubscribedPersistent":
      return { type, name: wire.text("name") };
    case "ExternalEvent":
    case "ExternalEventPersistent":
      return { type, name: wire.text("name"), data: wire.text("data") };
    case "SubOrchestrationScheduled":
    case "OrchestrationChained":
      return { type, name: wire.text("name"), instance: wire.text("instance"), input: wire.text("input") };
    case "CustomStatusUpdated":
      return { type, status: wire.nullableText("status") };
    case "KeyValueSet":
      return {
        type,
        key: wire.text("key"),
        value: wire.text("value"),
        // Histories older than the field lack it.
        lastUpdatedAtMs: wire.optionalInteger("last_updated_at_ms") ?? 0,
      };
    case "KeyValueCleared":
      return { type, key: wire.text("key") };
    case "KeyValuesCleared":
      return { type };
    default:
      throw unknownType(envelope.at(""), type satisfies never);
  }
}

function decodeStarted(wire: WireObject): EventPayload {
  const parentExecutionId = wire.optionalInteger("parent_execution_id");
  const carryForwardEvents = wire.optionalCarriedEvents("carry_forward_events");
  const initialCustomStatus = wire.optionalText("initial_custom_status");
  return {
    type: "OrchestrationStarted",
    name: wire.text("name"),
    version: wire.text("version"),
    input: wire.text("input"),
    parentInstance: wire.nullableText("parent_instance"),
    parentId: wire.nullableInteger("parent_id"),
    ...(parentExecutionId !== undefined && { parentExecutionId }),
    ...(carryForwardEvents !== undefined && { carryForwardEvents }),
    ...(initialCustomStatus !== undefined && { initialCustomStatus }),
  };
}

function decodeActivityScheduled(wire: WireObject): EventPayload {
  const sessionId = wire.optionalText("session_id");
  const tag = wire.optionalText("tag");
  return {
    type: "ActivityScheduled",
    name: wire.text("name"),
    input: wire.text("input"),
    ...(sessionId !== undefined && { sessionId }),
    ...(tag !== undefined && { tag }),
  };
}
