import { readdirSync, readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CodecError } from "../../src/errors.js";
import {
  decodeErrorDetails,
  decodeEvent,
  decodeWorkItem,
  encodeErrorDetails,
  encodeEvent,
  encodeWorkItem,
} from "../../src/history/codec.js";
import { activityFailed, cancelled, type ErrorDetails, nondeterminism } from "../../src/history/error-details.js";
import type { Event, EventPayload, EventType } from "../../src/history/event.js";
import type { WorkItem } from "../../src/history/work-item.js";
import { anyDetails, anyEvent, anyWorkItem } from "./arbitrary-history.js";

const goldenDirectory = new URL("../golden-original/", import.meta.url);
const goldenFiles = readdirSync(goldenDirectory).filter((name) => name.endsWith(".jsonl"));

function goldenLines(file: string): string[] {
  return readFileSync(new URL(file, goldenDirectory), "utf8").split("\n").filter(Boolean);
}

const declined = '{"Application":{"kind":"ActivityFailed","message":"declined","retryable":false}}';

/** Every kind, without and with its optional fields, beside the payload that the reference writes for it. */
const payloads: { readonly [T in EventType]: readonly [Omit<Extract<EventPayload, { type: T }>, "type">, string][] } = {
  OrchestrationStarted: [
    [
      { name: "Pay", version: "1.0.0", input: "1", parentInstance: null, parentId: null },
      '"name":"Pay","version":"1.0.0","input":"1","parent_instance":null,"parent_id":null',
    ],
    [
      {
        name: "Pay",
        version: "1.0.0",
        input: "1",
        parentInstance: "p",
        parentId: 4,
        parentExecutionId: 2,
        carryForwardEvents: [["inbox", "m7"]],
        initialCustomStatus: "busy",
      },
      '"name":"Pay","version":"1.0.0","input":"1","parent_instance":"p","parent_id":4,"parent_execution_id":2,' +
        '"carry_forward_events":[["inbox","m7"]],"initial_custom_status":"busy"',
    ],
  ],
  OrchestrationCompleted: [[{ output: "ok" }, '"output":"ok"']],
  OrchestrationFailed: [[{ details: activityFailed("declined") }, `"details":${declined}`]],
  OrchestrationContinuedAsNew: [[{ input: "2" }, '"input":"2"']],
  OrchestrationCancelRequested: [[{ reason: "why" }, '"reason":"why"']],
  ActivityScheduled: [
    [{ name: "Charge", input: "5" }, '"name":"Charge","input":"5"'],
    [
      { name: "Charge", input: "5", sessionId: "s", tag: "gpu" },
      '"name":"Charge","input":"5","session_id":"s","tag":"gpu"',
    ],
    [{ name: "Charge", input: "5", tag: "" }, '"name":"Charge","input":"5","tag":""'],
  ],
  ActivityCompleted: [[{ result: "ok" }, '"result":"ok"']],
  ActivityFailed: [[{ details: activityFailed("declined") }, `"details":${declined}`]],
  ActivityCancelRequested: [[{ reason: "dropped_future" }, '"reason":"dropped_future"']],
  TimerCreated: [[{ fireAtMs: 1_794_730_397_547 }, '"fire_at_ms":1794730397547']],
  TimerFired: [[{ fireAtMs: 0 }, '"fire_at_ms":0']],
  ExternalSubscribed: [[{ name: "approval" }, '"name":"approval"']],
  ExternalEvent: [[{ name: "approval", data: "{}" }, '"name":"approval","data":"{}"']],
  ExternalSubscribedCancelled: [[{ reason: "orchestration_terminal" }, '"reason":"orchestration_terminal"']],
  ExternalSubscribedPersistent: [[{ name: "inbox" }, '"name":"inbox"']],
  ExternalEventPersistent: [[{ name: "inbox", data: "m" }, '"name":"inbox","data":"m"']],
  ExternalSubscribedPersistentCancelled: [[{ reason: "dropped_future" }, '"reason":"dropped_future"']],
  SubOrchestrationScheduled: [
    [{ name: "Child", instance: "sub::2", input: "1" }, '"name":"Child","instance":"sub::2","input":"1"'],
  ],
  SubOrchestrationCompleted: [[{ result: "ok" }, '"result":"ok"']],
  SubOrchestrationFailed: [[{ details: activityFailed("declined") }, `"details":${declined}`]],
  SubOrchestrationCancelRequested: [[{ reason: "dropped_future" }, '"reason":"dropped_future"']],
  OrchestrationChained: [
    [{ name: "Child", instance: "d-1", input: "1" }, '"name":"Child","instance":"d-1","input":"1"'],
  ],
  CustomStatusUpdated: [
    [{ status: "busy" }, '"status":"busy"'],
    [{ status: null }, '"status":null'],
  ],
  KeyValueSet: [[{ key: "a", value: "1", lastUpdatedAtMs: 9 }, '"key":"a","value":"1","last_updated_at_ms":9']],
  KeyValueCleared: [[{ key: "a" }, '"key":"a"']],
  KeyValuesCleared: [[{}, ""]],
};

const events: readonly [Event, string][] = Object.entries(payloads).flatMap(([type, samples]) =>
  samples.map(([payload, wire]): [Event, string] => [
    {
      eventId: 7,
      sourceEventId: 3,
      instanceId: "order-1",
      executionId: 2,
      timestampMs: 1_794_730_397_500,
      duroxideVersion: "0.1.30",
      type,
      ...payload,
    } as unknown as Event,
    `{"event_id":7,"source_event_id":3,"instance_id":"order-1","execution_id":2,` +
      `"timestamp_ms":1794730397500,"duroxide_version":"0.1.30","type":"${type}"${wire === "" ? "" : `,${wire}`}}`,
  ]),
);

const contents: {
  readonly [T in WorkItem["type"]]: readonly [Omit<Extract<WorkItem, { type: T }>, "type">, string][];
} = {
  StartOrchestration: [
    [
      {
        instance: "i",
        orchestration: "Pay",
        input: "1",
        version: null,
        parentInstance: null,
        parentId: null,
        executionId: 1,
      },
      '"instance":"i","orchestration":"Pay","input":"1","version":null,"parent_instance":null,"parent_id":null,' +
        '"execution_id":1',
    ],
    [
      {
        instance: "p::sub::2",
        orchestration: "Pay",
        input: "1",
        version: "2.0.0",
        parentInstance: "p",
        parentId: 2,
        parentExecutionId: 3,
        executionId: 1,
      },
      '"instance":"p::sub::2","orchestration":"Pay","input":"1","version":"2.0.0","parent_instance":"p","parent_id":2,' +
        '"parent_execution_id":3,"execution_id":1',
    ],
  ],
  ContinueAsNew: [
    [
      { instance: "i", orchestration: "Pay", input: "2", version: null, carryForwardEvents: [] },
      '"instance":"i","orchestration":"Pay","input":"2","version":null,"carry_forward_events":[]',
    ],
    [
      {
        instance: "i",
        orchestration: "Pay",
        input: "2",
        version: "2.0.0",
        parentInstance: "p",
        parentId: 2,
        parentExecutionId: 3,
        carryForwardEvents: [
          ["inbox", "m1"],
          ["inbox", "m2"],
        ],
        initialCustomStatus: "busy",
      },
      '"instance":"i","orchestration":"Pay","input":"2","version":"2.0.0","parent_instance":"p","parent_id":2,' +
        '"parent_execution_id":3,"carry_forward_events":[["inbox","m1"],["inbox","m2"]],"initial_custom_status":"busy"',
    ],
  ],
  ActivityExecute: [
    [
      { instance: "i", executionId: 1, id: 2, name: "Charge", input: "5" },
      '"instance":"i","execution_id":1,"id":2,"name":"Charge","input":"5"',
    ],
    [
      {
        instance: "i",
        executionId: 1,
        id: 2,
        name: "Charge",
        input: "5",
        sessionId: "s",
        tag: "gpu",
        orchestrationName: "Pay",
        orchestrationVersion: "1.0.0",
        retryOf: 1,
      },
      '"instance":"i","execution_id":1,"id":2,"name":"Charge","input":"5","session_id":"s","tag":"gpu",' +
        '"orchestration_name":"Pay","orchestration_version":"1.0.0","retry_of":1',
    ],
  ],
  ActivityCompleted: [
    [{ instance: "i", executionId: 1, id: 2, result: "ok" }, '"instance":"i","execution_id":1,"id":2,"result":"ok"'],
  ],
  ActivityFailed: [
    [
      { instance: "i", executionId: 1, id: 2, details: activityFailed("declined") },
      `"instance":"i","execution_id":1,"id":2,"details":${declined}`,
    ],
  ],
  TimerFired: [
    [{ instance: "i", executionId: 1, id: 2, fireAtMs: 9 }, '"instance":"i","execution_id":1,"id":2,"fire_at_ms":9'],
  ],
  ExternalRaised: [[{ instance: "i", name: "ev", data: "1" }, '"instance":"i","name":"ev","data":"1"']],
  QueueMessage: [[{ instance: "i", name: "mail", data: "1" }, '"instance":"i","name":"mail","data":"1"']],
  SubOrchCompleted: [
    [
      { parentInstance: "p", parentExecutionId: 1, parentId: 2, result: "ok" },
      '"parent_instance":"p","parent_execution_id":1,"parent_id":2,"result":"ok"',
    ],
  ],
  SubOrchFailed: [
    [
      { parentInstance: "p", parentExecutionId: 1, parentId: 2, details: activityFailed("declined") },
      `"parent_instance":"p","parent_execution_id":1,"parent_id":2,"details":${declined}`,
    ],
  ],
  CancelInstance: [[{ instance: "i", reason: "why" }, '"instance":"i","reason":"why"']],
};

const workItems: readonly [WorkItem, string][] = Object.entries(contents).flatMap(([type, samples]) =>
  samples.map(([content, wire]): [WorkItem, string] => [
    { type, ...content } as unknown as WorkItem,
    `{"${type}":{${wire}}}`,
  ]),
);

const failures: readonly [ErrorDetails, string][] = [
  [
    { category: "infrastructure", operation: "ack", message: "disk full", retryable: true },
    '{"Infrastructure":{"operation":"ack","message":"disk full","retryable":true}}',
  ],
  [
    nondeterminism("expected a timer"),
    '{"Configuration":{"kind":"Nondeterminism","resource":"","message":"expected a timer"}}',
  ],
  [
    { category: "configuration", kind: "LimitExceeded", resource: "kv", message: null },
    '{"Configuration":{"kind":"LimitExceeded","resource":"kv","message":null}}',
  ],
  [activityFailed("declined"), declined],
  [
    { category: "application", kind: { type: "OrchestrationFailed" }, message: "boom", retryable: true },
    '{"Application":{"kind":"OrchestrationFailed","message":"boom","retryable":true}}',
  ],
  [
    { category: "application", kind: { type: "Panicked" }, message: "boom", retryable: false },
    '{"Application":{"kind":"Panicked","message":"boom","retryable":false}}',
  ],
  [
    cancelled("no longer needed"),
    '{"Application":{"kind":{"Cancelled":{"reason":"no longer needed"}},"message":"","retryable":false}}',
  ],
  [
    poison({ type: "Orchestration", instance: "i", executionId: 1 }),
    '{"Poison":{"attempt_count":11,"max_attempts":10,"message_type":{"Orchestration":{"instance":"i","execution_id":1}},' +
      '"message":"m"}}',
  ],
  [
    poison({ type: "Activity", instance: "i", executionId: 1, activityName: "Charge", activityId: 2 }),
    '{"Poison":{"attempt_count":11,"max_attempts":10,"message_type":{"Activity":{"instance":"i","execution_id":1,' +
      '"activity_name":"Charge","activity_id":2}},"message":"m"}}',
  ],
  [
    poison({ type: "FailedDeserialization", instance: "i", executionId: 1, error: "not JSON" }),
    '{"Poison":{"attempt_count":11,"max_attempts":10,"message_type":{"FailedDeserialization":{"instance":"i",' +
      '"execution_id":1,"error":"not JSON"}},"message":"m"}}',
  ],
];

function poison(messageType: Extract<ErrorDetails, { category: "poison" }>["messageType"]): ErrorDetails {
  return { category: "poison", attemptCount: 11, maxAttempts: 10, messageType, message: "m" };
}

describe("text that the original wrote", () => {
  test.each(goldenFiles)("%s comes back byte for byte", (file) => {
    const lines = goldenLines(file);
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) {
      expect(file === "work-items.jsonl" ? encodeWorkItem(decodeWorkItem(line)) : encodeEvent(decodeEvent(line))).toBe(
        line,
      );
    }
  });

  test("reads as values in our own words", () => {
    expect(decodeEvent(goldenLines("can-can-3.jsonl")[0]!)).toStrictEqual({
      eventId: 1,
      sourceEventId: null,
      instanceId: "g-Can",
      executionId: 3,
      timestampMs: 1_794_730_398_104,
      duroxideVersion: "0.1.30",
      type: "OrchestrationStarted",
      name: "Can",
      version: "1.0.0",
      input: "3",
      parentInstance: null,
      parentId: null,
      carryForwardEvents: [
        ["inbox", '"\\"m3\\""'],
        ["inbox", '"\\"m4\\""'],
      ],
      initialCustomStatus: "seen 2",
    });
  });
});

describe("every kind", () => {
  test("of the 26 events, 11 work items and 10 failures has a sample below", () => {
    expect(new Set(events.map(([event]) => event.type)).size).toBe(26);
    expect(new Set(workItems.map(([item]) => item.type)).size).toBe(11);
    expect(failures.length).toBe(10);
  });

  test.each(events)("of event is written as the reference writes it and read back: $type", (event, wire) => {
    expect(encodeEvent(event)).toBe(wire);
    expect(decodeEvent(wire)).toStrictEqual(event);
  });

  test.each(workItems)("of work item is written as the reference writes it and read back: $type", (item, wire) => {
    expect(encodeWorkItem(item)).toBe(wire);
    expect(decodeWorkItem(wire)).toStrictEqual(item);
  });

  test.each(failures)("of failure is written as the reference writes it and read back: $category", (details, wire) => {
    expect(JSON.stringify(encodeErrorDetails(details))).toBe(wire);
    expect(decodeErrorDetails(JSON.parse(wire))).toStrictEqual(details);
  });
});

describe("whatever is written", () => {
  test("reads back as the same event", () => {
    fc.assert(
      fc.property(anyEvent, (event) => {
        expect(decodeEvent(encodeEvent(event))).toStrictEqual(event);
      }),
    );
  });

  test("reads back as the same work item", () => {
    fc.assert(
      fc.property(anyWorkItem, (item) => {
        expect(decodeWorkItem(encodeWorkItem(item))).toStrictEqual(item);
      }),
    );
  });

  test("reads back as the same failure", () => {
    fc.assert(
      fc.property(anyDetails, (details) => {
        expect(decodeErrorDetails(encodeErrorDetails(details))).toStrictEqual(details);
      }),
    );
  });

  test("carries lone surrogates and NUL unharmed", () => {
    const item: WorkItem = { type: "CancelInstance", instance: "a\0b", reason: "\ud83d and \ude00" };
    expect(decodeWorkItem(encodeWorkItem(item))).toStrictEqual(item);
  });
});

describe("a reader", () => {
  const start = workItems[0]![1];

  test("ignores fields that it does not know, at every level", () => {
    for (const [event, wire] of events) {
      expect(decodeEvent(wire.replace("{", '{"from_the_future":{"a":[1]},'))).toStrictEqual(event);
    }
    for (const [item, wire] of workItems) {
      expect(decodeWorkItem(wire.replace(":{", ':{"from_the_future":{"a":[1]},'))).toStrictEqual(item);
    }
    expect(decodeErrorDetails(JSON.parse(declined.replace(":{", ':{"new":1,')))).toStrictEqual(
      activityFailed("declined"),
    );
  });

  test("takes null for an optional field as absent", () => {
    const [event, wire] = sampleEvent("ActivityScheduled");
    expect(decodeEvent(wire.replace(/}$/, ',"session_id":null,"tag":null}'))).toStrictEqual(event);
  });

  test("takes the time of a key-value write as 0 when an old history lacks it", () => {
    const [event, wire] = sampleEvent("KeyValueSet");
    const old = wire.replace(',"last_updated_at_ms":9', "");
    expect(decodeEvent(old)).toStrictEqual({ ...event, lastUpdatedAtMs: 0 });
  });

  test("takes carried messages as none when an old continue-as-new lacks them", () => {
    const wire = '{"ContinueAsNew":{"instance":"i","orchestration":"o","input":"1","version":null}}';
    expect(decodeWorkItem(wire)).toStrictEqual({
      type: "ContinueAsNew",
      instance: "i",
      orchestration: "o",
      input: "1",
      version: null,
      carryForwardEvents: [],
    });
  });

  test("tolerates the blank owner of failures that old versions wrote", () => {
    const [, wire] = sampleEvent("OrchestrationFailed");
    const blank = wire.replace('"order-1"', '""').replace('"execution_id":2', '"execution_id":0');
    expect(decodeEvent(blank)).toMatchObject({ instanceId: "", executionId: 0 });
  });

  test("accepts any order of fields and any white space", () => {
    const reordered = `{ "StartOrchestration" : ${JSON.stringify(
      Object.fromEntries(Object.entries(JSON.parse(start).StartOrchestration).reverse()),
      null,
      2,
    )} }`;
    expect(encodeWorkItem(decodeWorkItem(reordered))).toBe(start);
  });
});

describe("a bad text is refused with a message that says what and where", () => {
  const scheduled = JSON.parse(sampleEvent("ActivityScheduled")[1]);
  const started = JSON.parse(sampleEvent("OrchestrationStarted")[1]);
  const failed = JSON.parse(sampleEvent("ActivityFailed")[1]);

  test.each<[string, object | string]>([
    ["event: not JSON: ", ""],
    ["event: not JSON: ", "{"],
    ["event: expected an object, got null", "null"],
    ["event: expected an object, got number", "7"],
    ["event: expected an object, got array", "[]"],
    ["event: event_id: expected a whole number from 0 to 2^53-1, got nothing", {}],
    ["event: event_id: expected a whole number from 0 to 2^53-1, got string", { ...scheduled, event_id: "7" }],
    ["event: event_id: expected a whole number from 0 to 2^53-1, got -1", { ...scheduled, event_id: -1 }],
    ["event: event_id: expected a whole number from 0 to 2^53-1, got 1.5", { ...scheduled, event_id: 1.5 }],
    [
      "event: event_id: expected a whole number from 0 to 2^53-1, got 90071992547409",
      { ...scheduled, event_id: 2 ** 53 },
    ],
    ["event: event_id: expected a whole number from 0 to 2^53-1, got Infinity", '{"event_id":1e999}'],
    ["event 7: source_event_id: expected a whole number", { ...scheduled, source_event_id: false }],
    ["event 7: instance_id: expected a string, got null", { ...scheduled, instance_id: null }],
    ["event 7: type: expected a string, got number", { ...scheduled, type: 5 }],
    ['event 7: unknown type "Foo"; perhaps a newer version wrote it', { ...scheduled, type: "Foo" }],
    ['event 7: unknown type "__proto__"', { ...scheduled, type: "__proto__" }],
    ["event 7: ActivityScheduled.name: expected a string, got number", { ...scheduled, name: 5 }],
    ["event 7: ActivityScheduled.tag: expected a string, got array", { ...scheduled, tag: [] }],
    ["event 7: OrchestrationStarted.parent_id: expected a whole number", { ...started, parent_id: {} }],
    ["carry_forward_events: expected an array, got object", { ...started, carry_forward_events: {} }],
    [
      "event 7: OrchestrationStarted.carry_forward_events[1]: expected a [name, data] pair of strings, got array",
      { ...started, carry_forward_events: [["a", "b"], ["a"]] },
    ],
    ["carry_forward_events[0]: expected a [name, data] pair", { ...started, carry_forward_events: [["a", 1]] }],
    ["event 7: ActivityFailed.details: expected an object, got string", { ...failed, details: "boom" }],
    ["event 7: ActivityFailed.details: expected one key that names the type, got 0 keys", { ...failed, details: {} }],
    ["details: expected one key that names the type, got 2 keys", { ...failed, details: { a: 1, b: 2 } }],
    ['event 7: ActivityFailed.details: unknown type "Sad"', { ...failed, details: { Sad: {} } }],
    ["event 7: ActivityFailed.details.Poison: expected an object, got array", { ...failed, details: { Poison: [] } }],
    [
      'event 7: ActivityFailed.details.Application.kind: unknown type "Sad"',
      { ...failed, details: { Application: { kind: "Sad" } } },
    ],
    [
      "event 7: ActivityFailed.details.Application.kind.Cancelled.reason: expected a string, got number",
      { ...failed, details: { Application: { kind: { Cancelled: { reason: 1 } } } } },
    ],
    ['Application.kind: unknown type "Sad"', { ...failed, details: { Application: { kind: { Sad: {} } } } }],
    ["Application.kind: expected an object, got nothing", { ...failed, details: { Application: {} } }],
    ['Configuration.kind: unknown type "Sad"', { ...failed, details: { Configuration: { kind: "Sad" } } }],
    [
      "event 7: ActivityFailed.details.Infrastructure.retryable: expected a boolean, got number",
      { ...failed, details: { Infrastructure: { operation: "a", message: "b", retryable: 1 } } },
    ],
    [
      'event 7: ActivityFailed.details.Poison.message_type: unknown type "Sad"',
      { ...failed, details: { Poison: { attempt_count: 1, max_attempts: 1, message_type: { Sad: {} } } } },
    ],
  ])("%s", (message, wire) => {
    expectCodecError(() => decodeEvent(typeof wire === "string" ? wire : JSON.stringify(wire)), message);
  });

  test.each<[string, string]>([
    ["work item: not JSON: ", "nonsense"],
    ["work item: expected an object, got array", "[1]"],
    ["work item: expected one key that names the type, got 0 keys", "{}"],
    ["work item: expected one key that names the type, got 2 keys", '{"CancelInstance":{},"QueueMessage":{}}'],
    ['work item: unknown type "Foo"; perhaps a newer version wrote it', '{"Foo":1}'],
    ['work item: unknown type "__proto__"', '{"__proto__":{"instance":"i"}}'],
    ['work item: unknown type "constructor"', '{"constructor":{}}'],
    ["work item: CancelInstance: expected an object, got array", '{"CancelInstance":[]}'],
    ["work item: CancelInstance.reason: expected a string, got nothing", '{"CancelInstance":{"instance":"i"}}'],
    ["work item: TimerFired.id: expected a whole number", '{"TimerFired":{"instance":"i","execution_id":1,"id":0.5}}'],
  ])("%s", (message, wire) => {
    expectCodecError(() => decodeWorkItem(wire), message);
  });

  test("a failure on its own", () => {
    expectCodecError(() => decodeErrorDetails(undefined), "details: expected an object, got nothing");
    expectCodecError(() => decodeErrorDetails({ Poison: { attempt_count: "1" } }), "details.Poison.attempt_count: ");
  });

  test("any required field that is missing", () => {
    const optional =
      /^(session_id|tag|initial_custom_status|last_updated_at_ms|carry_forward_events|orchestration_.+|retry_of)$/;
    for (const [event, wire] of events) {
      const fields: Record<string, unknown> = JSON.parse(wire);
      for (const key of Object.keys(fields)) {
        if (optional.test(key) || key === "parent_execution_id") continue;
        const { [key]: _, ...rest } = fields;
        expectCodecError(() => decodeEvent(JSON.stringify(rest)), `${key}: expected `);
      }
      expect(event.type).toBe(fields.type);
    }
    for (const [item, wire] of workItems) {
      const fields: Record<string, unknown> = JSON.parse(wire)[item.type];
      for (const key of Object.keys(fields)) {
        if (optional.test(key)) continue;
        if (item.type === "StartOrchestration" && key === "parent_execution_id") continue;
        if (item.type === "ContinueAsNew" && key.startsWith("parent_")) continue;
        const { [key]: _, ...rest } = fields;
        expectCodecError(() => decodeWorkItem(JSON.stringify({ [item.type]: rest })), `${item.type}.${key}: expected `);
      }
    }
  });

  test("any field of the wrong type", () => {
    for (const [, wire] of events) {
      const fields: Record<string, unknown> = JSON.parse(wire);
      for (const key of Object.keys(fields)) {
        expectCodecError(() => decodeEvent(JSON.stringify({ ...fields, [key]: {} })), `${key}: expected `);
      }
    }
    for (const [item, wire] of workItems) {
      const fields: Record<string, unknown> = JSON.parse(wire)[item.type];
      for (const key of Object.keys(fields)) {
        const bad = JSON.stringify({ [item.type]: { ...fields, [key]: {} } });
        expectCodecError(() => decodeWorkItem(bad), `work item: ${item.type}.${key}: expected `);
      }
    }
  });

  test("with a short message, even when the text is long", () => {
    const type = "x".repeat(1_000_000);
    for (const decode of [
      () => decodeWorkItem(JSON.stringify({ [type]: {} })),
      () => decodeEvent(JSON.stringify({ ...scheduled, type })),
      () => decodeEvent(type),
    ]) {
      expect(thrownBy(decode)).toMatchObject({ message: expect.stringMatching(/^.{1,200}$/) });
    }
  });
});

describe("hostile text", () => {
  test("that is not even a string is refused like any other", () => {
    for (const value of [undefined, null, Symbol("s"), 7n, {}, { toString: () => Object.create(null) }]) {
      expect(thrownBy(() => decodeEvent(value as unknown as string))).toBeInstanceOf(CodecError);
      expect(thrownBy(() => decodeWorkItem(value as unknown as string))).toBeInstanceOf(CodecError);
    }
  });

  test("never reaches a prototype", () => {
    const [event, wire] = sampleEvent("ActivityScheduled");
    const decoded = decodeEvent(wire.replace("{", '{"__proto__":{"polluted":true,"tag":"evil"},'));

    expect(decoded).toStrictEqual(event);
    expect(Object.getPrototypeOf(decoded)).toBe(Object.prototype);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  test("nested a hundred thousand levels deep is ignored or refused, never a stack overflow", () => {
    const deep = "[".repeat(100_000) + "]".repeat(100_000);
    const [event, wire] = sampleEvent("ActivityScheduled");

    expect(decodeEvent(wire.replace("{", `{"deep":${deep},`))).toStrictEqual(event);
    expectCodecError(() => decodeEvent(wire.replace('"5"', deep)), "ActivityScheduled.input: expected a string");
    expectCodecError(() => decodeEvent(deep), "event: expected an object, got array");
    expectCodecError(() => decodeWorkItem(`{"CancelInstance":${deep}}`), "CancelInstance: expected an object");
  });

  test("of any kind throws nothing but CodecError", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json(), fc.json({ maxDepth: 8 })), (text) => {
        expect(thrownBy(() => decodeEvent(text))).toBeInstanceOf(CodecError);
        expect(thrownBy(() => decodeWorkItem(text))).toBeInstanceOf(CodecError);
      }),
    );
  });

  test("that is almost right is either refused or understood for good", () => {
    const almost = (wires: readonly string[]) =>
      fc
        .tuple(fc.constantFrom(...wires), fc.nat(), hostileValue)
        .map(([wire, place, value]) => withOneValueReplaced(JSON.parse(wire), place, value));
    const anyEventWire = almost([...events.map(([, wire]) => wire), ...failures.map(([, wire]) => failedWith(wire))]);
    const anyItemWire = almost(workItems.map(([, wire]) => wire));

    fc.assert(
      fc.property(anyEventWire, (wire) => understoodOrRefused(wire, decodeEvent, encodeEvent)),
      {
        numRuns: 1_000,
      },
    );
    fc.assert(
      fc.property(anyItemWire, (wire) => understoodOrRefused(wire, decodeWorkItem, encodeWorkItem)),
      {
        numRuns: 1_000,
      },
    );
  });
});

describe("a number that could not be read back", () => {
  const bad = [Number.NaN, Number.POSITIVE_INFINITY, 0.5, -1, 2 ** 53];

  test.each(bad)("is never written: %d", (value) => {
    const [scheduled] = sampleEvent("ActivityScheduled");
    const [timer] = sampleEvent("TimerCreated");
    const [started] = sampleEvent("OrchestrationStarted");
    const [set] = sampleEvent("KeyValueSet");
    for (const event of [
      { ...scheduled, eventId: value },
      { ...scheduled, sourceEventId: value },
      { ...scheduled, executionId: value },
      { ...scheduled, timestampMs: value },
      { ...timer, fireAtMs: value } as Event,
      { ...started, parentId: value } as Event,
      { ...started, parentExecutionId: value } as Event,
      { ...set, lastUpdatedAtMs: value } as Event,
    ]) {
      expectCodecError(() => encodeEvent(event), `expected a whole number from 0 to 2^53-1, got ${value}`);
    }

    for (const [item] of workItems) {
      for (const [key, old] of Object.entries(item)) {
        if (typeof old !== "number") continue;
        const broken = { ...item, [key]: value } as WorkItem;
        expectCodecError(() => encodeWorkItem(broken), `${item.type}.`);
      }
    }
    const type = { type: "Activity", instance: "i", executionId: 1, activityName: "A", activityId: value } as const;
    expectCodecError(() => encodeErrorDetails(poison(type)), "Poison.message_type.activity_id: ");
  });
});

function sampleEvent(type: EventType): readonly [Event, string] {
  return events.find(([event]) => event.type === type)!;
}

function failedWith(details: string): string {
  return sampleEvent("ActivityFailed")[1].replace(declined, details);
}

const hostileValue = fc.oneof(
  fc.jsonValue(),
  fc.constantFrom<unknown>(-1, 0.5, 2 ** 60, "", null, [], {}, [["a", "b"]], [["a"]], true),
  fc.constant(JSON.parse('{"__proto__":{"instance":"i"}}')),
);

/** The text of `root` with its nth value, counted depth first, replaced. */
function withOneValueReplaced(root: unknown, place: number, value: unknown): string {
  const slots: { readonly holder: Record<string, unknown>; readonly key: string }[] = [];
  const visit = (holder: Record<string, unknown>) => {
    for (const key of Object.keys(holder)) {
      slots.push({ holder, key });
      const child = holder[key];
      if (typeof child === "object" && child !== null) visit(child as Record<string, unknown>);
    }
  };
  visit(root as Record<string, unknown>);
  const slot = slots[place % slots.length]!;
  slot.holder[slot.key] = value;
  return JSON.stringify(root);
}

function understoodOrRefused<T>(wire: string, decode: (text: string) => T, encode: (value: T) => string): void {
  let value: T;
  try {
    value = decode(wire);
  } catch (error) {
    expect(error).toBeInstanceOf(CodecError);
    return;
  }
  expect(decode(encode(value))).toStrictEqual(value);
}

function thrownBy(action: () => unknown): unknown {
  try {
    action();
  } catch (error) {
    return error;
  }
  return undefined;
}

function expectCodecError(action: () => unknown, message: string): void {
  const error = thrownBy(action);
  expect(error).toBeInstanceOf(CodecError);
  expect(error).toMatchObject({ code: "DUROXIDE_CODEC", message: expect.stringContaining(message) });
}
