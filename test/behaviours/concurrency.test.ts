// Instances that run at the same time know nothing of each other, and each of them can wait for many things at once.

import { describe, expect, test } from "vitest";
import { activity, type OrchestrationDefinition, orchestration } from "../../src/define.js";
import type { TestWorld } from "../../src/testing/test-world.js";
import { eventsOf } from "./events-of.js";
import { onEveryStore } from "./stores.js";

const add = activity("Add", (_ctx, [a, b]: readonly [number, number]) => a + b);
const upper = activity("Upper", (_ctx, text: string) => text.toUpperCase());
const increment = activity("Increment", (_ctx, n: number) => n + 1);

/** Starts all of them, sends each its event while it waits, and answers with what they returned. */
async function runTogether(
  world: TestWorld,
  instances: Readonly<Record<string, { of: OrchestrationDefinition<void, string>; event: string }>>,
): Promise<readonly string[]> {
  const entries = Object.entries(instances);
  const handles = await Promise.all(entries.map(([instanceId, { of }]) => world.client.start(of, { instanceId })));
  await world.rest();
  for (const [instanceId, { event }] of entries) await world.client.raiseEvent(instanceId, "Go", event);
  return world.settle(Promise.all(handles.map((handle) => handle.result())));
}

/** An activity, an event and a timer were answered, each once. */
async function expectAllAnswered(world: TestWorld, instance: string, activityId: number, event: string) {
  const history = await world.history(instance);
  expect(eventsOf(history, "ActivityCompleted").at(-1)).toMatchObject({ sourceEventId: activityId });
  expect(eventsOf(history, "ExternalEvent")).toMatchObject([{ name: "Go", data: JSON.stringify(event) }]);
  expect(eventsOf(history, "TimerFired")).toHaveLength(1);
}

onEveryStore((store) => {
  describe("two orchestrations at the same time", () => {
    test("with activities of their own get their own results, events and timers", async () => {
      await using world = await store.world();
      const o1 = orchestration("O1", async (ctx) => {
        const [sum, event] = await ctx.all([
          ctx.scheduleActivity(add, [2, 3]),
          ctx.waitForEvent<string>("Go"),
          ctx.scheduleTimer("1ms"),
        ]);
        return `o1:sum=${sum};evt=${event}`;
      });
      const o2 = orchestration("O2", async (ctx) => {
        const [up, event] = await ctx.all([
          ctx.scheduleActivity(upper, "hi"),
          ctx.waitForEvent<string>("Go"),
          ctx.scheduleTimer("1ms"),
        ]);
        return `o2:up=${up};evt=${event}`;
      });
      await world.start({ orchestrations: [o1, o2], activities: [add, upper] });

      const outputs = await runTogether(world, { one: { of: o1, event: "E1" }, two: { of: o2, event: "E2" } });
      expect(outputs).toEqual(["o1:sum=5;evt=E1", "o2:up=HI;evt=E2"]);
      await expectAllAnswered(world, "one", 2, "E1");
      await expectAllAnswered(world, "two", 2, "E2");
    });

    test("with the same activity under different ids get each its own result", async () => {
      await using world = await store.world();
      const o1 = orchestration("O1", async (ctx) => {
        const [a, event] = await ctx.all([
          ctx.scheduleActivity(increment, 10),
          ctx.waitForEvent<string>("Go"),
          ctx.scheduleTimer("1ms"),
        ]);
        return `o1:a=${a};evt=${event}`;
      });
      const o2 = orchestration("O2", async (ctx) => {
        await ctx.newGuid();
        const [a, event] = await ctx.all([
          ctx.scheduleActivity(increment, 20),
          ctx.waitForEvent<string>("Go"),
          ctx.scheduleTimer("1ms"),
        ]);
        return `o2:a=${a};evt=${event}`;
      });
      await world.start({ orchestrations: [o1, o2], activities: [increment] });

      const outputs = await runTogether(world, { one: { of: o1, event: "P1" }, two: { of: o2, event: "P2" } });
      expect(outputs).toEqual(["o1:a=11;evt=P1", "o2:a=21;evt=P2"]);
      await expectAllAnswered(world, "one", 2, "P1");
      await expectAllAnswered(world, "two", 4, "P2");
    });
  });

  describe("one orchestration", () => {
    test("waits for an activity, an event and a timer at once", async () => {
      await using world = await store.world();
      const o1 = orchestration("O1", async (ctx) => {
        const { a, event } = await ctx.all({
          a: ctx.scheduleActivity(increment, 10),
          event: ctx.waitForEvent<string>("Go"),
          timer: ctx.scheduleTimer("1ms"),
        });
        return `o1:a=${a};evt=${event}`;
      });
      await world.start({ orchestrations: [o1], activities: [increment] });

      expect(await runTogether(world, { one: { of: o1, event: "P1" } })).toEqual(["o1:a=11;evt=P1"]);
      await expectAllAnswered(world, "one", 2, "P1");
    });
  });
});
