// A new execution: what code asks for in its first turn, and how it is recorded. Catalogue A1, A10, A12, A15, A16.

import { describe, expect, test } from "vitest";
import { orchestration } from "../../src/define.js";
import {
  type Code,
  completed,
  DoubtedDriver,
  Driver,
  eventOf,
  failureOf,
  INSTANCE,
  NOW,
  outputOf,
  runTurn,
  scheduled,
  started,
  summary,
} from "./drive.js";

describe("a first turn", () => {
  test("that returns at once completes, and starts nothing", async () => {
    const outcome = await new DoubtedDriver({ code: async () => "success" }).turn();

    expect(outputOf(outcome)).toBe("success");
    expect(summary(outcome.events)).toEqual(["OrchestrationStarted(1)", "OrchestrationCompleted(2)"]);
    expect(outcome).toMatchObject({ activities: [], timers: [], children: [], detached: [] });
  });

  test("that throws at once fails with the error's message", async () => {
    const outcome = await new DoubtedDriver({
      code: async () => {
        throw new Error("failure");
      },
    }).turn();

    expect(failureOf(outcome)).toEqual({
      category: "application",
      kind: { type: "OrchestrationFailed" },
      message: "failure",
      retryable: false,
    });
    expect(summary(outcome.events)).toEqual(["OrchestrationStarted(1)", "OrchestrationFailed(2)"]);
    expect(outcome).toMatchObject({ activities: [], timers: [], children: [], detached: [] });
  });

  test("writes the start, gets the input and runs the function once", async () => {
    const inputs: unknown[] = [];
    const driver = new Driver({
      code: async (_ctx, input) => {
        inputs.push(input);
      },
      input: '{"n":1}',
    });
    const outcome = await driver.turn();

    expect(inputs).toEqual([{ n: 1 }]);
    expect(outcome.events[0]).toEqual({
      eventId: 1,
      sourceEventId: null,
      instanceId: INSTANCE,
      executionId: 1,
      timestampMs: NOW + 1,
      duroxideVersion: "0.1.30",
      type: "OrchestrationStarted",
      name: "TestOrch",
      version: "1.0.0",
      input: '{"n":1}',
      parentInstance: null,
      parentId: null,
    });
    expect(driver.execution).toMatchObject({ eventCount: 2, lastEvent: { type: "OrchestrationCompleted" } });
  });

  test("tells code who it is", async () => {
    const outcome = await runTurn({
      code: async (ctx) => [ctx.instanceId, ctx.executionId, ctx.orchestrationName, ctx.orchestrationVersion],
      executionId: 3,
    });

    expect(outputOf(outcome)).toEqual([INSTANCE, 3, "TestOrch", "1.0.0"]);
  });

  test("knows nothing before it has run", () => {
    const { execution } = new Driver({ code: async () => 1 });

    expect(execution).toMatchObject({ instance: INSTANCE, lastEvent: null, eventCount: 0, isReplaying: false });
  });
});

describe("what code schedules", () => {
  test("an activity becomes one event and one thing to start, under the same id", async () => {
    const outcome = await new DoubtedDriver({ code: async (ctx) => ctx.scheduleActivity("Greet", "Alice") }).turn();

    expect(outcome.result).toEqual({ kind: "waiting" });
    expect(outcome.events[1]).toMatchObject({ eventId: 2, type: "ActivityScheduled", name: "Greet", input: '"Alice"' });
    expect(outcome.events).toHaveLength(2);
    expect(outcome.events[1]).not.toHaveProperty("tag");
    expect(outcome.events[1]).not.toHaveProperty("sessionId");
    expect(outcome.activities).toEqual([{ id: 2, name: "Greet", input: '"Alice"' }]);
  });

  test("an activity carries its session and its tag", async () => {
    const outcome = await new DoubtedDriver({
      code: async (ctx) => ctx.scheduleActivity("GpuWork", "data", { sessionId: "sess-1", tag: "gpu" }),
    }).turn();

    expect(outcome.events[1]).toMatchObject({ type: "ActivityScheduled", sessionId: "sess-1", tag: "gpu" });
    expect(outcome.activities).toEqual([{ id: 2, name: "GpuWork", input: '"data"', sessionId: "sess-1", tag: "gpu" }]);
  });

  test("a timer is due its delay after the time of the turn", async () => {
    const outcome = await new DoubtedDriver({ code: async (ctx) => ctx.scheduleTimer("10s") }).turn();

    expect(outcome.events[1]).toMatchObject({ type: "TimerCreated", fireAtMs: NOW + 1 + 10_000 });
    expect(outcome.timers).toEqual([{ id: 2, fireAtMs: NOW + 1 + 10_000 }]);
  });

  test("a timer of zero is durable like any other", async () => {
    const outcome = await new DoubtedDriver({ code: async (ctx) => ctx.scheduleTimer(0) }).turn();

    expect(outcome.result.kind).toBe("waiting");
    expect(outcome.timers).toEqual([{ id: 2, fireAtMs: NOW + 1 }]);
  });

  test("waits for events and messages are recorded and start nothing", async () => {
    const outcome = await new DoubtedDriver({
      code: async (ctx) => Promise.all([ctx.waitForEvent("Approval"), ctx.dequeueEvent("inbox")]),
    }).turn();

    expect(outcome.result).toEqual({ kind: "waiting" });
    expect(outcome.events.slice(1)).toMatchObject([
      { type: "ExternalSubscribed", name: "Approval" },
      { type: "ExternalSubscribedPersistent", name: "inbox" },
    ]);
    expect(outcome).toMatchObject({ activities: [], timers: [], children: [], detached: [] });
  });

  test("a child is started with its input, under an id made of its event's", async () => {
    const outcome = await new DoubtedDriver({
      code: async (ctx) => ctx.scheduleSubOrchestration("ChildOrch", "child-input"),
    }).turn();

    expect(outcome.result).toEqual({ kind: "waiting" });
    expect(outcome.events).toHaveLength(2);
    expect(outcome.events[1]).toMatchObject({
      type: "SubOrchestrationScheduled",
      name: "ChildOrch",
      instance: "sub::2",
      input: '"child-input"',
    });
    expect(outcome.children).toEqual([
      { id: 2, instance: `${INSTANCE}::sub::2`, name: "ChildOrch", input: '"child-input"', version: null },
    ]);
  });

  test("children that nobody named have ids of their own, in later executions too", async () => {
    const code: Code = async (ctx) =>
      Promise.all([ctx.scheduleSubOrchestration("C"), ctx.scheduleSubOrchestration("C")]);
    const first = await runTurn({ code });
    const second = await runTurn({ code, executionId: 2 });

    expect(first.children.map(({ instance }) => instance)).toEqual([`${INSTANCE}::sub::2`, `${INSTANCE}::sub::3`]);
    expect(second.children.map(({ instance }) => instance)).toEqual([`${INSTANCE}::sub::2_2`, `${INSTANCE}::sub::2_3`]);
  });

  test("a child keeps the id and the version that it was given", async () => {
    const child = orchestration({ name: "Child", version: "2.0.0" });
    const outcome = await new DoubtedDriver({
      code: async (ctx) =>
        Promise.all([
          ctx.scheduleSubOrchestration("Child", 1, { instanceId: "my-custom-instance", version: "3.1.0" }),
          ctx.scheduleSubOrchestration(child),
        ]),
    }).turn();

    expect(outcome.children).toMatchObject([
      { instance: "my-custom-instance", version: "3.1.0" },
      { instance: `${INSTANCE}::sub::3`, version: "2.0.0" },
    ]);
    expect(outcome.events[1]).toMatchObject({ instance: "my-custom-instance" });
  });

  test("a detached orchestration is recorded in full and started although its creator ends", async () => {
    const outcome = await new DoubtedDriver({
      code: async (ctx) => {
        ctx.startOrchestration("DetachedChild", {
          instanceId: "child-instance",
          input: "child-input",
          version: "2.0.0",
        });
        return "scheduled";
      },
    }).turn();

    expect(outputOf(outcome)).toBe("scheduled");
    expect(outcome.events[1]).toMatchObject({
      type: "OrchestrationChained",
      name: "DetachedChild",
      instance: "child-instance",
      input: '"child-input"',
    });
    expect(outcome.detached).toEqual([
      { instance: "child-instance", name: "DetachedChild", input: '"child-input"', version: "2.0.0" },
    ]);
  });

  test("is recorded in the order of the calls, not of the awaits", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        const a = ctx.scheduleActivity("A");
        ctx.setCustomStatus("two");
        const b = ctx.scheduleTimer(5);
        ctx.kv.set("k", 1);
        await b;
        await a;
      },
    });

    expect(summary((await driver.turn()).events)).toEqual([
      "OrchestrationStarted(1)",
      "ActivityScheduled(2)",
      "CustomStatusUpdated(3)",
      "TimerCreated(4)",
      "KeyValueSet(5)",
    ]);
  });
});

describe("a function that returns with work still open", () => {
  test("records it, gives it up and does not start it", async () => {
    const outcome = await new DoubtedDriver({
      code: async (ctx) => {
        for (const name of ["A", "B", "C"]) ctx.scheduleActivity(name);
        return "done";
      },
    }).turn();

    expect(outputOf(outcome)).toBe("done");
    expect(summary(outcome.events)).toEqual([
      "OrchestrationStarted(1)",
      "ActivityScheduled(2)",
      "ActivityScheduled(3)",
      "ActivityScheduled(4)",
      "ActivityCancelRequested(5<2)",
      "ActivityCancelRequested(6<3)",
      "ActivityCancelRequested(7<4)",
      "OrchestrationCompleted(8)",
    ]);
    expect(outcome).toMatchObject({ activities: [], cancelledActivities: [2, 3, 4] });
  });

  test("leaves an unawaited child recorded, never started, never cancelled by message", async () => {
    const outcome = await new DoubtedDriver({
      code: async (ctx) => {
        ctx.scheduleSubOrchestration("ChildOrch", "child-input");
        return "scheduled";
      },
    }).turn();

    expect(summary(outcome.events)).toEqual([
      "OrchestrationStarted(1)",
      "SubOrchestrationScheduled(2)",
      "SubOrchestrationCancelRequested(3<2)",
      "OrchestrationCompleted(4)",
    ]);
    expect(outcome).toMatchObject({ children: [], cancelledChildren: [] });
  });
});

describe("event ids", () => {
  test("go on after the highest one, over gaps", async () => {
    const code: Code = async (ctx) => {
      await ctx.scheduleActivity("A");
      await ctx.scheduleActivity("B");
    };
    const history = [eventOf(1, started), eventOf(5, scheduled("A"))];
    const outcome = await runTurn({ code, history, messages: [completed(5, 1)] });

    expect(summary(outcome.events)).toEqual(["ActivityCompleted(6<5)", "ActivityScheduled(7)"]);
    expect(outcome.activities).toMatchObject([{ id: 7, name: "B" }]);
  });
});
