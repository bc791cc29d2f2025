// Branches: async functions inside an orchestration, put together by all and race. R§3.12, R§3.15.
//
// One orchestration slot: nothing here needs two turns at once.

import { describe, expect, test } from "vitest";
import { sleep } from "../../src/clock.js";
import { activity, type OrchestrationDefinition, orchestration } from "../../src/define.js";
import { mockActivity } from "../../src/testing/mock-activity.js";
import type { TestWorld } from "../../src/testing/test-world.js";
import { eventsOf } from "./events-of.js";
import { onEveryStore } from "./stores.js";

const step = activity("Step", (_ctx, name: string) => `step:${name}`);
const check = activity("Check", (_ctx, name: string) => name.startsWith("B"));
/** Takes so many virtual milliseconds. */
const slow = activity<{ name: string; ms: number }, string>("Slow");

async function startRuntime(world: TestWorld, ...orchestrations: OrchestrationDefinition[]) {
  const slowly = mockActivity(slow, async (_ctx, { name, ms }) => {
    await sleep(world.clock, ms);
    return name;
  });
  await world.start({
    orchestrations,
    activities: [step, check, slowly],
    orchestrationConcurrency: 1,
  });
  return slowly;
}

onEveryStore((store) => {
  describe("branches that are joined", () => {
    test("run side by side, each with loops, conditions and timers of its own", async () => {
      await using world = await store.world();
      const joins = orchestration("Joins", async (ctx) =>
        ctx.all({
          A: async () => {
            const first = await ctx.scheduleActivity(step, "A1");
            return first.endsWith("A1") ? [first, await ctx.scheduleActivity(step, "A2")] : [first];
          },
          B: async () => {
            const results: (string | boolean)[] = [await ctx.scheduleActivity(check, "B1")];
            for (const name of ["B2", "B3"]) results.push(await ctx.scheduleActivity(step, name));
            return results;
          },
          C: async () => {
            await ctx.scheduleTimer("10ms");
            return ["timer", await ctx.scheduleActivity(step, "C1")];
          },
        }),
      );
      await startRuntime(world, joins);

      expect(await world.run(joins, { instanceId: "j" })).toEqual({
        A: ["step:A1", "step:A2"],
        B: [true, "step:B2", "step:B3"],
        C: ["timer", "step:C1"],
      });
      const scheduled = eventsOf(await world.history("j"), "ActivityScheduled").map(({ input }) => JSON.parse(input));
      expect(scheduled.slice(0, 2)).toEqual(["A1", "B1"]);
      expect(scheduled.sort()).toEqual(["A1", "A2", "B1", "B2", "B3", "C1"]);
    });

    test("may each call a child", async () => {
      await using world = await store.world();
      const child = orchestration("Child", async (ctx, name: string) => ctx.scheduleActivity(step, name));
      const joins = orchestration("Joins", async (ctx) =>
        ctx.all([
          async () => ctx.scheduleSubOrchestration(child, "one"),
          async () => [await ctx.scheduleSubOrchestration(child, "two"), await ctx.scheduleActivity(step, "after")],
          async () => {
            await ctx.scheduleTimer("5ms");
            return ctx.scheduleSubOrchestration(child, "three");
          },
        ]),
      );
      await startRuntime(world, joins, child);

      expect(await world.run(joins, { instanceId: "j" })).toEqual([
        "step:one",
        ["step:two", "step:after"],
        "step:three",
      ]);
      expect(eventsOf(await world.history("j"), "SubOrchestrationCompleted").length).toBe(3);
    });

    test("may go down several generations", async () => {
      await using world = await store.world();
      const grandchild = orchestration("Grandchild", async (ctx, name: string) => ctx.scheduleActivity(step, name));
      const child = orchestration("Child", async (ctx, name: string) =>
        ctx.all([
          ctx.scheduleSubOrchestration(grandchild, `${name}.grandchild`),
          ctx.scheduleActivity(step, `${name}.child`),
        ]),
      );
      const parent = orchestration("Parent", async (ctx) =>
        ctx.all([
          async () => ctx.scheduleSubOrchestration(child, "left"),
          async () => {
            await ctx.scheduleTimer("5ms");
            return ctx.scheduleSubOrchestration(child, "right");
          },
        ]),
      );
      await startRuntime(world, parent, child, grandchild);

      expect(await world.run(parent, { instanceId: "p" })).toEqual([
        ["step:left.grandchild", "step:left.child"],
        ["step:right.grandchild", "step:right.child"],
      ]);
      expect((await world.client.getInstanceTree("p")).allIds.length).toBe(5);
    });
  });

  describe("branches one after the other", () => {
    test("hand their results on", async () => {
      await using world = await store.world();
      const chain = orchestration("Chain", async (ctx) => {
        const fetched = await ctx.all([async () => ctx.scheduleActivity(step, "fetch")]);
        const processed = await ctx.all([async () => `processed:${await ctx.scheduleActivity(step, fetched[0])}`]);
        const [last] = await ctx.all([async () => `final:${await ctx.scheduleActivity(step, processed[0])}`]);
        return last;
      });
      await startRuntime(world, chain);

      expect(await world.run(chain)).toBe("final:step:processed:step:step:fetch");
    });
  });

  describe("branches that race", () => {
    test("are won by the faster one, and the other schedules nothing more", async () => {
      await using world = await store.world();
      const races = orchestration("Races", async (ctx) => {
        const two = (name: string, ms: number) => async () => [
          await ctx.scheduleActivity(slow, { name: `${name}:1`, ms }),
          await ctx.scheduleActivity(slow, { name: `${name}:2`, ms }),
        ];
        return ctx.race([two("fast", 10), two("slow", 200)]);
      });
      const slowly = await startRuntime(world, races);

      expect(await world.run(races, { instanceId: "r" })).toEqual({ index: 0, value: ["fast:1", "fast:2"] });
      await world.advance("1m");
      expect(slowly.calls.map(({ input }) => input.name)).toEqual(["fast:1", "slow:1", "fast:2"]);
      expect(eventsOf(await world.history("r"), "ActivityCancelRequested")).toMatchObject([{ sourceEventId: 3 }]);
    });

    test("race with single tasks too", async () => {
      await using world = await store.world();
      const races = orchestration("Races", async (ctx) =>
        ctx.race([
          ctx.scheduleActivity(slow, { name: "quick:single", ms: 5 }),
          async () => [
            await ctx.scheduleActivity(slow, { name: "block:1", ms: 20 }),
            await ctx.scheduleActivity(slow, { name: "block:2", ms: 20 }),
          ],
        ]),
      );
      const slowly = await startRuntime(world, races);

      expect(await world.run(races)).toEqual({ index: 0, value: "quick:single" });
      await world.advance("1m");
      expect(slowly.calls.map(({ input }) => input.name)).toEqual(["quick:single", "block:1"]);
    });

    test("by their timers take as long as the shortest", async () => {
      await using world = await store.world();
      const races = orchestration("Races", async (ctx) => {
        const branch = (ms: number, name: string) => async () => {
          await ctx.scheduleTimer(ms);
          return `${name}:${await ctx.scheduleActivity(step, name)}`;
        };
        return ctx.race([branch(10, "A"), branch(500, "B"), branch(100, "C")]);
      });
      await startRuntime(world, races);
      const startMs = world.clock.now();

      expect(await world.run(races, { instanceId: "r" })).toEqual({ index: 0, value: "A:step:A" });
      expect(world.clock.now() - startMs).toBe(10);
      await world.advance("1m");
      expect(eventsOf(await world.history("r"), "TimerFired").length).toBe(1);
      expect(eventsOf(await world.history("r"), "ActivityScheduled").length).toBe(1);
    });

    test("may join within", async () => {
      await using world = await store.world();
      const races = orchestration("Races", async (ctx) =>
        ctx.race([
          async () => ctx.all(["1", "2", "3"].map((name) => ctx.scheduleActivity(step, name))),
          async () => {
            await ctx.scheduleTimer("2s");
            return "timeout";
          },
        ]),
      );
      await startRuntime(world, races);

      expect(await world.run(races)).toEqual({ index: 0, value: ["step:1", "step:2", "step:3"] });
    });
  });

  describe("a branch with a child", () => {
    const fastChild = orchestration("FastChild", async (ctx, name: string) => ctx.scheduleActivity(step, name));
    const slowChild = orchestration("SlowChild", async (ctx) => {
      await ctx.scheduleTimer("5s");
      return "slow";
    });

    test("that wins a race has run its child once", async () => {
      await using world = await store.world();
      const races = orchestration("Races", async (ctx) =>
        ctx.race([
          async () => [
            await ctx.scheduleSubOrchestration(fastChild, "child"),
            await ctx.scheduleActivity(step, "after"),
          ],
          async () => [
            await ctx.scheduleActivity(slow, { name: "slow:1", ms: 500 }),
            await ctx.scheduleActivity(slow, { name: "slow:2", ms: 500 }),
          ],
        ]),
      );
      await startRuntime(world, races, fastChild);

      expect(await world.run(races)).toEqual({ index: 0, value: ["step:child", "step:after"] });
      const started = world.factsOf("orchestration-started").map(({ ref }) => ref.orchestrationName);
      expect(started).toEqual(["Races", "FastChild"]);
    });

    test("that loses a race has its child cancelled", async () => {
      await using world = await store.world();
      const races = orchestration("Races", async (ctx) =>
        ctx.race([
          async () => `child:${await ctx.scheduleSubOrchestration(slowChild)}`,
          async () => ctx.scheduleActivity(slow, { name: "quick", ms: 20 }),
        ]),
      );
      await startRuntime(world, races, slowChild);

      expect(await world.run(races, { instanceId: "r" })).toEqual({ index: 1, value: "quick" });
      await world.advance("1m");
      expect(await world.client.getStatus("r::sub::2")).toMatchObject({
        status: "Failed",
        error: "canceled: parent dropped sub-orchestration future",
      });
    });

    test("that is fast beats one that is slow and a timeout, and only the slow child is cancelled", async () => {
      await using world = await store.world();
      const races = orchestration("Races", async (ctx) =>
        ctx.race([
          async () => `fast:${await ctx.scheduleSubOrchestration(fastChild, "child")}`,
          async () => `slow:${await ctx.scheduleSubOrchestration(slowChild)}`,
          async () => {
            await ctx.scheduleTimer("2s");
            return "timeout";
          },
        ]),
      );
      await startRuntime(world, races, fastChild, slowChild);

      expect(await world.run(races, { instanceId: "r" })).toEqual({ index: 0, value: "fast:step:child" });
      await world.advance("1m");
      expect((await world.client.getStatus("r::sub::2")).status).toBe("Completed");
      expect((await world.client.getStatus("r::sub::3")).status).toBe("Failed");
    });
  });
});
