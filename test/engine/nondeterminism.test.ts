// Code that no longer does what history says it did. Catalogue A7, and the mismatches of A16, A17 and A18.

import { describe, expect, test } from "vitest";
import type { Event, EventPayload } from "../../src/history/event.js";
import {
  activityDone,
  activityDropped,
  type Code,
  childDone,
  childScheduled,
  eventArrived,
  expectNondeterminism,
  failureOf,
  historyOf,
  INSTANCE,
  keySet,
  queueSubscribed,
  runTurn,
  scheduled,
  started,
  subscribed,
  summary,
  timerCreated,
  timerFired,
} from "./drive.js";

const activity: Code = async (ctx) => ctx.scheduleActivity("A", "x");
const timer: Code = async (ctx) => ctx.scheduleTimer(1);
const child: Code = async (ctx) => ctx.scheduleSubOrchestration("C", "x");
const chained = (name: string): EventPayload => ({
  type: "OrchestrationChained",
  name,
  instance: "detached",
  input: "null",
});

describe("a request that differs from the recorded one", () => {
  test.each<[string, EventPayload, Code, string]>([
    ["a timer instead of an activity", scheduled("A", '"x"'), timer, "schedule mismatch"],
    ["an activity instead of a timer", timerCreated, activity, "schedule mismatch"],
    ["an activity instead of a child", childScheduled("C", "sub::2", '"x"'), activity, "schedule mismatch"],
    ["another activity", scheduled("ActivityA", '"x"'), activity, "name differs"],
    ["another input", scheduled("A", '"y"'), activity, "input differs"],
    ["another event", subscribed("EventX"), async (ctx) => ctx.waitForEvent("EventY"), "name differs"],
    ["another queue", queueSubscribed("X"), async (ctx) => ctx.dequeueEvent("Y"), "name differs"],
    ["a queue instead of an event", subscribed("X"), async (ctx) => ctx.dequeueEvent("X"), "schedule mismatch"],
    ["another child", childScheduled("D", "sub::2", '"x"'), child, "name differs"],
    ["another input of a child", childScheduled("C", "sub::2", '"y"'), child, "input differs"],
    ["a child that had a name of its own", childScheduled("C", "mine", '"x"'), child, "instance differs"],
    [
      "a child that had none",
      childScheduled("C", "sub::2", '"x"'),
      async (ctx) => ctx.scheduleSubOrchestration("C", "x", { instanceId: "mine" }),
      "instance differs",
    ],
    [
      "a session where there was none",
      scheduled("A"),
      async (ctx) => ctx.scheduleActivity("A", null, { sessionId: "sess-1" }),
      "session differs",
    ],
    [
      "a tag where there was none",
      scheduled("A"),
      async (ctx) => ctx.scheduleActivity("A", null, { tag: "gpu" }),
      "tag differs",
    ],
    [
      "another tag",
      { type: "ActivityScheduled", name: "A", input: "null", tag: "gpu" },
      async (ctx) => ctx.scheduleActivity("A", null, { tag: "cpu" }),
      "tag differs",
    ],
    [
      "no tag where there was one",
      { type: "ActivityScheduled", name: "A", input: '"x"', tag: "gpu" },
      activity,
      "tag differs",
    ],
  ])("is named, with both sides and the event: %s", async (_, event, code, words) => {
    const outcome = await runTurn({ code, history: historyOf(started, event) });

    expectNondeterminism(outcome, "schedule mismatch: event 2", "action=", "event=", words);
    expect(outcome.events.at(-1)).toMatchObject({ type: "OrchestrationFailed" });
    expect(outcome.activities).toEqual([]);
  });

  test.each<[string, EventPayload, Code, string]>([
    ["kv key", keySet("B", "1"), async (ctx) => ctx.kv.setText("A", "1"), "kv set mismatch"],
    ["kv value", keySet("A", "old"), async (ctx) => ctx.kv.setText("A", "new"), "kv set mismatch"],
    ["cleared key", { type: "KeyValueCleared", key: "B" }, async (ctx) => ctx.kv.delete("A"), "kv clear mismatch"],
    [
      "set for clear",
      { type: "KeyValueCleared", key: "A" },
      async (ctx) => ctx.kv.setText("A", "1"),
      "kv clear mismatch",
    ],
    [
      "set for clear-all",
      { type: "KeyValuesCleared" },
      async (ctx) => ctx.kv.setText("A", "1"),
      "kv clear_all mismatch",
    ],
    ["activity for status", { type: "CustomStatusUpdated", status: "s" }, activity, "custom status mismatch"],
    ["activity for kv set", keySet("A", "1"), activity, "kv set mismatch"],
  ])("is named for one-way decisions too: %s", async (_, event, decide, words) => {
    const code: Code = async (ctx, input) => {
      await decide(ctx, input);
      await ctx.waitForEvent("never");
    };

    expectNondeterminism(await runTurn({ code, history: historyOf(started, event) }), words, "event 2");
  });

  test("is described in a message that stays readable, however large the input", async () => {
    const outcome = await runTurn({
      code: async (ctx) => ctx.scheduleActivity("A", "y".repeat(100_000)),
      history: historyOf(started, scheduled("A", `"${"x".repeat(100_000)}"`)),
    });

    expectNondeterminism(outcome, "input differs");
    expect(JSON.stringify(failureOf(outcome)).length).toBeLessThan(1_000);
  });

  test("passes where replay must not look: fire time, status text, versions, time of a write", async () => {
    const outcome = await runTurn({
      code: async (ctx) => {
        ctx.setCustomStatus("new text");
        ctx.startOrchestration("D", { instanceId: "detached", version: "9.9.9" });
        ctx.kv.setText("A", "1");
        await Promise.all([ctx.scheduleTimer(99), ctx.scheduleSubOrchestration("C", null, { version: "9.9.9" })]);
      },
      history: historyOf(
        started,
        { type: "CustomStatusUpdated", status: "old text" },
        chained("D"),
        keySet("A", "1"),
        timerCreated,
        childScheduled("C", "sub::77"),
      ),
    });

    expect(outcome).toMatchObject({ result: { kind: "waiting" }, events: [] });
  });
});

describe("a recorded request that code does not make", () => {
  test.each<[string, readonly EventPayload[], Code, string]>([
    ["an activity, and the function has returned", [scheduled("A")], async () => "done", "event 2"],
    ["a second activity", [scheduled("A", '"x"'), scheduled("A", '"x"')], activity, "event 3"],
    ["a second timer", [timerCreated, timerCreated], timer, "event 3"],
    ["a second wait", [subscribed("E"), subscribed("E")], async (ctx) => ctx.waitForEvent("E"), "event 3"],
    ["a detached start", [scheduled("A", '"x"'), chained("ChildOrch")], activity, "OrchestrationChained"],
    ["a status", [scheduled("A", '"x"'), { type: "CustomStatusUpdated", status: "s" }], activity, "event 3"],
    ["a write", [scheduled("A", '"x"'), keySet("k", "v")], activity, "event 3"],
  ])("is nondeterminism: %s", async (_, events, code, words) => {
    expectNondeterminism(await runTurn({ code, history: historyOf(started, ...events) }), "no emitted action", words);
  });

  test("is nondeterminism where it comes after the function's return", async () => {
    const outcome = await runTurn({
      code: activity,
      history: historyOf(started, scheduled("A", '"x"'), [activityDone(1), 2], scheduled("B")),
    });

    expectNondeterminism(outcome, "event 4", "ActivityScheduled", '"B"');
  });

  test("is nondeterminism where a write comes before what the code asks for", async () => {
    for (const event of [keySet("A", "1"), { type: "KeyValueCleared", key: "A" } as const]) {
      const history = historyOf(started, event, scheduled("A", '"x"'));
      expectNondeterminism(await runTurn({ code: activity, history }), "event 2");
    }
  });

  test("is a mismatch where code makes another one in its place", async () => {
    const outcome = await runTurn({
      code: async (ctx) => {
        ctx.startOrchestration("ChildB", { instanceId: "detached" });
        await ctx.scheduleActivity("A");
      },
      history: historyOf(started, chained("ChildA"), scheduled("A")),
    });

    expectNondeterminism(outcome, "schedule mismatch: event 2", "ChildA", "ChildB", "name differs");
  });

  test("is fine where the function made it and returned in the same breath", async () => {
    const outcome = await runTurn({
      code: async (ctx) => {
        await ctx.scheduleActivity("A");
        ctx.scheduleActivity("B");
        return "done";
      },
      history: historyOf(started, scheduled("A"), [activityDone(1), 2], scheduled("B")),
    });

    expect(summary(outcome.events)).toEqual(["ActivityCancelRequested(5<4)", "OrchestrationCompleted(6)"]);
    expect(outcome.cancelledActivities).toEqual([4]);
  });
});

describe("a recorded answer", () => {
  const duplicate = (first: EventPayload, code: Code, pending: EventPayload, second: EventPayload) =>
    ({ code, history: historyOf(started, first, [second, 2], pending, [second, 2]) }) as const;
  const thenActivity =
    (task: Code): Code =>
    async (ctx, input) => {
      await Promise.resolve(task(ctx, input)).catch(() => {});
      await ctx.scheduleActivity("next");
    };
  const activityFailure: EventPayload = {
    type: "ActivityFailed",
    details: { category: "application", kind: { type: "ActivityFailed" }, message: "no", retryable: false },
  };
  const childFailure: EventPayload = { ...activityFailure, type: "SubOrchestrationFailed" } as EventPayload;

  test.each<[string, { code: Code; history: Event[] }]>([
    ["a timer", duplicate(timerCreated, thenActivity(timer), scheduled("next"), timerFired)],
    ["a child", duplicate(childScheduled("C", "sub::2", '"x"'), thenActivity(child), scheduled("next"), childDone(1))],
    ["an activity", duplicate(scheduled("A", '"x"'), thenActivity(activity), scheduled("next"), activityDone(1))],
    ["a failed activity", duplicate(scheduled("A", '"x"'), thenActivity(activity), scheduled("next"), activityFailure)],
    [
      "a failed child",
      duplicate(childScheduled("C", "sub::2", '"x"'), thenActivity(child), scheduled("next"), childFailure),
    ],
  ])("to what is answered already is nondeterminism: %s", async (_, drive) => {
    expectNondeterminism(await runTurn(drive), "completion without open schedule", "event 5", "event 2");
  });

  test.each<[string, Code, EventPayload, EventPayload, EventPayload]>([
    ["an activity", thenActivity(activity), scheduled("A", '"x"'), activityDone(1), activityFailure],
    ["a failed activity", thenActivity(activity), scheduled("A", '"x"'), activityFailure, activityDone(1)],
    ["a child", thenActivity(child), childScheduled("C", "sub::2", '"x"'), childDone(1), childFailure],
    ["a failed child", thenActivity(child), childScheduled("C", "sub::2", '"x"'), childFailure, childDone(1)],
  ])("that contradicts the one before it is nondeterminism: %s", async (_, code, request, first, second) => {
    const history = historyOf(started, request, [first, 2], scheduled("next"), [second, 2]);

    expectNondeterminism(await runTurn({ code, history }), "completion without open schedule", "event 5", "event 2");
  });

  test("given twice to one timer does not answer the next", async () => {
    const outcome = await runTurn({
      code: async (ctx) => {
        await ctx.scheduleTimer(1);
        await ctx.scheduleTimer(1);
        return "both fired";
      },
      history: historyOf(started, timerCreated, [timerFired, 2], timerCreated, [timerFired, 2]),
    });

    expectNondeterminism(outcome, "completion without open schedule", "event 5", "event 2");
  });

  test.each<[string, Code, EventPayload, EventPayload]>([
    ["an activity's to a timer", timer, timerCreated, activityDone(1)],
    ["a timer's to an activity", activity, scheduled("A", '"x"'), timerFired],
    ["a failure's to a timer", timer, timerCreated, activityFailure],
    ["a child's to an activity", activity, scheduled("A", '"x"'), childDone(1)],
    ["a failed child's to an activity", activity, scheduled("A", '"x"'), childFailure],
  ])("of the wrong kind is nondeterminism: %s", async (_, code, schedule, answer) => {
    const outcome = await runTurn({ code, history: historyOf(started, schedule, [answer, 2]) });

    expectNondeterminism(outcome, "completion kind mismatch", "event 3", "event 2");
  });

  test("without a source is ignored", async () => {
    const outcome = await runTurn({
      code: activity,
      history: historyOf(started, scheduled("A", '"x"'), activityDone("nobody's")),
    });

    expect(outcome).toMatchObject({ result: { kind: "waiting" }, events: [] });
  });

  test("for an event that is not awaited any more is ignored", async () => {
    const outcome = await runTurn({
      code: activity,
      history: historyOf(started, eventArrived("E", 1), scheduled("A", '"x"'), eventArrived("E", 2)),
    });

    expect(outcome).toMatchObject({ result: { kind: "waiting" }, events: [] });
  });
});

describe("a recorded drop", () => {
  const raceHistory = (...tail: (EventPayload | [EventPayload, number])[]) =>
    historyOf(started, scheduled("A"), timerCreated, [timerFired, 3], ...tail);

  test("that code does not repeat is nondeterminism, whether it waits or ends", async () => {
    const history = raceHistory([activityDropped, 2]);
    const keeps: Code = async (ctx) => {
      const task = ctx.scheduleActivity("A");
      await ctx.scheduleTimer(1);
      return task;
    };

    expectNondeterminism(await runTurn({ code: keeps, history }), "cancellation mismatch (activities)", "event 2");
    const late = [...history, ...historyOf(started, [activityDone("late"), 2]).slice(1)].map((event, place) => ({
      ...event,
      eventId: place + 1,
    }));
    expectNondeterminism(await runTurn({ code: keeps, history: late }), "cancellation mismatch (activities)");
  });

  test.each<[string, EventPayload, Code, EventPayload]>([
    [
      "sub-orchestrations",
      childScheduled("C", "sub::2"),
      async (ctx) => ctx.scheduleSubOrchestration("C"),
      { type: "SubOrchestrationCancelRequested", reason: "dropped_future" },
    ],
    [
      "external waits",
      subscribed("E"),
      async (ctx) => ctx.waitForEvent("E"),
      { type: "ExternalSubscribedCancelled", reason: "dropped_future" },
    ],
    [
      "persistent waits",
      queueSubscribed("E"),
      async (ctx) => ctx.dequeueEvent("E"),
      { type: "ExternalSubscribedPersistentCancelled", reason: "dropped_future" },
    ],
  ])("is checked for %s", async (family, schedule, code, breadcrumb) => {
    const outcome = await runTurn({ code, history: historyOf(started, schedule, [breadcrumb, 2]) });

    expectNondeterminism(outcome, `cancellation mismatch (${family})`);
  });

  test("of a schedule that never was is nondeterminism", async () => {
    const outcome = await runTurn({
      code: activity,
      history: historyOf(started, scheduled("A", '"x"'), [activityDropped, 99]),
    });

    expectNondeterminism(outcome, "cancellation mismatch", "event 99");
  });

  test("for another reason is not checked", async () => {
    const terminal: EventPayload = { type: "ActivityCancelRequested", reason: "orchestration_terminal_failed" };
    const outcome = await runTurn({
      code: activity,
      history: historyOf(started, scheduled("A", '"x"'), [terminal, 2]),
    });

    expect(outcome.result).toEqual({ kind: "waiting" });
  });
});

test("an instance that fails this way cancels its children and its activities", async () => {
  const outcome = await runTurn({
    code: async (ctx) => {
      ctx.scheduleActivity("A");
      ctx.scheduleSubOrchestration("C");
      await ctx.scheduleTimer(1);
      await ctx.scheduleActivity("changed");
    },
    history: historyOf(
      started,
      scheduled("A"),
      childScheduled("C", "sub::3"),
      timerCreated,
      [timerFired, 4],
      scheduled("B"),
      timerCreated,
    ),
  });

  expectNondeterminism(outcome, "event 6");
  expect(summary(outcome.events)).toEqual([
    "ActivityCancelRequested(8<2)",
    "ActivityCancelRequested(9<6)",
    "OrchestrationFailed(10)",
  ]);
  expect(outcome.cancelledActivities).toEqual([2, 6]);
  expect(outcome.cancelledTimers).toEqual([7]);
  expect(outcome.cancelledChildren).toMatchObject([{ instance: `${INSTANCE}::sub::3` }]);
});
