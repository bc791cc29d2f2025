// Whatever happens to the processes, what they have written goes on: no step is taken twice, nothing is begun again.

import { describe, expect, test } from "vitest";
import { activity, orchestration } from "../../src/define.js";
import type { Event } from "../../src/history/event.js";
import { mockActivity } from "../../src/testing/mock-activity.js";
import type { TestRuntime } from "../../src/testing/test-runtime.js";
import { eventsOf } from "./events-of.js";
import { onEveryStore } from "./stores.js";

const step = activity<string, string>("Step");
const fourSteps = orchestration("FourSteps", async (ctx) => {
  const before = [await ctx.scheduleActivity(step, "1"), await ctx.scheduleActivity(step, "2")];
  await ctx.waitForEvent("Resume");
  const after = [await ctx.scheduleActivity(step, "3"), await ctx.scheduleActivity(step, "4")];
  return [...before, ...after].join("");
});

const stepsIn = (history: readonly Event[]) => eventsOf(history, "ActivityScheduled").map(({ input }) => input);

onEveryStore((store) => {
  describe("an orchestration between two steps", () => {
    test.each([
      ["shut down", (runtime: TestRuntime) => runtime.shutdown()],
      ["killed", (runtime: TestRuntime) => runtime.kill()],
    ])("goes on in the next process when its own is %s, and takes each step once", async (_how, end) => {
      await using world = await store.world();
      const taken = mockActivity(step, (_ctx, name) => name);
      const runtime = await world.start({ orchestrations: [fourSteps], activities: [taken] });
      const handle = await world.client.start(fourSteps, { instanceId: "f" });
      await world.rest();
      expect((await world.eventTypes("f")).at(-1)).toBe("ExternalSubscribed");
      expect(stepsIn(await world.history("f"))).toEqual(['"1"', '"2"']);

      await end(runtime);
      await runtime.restart();
      await world.client.start(fourSteps, { instanceId: "f" });
      await world.advance("1h");
      expect(taken.calls.map(({ input }) => input)).toEqual(["1", "2"]);
      await world.client.raiseEvent("f", "Resume");

      expect(await world.settle(handle.result())).toBe("1234");
      expect(stepsIn(await world.history("f"))).toEqual(['"1"', '"2"', '"3"', '"4"']);
      expect(taken.calls.map(({ input }) => input)).toEqual(["1", "2", "3", "4"]);
      expect(eventsOf(await world.history("f"), "OrchestrationStarted")).toHaveLength(1);
    });

    test("is unknown to another store: under the same id everything begins afresh there", async () => {
      const taken = mockActivity(step, (_ctx, name) => name);
      const start = { orchestrations: [fourSteps], activities: [taken] };
      await using before = await store.world();
      await before.start(start);
      await before.client.start(fourSteps, { instanceId: "f" });
      await before.rest();
      await using after = await store.world();
      await after.start(start);
      expect(await after.client.getStatus("f")).toEqual({ status: "NotFound" });

      const handle = await after.client.start(fourSteps, { instanceId: "f" });
      await after.rest();
      await after.client.raiseEvent("f", "Resume");
      expect(await after.settle(handle.result())).toBe("1234");
      expect(taken.calls.map(({ input }) => input)).toEqual(["1", "2", "1", "2", "3", "4"]);
      expect(await before.client.getStatus("f")).toMatchObject({ status: "Running" });
    });
  });

  describe("orchestrations of many shapes", () => {
    const upper = activity("Upper", (_ctx, text: string) => text.toUpperCase());
    const add = activity("Add", (_ctx, [a, b]: readonly [number, number]) => a + b);

    const activityThenTimer = orchestration("ActivityThenTimer", async (ctx, id: string) => {
      await ctx.scheduleActivity(upper, id);
      await ctx.scheduleTimer("1h");
      return `done:${id}`;
    });
    const oneActivity = orchestration("OneActivity", async (ctx, text: string) => {
      return `upper:${await ctx.scheduleActivity(upper, text)}`;
    });
    const eventWait = orchestration("EventWait", async (ctx) => `acked:${await ctx.waitForEvent<string>("Ack")}`);
    const sum = orchestration("Sum", async (ctx) => `sum=${await ctx.scheduleActivity(add, [2, 3])}`);
    const twoTimers = orchestration("TwoTimers", async (ctx, name: string) => {
      await ctx.scheduleTimer("30m");
      await ctx.scheduleTimer("30m");
      return `twodone:${name}`;
    });
    const start = {
      orchestrations: [activityThenTimer, oneActivity, eventWait, sum, twoTimers],
      activities: [upper, add],
    };

    test.each([
      ["shut down", (runtime: TestRuntime) => runtime.shutdown()],
      ["killed", (runtime: TestRuntime) => runtime.kill()],
    ])("all go on when the process is %s half-way, without being started again", async (_how, end) => {
      await using world = await store.world();
      const noWorkers = { ...start, workerConcurrency: 0 }; // The activities are half-way: scheduled, not run.
      const runtime = await world.start(noWorkers);
      await world.client.start(activityThenTimer, { instanceId: "i1", input: "i1" });
      await world.client.start(oneActivity, { instanceId: "i2", input: "hi" });
      await world.client.start(eventWait, { instanceId: "i3" });
      await world.client.start(sum, { instanceId: "i4" });
      await world.client.start(twoTimers, { instanceId: "i5", input: "z" });
      await world.advance("40m");
      expect(await world.eventTypes("i5")).toEqual([
        "OrchestrationStarted",
        "TimerCreated",
        "TimerFired",
        "TimerCreated",
      ]);

      await end(runtime);
      await world.client.raiseEvent("i3", "Ack", "evt");
      await world.advance("1d");
      for (const id of ["i1", "i2", "i3", "i4", "i5"]) {
        expect(await world.client.getStatus(id)).toMatchObject({ status: "Running" });
      }
      await runtime.restart({ workerConcurrency: 4 });

      const outputs = { i1: "done:i1", i2: "upper:HI", i3: "acked:evt", i4: "sum=5", i5: "twodone:z" };
      for (const [id, output] of Object.entries(outputs)) {
        expect(await world.ending(id)).toEqual({ status: "Completed", output: JSON.stringify(output) });
        expect(eventsOf(await world.history(id), "OrchestrationStarted")).toHaveLength(1);
      }
    });
  });
});
