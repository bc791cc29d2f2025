// Work that code gives up: recorded once, cancelled once, repeated by every replay. Catalogue A17; R§3.11, R§3.17 A.

import { describe, expect, test } from "vitest";
import type { DurableTask } from "../../src/engine/durable-task.js";
import type { OrchestrationContext } from "../../src/engine/orchestration-context.js";
import type { EventPayload } from "../../src/history/event.js";
import {
  activityDone,
  activityDropped,
  type Code,
  childCompleted,
  childDone,
  childScheduled,
  completed,
  DoubtedDriver,
  expectNondeterminism,
  fired,
  historyOf,
  INSTANCE,
  outputOf,
  runTurn,
  scheduled,
  started,
  summary,
  timerCreated,
  timerFired,
} from "./drive.js";

const raceTimer: Code = async (ctx) => {
  const first = await ctx.race([ctx.scheduleActivity("A"), ctx.scheduleTimer(1)]);
  return first.index === 1 ? "timer_won" : first.value;
};
const persisted = (...tail: (EventPayload | [EventPayload, number])[]) =>
  historyOf(started, scheduled("A"), timerCreated, ...tail);

describe("the loser of a race", () => {
  test("an activity is recorded as dropped and cancelled, in the turn that decides", async () => {
    const driver = new DoubtedDriver({ code: raceTimer });
    await driver.turn();
    const outcome = await driver.turn(fired(3));

    expect(outputOf(outcome)).toBe("timer_won");
    expect(summary(outcome.events)).toEqual([
      "TimerFired(4<3)",
      "ActivityCancelRequested(5<2)",
      "OrchestrationCompleted(6)",
    ]);
    expect(outcome.events[1]).toMatchObject({ reason: "dropped_future" });
    expect(outcome.cancelledActivities).toEqual([2]);
  });

  test("a timer leaves no event, but its row is removed", async () => {
    const driver = new DoubtedDriver({ code: raceTimer });
    await driver.turn();
    const outcome = await driver.turn(completed(2, "result"));

    expect(outputOf(outcome)).toBe("result");
    expect(outcome).toMatchObject({ cancelledActivities: [], cancelledTimers: [3] });
    expect(summary(outcome.events)).toEqual(["ActivityCompleted(4<2)", "OrchestrationCompleted(5)"]);
  });

  test("two activities are cancelled both", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) =>
        (await ctx.race([ctx.scheduleActivity("A"), ctx.scheduleActivity("B"), ctx.scheduleTimer(1)])).index,
    });
    await driver.turn();
    const outcome = await driver.turn(fired(4));

    expect(outputOf(outcome)).toBe(2);
    expect(outcome.cancelledActivities).toEqual([2, 3]);
  });

  test("a child is told to stop", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => (await ctx.race([ctx.scheduleSubOrchestration("C"), ctx.scheduleTimer(1)])).index,
    });
    await driver.turn();
    const outcome = await driver.turn(fired(3));

    expect(outcome.cancelledChildren).toEqual([
      { instance: `${INSTANCE}::sub::2`, reason: "parent dropped sub-orchestration future" },
    ]);
    expect(outcome.events[1]).toMatchObject({
      type: "SubOrchestrationCancelRequested",
      sourceEventId: 2,
      reason: "dropped_future",
    });
  });

  test("a child with an id of its own is told under that id", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        const child = ctx.scheduleSubOrchestration("C", null, { instanceId: "mine" });
        return (await ctx.race([child, ctx.scheduleTimer(1)])).index;
      },
    });
    await driver.turn();

    expect((await driver.turn(fired(3))).cancelledChildren).toMatchObject([{ instance: "mine" }]);
  });

  test("whose answer comes all the same is recorded, and ignored", async () => {
    const code: Code = async (ctx) => {
      await ctx.race([ctx.scheduleActivity("A"), ctx.scheduleTimer(1)]);
      return ctx.scheduleActivity("B");
    };
    const driver = new DoubtedDriver({ code });
    await driver.turn();
    await driver.turn(fired(3));
    expect(summary((await driver.turn(completed(2, "late"))).events)).toEqual(["ActivityCompleted(7<2)"]);

    expect(outputOf(await driver.turn(completed(5, "b")))).toBe("b");
  });

  test("whose answer is in the same batch is neither dropped nor cancelled", async () => {
    const code: Code = async (ctx) => {
      await ctx.race([ctx.scheduleActivity("A"), ctx.scheduleTimer(1)]);
      await ctx.scheduleActivity("B");
    };
    const driver = new DoubtedDriver({ code });
    await driver.turn();
    const outcome = await driver.turn(fired(3), completed(2, "a moment late"));

    expect(summary(outcome.events)).toEqual(["TimerFired(4<3)", "ActivityCompleted(5<2)", "ActivityScheduled(6)"]);
    expect(outcome.cancelledActivities).toEqual([]);
  });
});

describe("what is done", () => {
  test("is never cancelled", async () => {
    const code: Code = async (ctx) => {
      const tasks = [ctx.scheduleActivity("A"), ctx.scheduleSubOrchestration("C")];
      await Promise.all(tasks);
      for (const task of tasks) task.cancel();
      return "done";
    };
    const driver = new DoubtedDriver({ code });
    await driver.turn();
    const outcome = await driver.turn(completed(2, 1), childCompleted(3, 1));

    expect(outcome).toMatchObject({ cancelledActivities: [], cancelledChildren: [] });
    expect(summary(outcome.events).at(-1)).toBe("OrchestrationCompleted(6)");
  });

  test("in history is not cancelled either", async () => {
    const outcome = await runTurn({
      code: async (ctx) => ctx.scheduleSubOrchestration("C"),
      history: historyOf(started, childScheduled("C", "sub::2"), [childDone("child_result"), 2]),
    });

    expect(outputOf(outcome)).toBe("child_result");
    expect(outcome.cancelledChildren).toEqual([]);
  });
});

describe("an explicit cancel", () => {
  test("in the turn of the schedule: both are recorded, and nothing is started", async () => {
    const outcome = await new DoubtedDriver({
      code: async (ctx) => {
        ctx.scheduleActivity("DroppedTask").cancel();
        ctx.scheduleSubOrchestration("C").cancel();
        ctx.scheduleTimer(1).cancel();
        ctx.waitForEvent("E").cancel();
        ctx.dequeueEvent("q").cancel();
        await ctx.scheduleTimer(2);
      },
    }).turn();

    expect(summary(outcome.events)).toEqual([
      "OrchestrationStarted(1)",
      "ActivityScheduled(2)",
      "SubOrchestrationScheduled(3)",
      "TimerCreated(4)",
      "ExternalSubscribed(5)",
      "ExternalSubscribedPersistent(6)",
      "TimerCreated(7)",
      "ActivityCancelRequested(8<2)",
      "SubOrchestrationCancelRequested(9<3)",
      "ExternalSubscribedCancelled(10<5)",
      "ExternalSubscribedPersistentCancelled(11<6)",
    ]);
    expect(outcome).toMatchObject({
      result: { kind: "waiting" },
      activities: [],
      children: [],
      timers: [{ id: 7 }],
      cancelledActivities: [2],
      cancelledChildren: [],
      cancelledTimers: [],
    });
  });

  test.each<[string, (ctx: OrchestrationContext) => DurableTask<unknown>[], string[], number[]]>([
    [
      "an activity",
      (ctx) => [ctx.scheduleActivity("DroppedTask")],
      ["ActivityScheduled(2)", "ActivityCancelRequested(3<2)"],
      [2],
    ],
    [
      "two activities and a timer",
      (ctx) => [ctx.scheduleActivity("A"), ctx.scheduleActivity("B"), ctx.scheduleTimer(1)],
      [
        "ActivityScheduled(2)",
        "ActivityScheduled(3)",
        "TimerCreated(4)",
        "ActivityCancelRequested(5<2)",
        "ActivityCancelRequested(6<3)",
      ],
      [2, 3],
    ],
    [
      "a wait for an event",
      (ctx) => [ctx.waitForEvent("E")],
      ["ExternalSubscribed(2)", "ExternalSubscribedCancelled(3<2)"],
      [],
    ],
    [
      "a child, which was never started and so is not told to stop",
      (ctx) => [ctx.scheduleSubOrchestration("C")],
      ["SubOrchestrationScheduled(2)", "SubOrchestrationCancelRequested(3<2)"],
      [],
    ],
  ])("in a turn that also ends leaves both events, and starts nothing: %s", async (_, schedule, events, activities) => {
    const outcome = await new DoubtedDriver({
      code: async (ctx) => {
        for (const task of schedule(ctx)) task.cancel();
        return "done";
      },
    }).turn();

    expect(outputOf(outcome)).toBe("done");
    expect(summary(outcome.events).slice(1, -1)).toEqual(events);
    for (const event of outcome.events.filter(({ sourceEventId }) => sourceEventId !== null)) {
      expect(event).toMatchObject({ reason: "dropped_future" });
    }
    expect(outcome).toMatchObject({
      activities: [],
      timers: [],
      children: [],
      cancelledActivities: activities,
      cancelledTimers: [],
      cancelledChildren: [],
    });
  });

  test("in a later turn reaches what runs, in the order of the schedules, whatever the order of the calls", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        const tasks = [
          ctx.scheduleActivity("A"),
          ctx.scheduleActivity("B"),
          ctx.scheduleTimer(1),
          ctx.scheduleTimer(9),
          ctx.scheduleSubOrchestration("C"),
        ];
        await tasks[2];
        for (const task of tasks.reverse()) task.cancel();
        await ctx.scheduleTimer(2);
      },
    });
    await driver.turn();
    const outcome = await driver.turn(fired(4));

    expect(summary(outcome.events)).toEqual([
      "TimerFired(7<4)",
      "TimerCreated(8)",
      "ActivityCancelRequested(9<2)",
      "ActivityCancelRequested(10<3)",
      "SubOrchestrationCancelRequested(11<6)",
    ]);
    expect(outcome).toMatchObject({ cancelledActivities: [2, 3], cancelledTimers: [5] });
    expect(outcome.cancelledChildren).toHaveLength(1);
  });

  test("makes whoever awaits the task, before or after, fail with TaskCancelledError", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        const task = ctx.scheduleActivity("A");
        const before = task.catch((error: Error) => `before: ${error.name}`);
        await ctx.scheduleTimer(1);
        task.cancel();
        return [await before, await task.catch((error: { code: string }) => `after: ${error.code}`)];
      },
    });
    await driver.turn();

    expect(outputOf(await driver.turn(fired(3)))).toEqual([
      "before: TaskCancelledError",
      "after: DUROXIDE_TASK_CANCELLED",
    ]);
  });

  test("of a task in a group fails the group, which drops the others", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        const task = ctx.scheduleActivity("A");
        const group = ctx.all([task, ctx.scheduleActivity("B")]);
        await ctx.scheduleTimer(1);
        task.cancel();
        return group.catch((error: Error) => error.name);
      },
    });
    await driver.turn();
    const outcome = await driver.turn(fired(4));

    expect(outputOf(outcome)).toBe("TaskCancelledError");
    expect(outcome.cancelledActivities).toEqual([2, 3]);
  });
});

describe("a drop that history records", () => {
  const breadcrumb = (reason: string): EventPayload => ({ type: "ActivityCancelRequested", reason });

  test("is not recorded nor sent again", async () => {
    const activity = await runTurn({ code: raceTimer, history: persisted([timerFired, 3], [activityDropped, 2]) });
    const child = await runTurn({
      code: async (ctx) => (await ctx.race([ctx.scheduleSubOrchestration("C"), ctx.scheduleTimer(1)])).index,
      history: historyOf(
        started,
        childScheduled("C", "sub::2"),
        timerCreated,
        [timerFired, 3],
        [{ type: "SubOrchestrationCancelRequested", reason: "dropped_future" }, 2],
      ),
    });

    expect(activity.cancelledActivities).toEqual([]);
    expect(summary(activity.events)).toEqual(["OrchestrationCompleted(6)"]);
    expect(child.cancelledChildren).toEqual([]);
    expect(summary(child.events)).toEqual(["OrchestrationCompleted(6)"]);
  });

  test("may be followed by the answer: the cancel lost the race", async () => {
    const history = persisted([timerFired, 3], [activityDropped, 2], [activityDone("late"), 2]);

    expect(outputOf(await runTurn({ code: raceTimer, history }))).toBe("timer_won");
  });

  test("may stand there twice", async () => {
    const history = persisted([timerFired, 3], [activityDropped, 2], [breadcrumb("orchestration_terminal_failed"), 2]);
    const child: EventPayload = { type: "SubOrchestrationCancelRequested", reason: "dropped_future" };
    const children = historyOf(
      started,
      childScheduled("C", "sub::2"),
      timerCreated,
      [timerFired, 3],
      [child, 2],
      [{ ...child, reason: "orchestration_terminal_failed" }, 2],
    );

    expect(outputOf(await runTurn({ code: raceTimer, history }))).toBe("timer_won");
    const outcome = await runTurn({
      code: async (ctx) => (await ctx.race([ctx.scheduleSubOrchestration("C"), ctx.scheduleTimer(1)])).index,
      history: children,
    });
    expect(outputOf(outcome)).toBe(1);
  });

  test("is made up for where it is missing", async () => {
    const outcome = await runTurn({ code: raceTimer, history: persisted([timerFired, 3]) });

    expect(outcome.cancelledActivities).toEqual([2]);
    expect(summary(outcome.events)).toEqual(["ActivityCancelRequested(5<2)", "OrchestrationCompleted(6)"]);
  });

  test("does not stand in the way of new drops", async () => {
    const outcome = await runTurn({
      code: async (ctx) => {
        await ctx.race([ctx.scheduleActivity("A"), ctx.scheduleTimer(1)]);
        ctx.scheduleActivity("B").cancel();
        return "done";
      },
      history: persisted([timerFired, 3], [activityDropped, 2]),
    });

    expect(outputOf(outcome)).toBe("done");
    expect(outcome.cancelledActivities).toEqual([6]);
  });

  test("must be repeated: code that keeps the activity is found out", async () => {
    const outcome = await runTurn({
      code: async (ctx) => {
        const activity = ctx.scheduleActivity("A");
        await ctx.scheduleTimer(1);
        return activity;
      },
      history: persisted([timerFired, 3], [activityDropped, 2], [activityDone("late"), 2]),
    });

    expectNondeterminism(outcome, "cancellation mismatch (activities)");
  });
});

describe("everything open", () => {
  test("is dropped when the function ends, well or badly", async () => {
    for (const ending of ["returns", "throws"]) {
      const driver = new DoubtedDriver({
        code: async (ctx) => {
          ctx.scheduleActivity("A");
          ctx.waitForEvent("E");
          ctx.dequeueEvent("q");
          ctx.scheduleSubOrchestration("C");
          ctx.scheduleTimer(9);
          await ctx.scheduleTimer(1);
          if (ending === "throws") throw new Error("on purpose");
        },
      });
      await driver.turn();
      const outcome = await driver.turn(fired(7));

      expect(summary(outcome.events)).toEqual([
        "TimerFired(8<7)",
        "ActivityCancelRequested(9<2)",
        "SubOrchestrationCancelRequested(10<5)",
        "ExternalSubscribedCancelled(11<3)",
        "ExternalSubscribedPersistentCancelled(12<4)",
        ending === "throws" ? "OrchestrationFailed(13)" : "OrchestrationCompleted(13)",
      ]);
      expect(outcome).toMatchObject({ cancelledActivities: [2], cancelledTimers: [6] });
      expect(outcome.cancelledChildren).toHaveLength(1);
    }
  });

  test("stays open while the function waits, awaited or not", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        ctx.scheduleActivity("forgotten");
        await ctx.scheduleTimer(1);
        await ctx.scheduleTimer(1);
      },
    });
    await driver.turn();

    expect(await driver.turn(fired(3))).toMatchObject({ cancelledActivities: [], result: { kind: "waiting" } });
  });
});
