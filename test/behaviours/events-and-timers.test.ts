// Events from outside, alone and against time. R§3.9.

import { describe, expect, test } from "vitest";
import { orchestration } from "../../src/define.js";
import { eventsOf } from "./events-of.js";
import { onEveryStore } from "./stores.js";

onEveryStore((store) => {
  describe("an event", () => {
    const only = orchestration("Only", async (ctx) => `only=${await ctx.waitForEvent<string>("Only")}`);

    test("answers the wait for it", async () => {
      await using world = await store.world();
      await world.start({ orchestrations: [only] });
      const handle = await world.client.start(only, { instanceId: "o" });
      await world.rest();
      expect(await world.eventTypes("o")).toEqual(["OrchestrationStarted", "ExternalSubscribed"]);
      await handle.raiseEvent("Only", "payload");

      expect(await world.settle(handle.result())).toBe("only=payload");
      expect(await world.eventTypes("o")).toEqual([
        "OrchestrationStarted",
        "ExternalSubscribed",
        "ExternalEvent",
        "OrchestrationCompleted",
      ]);
    });

    test.each(["one batch", "two turns"])("raised twice answers one wait once, and harms nobody: %s", async (how) => {
      await using world = await store.world();
      const first = orchestration("First", async (ctx) => {
        const data = await ctx.waitForEvent<string>("Evt");
        await ctx.scheduleTimer("1s");
        return data;
      });
      const runtime = await world.start({ orchestrations: [first] });
      const handle = await world.client.start(first, { instanceId: "f" });
      await world.rest();
      if (how === "one batch") await runtime.shutdown();
      await handle.raiseEvent("Evt", "first");
      await world.rest();
      await handle.raiseEvent("Evt", "first");
      if (how === "one batch") await runtime.restart();

      expect(await world.settle(handle.result())).toBe("first");
      expect(eventsOf(await world.history("f"), "ExternalEvent").map(({ data }) => data)).toEqual([
        '"first"',
        '"first"',
      ]);
      expect(world.factsOf("turn-committed").map(({ messages }) => messages)).toEqual(
        how === "one batch" ? [1, 2, 1] : [1, 1, 1, 1],
      );
    });

    test("raised before anybody waits is kept in the history, but answers no later wait", async () => {
      await using world = await store.world();
      const late = orchestration("Late", async (ctx) => {
        await ctx.scheduleTimer(100);
        const { winner } = await ctx.race({
          "got event": ctx.waitForEvent("Evt"),
          "early-event-dropped": ctx.scheduleTimer(500),
        });
        return winner;
      });
      await world.start({ orchestrations: [late] });
      const handle = await world.client.start(late, { instanceId: "l" });
      await world.rest();
      await handle.raiseEvent("Evt", "early");

      expect(await world.settle(handle.result())).toBe("early-event-dropped");
      expect(await world.eventTypes("l")).toEqual([
        "OrchestrationStarted",
        "TimerCreated",
        "ExternalEvent",
        "TimerFired",
        "ExternalSubscribed",
        "TimerCreated",
        "TimerFired",
        "ExternalSubscribedCancelled",
        "OrchestrationCompleted",
      ]);
    });
  });

  describe("a race between an event and a timer", () => {
    test("is won by the timer where that fires first, and the event comes too late", async () => {
      await using world = await store.world();
      const race = orchestration("Race", async (ctx) => {
        const { winner } = await ctx.race({ timer: ctx.scheduleTimer(10), event: ctx.waitForEvent("Race") });
        await ctx.scheduleTimer(100);
        return winner;
      });
      await world.start({ orchestrations: [race] });
      const handle = await world.client.start(race, { instanceId: "r" });
      await world.advance(20);
      await handle.raiseEvent("Race", "late");

      expect(await world.settle(handle.result())).toBe("timer");
      expect(await world.eventTypes("r")).toEqual([
        "OrchestrationStarted",
        "TimerCreated",
        "ExternalSubscribed",
        "TimerFired",
        "TimerCreated",
        "ExternalSubscribedCancelled",
        "ExternalEvent",
        "TimerFired",
        "OrchestrationCompleted",
      ]);
    });

    test("is won by the event where that comes first, and the timer never fires", async () => {
      await using world = await store.world();
      const race = orchestration("Race", async (ctx) => {
        const first = await ctx.race({ timer: ctx.scheduleTimer(100), event: ctx.waitForEvent<string>("Race") });
        await ctx.scheduleTimer(1_000);
        return first.value ?? "timer";
      });
      await world.start({ orchestrations: [race] });
      const handle = await world.client.start(race, { instanceId: "r" });
      await world.rest();
      await handle.raiseEvent("Race", "ok");

      expect(await world.settle(handle.result())).toBe("ok");
      expect(await world.history("r")).toMatchObject([
        { type: "OrchestrationStarted" },
        { type: "TimerCreated", eventId: 2 },
        { type: "ExternalSubscribed" },
        { type: "ExternalEvent", data: '"ok"' },
        { type: "TimerCreated", eventId: 5 },
        { type: "TimerFired", sourceEventId: 5 },
        { type: "OrchestrationCompleted" },
      ]);
    });
  });
});
