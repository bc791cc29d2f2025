// Code re-run over what history records. Catalogue A2, A3, A4, A15.

import { describe, expect, test } from "vitest";
import type { OrchestrationContext } from "../../src/engine/orchestration-context.js";
import type { EventPayload } from "../../src/history/event.js";
import {
  activityDone,
  activityFailed,
  type Code,
  childCompleted,
  childDone,
  childFailed,
  childScheduled,
  completed,
  DoubtedDriver,
  Driver,
  eventArrived,
  failureOf,
  fired,
  historyOf,
  outputOf,
  queueSubscribed,
  runTurn,
  scheduled,
  started,
  subscribed,
  summary,
  timerCreated,
  timerFired,
} from "./drive.js";

const greet: Code = async (ctx) => ctx.scheduleActivity("Greet", "Alice");

describe("a recorded answer", () => {
  const failed: EventPayload = {
    type: "ActivityFailed",
    details: {
      category: "application",
      kind: { type: "ActivityFailed" },
      message: "service unavailable",
      retryable: false,
    },
  };
  const timer: Code = async (ctx) => {
    await ctx.scheduleTimer("60s");
    return "timer_done";
  };
  const child: Code = async (ctx) => ctx.scheduleSubOrchestration("ChildOrch", "child-input");

  test.each<[string, Code, ReturnType<typeof historyOf>, unknown]>([
    ["of an activity", greet, historyOf(started, scheduled("Greet", '"Alice"'), [activityDone("Hello"), 2]), "Hello"],
    ["of a timer, whatever its time", timer, historyOf(started, timerCreated, [timerFired, 2]), "timer_done"],
    [
      "of an event",
      async (ctx) => ctx.waitForEvent("Approval"),
      historyOf(started, subscribed("Approval"), eventArrived("Approval", "data")),
      "data",
    ],
    [
      "of a mailbox",
      async (ctx) => ctx.dequeueEvent("q"),
      historyOf(started, queueSubscribed("q"), { type: "ExternalEventPersistent", name: "q", data: '"m"' }),
      "m",
    ],
    [
      "of a child, whatever its id",
      child,
      historyOf(started, childScheduled("ChildOrch", "sub::2", '"child-input"'), [childDone("child-result"), 2]),
      "child-result",
    ],
  ])("%s is given to code again, and nothing is started", async (_, code, history, output) => {
    const outcome = await runTurn({ code, history });

    expect(outputOf(outcome)).toBe(output);
    expect(summary(outcome.events)).toEqual(["OrchestrationCompleted(4)"]);
    expect(outcome).toMatchObject({ activities: [], timers: [], children: [], cancelledActivities: [] });
  });

  test("that is a failure is thrown again", async () => {
    const history = historyOf(started, scheduled("Greet", '"Alice"'), [failed, 2]);

    expect(failureOf(await runTurn({ code: greet, history }))).toMatchObject({ message: "service unavailable" });
  });

  test("reaches code as it was written: empty, huge, or no JSON at all", async () => {
    const large = "x".repeat(1_000_000);
    const texts = ['""', JSON.stringify(large), "plain text of the original"];
    const results: unknown[] = [];
    for (const result of texts) {
      const history = historyOf(started, scheduled("Greet", '"Alice"'), [{ type: "ActivityCompleted", result }, 2]);
      results.push(outputOf(await runTurn({ code: greet, history })));
    }

    expect(results).toEqual(["", large, "plain text of the original"]);
  });

  test("of an event without data is the empty text", async () => {
    const outcome = await runTurn({
      code: async (ctx) => ctx.waitForEvent("E"),
      history: historyOf(started, subscribed("E"), { type: "ExternalEvent", name: "E", data: "" }),
    });

    expect(outputOf(outcome)).toBe("");
  });
});

describe("a recorded request without an answer", () => {
  test.each<[string, Code, EventPayload]>([
    ["an activity", greet, scheduled("Greet", '"Alice"')],
    ["an activity with empty input", async (ctx) => ctx.scheduleActivity("Greet", ""), scheduled("Greet", '""')],
    ["a timer", async (ctx) => ctx.scheduleTimer(60_000), timerCreated],
    ["an event", async (ctx) => ctx.waitForEvent("E"), subscribed("E")],
    ["a mailbox", async (ctx) => ctx.dequeueEvent("E"), queueSubscribed("E")],
    ["a child", async (ctx) => ctx.scheduleSubOrchestration("C"), childScheduled("C", "sub::2")],
  ])("%s is waited for, and not asked for again", async (_, code, request) => {
    const outcome = await runTurn({ code, history: historyOf(started, request) });

    expect(outcome.result).toEqual({ kind: "waiting" });
    expect(outcome).toMatchObject({ events: [], activities: [], timers: [], children: [] });
  });
});

describe("a sequence", () => {
  const two: Code = async (ctx) => [await ctx.scheduleActivity("A1"), await ctx.scheduleActivity("A2")];

  test("asks for the next step once the last is answered", async () => {
    const history = historyOf(started, scheduled("A1"), [activityDone("result1"), 2]);
    const outcome = await runTurn({ code: two, history });

    expect(summary(outcome.events)).toEqual(["ActivityScheduled(4)"]);
    expect(outcome.activities).toEqual([{ id: 4, name: "A2", input: "null" }]);
  });

  test.each<[string, Code, ReturnType<typeof historyOf>, string, object]>([
    [
      "a timer after an activity",
      async (ctx) => {
        await ctx.scheduleActivity("A");
        await ctx.scheduleTimer("60s");
      },
      historyOf(started, scheduled("A"), [activityDone(1), 2]),
      "TimerCreated(4)",
      { activities: [], timers: [{ id: 4 }] },
    ],
    [
      "an activity after a timer",
      async (ctx) => {
        await ctx.scheduleTimer("60s");
        await ctx.scheduleActivity("A");
      },
      historyOf(started, timerCreated, [timerFired, 2]),
      "ActivityScheduled(4)",
      { activities: [{ id: 4, name: "A" }], timers: [] },
    ],
  ])("goes on with %s, and asks for nothing again", async (_, code, history, event, work) => {
    const outcome = await runTurn({ code, history });

    expect(outcome.result).toEqual({ kind: "waiting" });
    expect(summary(outcome.events)).toEqual([event]);
    expect(outcome).toMatchObject(work);
  });

  test("ends once all steps are answered", async () => {
    const driver = new DoubtedDriver({ code: two });
    await driver.turn();
    await driver.turn(completed(2, "result1"));

    expect(outputOf(await driver.turn(completed(4, "result2")))).toEqual(["result1", "result2"]);
  });

  test.each<[string, Code, readonly EventPayload[]]>([
    ["of different requests", two, [scheduled("A1"), scheduled("A2")]],
    [
      "of equal requests",
      async (ctx) => [await ctx.scheduleActivity("Task", "same"), await ctx.scheduleActivity("Task", "same")],
      [scheduled("Task", '"same"'), scheduled("Task", '"same"')],
    ],
  ])("%s that history answers in full ends at once, each answer at its place", async (_, code, [first, second]) => {
    const history = historyOf(started, first!, [activityDone("R1"), 2], second!, [activityDone("R2"), 4]);
    const outcome = await runTurn({ code, history });

    expect(outputOf(outcome)).toEqual(["R1", "R2"]);
    expect(summary(outcome.events)).toEqual(["OrchestrationCompleted(6)"]);
    expect(outcome.activities).toEqual([]);
  });

  test("mixes activities, timers and children", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        await ctx.scheduleActivity("A");
        await ctx.scheduleTimer(1);
        const child = await ctx.scheduleSubOrchestration("C");
        await ctx.scheduleTimer(1);
        return [child, await ctx.scheduleActivity("B")];
      },
    });
    await driver.turn();

    expect((await driver.turn(completed(2, 1))).timers).toMatchObject([{ id: 4 }]);
    expect((await driver.turn(fired(4))).children).toMatchObject([{ id: 6 }]);
    expect((await driver.turn(childCompleted(6, "c"))).timers).toMatchObject([{ id: 8 }]);
    expect((await driver.turn(fired(8))).activities).toMatchObject([{ id: 10, name: "B" }]);
    expect(outputOf(await driver.turn(completed(10, "b")))).toEqual(["c", "b"]);
  });

  test("of equal requests routes each answer by its id, over restarts", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        const first = await ctx.scheduleActivity("Task", "same");
        await ctx.scheduleTimer("60s");
        return [first, await ctx.scheduleActivity("Task", "same")];
      },
    });

    expect(await driver.turn()).toMatchObject({ activities: [{ id: 2 }], timers: [] });
    expect(await driver.turn(completed(2, "R1"))).toMatchObject({ activities: [], timers: [{ id: 4 }] });
    expect(await driver.turn(fired(4))).toMatchObject({ activities: [{ id: 6 }], timers: [] });
    expect(outputOf(await driver.turn(completed(6, "R2")))).toEqual(["R1", "R2"]);
  });

  test("of equal requests in flight together gives each its own answer, in whatever order they come", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => Promise.all([ctx.scheduleActivity("Task", "same"), ctx.scheduleActivity("Task", "same")]),
    });
    await driver.turn();
    await driver.turn(completed(3, "second"));

    expect(outputOf(await driver.turn(completed(2, "first")))).toEqual(["first", "second"]);
  });

  test("of ten steps replays as one", async () => {
    const code = async (ctx: OrchestrationContext) => {
      const results: unknown[] = [];
      for (let n = 0; n < 10; n += 1) results.push(await ctx.scheduleActivity(`Act${n}`));
      return results.join(",");
    };
    const pairs = Array.from({ length: 10 }, (_, n): (EventPayload | [EventPayload, number])[] => [
      scheduled(`Act${n}`),
      [activityDone(`r${n}`), 2 * n + 2],
    ]);
    const outcome = await runTurn({ code, history: historyOf(started, ...pairs.flat()) });

    expect(outputOf(outcome)).toBe("r0,r1,r2,r3,r4,r5,r6,r7,r8,r9");
  });
});

describe("failures", () => {
  test("of activities and children can be caught, and the code goes on", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        const seen: unknown[] = [];
        for (const task of [ctx.scheduleActivity("A"), ctx.scheduleSubOrchestration("C")]) {
          await task.catch((error: unknown) => seen.push([(error as Error).name, (error as Error).message]));
        }
        return seen;
      },
    });
    await driver.turn();
    await driver.turn(activityFailed(2, "card declined"));

    expect(outputOf(await driver.turn(childFailed(3, "no luck")))).toEqual([
      ["ActivityFailedError", "card declined"],
      ["OrchestrationFailedError", "no luck"],
    ]);
  });

  test("of nobody's concern are recorded, and never an unhandled rejection", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        const task = ctx.scheduleActivity("A");
        await ctx.scheduleTimer(1);
        await ctx.scheduleTimer(1);
        return task.catch((error: Error) => `late: ${error.message}`);
      },
    });
    await driver.turn();
    await driver.turn(activityFailed(2, "failed early"), fired(3));

    expect(outputOf(await driver.turn(fired(6)))).toBe("late: failed early");
  });
});

test("history as it stands plus the delta of the turn is the history of the next", async () => {
  const driver = new Driver({ code: greet });
  await driver.turn();

  expect(summary(driver.history)).toEqual(["OrchestrationStarted(1)", "ActivityScheduled(2)"]);
  expect(driver.execution.eventCount).toBe(2);
  await driver.turn(completed(2, "Hello"));
  expect(summary(driver.history)).toEqual([
    "OrchestrationStarted(1)",
    "ActivityScheduled(2)",
    "ActivityCompleted(3<2)",
    "OrchestrationCompleted(4)",
  ]);
});
