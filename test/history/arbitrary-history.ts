// test/history/arbitrary-history.ts — arbitrary events and work items of every kind, for property tests.

import fc from "fast-check";
import type { ErrorDetails } from "../../src/history/error-details.js";
import type { CarriedEvent, Event, EventPayload, EventType } from "../../src/history/event.js";
import type { WorkItem } from "../../src/history/work-item.js";

/** Any sequence of UTF-16 code units: NUL, controls, lone surrogates; and well-formed text besides. */
export const anyText: fc.Arbitrary<string> = fc.oneof(
  fc.string({ unit: fc.nat(0xffff).map((unit) => String.fromCharCode(unit)) }),
  fc.string({ unit: fc.constantFrom("\0", "\n", '"', "\\", "\ud83d", "\ude00", "ü", "\u2028", "a") }),
  fc.string({ unit: "grapheme" }),
);

export const anyInteger: fc.Arbitrary<number> = fc.oneof(fc.nat(), fc.maxSafeNat());

const maybeText = fc.option(anyText, { nil: null });
const maybeInteger = fc.option(anyInteger, { nil: null });
const anyCarried: fc.Arbitrary<readonly CarriedEvent[]> = fc.array(fc.tuple(anyText, anyText), { maxLength: 4 });

const anyMessageType = fc.oneof(
  fc.record({ type: fc.constant("Orchestration" as const), instance: anyText, executionId: anyInteger }),
  fc.record({
    type: fc.constant("Activity" as const),
    instance: anyText,
    executionId: anyInteger,
    activityName: anyText,
    activityId: anyInteger,
  }),
  fc.record({
    type: fc.constant("FailedDeserialization" as const),
    instance: anyText,
    executionId: anyInteger,
    error: anyText,
  }),
);

const anyDetailsRecord: fc.Arbitrary<ErrorDetails> = fc.oneof(
  fc.record({
    category: fc.constant("infrastructure" as const),
    operation: anyText,
    message: anyText,
    retryable: fc.boolean(),
  }),
  fc.record({
    category: fc.constant("configuration" as const),
    kind: fc.constantFrom("Nondeterminism" as const, "LimitExceeded" as const),
    resource: anyText,
    message: maybeText,
  }),
  fc.record({
    category: fc.constant("application" as const),
    kind: fc.oneof(
      fc.constantFrom(
        { type: "ActivityFailed" as const },
        { type: "OrchestrationFailed" as const },
        { type: "Panicked" as const },
      ),
      fc.record({ type: fc.constant("Cancelled" as const), reason: anyText }),
    ),
    message: anyText,
    retryable: fc.boolean(),
  }),
  fc.record({
    category: fc.constant("poison" as const),
    attemptCount: anyInteger,
    maxAttempts: anyInteger,
    messageType: anyMessageType,
    message: anyText,
  }),
);

/** fast-check makes some records without a prototype; a clone has the usual one, as values of the codec have. */
export const anyDetails = anyDetailsRecord.map((details) => structuredClone(details));

type PayloadFields<T extends EventType> = Omit<Extract<EventPayload, { type: T }>, "type">;

const payloadFields: { readonly [T in EventType]: fc.Arbitrary<PayloadFields<T>> } = {
  OrchestrationStarted: fc.record(
    {
      name: anyText,
      version: anyText,
      input: anyText,
      parentInstance: maybeText,
      parentId: maybeInteger,
      parentExecutionId: anyInteger,
      carryForwardEvents: anyCarried,
      initialCustomStatus: anyText,
    },
    { requiredKeys: ["name", "version", "input", "parentInstance", "parentId"] },
  ),
  OrchestrationCompleted: fc.record({ output: anyText }),
  OrchestrationFailed: fc.record({ details: anyDetails }),
  OrchestrationContinuedAsNew: fc.record({ input: anyText }),
  OrchestrationCancelRequested: fc.record({ reason: anyText }),
  ActivityScheduled: fc.record(
    { name: anyText, input: anyText, sessionId: anyText, tag: anyText },
    { requiredKeys: ["name", "input"] },
  ),
  ActivityCompleted: fc.record({ result: anyText }),
  ActivityFailed: fc.record({ details: anyDetails }),
  ActivityCancelRequested: fc.record({ reason: anyText }),
  TimerCreated: fc.record({ fireAtMs: anyInteger }),
  TimerFired: fc.record({ fireAtMs: anyInteger }),
  ExternalSubscribed: fc.record({ name: anyText }),
  ExternalEvent: fc.record({ name: anyText, data: anyText }),
  ExternalSubscribedCancelled: fc.record({ reason: anyText }),
  ExternalSubscribedPersistent: fc.record({ name: anyText }),
  ExternalEventPersistent: fc.record({ name: anyText, data: anyText }),
  ExternalSubscribedPersistentCancelled: fc.record({ reason: anyText }),
  SubOrchestrationScheduled: fc.record({ name: anyText, instance: anyText, input: anyText }),
  SubOrchestrationCompleted: fc.record({ result: anyText }),
  SubOrchestrationFailed: fc.record({ details: anyDetails }),
  SubOrchestrationCancelRequested: fc.record({ reason: anyText }),
  OrchestrationChained: fc.record({ name: anyText, instance: anyText, input: anyText }),
  CustomStatusUpdated: fc.record({ status: maybeText }),
  KeyValueSet: fc.record({ key: anyText, value: anyText, lastUpdatedAtMs: anyInteger }),
  KeyValueCleared: fc.record({ key: anyText }),
  KeyValuesCleared: fc.constant({}),
};

const anyEnvelope = fc.record({
  eventId: anyInteger,
  sourceEventId: maybeInteger,
  instanceId: anyText,
  executionId: anyInteger,
  timestampMs: anyInteger,
  duroxideVersion: anyText,
});

export const anyEvent: fc.Arbitrary<Event> = fc
  .tuple(anyEnvelope, tagged<EventPayload>(payloadFields))
  .map(([envelope, payload]) => ({ ...envelope, ...payload }));

type ItemFields<T extends WorkItem["type"]> = Omit<Extract<WorkItem, { type: T }>, "type">;

const itemFields: { readonly [T in WorkItem["type"]]: fc.Arbitrary<ItemFields<T>> } = {
  StartOrchestration: fc.record(
    {
      instance: anyText,
      orchestration: anyText,
      input: anyText,
      version: maybeText,
      parentInstance: maybeText,
      parentId: maybeInteger,
      executionId: anyInteger,
      parentExecutionId: anyInteger,
    },
    {
      requiredKeys: ["instance", "orchestration", "input", "version", "parentInstance", "parentId", "executionId"],
    },
  ),
  ContinueAsNew: fc.record(
    {
      instance: anyText,
      orchestration: anyText,
      input: anyText,
      version: maybeText,
      carryForwardEvents: anyCarried,
      initialCustomStatus: anyText,
      parentInstance: anyText,
      parentId: anyInteger,
      parentExecutionId: anyInteger,
    },
    { requiredKeys: ["instance", "orchestration", "input", "version", "carryForwardEvents"] },
  ),
  ActivityExecute: fc.record(
    {
      instance: anyText,
      executionId: anyInteger,
      id: anyInteger,
      name: anyText,
      input: anyText,
      sessionId: anyText,
      tag: anyText,
      orchestrationName: anyText,
      orchestrationVersion: anyText,
      retryOf: anyInteger,
    },
    { requiredKeys: ["instance", "executionId", "id", "name", "input"] },
  ),
  ActivityCompleted: fc.record({ instance: anyText, executionId: anyInteger, id: anyInteger, result: anyText }),
  ActivityFailed: fc.record({ instance: anyText, executionId: anyInteger, id: anyInteger, details: anyDetails }),
  TimerFired: fc.record({ instance: anyText, executionId: anyInteger, id: anyInteger, fireAtMs: anyInteger }),
  ExternalRaised: fc.record({ instance: anyText, name: anyText, data: anyText }),
  QueueMessage: fc.record({ instance: anyText, name: anyText, data: anyText }),
  SubOrchCompleted: fc.record({
    parentInstance: anyText,
    parentExecutionId: anyInteger,
    parentId: anyInteger,
    result: anyText,
  }),
  SubOrchFailed: fc.record({
    parentInstance: anyText,
    parentExecutionId: anyInteger,
    parentId: anyInteger,
    details: anyDetails,
  }),
  CancelInstance: fc.record({ instance: anyText, reason: anyText }),
};

export const anyWorkItem: fc.Arbitrary<WorkItem> = tagged<WorkItem>(itemFields);

function tagged<U extends { readonly type: string }>(
  fields: Readonly<Record<U["type"], fc.Arbitrary<object>>>,
): fc.Arbitrary<U> {
  const kinds = Object.entries<fc.Arbitrary<object>>(fields);
  return fc.oneof(
    ...kinds.map(([type, arbitrary]) => arbitrary.map((content) => ({ type, ...content }) as unknown as U)),
  );
}
