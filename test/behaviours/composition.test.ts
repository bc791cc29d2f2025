// Durable tasks put together: all, race, then, and tasks that nobody awaits at first. R§3.12.

import { describe, expect, test } from "vitest";
import { sleep } from "../../src/clock.js";
import { activity, orchestration } from "../../src/define.js";
import type { OrchestrationContext } from "../../src/engine/orchestration-context.js";
import { mockActivity } from "../../src/testing/mock-activity.js";
import type { TestWorld } from "../../src/testing/test-world.js";
import { eventsOf } from "./events-of.js";
import { onEveryStore } from "./stores.js";

interface Pair {
  readonly a: number;
  readonly b: number;
}

const add = activity("Add", (_ctx, { a, b }: Pair) => ({ sum: a + b }));
const multiply = activity("Multiply", (_ctx, { a, b }: Pair) => ({ product: a * b }));
const divide = activity("Divide", (_ctx, { a, b }: Pair) => {
  if (b === 0) throw new Error("division by zero");
  return { quotient: a / b };
});

/** Answers with its input after so many milliseconds. */
const waitsFor = (world: TestWorld) =>
  mockActivity<{ name: string; ms: number }, string>("Wait", async (_ctx, { name, ms }) => {
    await sleep(world.clock, ms);
    return name;
  });
const wait = activity<{ name: string; ms: number }, string>("Wait");

onEveryStore((store) => {
  describe("a race between events that arrive in one batch", () => {
    const RACES: readonly [string, (ctx: OrchestrationContext) => Promise<{ winner: string; value: unknown }>][] = [
      ["two events", (ctx) => ctx.race({ A: ctx.waitForEvent("A"), B: ctx.waitForEvent("B") })],
      [
        "two events and a timer between them",
        (ctx) => ctx.race({ A: ctx.waitForEvent("A"), T: ctx.scheduleTimer("500ms"), B: ctx.waitForEvent("B") }),
      ],
    ];

    test.each(RACES)("is won by the first in history, not by the first argument: %s", async (_which, code) => {
      await using world = await store.world();
      const races = orchestration("Races", code);
      const runtime = await world.start({ orchestrations: [races] });
      const handle = await world.client.start(races, { instanceId: "r" });
      await world.advance("10ms");
      await runtime.shutdown({ graceMs: 0 });
      await world.client.raiseEvent("r", "B", "vb");
      await world.client.raiseEvent("r", "A", "va");
      await runtime.restart();

      expect(await world.settle(handle.result())).toEqual({ winner: "B", value: "vb" });
      expect(world.factsOf("turn-committed").at(-1)).toMatchObject({ messages: 2 });
      const history = await world.history("r");
      expect(eventsOf(history, "ExternalEvent").map(({ name }) => name)).toEqual(["B", "A"]);
      expect(history.at(-1)).toMatchObject({ type: "OrchestrationCompleted" });
    });
  });

  describe("a race", () => {
    test("that is over does not keep code from scheduling more", async () => {
      await using world = await store.world();
      const goesOn = orchestration("GoesOn", async (ctx) => {
        const first = await ctx.race([ctx.scheduleActivity(add, { a: 1, b: 2 }), ctx.scheduleTimer("1s")]);
        const second = await ctx.scheduleActivity(multiply, { a: 3, b: 4 });
        return [first, second];
      });
      await world.start({ orchestrations: [goesOn], activities: [add, multiply] });
      const startMs = world.clock.now();

      expect(await world.run(goesOn, { instanceId: "g" })).toEqual([{ index: 0, value: { sum: 3 } }, { product: 12 }]);
      expect(world.clock.now()).toBe(startMs);
      expect(await world.eventTypes("g")).toEqual([
        "OrchestrationStarted",
        "ActivityScheduled",
        "TimerCreated",
        "ActivityCompleted",
        "ActivityScheduled",
        "ActivityCompleted",
        "OrchestrationCompleted",
      ]);
    });

    test.each([
      [200, "timeout"],
      [5, "done"],
    ])("between an activity of %i ms and a timer of 10 ms is won by %s", async (ms, winner) => {
      await using world = await store.world();
      const limited = orchestration("Limited", async (ctx) => {
        const first = await ctx.race({
          done: ctx.scheduleActivity(wait, { name: "slow", ms }),
          timeout: ctx.scheduleTimer("10ms"),
        });
        return first.winner;
      });
      await world.start({ orchestrations: [limited], activities: [waitsFor(world)] });

      expect(await world.run(limited)).toBe(winner);
    });
  });

  describe("all", () => {
    test("gives the results in the order of the arguments, whatever came first", async () => {
      await using world = await store.world();
      const joins = orchestration("Joins", async (ctx) =>
        ctx.all([
          ctx.scheduleActivity(wait, { name: "A", ms: 100 }),
          ctx.scheduleActivity(wait, { name: "B", ms: 10 }),
        ]),
      );
      await world.start({ orchestrations: [joins], activities: [waitsFor(world)] });

      expect(await world.run(joins, { instanceId: "j" })).toEqual(["A", "B"]);
      expect(eventsOf(await world.history("j"), "ActivityCompleted").map(({ result }) => result)).toEqual([
        '"B"',
        '"A"',
      ]);
    });

    test("of typed activities sums what they answered", async () => {
      await using world = await store.world();
      const fanOut = orchestration("FanOut", async (ctx, pairs: Pair[]) => {
        const results = await ctx.all(pairs.map((pair) => ctx.scheduleActivity(add, pair)));
        return results.reduce((total, { sum }) => total + sum, 0);
      });
      await world.start({ orchestrations: [fanOut], activities: [add] });
      const input = [
        { a: 1, b: 2 },
        { a: 10, b: 20 },
        { a: 100, b: 200 },
      ];

      expect(await world.run(fanOut, { input })).toBe(333);
    });

    test("of activities of several types keeps the type of each", async () => {
      await using world = await store.world();
      const both = orchestration("Both", async (ctx) => {
        const [{ sum }, { product }] = await ctx.all([
          ctx.scheduleActivity(add, { a: 3, b: 5 }),
          ctx.scheduleActivity(multiply, { a: 3, b: 5 }),
        ]);
        return `sum=${sum},product=${product}`;
      });
      await world.start({ orchestrations: [both], activities: [add, multiply] });

      expect(await world.run(both)).toBe("sum=8,product=15");
    });

    test("of what settles, well or badly, leaves every failure to the code", async () => {
      await using world = await store.world();
      const settles = orchestration("Settles", async (ctx) => {
        const [good, bad] = await Promise.allSettled([
          ctx.scheduleActivity(divide, { a: 10, b: 2 }),
          ctx.scheduleActivity(divide, { a: 1, b: 0 }),
        ]);
        return [
          good.status === "fulfilled" && `ok=${good.value.quotient}`,
          bad.status === "rejected" && `err=${(bad.reason as Error).message}`,
        ];
      });
      await world.start({ orchestrations: [settles], activities: [divide] });

      expect(await world.run(settles)).toEqual(["ok=5", "err=division by zero"]);
    });
  });

  describe("a result that is transformed while it is pending", () => {
    test("is awaited transformed", async () => {
      await using world = await store.world();
      const double = activity("Double", (_ctx, n: number) => n * 2);
      const maps = orchestration("Maps", async (ctx) => ctx.scheduleActivity(double, 21).then((n) => n + 1));
      await world.start({ orchestrations: [maps], activities: [double] });

      expect(await world.run(maps)).toBe(43);
    });

    test("can be joined with others", async () => {
      await using world = await store.world();
      const maps = orchestration("Maps", async (ctx) => {
        const sums = [
          { a: 1, b: 2 },
          { a: 10, b: 20 },
        ].map((pair) => ctx.scheduleActivity(add, pair).then(({ sum }) => sum));
        const [first, second] = await ctx.all(sums);
        return first! + second!;
      });
      await world.start({ orchestrations: [maps], activities: [add] });

      expect(await world.run(maps)).toBe(33);
    });

    const MAPPED: readonly [string, (ctx: OrchestrationContext) => () => Promise<string>][] = [
      [
        "awaited in a branch function",
        (ctx) => async () => `mapped ${await ctx.scheduleActivity(wait, { name: "slow", ms: 10_000 })}`,
      ],
      [
        "by then in a branch function",
        (ctx) => () => ctx.scheduleActivity(wait, { name: "slow", ms: 10_000 }).then((text) => `mapped ${text}`),
      ],
    ];

    test.each(MAPPED)("is still cancelled when it loses a race: %s", async (_how, branch) => {
      await using world = await store.world();
      const races = orchestration("Races", async (ctx) => {
        const first = await ctx.race({ done: branch(ctx), cancelled: ctx.scheduleTimer("50ms") });
        await ctx.scheduleTimer("1m");
        return first.winner;
      });
      await world.start({ orchestrations: [races], activities: [waitsFor(world)] });
      await world.client.start(races, { instanceId: "r" });
      await world.advance("100ms");

      expect(eventsOf(await world.history("r"), "ActivityCancelRequested")).toMatchObject([
        { sourceEventId: 3, reason: "dropped_future" },
      ]);
      expect(await world.ending("r")).toEqual({ status: "Completed", output: '"cancelled"' });
    });

    test("outside any branch function is cancelled when the orchestration ends", async () => {
      await using world = await store.world();
      const races = orchestration("Races", async (ctx) => {
        const mapped = ctx.scheduleActivity(wait, { name: "slow", ms: 10_000 }).then((text) => `mapped ${text}`);
        const first = await ctx.race({ done: mapped, cancelled: ctx.scheduleTimer("50ms") });
        return first.winner;
      });
      await world.start({ orchestrations: [races], activities: [waitsFor(world)] });

      expect(await world.run(races, { instanceId: "r" })).toBe("cancelled");
      expect(world.factsOf("activity-ended")).toEqual([]);
      expect(eventsOf(await world.history("r"), "ActivityCancelRequested")).toMatchObject([{ sourceEventId: 2 }]);
    });
  });

  describe("a task that nobody awaits yet", () => {
    test("does not hold the others up, and keeps its result until it is awaited", async () => {
      await using world = await store.world();
      const waiting = waitsFor(world);
      const later = orchestration("Later", async (ctx) => {
        const a = ctx.scheduleActivity(wait, { name: "A", ms: 5 });
        const b = ctx.scheduleActivity(wait, { name: "B", ms: 200 });
        return [await b, await a];
      });
      await world.start({ orchestrations: [later], activities: [waiting] });
      const startMs = world.clock.now();

      expect(await world.run(later, { instanceId: "l" })).toEqual(["B", "A"]);
      expect(world.clock.now() - startMs).toBe(200);
      expect(waiting.calls.map(({ input }) => input.name).sort()).toEqual(["A", "B"]);
      expect(await world.history("l")).toMatchObject([
        { type: "OrchestrationStarted" },
        { type: "ActivityScheduled", eventId: 2, input: '{"name":"A","ms":5}' },
        { type: "ActivityScheduled", eventId: 3, input: '{"name":"B","ms":200}' },
        { type: "ActivityCompleted", sourceEventId: 2 },
        { type: "ActivityCompleted", sourceEventId: 3 },
        { type: "OrchestrationCompleted" },
      ]);
    });
  });
});
