// An instance that is told to stop. Catalogue A6; R§2.8, R§2.9.

import { describe, expect, test } from "vitest";
import {
  type Code,
  cancel,
  completed,
  DoubtedDriver,
  Driver,
  fired,
  historyOf,
  INSTANCE,
  queued,
  runTurn,
  scheduled,
  started,
  summary,
} from "./drive.js";

const patient: Code = async (ctx) => ctx.scheduleActivity("A");

describe("a cancel request", () => {
  test("ends the instance as cancelled, with the reason, and gives the open activity up", async () => {
    const driver = new DoubtedDriver({ code: patient });
    await driver.turn();
    const outcome = await driver.turn(cancel("admin cancelled"));

    expect(outcome.result).toEqual({
      kind: "cancelled",
      reason: "admin cancelled",
      details: {
        category: "application",
        kind: { type: "Cancelled", reason: "admin cancelled" },
        message: "",
        retryable: false,
      },
    });
    expect(summary(outcome.events)).toEqual([
      "OrchestrationCancelRequested(3)",
      "ActivityCancelRequested(4<2)",
      "OrchestrationFailed(5)",
    ]);
    expect(outcome.events[1]).toMatchObject({ reason: "orchestration_terminal_failed" });
    expect(outcome.cancelledActivities).toEqual([2]);
  });

  test("in history wins over a function that would return", async () => {
    const outcome = await runTurn({
      code: async () => "done",
      history: historyOf(started, { type: "OrchestrationCancelRequested", reason: "admin cancelled" }),
    });

    expect(outcome.result).toMatchObject({ kind: "cancelled", reason: "admin cancelled" });
    expect(summary(outcome.events)).toEqual(["OrchestrationFailed(3)"]);
  });

  test("in the batch that lets the function return wins, in either order", async () => {
    for (const batch of [
      [cancel("stop"), completed(2, "ok")],
      [completed(2, "ok"), cancel("stop")],
    ]) {
      const driver = new DoubtedDriver({ code: patient });
      await driver.turn();

      expect((await driver.turn(...batch)).result).toMatchObject({ kind: "cancelled", reason: "stop" });
    }
  });

  test("wins over continue-as-new", async () => {
    const outcome = await new DoubtedDriver({ code: async (ctx) => ctx.continueAsNew(1) }).turn(cancel("stop"));

    expect(outcome.result.kind).toBe("cancelled");
    expect(outcome.events.at(-1)).toMatchObject({ type: "OrchestrationFailed" });
  });

  test("with the start lets code run to its first rest, and starts nothing of it", async () => {
    const outcome = await new DoubtedDriver({
      code: async (ctx) => {
        ctx.startOrchestration("Detached", { instanceId: "survivor" });
        await Promise.all([ctx.scheduleActivity("A"), ctx.scheduleTimer(1), ctx.scheduleSubOrchestration("C")]);
      },
    }).turn(cancel("too late"));

    expect(summary(outcome.events)).toEqual([
      "OrchestrationStarted(1)",
      "OrchestrationCancelRequested(2)",
      "OrchestrationChained(3)",
      "ActivityScheduled(4)",
      "TimerCreated(5)",
      "SubOrchestrationScheduled(6)",
      "ActivityCancelRequested(7<4)",
      "OrchestrationFailed(8)",
    ]);
    expect(outcome).toMatchObject({
      activities: [],
      timers: [],
      children: [],
      cancelledChildren: [],
      cancelledTimers: [],
    });
    expect(outcome.detached).toMatchObject([{ instance: "survivor" }]);
  });

  test("is kept once: the first reason sticks", async () => {
    const once = await runTurn({
      code: patient,
      history: historyOf(started, scheduled("A")),
      messages: [cancel("first"), cancel("second")],
    });
    const again = await runTurn({
      code: patient,
      history: historyOf(started, scheduled("A"), { type: "OrchestrationCancelRequested", reason: "first" }),
      messages: [cancel("second")],
    });

    const recordedTwice = await runTurn({
      code: patient,
      history: historyOf(
        started,
        { type: "OrchestrationCancelRequested", reason: "first" },
        { type: "OrchestrationCancelRequested", reason: "second" },
      ),
    });

    expect(recordedTwice.result).toMatchObject({ reason: "first" });
    expect(once.result).toMatchObject({ reason: "first" });
    expect(once.droppedMessages).toMatchObject([{ why: "cancel-repeated" }]);
    expect(again.result).toMatchObject({ reason: "first" });
    expect(again.droppedMessages).toMatchObject([{ why: "cancel-repeated" }]);
    expect(summary(again.events)).toEqual(["ActivityCancelRequested(4<2)", "OrchestrationFailed(5)"]);
  });

  test("may be empty", async () => {
    const outcome = await runTurn({
      code: patient,
      history: historyOf(started, scheduled("A")),
      messages: [cancel("")],
    });

    expect(outcome.result).toMatchObject({ kind: "cancelled", reason: "" });
  });

  test("reaches the open children, once each, and removes the open timers", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        const dropped = ctx.scheduleSubOrchestration("Dropped");
        const tasks = [ctx.scheduleSubOrchestration("C"), ctx.scheduleTimer(1), ctx.scheduleSubOrchestration("D")];
        await tasks[1];
        dropped.cancel();
        await Promise.all([...tasks, ctx.scheduleTimer(2)]);
      },
    });
    await driver.turn();
    await driver.turn(fired(4));
    const outcome = await driver.turn(cancel("stop"));

    expect(outcome.cancelledChildren).toEqual([
      { instance: `${INSTANCE}::sub::3`, reason: "parent canceled" },
      { instance: `${INSTANCE}::sub::5`, reason: "parent canceled" },
    ]);
    expect(outcome.cancelledTimers).toEqual([7]);
  });

  test("leaves a breadcrumb for every open wait, before those of activities", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) =>
        Promise.all([ctx.dequeueEvent("q"), ctx.scheduleActivity("A"), ctx.waitForEvent("E"), ctx.waitForEvent("F")]),
    });
    await driver.turn();
    const outcome = await driver.turn(cancel("stop"));

    expect(summary(outcome.events)).toEqual([
      "OrchestrationCancelRequested(6)",
      "ExternalSubscribedCancelled(7<4)",
      "ExternalSubscribedCancelled(8<5)",
      "ExternalSubscribedPersistentCancelled(9<2)",
      "ActivityCancelRequested(10<3)",
      "OrchestrationFailed(11)",
    ]);
    expect(outcome.events[1]).toMatchObject({ reason: "orchestration_terminal" });
  });

  test("does not repeat what earlier turns gave up already", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        await ctx.race([ctx.scheduleActivity("A"), ctx.scheduleTimer(1), ctx.scheduleTimer(2), ctx.dequeueEvent("q")]);
        await ctx.waitForEvent("E");
      },
    });
    await driver.turn();
    await driver.turn(fired(3));
    const outcome = await driver.turn(cancel("stop"), queued("q", 1));

    expect(summary(outcome.events)).toEqual([
      "OrchestrationCancelRequested(10)",
      "ExternalEventPersistent(11)",
      "ExternalSubscribedCancelled(12<7)",
      "OrchestrationFailed(13)",
    ]);
    expect(outcome).toMatchObject({ cancelledActivities: [], cancelledTimers: [] });
  });
});

test("an instance that has ended takes no further turn", async () => {
  const driver = new Driver({ code: patient });
  await driver.turn();
  await driver.turn(cancel("stop"));

  expect(await driver.turn(completed(2, "late"), cancel("again"))).toMatchObject({
    result: { kind: "waiting" },
    events: [],
    cancelledActivities: [],
  });
});
