import { describe, expect, test } from "vitest";
import { NondeterministicCallError, ProviderError } from "../../src/errors.js";
import { activityFailed, cancelled, nondeterminism } from "../../src/history/error-details.js";
import type { ActivityRef, Fact, OrchestrationRef } from "../../src/observer.js";
import { formatLogLine, type LogLevel, type LogOptions, type LogRecord, logTo } from "../../src/runtime/log.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";

const checkout: OrchestrationRef = {
  instanceId: "order-1",
  executionId: 3,
  orchestrationName: "Checkout",
  orchestrationVersion: "1.0.0",
};

const charge: ActivityRef = {
  ...checkout,
  activityName: "Charge",
  activityId: 2,
  workerId: "work-0-test",
  attempt: 1,
  tag: "gpu",
  sessionId: "s-1",
};

function logged(fact: Fact, options: LogOptions = { level: "debug" }): LogRecord[] {
  const records: LogRecord[] = [];
  logTo((record) => void records.push(record), options)(fact);
  return records;
}

const completed = { type: "activity-ended", ref: charge, outcome: "success", durationMs: 12, details: null } as const;
const ended = { type: "orchestration-ended", ref: checkout, durationMs: 5, historyEvents: 9, turns: 2 } as const;

const poison = {
  category: "poison",
  attemptCount: 11,
  maxAttempts: 10,
  messageType: { type: "Orchestration", instance: "order-1", executionId: 1 },
  message: "[]",
} as const;

describe("a record", () => {
  test("of an activity carries the words that operators search for", () => {
    expect(logged({ ...completed, outcome: "failed", details: activityFailed("card declined") })).toEqual([
      {
        level: "warn",
        target: "duroxide::runtime",
        message: "activity failed",
        fields: {
          instance_id: "order-1",
          execution_id: 3,
          orchestration_name: "Checkout",
          orchestration_version: "1.0.0",
          activity_name: "Charge",
          activity_id: 2,
          worker_id: "work-0-test",
          attempt: 1,
          activity_tag: "gpu",
          session_id: "s-1",
          outcome: "failed",
          duration_ms: 12,
          error_type: "application",
          error: "card declined",
        },
      },
    ]);
  });

  test("of an orchestration speaks of no activity", () => {
    const [record] = logged({ ...ended, ending: "completed", details: null });

    expect(record?.fields).toEqual({
      instance_id: "order-1",
      execution_id: 3,
      orchestration_name: "Checkout",
      orchestration_version: "1.0.0",
      outcome: "completed",
      duration_ms: 5,
      history_events: 9,
      turns: 2,
    });
  });

  test.each([
    { source: "orchestration", ref: checkout, target: "duroxide::orchestration" },
    { source: "activity", ref: charge, target: "duroxide::activity" },
  ] as const)("of what an $source traces stands under its own target", ({ source, ref, target }) => {
    for (const level of ["debug", "info", "warn", "error"] as const) {
      expect(logged({ type: "trace", source, level, message: "hi", ref })).toMatchObject([
        { level, target, message: "hi", fields: { instance_id: "order-1" } },
      ]);
    }
  });

  test("of a storage call stands under its provider", () => {
    const error = new ProviderError("transient", "read", "busy");
    const call = { type: "provider-call", provider: "sqlite", operation: "read", durationMs: 1, items: 0 } as const;

    expect(logged({ ...call, error })).toMatchObject([
      {
        level: "warn",
        target: "duroxide::providers::sqlite",
        fields: { operation: "read", error_type: "transient", error: "read: busy" },
      },
    ]);
    expect(logged({ ...call, error: null })).toMatchObject([{ level: "debug" }]);
    const lost = new ProviderError("lock-lost", "ackWorkItem", "gone");
    expect(logged({ ...call, error: lost })).toMatchObject([{ level: "debug" }]);
  });

  test("of what threw has the stack, whatever was thrown", () => {
    const failed = { ...completed, outcome: "failed", details: activityFailed("x") } as const;
    const error = new Error("x");
    expect(logged({ ...failed, error })[0]?.fields.stack).toBe(error.stack);
    const revoked = Proxy.revocable({}, {});
    revoked.revoke();
    for (const thrown of [undefined, null, "text", 7, { stack: "no error" }, revoked.proxy]) {
      expect(logged({ ...failed, error: thrown })[0]?.fields).not.toHaveProperty("stack");
    }
  });

  test("of an activity that nobody here knows says what to do", () => {
    const [record] = logged({ type: "activity-unregistered", ref: charge, delayMs: 1 });
    expect(record?.message).toContain("Register it with a runtime on this store.");
  });

  test("of a limit that is near says which, and how near", () => {
    const near: Fact = { type: "limit-near", ref: checkout, limit: "maxHistoryEvents", value: 50_000, max: 100_000 };
    expect(logged(near)).toMatchObject([
      {
        level: "warn",
        message: "half of limits.maxHistoryEvents is used: what exceeds it will fail",
        fields: { instance_id: "order-1", limit: "maxHistoryEvents", value: 50_000, max: 100_000 },
      },
    ]);
  });

  test("carries the time where there is a clock", () => {
    const clock = new VirtualClock(1_700_000_000_000);
    expect(logged(completed, { level: "debug", clock })[0]?.timeMs).toBe(1_700_000_000_000);
    expect(logged(completed)[0]).not.toHaveProperty("timeMs");
  });
});

describe("the level", () => {
  const runtimeStarted: Fact = {
    type: "runtime-started",
    runtimeId: "r",
    providerName: "p",
    providerVersion: "1",
    engineVersion: "2",
    replayVersions: { min: "0", max: "2" },
  };
  const calledDateNow = new NondeterministicCallError("Date.now()", "Checkout", "order-1", "use ctx.utcNow.");
  const levels: readonly (readonly [LogLevel, Fact])[] = [
    ["info", runtimeStarted],
    ["info", { type: "runtime-stopped", runtimeId: "r", outcome: "drained" }],
    ["debug", { type: "orchestration-started", ref: checkout, initiatedBy: "client" }],
    ["debug", { type: "turn-committed", ref: checkout, durationMs: 1, newEvents: 1, messages: 1, isWarm: true }],
    ["debug", { ...ended, ending: "continuedAsNew", details: null }],
    ["warn", { ...ended, ending: "failed", details: activityFailed("x") }],
    ["warn", { ...ended, ending: "cancelled", details: cancelled("x") }],
    ["error", { ...ended, ending: "failed", details: nondeterminism("x") }],
    ["debug", { type: "suborchestration-ended", ref: checkout, childName: "c", outcome: "success", durationMs: 1 }],
    ["warn", { type: "turn-abandoned", instanceId: "i", why: "unregistered", attempt: 1, delayMs: 1, message: "m" }],
    ["debug", { type: "turn-abandoned", instanceId: "i", why: "stale-cache", attempt: 1, delayMs: 0, message: "m" }],
    ["warn", { type: "turn-lock-lost", instanceId: "i" }],
    ["warn", { type: "messages-dropped", instanceId: "i", why: "duplicate", count: 2 }],
    ["error", { type: "messages-dropped", instanceId: "i", why: "no-matching-schedule", count: 1, first: "f" }],
    ["warn", { type: "orchestration-poisoned", instanceId: "i", details: poison }],
    ["debug", { type: "activity-started", ref: charge }],
    ["debug", completed],
    ["debug", { ...completed, outcome: "skipped" }],
    ["info", { ...completed, outcome: "cancelled" }],
    ["info", { ...completed, outcome: "abandoned" }],
    ["warn", { ...completed, outcome: "lock-lost" }],
    ["info", { type: "activity-detached", ref: charge, graceMs: 1 }],
    ["warn", { type: "activity-unregistered", ref: charge, delayMs: 1 }],
    ["warn", { type: "unregistered-activity-scheduled", ref: checkout, activityName: "Charge" }],
    ["warn", { type: "activity-poisoned", ref: charge, details: poison }],
    ["warn", { type: "limit-near", ref: checkout, limit: "maxKvKeys", value: 75, max: 150 }],
    ["warn", { type: "nondeterministic-call", ref: checkout, error: calledDateNow }],
    ["warn", { type: "rejection-kept", instanceId: "i", message: "m" }],
    ["warn", { type: "loop-failed", loop: "l", error: new Error("e"), retryInMs: 1 }],
    ["debug", { type: "queue-depths", orchestratorQueue: 1, workerQueue: 2 }],
    ["error", { type: "observer-failed", error: "e" }],
  ];

  test.each(levels)("%s is that of %o", (level, fact) => {
    const [record] = logged(fact);
    expect(record?.level).toBe(level);
    expect(record?.message).not.toBe("");
    expect(Object.values(record?.fields ?? {}).every((value) => value !== undefined && value !== null)).toBe(true);
  });

  test("decides what reaches the sink; info by default", () => {
    expect(logged(completed, {})).toEqual([]);
    expect(logged({ ...completed, outcome: "cancelled" }, {})).toHaveLength(1);
    expect(logged({ ...completed, outcome: "cancelled" }, { level: "warn" })).toEqual([]);
    expect(logged({ type: "turn-lock-lost", instanceId: "i" }, { level: "error" })).toEqual([]);
  });
});

describe("a log line", () => {
  test("is one line that a person can read and a machine can split", () => {
    const line = formatLogLine({
      timeMs: 1_700_000_000_000,
      level: "warn",
      target: "duroxide::runtime",
      message: "activity failed",
      fields: { instance_id: "order-1", attempt: 2, error: 'no "money"', empty: "" },
    });

    expect(line).toBe(
      '2023-11-14T22:13:20.000Z WARN  duroxide::runtime: activity failed instance_id=order-1 attempt=2 error="no \\"money\\"" empty=""',
    );
  });

  test("lets no text of a user's break it or speak to the terminal", () => {
    const text = "a\nb\r\u001b[31mred\u2028";
    const record = { level: "info", target: "duroxide::activity", message: text, fields: { error: text } } as const;
    const line = formatLogLine(record);

    expect(line).not.toMatch(/[\p{Cc}\u2028]/u);
    expect(line).toContain("a\\u000ab\\u000d\\u001b[31mred\\u2028");
  });
});
