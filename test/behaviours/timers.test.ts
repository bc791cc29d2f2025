// Durable timers: when they fire, whatever happens meanwhile to those who wait. R§4.4, R§2.9.

import { describe, expect, test } from "vitest";
import { sleep } from "../../src/clock.js";
import { activity, orchestration } from "../../src/define.js";
import { mockActivity } from "../../src/testing/mock-activity.js";
import type { TestWorld } from "../../src/testing/test-world.js";
import { eventsOf } from "./events-of.js";
import { onEveryStore } from "./stores.js";

const done = activity("Done", () => "done");

/** The scheduling events of the timers that have fired, in the order in which they did. */
async function firedTimers(world: TestWorld, instanceId: string): Promise<(number | null)[]> {
  return eventsOf(await world.history(instanceId), "TimerFired").map(({ sourceEventId }) => sourceEventId);
}

onEveryStore((store) => {
  describe("a timer", () => {
    test.each([0, 50])("fires when its %s ms are over, and not before", async (delayMs) => {
      await using world = await store.world();
      const waits = orchestration("Waits", async (ctx) => {
        await ctx.scheduleTimer(delayMs);
        return "done";
      });
      await world.start({ orchestrations: [waits] });
      const startMs = world.clock.now();

      expect(await world.run(waits, { instanceId: "w" })).toBe("done");
      expect(world.clock.now()).toBe(startMs + delayMs);
      expect(await world.history("w")).toMatchObject([
        { type: "OrchestrationStarted" },
        { type: "TimerCreated", fireAtMs: startMs + delayMs },
        { type: "TimerFired", sourceEventId: 2, fireAtMs: startMs + delayMs, timestampMs: startMs + delayMs },
        { type: "OrchestrationCompleted", output: '"done"' },
      ]);
    });

    test("that has fired before it is awaited is no obstacle", async () => {
      await using world = await store.world();
      const waits = orchestration("Waits", async (ctx) => {
        for (const timer of [100, 50, 75].map((ms) => ctx.scheduleTimer(ms))) await timer;
        return "all fired";
      });
      await world.start({ orchestrations: [waits] });
      const startMs = world.clock.now();

      expect(await world.run(waits, { instanceId: "w" })).toBe("all fired");
      expect(world.clock.now()).toBe(startMs + 100);
      expect(await firedTimers(world, "w")).toEqual([3, 4, 2]);
    });

    test("runs beside an activity, and both can be awaited", async () => {
      await using world = await store.world();
      const slow = activity("Slow", async () => {
        await sleep(world.clock, 20);
        return "activity done";
      });
      const both = orchestration("Both", async (ctx) => {
        const timer = ctx.scheduleTimer(50);
        const result = ctx.scheduleActivity(slow);
        await timer;
        return `timer fired, ${await result}`;
      });
      await world.start({ orchestrations: [both], activities: [slow] });
      const startMs = world.clock.now();

      expect(await world.run(both)).toBe("timer fired, activity done");
      expect(world.clock.now()).toBe(startMs + 50);
    });

    test("counts from the moment at which it is scheduled, not from the timer before", async () => {
      await using world = await store.world();
      const takes = activity("Takes", async (_ctx, ms: number) => {
        await sleep(world.clock, ms);
        return ms;
      });
      const deadline = orchestration("Deadline", async (ctx) => {
        await ctx.scheduleTimer(100);
        await ctx.scheduleActivity(takes, 2_000);
        const { winner } = await ctx.race({
          done: ctx.scheduleActivity(takes, 100),
          timeout: ctx.scheduleTimer(1_000),
        });
        return winner;
      });
      await world.start({ orchestrations: [deadline], activities: [takes] });
      const startMs = world.clock.now();

      expect(await world.run(deadline, { instanceId: "d" })).toBe("done");
      expect(world.clock.now()).toBe(startMs + 2_200);
      const timers = eventsOf(await world.history("d"), "TimerCreated").map(({ fireAtMs }) => fireAtMs - startMs);
      expect(timers).toEqual([100, 3_100]);
    });
  });

  describe("after a crash, a timer", () => {
    const thenDone = orchestration("ThenDone", async (ctx) => {
      await ctx.scheduleTimer(500);
      return `Timer fired, then: ${await ctx.scheduleActivity(done)}`;
    });

    test.each([
      ["fires at its time where the runtime is back before", 200, 500],
      ["fires at once where its time has passed meanwhile", 10_000, 10_000],
    ])("%s", async (_what, backAfterMs, firesAfterMs) => {
      await using world = await store.world();
      const runtime = await world.start({ orchestrations: [thenDone], activities: [done] });
      const startMs = world.clock.now();
      const handle = await world.client.start(thenDone, { instanceId: "t" });
      await world.advance(100);
      runtime.kill();
      await world.advance(backAfterMs - 100);
      await runtime.restart();

      expect(await world.settle(handle.result())).toBe("Timer fired, then: done");
      expect(world.clock.now()).toBe(startMs + firesAfterMs);
      expect(eventsOf(await world.history("t"), "TimerFired")).toMatchObject([
        { sourceEventId: 2, fireAtMs: startMs + 500, timestampMs: startMs + firesAfterMs },
      ]);
    });

    test.each(["before-turn-commit", "after-turn-commit"] as const)(
      "that had fired does not fire again: killed %s",
      async (point) => {
        await using world = await store.world();
        const runtime = await world.start({ orchestrations: [thenDone], activities: [done] });
        const crashed = runtime.crashAt(point, { nth: 2 });
        const handle = await world.client.start(thenDone, { instanceId: "t" });
        await world.settle(crashed);
        await runtime.restart();

        expect(await world.settle(handle.result())).toBe("Timer fired, then: done");
        expect(await world.eventTypes("t")).toEqual([
          "OrchestrationStarted",
          "TimerCreated",
          "TimerFired",
          "ActivityScheduled",
          "ActivityCompleted",
          "OrchestrationCompleted",
        ]);
      },
    );

    test("among several fires as if nothing had happened", async () => {
      await using world = await store.world();
      const several = orchestration("Several", async (ctx) => {
        await ctx.all([ctx.scheduleTimer(150), ctx.scheduleTimer(30), ctx.scheduleTimer(100)]);
        return "all-timers-fired";
      });
      const runtime = await world.start({ orchestrations: [several] });
      const startMs = world.clock.now();
      const handle = await world.client.start(several, { instanceId: "s" });
      await world.advance(50);
      expect(await firedTimers(world, "s")).toEqual([3]);
      await runtime.restart();

      expect(await world.settle(handle.result())).toBe("all-timers-fired");
      expect(world.clock.now()).toBe(startMs + 150);
      expect(await firedTimers(world, "s")).toEqual([3, 4, 2]);
    });
  });

  describe("between two equal calls of one activity, a timer", () => {
    test.each(["shutdown", "kill"] as const)("keeps them apart over a restart after a %s", async (end) => {
      await using world = await store.world();
      let runs = 0;
      const task = mockActivity<string, string>("Task", () => {
        runs += 1;
        return `R${runs}`;
      });
      const twice = orchestration("Twice", async (ctx) => {
        const first = await ctx.scheduleActivity(task, "same");
        await ctx.scheduleTimer(1_000);
        return `${first},${await ctx.scheduleActivity(task, "same")}`;
      });
      const runtime = await world.start({ orchestrations: [twice], activities: [task] });
      const handle = await world.client.start(twice, { instanceId: "t" });
      await world.rest();
      expect(await world.eventTypes("t")).toEqual([
        "OrchestrationStarted",
        "ActivityScheduled",
        "ActivityCompleted",
        "TimerCreated",
      ]);
      await runtime[end]();
      await runtime.restart();

      expect(await world.settle(handle.result())).toBe("R1,R2");
      expect(task.calls.map(({ input, idempotencyKey }) => [input, idempotencyKey])).toEqual([
        ["same", "t:1:2"],
        ["same", "t:1:6"],
      ]);
    });
  });
});
