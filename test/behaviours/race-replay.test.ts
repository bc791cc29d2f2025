// Races between messages, events and timers: what was decided once is decided so by every replay. R§3.9, R§3.10, R§3.16.
//
// Nothing is kept in memory between two turns: every turn begins with a replay.

import { describe, expect, test } from "vitest";
import { type OrchestrationDefinition, orchestration } from "../../src/define.js";
import type { OrchestrationContext } from "../../src/engine/orchestration-context.js";
import { ENGINE_VERSION, type Event } from "../../src/history/event.js";
import {
  createExecution,
  type SeededEvent,
  seedHistoryTurn,
  seedInstanceWithPinnedVersion,
  versionedEvent,
} from "../../src/testing/seeds.js";
import type { TestWorld } from "../../src/testing/test-world.js";
import { eventsOf } from "./events-of.js";
import { onEveryStore } from "./stores.js";

const REPLAYING = { warmCacheBytes: 0 };

const subscribed = { type: "ExternalSubscribedPersistent", name: "q" } as const;
const dropped = (sourceEventId: number): SeededEvent => ({
  type: "ExternalSubscribedPersistentCancelled",
  sourceEventId,
  reason: "dropped_future",
});
const arrived = (data: string): SeededEvent => ({
  type: "ExternalEventPersistent",
  name: "q",
  data: JSON.stringify(data),
});
const created = (fireAtMs: number): SeededEvent => ({ type: "TimerCreated", fireAtMs });
const fired = (sourceEventId: number, fireAtMs: number): SeededEvent => ({
  type: "TimerFired",
  sourceEventId,
  fireAtMs,
});

/** A message, or null after so long. */
async function withinASecond(ctx: OrchestrationContext): Promise<string | null> {
  const first = await ctx.race({ message: ctx.dequeueEvent<string>("q"), late: ctx.scheduleTimer("1s") });
  return first.winner === "message" ? first.value : null;
}

onEveryStore((store) => {
  /** Starts a runtime on a prepared history, and checks that the store gives it as it was written. */
  async function resume(world: TestWorld, definition: OrchestrationDefinition, events: readonly SeededEvent[]) {
    await createExecution(world.provider, "r", { orchestration: definition.name, input: "null" });
    const written = [...(await world.history("r")), ...(await seedHistoryTurn(world.provider, "r", events))];
    expect(await world.provider.readWithExecution("r", 1)).toEqual(written);
    await world.start({ orchestrations: [definition], ...REPLAYING });
    return written;
  }

  describe("a recorded race between mailbox and timer", () => {
    const PREPARED: readonly [string, (ctx: OrchestrationContext) => Promise<string[]>, readonly SeededEvent[]][] = [
      [
        "whose wait lost, and whose successor took a message",
        async (ctx) => {
          await withinASecond(ctx);
          return [await ctx.dequeueEvent<string>("q"), await ctx.dequeueEvent<string>("q")];
        },
        [subscribed, created(1_000), fired(3, 1_000), subscribed, dropped(2), arrived("first"), subscribed],
      ],
      [
        "that was lost twice, the second time with the message in the same batch",
        async (ctx) => {
          await withinASecond(ctx);
          await withinASecond(ctx);
          return [await ctx.dequeueEvent<string>("q"), await ctx.dequeueEvent<string>("q")];
        },
        [
          subscribed,
          created(1_000),
          fired(3, 1_000),
          subscribed,
          created(2_000),
          dropped(2),
          fired(6, 2_000),
          arrived("first"),
          subscribed,
          subscribed,
          dropped(5),
        ],
      ],
      [
        "whose wait was given up while a later one was open",
        async (ctx) => {
          const older = ctx.dequeueEvent<string>("q");
          const newer = ctx.dequeueEvent<string>("q");
          await ctx.scheduleTimer("1s");
          older.cancel();
          return [await newer, await ctx.dequeueEvent<string>("q")];
        },
        [subscribed, subscribed, created(1_000), fired(4, 1_000), dropped(2), arrived("first"), subscribed],
      ],
    ];

    test.each(PREPARED)("%s, replays, and the next message goes where it belongs", async (_which, code, events) => {
      await using world = await store.world();
      const before = await resume(world, orchestration("Races", code), events);
      await world.client.enqueueEvent("r", "q", "second");

      expect(await world.ending("r")).toEqual({ status: "Completed", output: '["first","second"]' });
      expect((await world.history("r")).slice(0, before.length)).toEqual(before);
      expect(world.factsOf("turn-committed")).toMatchObject([{ isWarm: false, newEvents: 2 }]);
    });

    test("whose only wait was given up, replays: the message is there for the next", async () => {
      await using world = await store.world();
      const races = orchestration("Races", async (ctx) => {
        ctx.dequeueEvent("q").cancel();
        await ctx.scheduleTimer("1s");
        return ctx.dequeueEvent<string>("q");
      });
      await resume(world, races, [subscribed, created(1_000), dropped(2), fired(3, 1_000), subscribed]);
      await world.client.enqueueEvent("r", "q", "first");

      expect(await world.ending("r")).toEqual({ status: "Completed", output: '"first"' });
    });
  });

  describe("a message that nobody has seen", () => {
    const SHAPES: readonly [string, string[], (ctx: OrchestrationContext) => Promise<unknown>, string][] = [
      [
        "because only the one before it was taken",
        ["m1", "m2"],
        async (ctx) => {
          await ctx.dequeueEvent("q");
          await ctx.scheduleTimer("1s");
          return ctx.continueAsNew("next");
        },
        "m2",
      ],
      [
        "because the wait for it was never awaited",
        ["m1"],
        async (ctx) => {
          ctx.dequeueEvent("q");
          await ctx.scheduleTimer("1s");
          return ctx.continueAsNew("next");
        },
        "m1",
      ],
      [
        "because the wait for it, behind one that was given up, was never awaited",
        ["m1"],
        async (ctx) => {
          const older = ctx.dequeueEvent("q");
          ctx.dequeueEvent("q");
          await ctx.scheduleTimer("500ms");
          older.cancel();
          await ctx.scheduleTimer("500ms");
          return ctx.continueAsNew("next");
        },
        "m1",
      ],
    ];

    test.each(SHAPES)("%s, goes on to the next execution, through every replay", async (_why, sent, code, taken) => {
      await using world = await store.world();
      const carries = orchestration("Carries", async (ctx, round: string) =>
        round === "next" ? ctx.dequeueEvent<string>("q") : code(ctx),
      );
      const runtime = await world.start({ orchestrations: [carries], ...REPLAYING });
      const handle = await world.client.start(carries, { instanceId: "c", input: "first" });
      await world.rest();
      for (const message of sent) await handle.enqueueEvent("q", message);
      await world.advance("600ms");
      await runtime.restart();

      expect(await world.settle(handle.result())).toBe(taken);
      const [started] = eventsOf(await world.history("c", 2), "OrchestrationStarted");
      expect(started?.carryForwardEvents).toEqual([["q", JSON.stringify(taken)]]);
    });
  });

  describe("a message in the batch of the timer that its wait lost to", () => {
    test("goes on to the next execution", async () => {
      await using world = await store.world();
      const carries = orchestration("Carries", async (ctx, round: string): Promise<string> => {
        if (round === "next") return ctx.dequeueEvent<string>("q");
        await withinASecond(ctx);
        return ctx.continueAsNew("next");
      });
      const runtime = await world.start({ orchestrations: [carries], ...REPLAYING });
      const handle = await world.client.start(carries, { instanceId: "c", input: "first" });
      await world.rest();
      await runtime.shutdown();
      await world.advance("1s");
      await handle.enqueueEvent("q", "m1");
      await runtime.restart();

      expect(await world.settle(handle.result())).toBe("m1");
      expect(await world.eventTypes("c", 1)).toEqual([
        "OrchestrationStarted",
        "ExternalSubscribedPersistent",
        "TimerCreated",
        "TimerFired",
        "ExternalEventPersistent",
        "OrchestrationContinuedAsNew",
      ]);
    });
  });

  describe("a race between event and timer", () => {
    test("replays as it was decided, as often as it is replayed, and decides nothing more", async () => {
      await using world = await store.world();
      const waits = orchestration("Waits", async (ctx) => {
        const seen: string[] = [];
        for (let n = 0; n < 2; n += 1) {
          const first = await ctx.race({ event: ctx.waitForEvent<string>("go"), late: ctx.scheduleTimer("30s") });
          seen.push(first.winner === "event" ? first.value : "late");
        }
        await ctx.waitForEvent("end");
        return seen;
      });
      await world.start({ orchestrations: [waits], ...REPLAYING });
      const handle = await world.client.start(waits, { instanceId: "w" });
      for (const signal of ["one", "two"]) {
        await world.advance("10s");
        await handle.raiseEvent("go", signal);
      }
      await world.advance("1m");
      const decided = await world.history("w");

      for (let replay = 0; replay < 2; replay += 1) {
        await world.provider.enqueueForOrchestrator({
          type: "ActivityCompleted",
          instance: "w",
          executionId: 1,
          id: 99,
          result: "null",
        });
        await world.rest();
        expect(world.factsOf("turn-committed").at(-1)).toMatchObject({ isWarm: false, messages: 1, newEvents: 0 });
      }
      expect(await world.history("w")).toEqual(decided);
      await handle.raiseEvent("end");
      expect(await world.settle(handle.result())).toEqual(["one", "two"]);
    });
  });

  describe("the engine's version of an event", () => {
    test("comes back as it was written, from a read and from a fetch", async () => {
      await using world = await store.world();
      await seedInstanceWithPinnedVersion(world.provider, "v", "0.1.26", { orchestration: "V" });
      const [started] = await world.history("v");
      expect(started).toEqual(versionedEvent(started as Event, "0.1.26"));
      await seedHistoryTurn(world.provider, "v", [subscribed]);
      const written = await world.provider.readWithExecution("v", 1);
      expect(written.map(({ duroxideVersion }) => duroxideVersion)).toEqual(["0.1.26", ENGINE_VERSION]);

      await world.client.enqueueEvent("v", "q", "m");
      const locked = await world.provider.fetchOrchestrationItem({ lockTimeoutMs: 5_000 });
      expect(locked?.item.history).toEqual(written);
    });

    test.each(["0.1.26", ENGINE_VERSION])(
      "does not change who gets a message: a dropped wait of %s takes nothing from its successor",
      async (engineVersion) => {
        await using world = await store.world();
        const races = orchestration("Races", async (ctx) => {
          await withinASecond(ctx);
          return (await withinASecond(ctx)) ?? "second-timeout";
        });
        const fireAtMs = world.clock.now() + 1_000;
        const message = { type: "QueueMessage", instance: "r", name: "q", data: '"first"' } as const;
        const timer = { type: "TimerFired", instance: "r", executionId: 1, id: 3, fireAtMs } as const;
        await seedInstanceWithPinnedVersion(world.provider, "r", engineVersion, {
          orchestration: "Races",
          input: "null",
        });
        await seedHistoryTurn(world.provider, "r", [subscribed, created(fireAtMs)], { orchestratorItems: [timer] });
        await world.advance("1s");
        await world.provider.enqueueForOrchestrator(message);
        await world.start({ orchestrations: [races], ...REPLAYING });

        expect(await world.ending("r")).toEqual({ status: "Completed", output: '"first"' });
        expect(world.factsOf("turn-committed")).toMatchObject([{ messages: 2 }]);
        const [started] = await world.history("r");
        expect(started?.duroxideVersion).toBe(engineVersion);
      },
    );
  });
});
