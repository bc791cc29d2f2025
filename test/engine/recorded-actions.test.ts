// Every kind of decision that code can take: recorded once and in full, and compared by replay. Catalogue A15, A16; R§3.3.

import { describe, expect, test } from "vitest";
import { isDecision } from "../../src/engine/action.js";
import type { OrchestrationContext } from "../../src/engine/orchestration-context.js";
import type { Event, EventPayload } from "../../src/history/event.js";
import {
  activityDone,
  completed,
  DoubtedDriver,
  expectNondeterminism,
  historyOf,
  NOW,
  outputOf,
  runTurn,
  scheduled,
  started,
  summary,
} from "./drive.js";

type Decide = (ctx: OrchestrationContext) => unknown;

const decisions: readonly [string, Decide, EventPayload][] = [
  [
    "an activity",
    (ctx) => ctx.scheduleActivity("MyActivity", "my-input"),
    { type: "ActivityScheduled", name: "MyActivity", input: '"my-input"' },
  ],
  [
    "an activity on a session",
    (ctx) => ctx.scheduleActivity("MyActivity", "my-input", { sessionId: "sess-1" }),
    { type: "ActivityScheduled", name: "MyActivity", input: '"my-input"', sessionId: "sess-1" },
  ],
  [
    "an activity with a tag",
    (ctx) => ctx.scheduleActivity("GpuWork", "data", { tag: "gpu" }),
    { type: "ActivityScheduled", name: "GpuWork", input: '"data"', tag: "gpu" },
  ],
  ["a timer", (ctx) => ctx.scheduleTimer("10s"), { type: "TimerCreated", fireAtMs: NOW + 1 + 10_000 }],
  ["a wait for an event", (ctx) => ctx.waitForEvent("MyEvent"), { type: "ExternalSubscribed", name: "MyEvent" }],
  ["a wait for a message", (ctx) => ctx.dequeueEvent("inbox"), { type: "ExternalSubscribedPersistent", name: "inbox" }],
  [
    "a child",
    (ctx) => ctx.scheduleSubOrchestration("ChildOrch", "child-input"),
    { type: "SubOrchestrationScheduled", name: "ChildOrch", instance: "sub::2", input: '"child-input"' },
  ],
  [
    "a detached start",
    (ctx) => ctx.startOrchestration("DetachedChild", { instanceId: "child-instance", input: "child-input" }),
    { type: "OrchestrationChained", name: "DetachedChild", instance: "child-instance", input: '"child-input"' },
  ],
  ["a custom status", (ctx) => ctx.setCustomStatus("busy"), { type: "CustomStatusUpdated", status: "busy" }],
  [
    "a write",
    (ctx) => ctx.kv.setText("k", "v"),
    { type: "KeyValueSet", key: "k", value: "v", lastUpdatedAtMs: NOW + 1 },
  ],
  ["a deletion", (ctx) => ctx.kv.delete("k"), { type: "KeyValueCleared", key: "k" }],
  ["a clearing", (ctx) => ctx.kv.clear(), { type: "KeyValuesCleared" }],
];

describe("a decision", () => {
  test.each(decisions)("is one event that says all there is to say: %s", async (_, decide, payload) => {
    const outcome = await new DoubtedDriver({
      code: async (ctx) => {
        await decide(ctx);
      },
    }).turn();

    expect(outcome.events.filter(isDecision).map(payloadOf)).toStrictEqual([payload]);
  });

  test.each(decisions)(
    "is recorded although nobody awaits it and the function returns: %s",
    async (_, decide, payload) => {
      const outcome = await new DoubtedDriver({
        code: async (ctx) => {
          decide(ctx);
          return "scheduled";
        },
      }).turn();

      expect(outputOf(outcome)).toBe("scheduled");
      expect(outcome.events.filter(isDecision).map(payloadOf)).toStrictEqual([payload]);
    },
  );

  test.each(decisions)("is missed by replay where code does not take it again: %s", async (_, decide) => {
    const history = await recordedBy(decide);

    expectNondeterminism(await runTurn({ code: async (ctx) => ctx.waitForEvent("next"), history }), "event 2");
  });

  test("that is taken twice is two events", async () => {
    const outcome = await new DoubtedDriver({
      code: async (ctx) => {
        ctx.scheduleActivity("A", 1);
        ctx.scheduleActivity("A", 1);
        await ctx.waitForEvent("next");
      },
    }).turn();

    expect(summary(outcome.events)).toEqual([
      "OrchestrationStarted(1)",
      "ActivityScheduled(2)",
      "ActivityScheduled(3)",
      "ExternalSubscribed(4)",
    ]);
    expect(outcome.activities).toMatchObject([{ id: 2 }, { id: 3 }]);
  });
});

describe("a decision that code takes differently than before", () => {
  const activity =
    (options: { sessionId?: string; tag?: string }): Decide =>
    (ctx) =>
      ctx.scheduleActivity("A", "x", options);
  const detached =
    (name: string, instanceId: string, input: string): Decide =>
    (ctx) =>
      ctx.startOrchestration(name, { instanceId, input });

  test.each<[string, Decide, Decide, string]>([
    ["on a session, before on none", activity({}), activity({ sessionId: "sess-1" }), "session"],
    ["on another session", activity({ sessionId: "sess-1" }), activity({ sessionId: "sess-2" }), "session"],
    ["on no session any more", activity({ sessionId: "sess-1" }), activity({}), "session"],
    ["with a tag, before with none", activity({}), activity({ tag: "gpu" }), "tag"],
    ["with another tag", activity({ tag: "gpu" }), activity({ tag: "cpu" }), "tag"],
    ["with no tag any more", activity({ tag: "gpu" }), activity({}), "tag"],
    ["detached, by another name", detached("D", "d", "x"), detached("E", "d", "x"), "name"],
    ["detached, under another id", detached("D", "d", "x"), detached("D", "e", "x"), "instance"],
    ["detached, with another input", detached("D", "d", "x"), detached("D", "d", "y"), "input"],
  ])("is nondeterminism: %s", async (_, before, now, field) => {
    const history = await recordedBy(before);
    const code = (decide: Decide) => async (ctx: OrchestrationContext) => {
      decide(ctx);
      await ctx.waitForEvent("next");
    };

    expect(await runTurn({ code: code(before), history })).toMatchObject({ result: { kind: "waiting" }, events: [] });
    expectNondeterminism(
      await runTurn({ code: code(now), history }),
      "schedule mismatch: event 2",
      `(${field} differs)`,
    );
  });
});

describe("an empty input", () => {
  test("is an input like any other, recorded and matched", async () => {
    const driver = new DoubtedDriver({ code: async (ctx) => ctx.scheduleActivity("A", "") });

    expect((await driver.turn()).activities).toEqual([{ id: 2, name: "A", input: '""' }]);
    expect(outputOf(await driver.turn(completed(2, "result")))).toBe("result");
  });

  test("is not the same as none", async () => {
    const answered = (input: string) => historyOf(started, scheduled("A", input), [activityDone("result"), 2]);
    const code = async (ctx: OrchestrationContext) => ctx.scheduleActivity("A", "");

    expect(outputOf(await runTurn({ code, history: answered('""') }))).toBe("result");
    expectNondeterminism(await runTurn({ code, history: answered("null") }), "input differs");
  });
});

/** The history of code that takes the decision and then waits. */
async function recordedBy(decide: Decide): Promise<Event[]> {
  const { events } = await runTurn({
    code: async (ctx) => {
      decide(ctx);
      await ctx.waitForEvent("next");
    },
  });
  return [...events];
}

/** An event without its envelope. */
function payloadOf(event: Event): object {
  const { eventId, sourceEventId, instanceId, executionId, timestampMs, duroxideVersion, ...payload } = event;
  return payload;
}
