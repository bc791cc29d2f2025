// Histories that cannot be, or are merely odd. Catalogue A8.

import { describe, expect, test } from "vitest";
import { Execution } from "../../src/engine/execution.js";
import type { EventPayload } from "../../src/history/event.js";
import {
  activityDone,
  type Code,
  completed,
  eventOf,
  expectNondeterminism,
  handlerOf,
  historyOf,
  INSTANCE,
  NOW,
  outputOf,
  runTurn,
  scheduled,
  started,
  subscribed,
  summary,
  timerCreated,
  timerFired,
} from "./drive.js";

const activity: Code = async (ctx) => ctx.scheduleActivity("A");

describe("a history that cannot be", () => {
  test("empty, with nothing to start", async () => {
    const execution = new Execution({
      instance: INSTANCE,
      executionId: 1,
      handler: handlerOf(activity),
      history: [],
      started: null,
      kvSnapshot: new Map(),
      newGuid: () => "",
      trace: () => {},
    });
    const outcome = await execution.turn({ nowMs: NOW, messages: [] });

    expectNondeterminism(outcome, "corrupted history: empty");
    expect(summary(outcome.events)).toEqual(["OrchestrationFailed(1)"]);
  });

  test.each<[string, ReturnType<typeof historyOf>]>([
    ["without a start", historyOf(scheduled("A"))],
    ["with the start in second place", historyOf(scheduled("A"), started)],
  ])("%s: fails, and names the event that must come first", async (_, history) => {
    expectNondeterminism(await runTurn({ code: activity, history }), "first event must be OrchestrationStarted");
  });

  test.each<[string, ReturnType<typeof historyOf>]>([
    ["that start at zero", [eventOf(0, started)]],
    ["that run backwards", [eventOf(1, started), eventOf(5, scheduled("A")), eventOf(3, activityDone(1), 5)]],
    ["that occur twice", [eventOf(1, started), eventOf(2, scheduled("A")), eventOf(2, activityDone(1), 2)]],
  ])("with ids %s: fails, under an id that is free", async (_, history) => {
    const outcome = await runTurn({ code: activity, history });

    expectNondeterminism(outcome, "corrupted history");
    const taken = new Set(history.map(({ eventId }) => eventId));
    expect(outcome.events.some(({ eventId }) => taken.has(eventId))).toBe(false);
    expect(outcome.events.at(-1)).toMatchObject({ type: "OrchestrationFailed" });
  });

  test("is not run: the function is never called, not even by a later turn", async () => {
    let calls = 0;
    const execution = new Execution({
      instance: INSTANCE,
      executionId: 1,
      handler: handlerOf(async () => {
        calls += 1;
      }),
      history: [eventOf(1, started), eventOf(1, scheduled("A"))],
      started: null,
      kvSnapshot: new Map(),
      newGuid: () => "",
      trace: () => {},
    });
    await execution.turn({ nowMs: NOW, messages: [completed(1, 1)] });

    expect(await execution.turn({ nowMs: NOW, messages: [] })).toMatchObject({
      result: { kind: "waiting" },
      events: [],
    });
    expect(calls).toBe(0);
  });

  test.each<[string, Code, EventPayload, EventPayload]>([
    ["a timer", async (ctx) => ctx.scheduleTimer(1), timerFired, timerCreated],
    ["an activity", activity, activityDone(1), scheduled("A")],
  ])("with the answer of %s before the request: fails", async (_, code, answer, request) => {
    const outcome = await runTurn({ code, history: historyOf(started, [answer, 3], request) });

    expectNondeterminism(outcome, "completion without open schedule");
  });
});

describe("an odd history", () => {
  test("with gaps in its ids replays", async () => {
    const history = [eventOf(1, started), eventOf(100, scheduled("A")), eventOf(200, activityDone("result"), 100)];
    const outcome = await runTurn({ code: activity, history });

    expect(outputOf(outcome)).toBe("result");
    expect(summary(outcome.events)).toEqual(["OrchestrationCompleted(201)"]);
  });

  test.each([
    ["an empty activity name", "", "null", "result"],
    ["names in other scripts", "активность_🎉", '"入力"', "结果 ✓"],
    ["control characters", "line\nbreak\ttab\r\n", '"a\\nb\\tc\\r\\n"', "nul\0inside"],
  ])("with %s replays", async (_, name, input, result) => {
    const code: Code = async (ctx) => ctx.scheduleActivity(name, JSON.parse(input));
    const asked = await runTurn({ code });
    const outcome = await runTurn({
      code,
      history: historyOf(started, scheduled(name, input), [activityDone(result), 2]),
    });

    expect(asked.activities).toEqual([{ id: 2, name, input }]);
    expect(outputOf(outcome)).toBe(result);
    expect(summary(outcome.events)).toEqual(["OrchestrationCompleted(4)"]);
  });
});

describe("a history that has ended", () => {
  const ended: EventPayload = { type: "OrchestrationCompleted", output: '"x"' };
  const failed: EventPayload = {
    type: "OrchestrationFailed",
    details: { category: "application", kind: { type: "OrchestrationFailed" }, message: "x", retryable: false },
  };

  test.each<[string, readonly EventPayload[]]>([
    ["completed", [ended]],
    ["failed", [failed]],
    ["continued as new", [{ type: "OrchestrationContinuedAsNew", input: "1" }]],
    ["ended twice", [ended, failed]],
    ["with a stray schedule after its end", [ended, scheduled("A")]],
    ["with a cancel request after its end", [ended, { type: "OrchestrationCancelRequested", reason: "late" }]],
    [
      "with the original's breadcrumbs after its end",
      [scheduled("A"), ended, { type: "ActivityCancelRequested", reason: "orchestration_terminal_completed" }],
    ],
  ])("takes no further turn, and runs no code: %s", async (_, tail) => {
    let calls = 0;
    const outcome = await runTurn({
      code: async () => {
        calls += 1;
      },
      history: historyOf(started, ...tail),
      messages: [completed(2, 1), { type: "CancelInstance", instance: INSTANCE, reason: "late" }],
    });

    expect(outcome).toMatchObject({ result: { kind: "waiting" }, events: [], cancelledActivities: [] });
    expect(calls).toBe(0);
  });

  test.each<[string, ReturnType<typeof historyOf>]>([
    ["ids that occur twice", [eventOf(1, started), eventOf(2, ended), eventOf(2, scheduled("A"))]],
    ["ids that run backwards", [eventOf(1, started), eventOf(5, scheduled("A")), eventOf(3, ended)]],
    ["no start", historyOf(scheduled("A"), ended)],
  ])("is not failed afterwards, though it is broken: %s", async (_, history) => {
    const outcome = await runTurn({ code: activity, history, messages: [completed(2, 1)] });

    expect(outcome).toMatchObject({ result: { kind: "waiting" }, events: [], cancelledActivities: [] });
  });

  test("completes when only arrivals are left over after the function's return", async () => {
    const outcome = await runTurn({
      code: async (ctx) => {
        await ctx.waitForEvent("E");
        return "done";
      },
      history: historyOf(
        started,
        subscribed("E"),
        { type: "ExternalEvent", name: "E", data: "1" },
        { type: "ExternalEvent", name: "E", data: "2" },
      ),
    });

    expect(outputOf(outcome)).toBe("done");
  });
});
