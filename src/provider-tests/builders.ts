// provider-tests/builders.ts — work items, events and turns with everything filled in; a case names only what it is about.

import type { Event, EventEnvelope, EventOf, EventPayload } from "../history/event.js";
import type {
  ActivityCompleted,
  ActivityExecute,
  CancelInstance,
  ContinueAsNew,
  ExternalRaised,
  QueueMessage,
  StartOrchestration,
  TimerFired,
} from "../history/work-item.js";
import type { CapabilityFilter, ExecutionMetadata, SemVer, TurnCommit } from "../provider/provider.js";

/** The metadata that makes an instance known: without both, a provider must not create it. */
export const NAMED: ExecutionMetadata = { orchestrationName: "TestOrch", orchestrationVersion: "1.0.0" };

// Work items

export function start(instance: string, fields: Partial<StartOrchestration> = {}): StartOrchestration {
  return {
    type: "StartOrchestration",
    instance,
    orchestration: "TestOrch",
    input: "{}",
    version: "1.0.0",
    parentInstance: null,
    parentId: null,
    executionId: 1,
    ...fields,
  };
}

export function continueAsNew(instance: string, fields: Partial<ContinueAsNew> = {}): ContinueAsNew {
  return {
    type: "ContinueAsNew",
    instance,
    orchestration: "TestOrch",
    input: "{}",
    version: "1.0.0",
    carryForwardEvents: [],
    ...fields,
  };
}

/** The n-th activity of an instance. */
export function act(instance: string, id: number, fields: Partial<ActivityExecute> = {}): ActivityExecute {
  return { type: "ActivityExecute", instance, executionId: 1, id, name: `Activity${id}`, input: "{}", ...fields };
}

/** Its completion. */
export function done(instance: string, id: number, fields: Partial<ActivityCompleted> = {}): ActivityCompleted {
  return { type: "ActivityCompleted", instance, executionId: 1, id, result: `result-${id}`, ...fields };
}

export function timer(instance: string, id: number, fireAtMs: number, fields: Partial<TimerFired> = {}): TimerFired {
  return { type: "TimerFired", instance, executionId: 1, id, fireAtMs, ...fields };
}

export function raised(instance: string, name = "signal", data = "{}"): ExternalRaised {
  return { type: "ExternalRaised", instance, name, data };
}

export function queued(instance: string, name = "inbox", data = "{}"): QueueMessage {
  return { type: "QueueMessage", instance, name, data };
}

export function cancel(instance: string, reason = "test"): CancelInstance {
  return { type: "CancelInstance", instance, reason };
}

// Events

export function event(
  instance: string,
  eventId: number,
  payload: EventPayload,
  envelope: Partial<EventEnvelope> = {},
): Event {
  return {
    eventId,
    sourceEventId: null,
    instanceId: instance,
    executionId: 1,
    timestampMs: 1_700_000_000_000,
    duroxideVersion: "0.1.30",
    ...envelope,
    ...payload,
  };
}

/** Event 1 of every execution. */
export function started(instance: string, fields: Partial<EventOf<"OrchestrationStarted">> = {}): Event {
  return event(
    instance,
    1,
    {
      type: "OrchestrationStarted",
      name: "TestOrch",
      version: "1.0.0",
      input: "{}",
      parentInstance: null,
      parentId: null,
      ...fields,
    },
    fields,
  );
}

export function scheduled(instance: string, eventId: number, name = `Activity${eventId}`): Event {
  return event(instance, eventId, { type: "ActivityScheduled", name, input: "{}" });
}

export function completed(instance: string, eventId: number, output = "done"): Event {
  return event(instance, eventId, { type: "OrchestrationCompleted", output });
}

export function statusSet(instance: string, eventId: number, status: string | null): Event {
  return event(instance, eventId, { type: "CustomStatusUpdated", status });
}

export function kvSet(instance: string, eventId: number, key: string, value: string, lastUpdatedAtMs = 0): Event {
  return event(instance, eventId, { type: "KeyValueSet", key, value, lastUpdatedAtMs });
}

export function kvCleared(instance: string, eventId: number, key: string): Event {
  return event(instance, eventId, { type: "KeyValueCleared", key });
}

export function kvAllCleared(instance: string, eventId: number): Event {
  return event(instance, eventId, { type: "KeyValuesCleared" });
}

// Turns

/** A turn that decides nothing but what is given: by itself it only consumes its messages. */
export function turn(fields: Partial<TurnCommit> = {}): TurnCommit {
  return {
    executionId: 1,
    events: [],
    workerItems: [],
    orchestratorItems: [],
    metadata: {},
    cancelledActivities: [],
    cancelledTimers: [],
    ...fields,
  };
}

// Versions

/** `1.2.3` as numbers. */
export function semver(text: string): SemVer {
  const [major = 0, minor = 0, patch = 0] = text.split(".").map(Number);
  return { major, minor, patch };
}

/** Supports these ranges, each written `1.0.0..1.9.9`. */
export function supports(...ranges: readonly string[]): CapabilityFilter {
  const supportedVersions = ranges.map((range) => {
    const [min = "", max = ""] = range.split("..");
    return { min: semver(min), max: semver(max) };
  });
  return { supportedVersions };
}
