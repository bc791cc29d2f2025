// Messages that wait until they are taken, beside events that must find somebody waiting. R§3.9, R§3.10, R§4.7.

import { describe, expect, test } from "vitest";
import { activity, event, orchestration } from "../../src/define.js";
import type { OrchestrationContext } from "../../src/engine/orchestration-context.js";
import type { Event, EventType } from "../../src/history/event.js";
import { onEveryStore } from "./stores.js";

const echo = activity("Echo", async (_ctx, text: string) => text);

/** Gives up waiting after 50 ms. */
async function giveUp(ctx: OrchestrationContext, queue: string): Promise<string> {
  const first = await ctx.race({ message: ctx.dequeueEvent<string>(queue), "timer won": ctx.scheduleTimer("50ms") });
  return first.winner;
}

/** Waits in vain for a while, and then for as long as it takes. */
const patient = orchestration("Patient", async (ctx) => [
  await giveUp(ctx, "inbox"),
  await ctx.dequeueEvent<string>("inbox"),
]);

function eventsOf<T extends EventType>(history: readonly Event[], type: T): Extract<Event, { type: T }>[] {
  return history.filter((event): event is Extract<Event, { type: T }> => event.type === type);
}

onEveryStore((store) => {
  describe("a message", () => {
    test("goes to who waits for it", async () => {
      await using world = await store.world();
      const waits = orchestration("Waits", async (ctx) => `got ${await ctx.dequeueEvent<string>("inbox")}`);
      await world.start({ orchestrations: [waits] });
      const handle = await world.client.start(waits, { instanceId: "w" });
      await world.rest();
      await handle.enqueueEvent("inbox", "hello");

      expect(await world.settle(handle.result())).toBe("got hello");
      expect(await world.eventTypes("w")).toEqual([
        "OrchestrationStarted",
        "ExternalSubscribedPersistent",
        "ExternalEventPersistent",
        "OrchestrationCompleted",
      ]);
    });

    test("waits for who does not wait for it yet", async () => {
      await using world = await store.world();
      const late = orchestration("Late", async (ctx) => {
        await ctx.scheduleTimer("200ms");
        return `got ${await ctx.dequeueEvent<string>("inbox")}`;
      });
      await world.start({ orchestrations: [late] });
      const handle = await world.client.start(late, { instanceId: "l" });
      await world.advance("50ms");
      await handle.enqueueEvent("inbox", "early bird");

      expect(await world.settle(handle.result())).toBe("got early bird");
      expect(await world.eventTypes("l")).toEqual([
        "OrchestrationStarted",
        "TimerCreated",
        "ExternalEventPersistent",
        "TimerFired",
        "ExternalSubscribedPersistent",
        "OrchestrationCompleted",
      ]);
    });

    test("carries what its sender gave it, typed", async () => {
      await using world = await store.world();
      const commands = event<{ action: string; value: number }>("commands");
      const obeys = orchestration("Obeys", async (ctx) => {
        const { action, value } = await ctx.dequeueEvent(commands);
        return `${action}: ${value + 1}`;
      });
      await world.start({ orchestrations: [obeys] });
      const handle = await world.client.start(obeys, { instanceId: "o" });
      await handle.enqueueEvent(commands, { action: "increment", value: 99 });

      expect(await world.settle(handle.result())).toBe("increment: 100");
    });

    test("to an instance that nobody has started is lost", async () => {
      await using world = await store.world();
      const waits = orchestration("Waits", async (ctx) => {
        const first = await ctx.race({ message: ctx.dequeueEvent("inbox"), timeout: ctx.scheduleTimer("500ms") });
        return first.winner;
      });
      await world.start({ orchestrations: [waits] });
      await world.client.enqueueEvent("w", "inbox", "too early");
      await world.advance("200ms");
      expect(await world.client.getQueueDepths()).toMatchObject({ orchestratorQueue: 0 });

      expect(await world.run(waits, { instanceId: "w" })).toBe("timeout");
      expect(eventsOf(await world.history("w"), "ExternalEventPersistent")).toEqual([]);
    });
  });

  describe("messages", () => {
    test("are taken in the order in which they came", async () => {
      await using world = await store.world();
      const two = orchestration("Two", async (ctx) => [
        await ctx.dequeueEvent("inbox"),
        await ctx.dequeueEvent("inbox"),
      ]);
      await world.start({ orchestrations: [two] });
      const handle = await world.client.start(two, { instanceId: "t" });
      await world.rest();
      await handle.enqueueEvent("inbox", "first");
      await handle.enqueueEvent("inbox", "second");

      expect(await world.settle(handle.result())).toEqual(["first", "second"]);
    });

    test("of several queues keep to their own, and to their own order", async () => {
      await using world = await store.world();
      const sorts = orchestration("Sorts", async (ctx) => {
        const next = (queue: string) => ctx.dequeueEvent(queue);
        const orders = [await next("orders"), await next("orders")];
        const payments = [await next("payments"), await next("payments")];
        return { orders, payments, alerts: [await next("notifications")] };
      });
      await world.start({ orchestrations: [sorts] });
      const handle = await world.client.start(sorts, { instanceId: "s" });
      for (const [queue, message] of [
        ["payments", "payment 1"],
        ["orders", "order 1"],
        ["notifications", "alert 1"],
        ["orders", "order 2"],
        ["payments", "payment 2"],
      ] as const) {
        await handle.enqueueEvent(queue, message);
      }

      expect(await world.settle(handle.result())).toEqual({
        orders: ["order 1", "order 2"],
        payments: ["payment 1", "payment 2"],
        alerts: ["alert 1"],
      });
    });

    test("some of which came early and some late, are taken as they are asked for", async () => {
      await using world = await store.world();
      const alternates = orchestration("Alternates", async (ctx) => {
        const first = await ctx.dequeueEvent("commands");
        await ctx.scheduleActivity(echo, "between");
        const status = await ctx.dequeueEvent("status");
        return [first, status, await ctx.dequeueEvent("commands"), await ctx.dequeueEvent("status")];
      });
      await world.start({ orchestrations: [alternates], activities: [echo] });
      const handle = await world.client.start(alternates, { instanceId: "a" });
      await handle.enqueueEvent("commands", "c1");
      await handle.enqueueEvent("commands", "c2");
      await handle.enqueueEvent("status", "s1");
      await world.advance("1s");
      expect(await handle.status()).toMatchObject({ status: "Running" });
      await handle.enqueueEvent("status", "s2");

      expect(await world.settle(handle.result())).toEqual(["c1", "s1", "c2", "s2"]);
    });
  });

  describe("a wait for a message that loses a race", () => {
    test("is recorded as given up", async () => {
      await using world = await store.world();
      const impatient = orchestration("Impatient", async (ctx) => giveUp(ctx, "inbox"));
      await world.start({ orchestrations: [impatient] });

      expect(await world.run(impatient, { instanceId: "i" })).toBe("timer won");
      expect(eventsOf(await world.history("i"), "ExternalSubscribedPersistentCancelled")).toMatchObject([
        { sourceEventId: 2, reason: "dropped_future" },
      ]);
    });

    test("takes nothing from those after it, also when messages come in one batch after a restart", async () => {
      await using world = await store.world();
      const runtime = await world.start({ orchestrations: [patient] });
      const handle = await world.client.start(patient, { instanceId: "p" });
      await world.advance("100ms");
      await runtime.shutdown();
      await handle.enqueueEvent("inbox", "survived");
      await handle.enqueueEvent("inbox", "extra");
      await runtime.restart();

      expect(await world.settle(handle.result())).toEqual(["timer won", "survived"]);
      const history = await world.history("p");
      expect(eventsOf(history, "ExternalSubscribedPersistent")).toHaveLength(2);
      expect(eventsOf(history, "ExternalSubscribedPersistentCancelled")).toMatchObject([{ reason: "dropped_future" }]);
      expect(eventsOf(history, "ExternalEventPersistent").map(({ data }) => data)).toEqual(['"survived"', '"extra"']);
    });

    test("is followed by one that takes the message; what comes after the end is discarded", async () => {
      await using world = await store.world();
      const runtime = await world.start({ orchestrations: [patient] });
      const handle = await world.client.start(patient, { instanceId: "p" });
      await world.advance("100ms");
      await runtime.shutdown();
      await handle.enqueueEvent("inbox", "survived");
      await runtime.restart();
      expect(await world.settle(handle.result())).toEqual(["timer won", "survived"]);
      await handle.enqueueEvent("inbox", "extra");
      await world.advance("1s");

      const history = await world.history("p");
      expect(eventsOf(history, "ExternalEventPersistent").map(({ data }) => data)).toEqual(['"survived"']);
      expect(history.at(-1)).toMatchObject({ type: "OrchestrationCompleted" });
      expect(await world.client.getQueueDepths()).toMatchObject({ orchestratorQueue: 0 });
    });

    test("twice leaves the only message to the third", async () => {
      await using world = await store.world();
      const stubborn = orchestration("Stubborn", async (ctx) => [
        await giveUp(ctx, "inbox"),
        await giveUp(ctx, "inbox"),
        await ctx.dequeueEvent("inbox"),
      ]);
      await world.start({ orchestrations: [stubborn], warmCacheBytes: 0 });
      const handle = await world.client.start(stubborn, { instanceId: "s" });
      await world.advance("1s");
      await handle.enqueueEvent("inbox", "winner");

      expect(await world.settle(handle.result())).toEqual(["timer won", "timer won", "winner"]);
      expect(eventsOf(await world.history("s"), "ExternalSubscribedPersistentCancelled")).toHaveLength(2);
    });
  });

  describe("an event", () => {
    test("carries what its sender gave it, typed", async () => {
      await using world = await store.world();
      const signal = event<{ id: number; text: string }>("signal");
      const waits = orchestration("Waits", async (ctx) => {
        const { id, text } = await ctx.waitForEvent(signal);
        return `${text} ${id + 1}`;
      });
      await world.start({ orchestrations: [waits] });
      const handle = await world.client.start(waits, { instanceId: "w" });
      await world.rest();
      await handle.raiseEvent(signal, { id: 42, text: "hello" });

      expect(await world.settle(handle.result())).toBe("hello 43");
    });

    test("and a message of the same name have nothing to do with each other", async () => {
      await using world = await store.world();
      const both = orchestration("Both", async (ctx) =>
        ctx.all({ event: ctx.waitForEvent("signal"), message: ctx.dequeueEvent("signal") }),
      );
      await world.start({ orchestrations: [both] });
      const handle = await world.client.start(both, { instanceId: "b" });
      await world.rest();
      await handle.enqueueEvent("signal", "as a message");
      await world.rest();
      expect(await handle.status()).toMatchObject({ status: "Running" });
      await handle.raiseEvent("signal", "as an event");

      expect(await world.settle(handle.result())).toEqual({ event: "as an event", message: "as a message" });
    });
  });

  describe.each([
    ["kept in memory", {}],
    ["replayed in every turn", { warmCacheBytes: 0 }],
  ])("events and messages together, %s,", (_how, options) => {
    test("reach a long orchestration one by one", async () => {
      await using world = await store.world();
      const long = orchestration("Long", async (ctx) => {
        const said = [`event ${await ctx.waitForEvent("first")}`];
        said.push(await ctx.scheduleActivity(echo, "step 2"));
        said.push(`message ${await ctx.dequeueEvent("a")}`);
        said.push(await ctx.scheduleActivity(echo, "step 3"));
        const doomed = await ctx.race({ event: ctx.waitForEvent("doomed"), "no event": ctx.scheduleTimer("50ms") });
        said.push(doomed.winner);
        said.push(`message ${await ctx.dequeueEvent("b")}`);
        said.push(await ctx.scheduleActivity(echo, "step 4"));
        return [...said, `message ${await ctx.dequeueEvent("c")}`];
      });
      await world.start({ orchestrations: [long], activities: [echo], ...options });
      const handle = await world.client.start(long, { instanceId: "l" });
      await world.rest();
      await handle.raiseEvent("first", "alpha");
      await handle.enqueueEvent("b", "gamma");
      await world.advance("1s");
      await handle.enqueueEvent("a", "beta");
      await world.advance("1s");
      await handle.enqueueEvent("c", "delta");

      expect(await world.settle(handle.result())).toEqual([
        "event alpha",
        "step 2",
        "message beta",
        "step 3",
        "no event",
        "message gamma",
        "step 4",
        "message delta",
      ]);
      const history = await world.history("l");
      expect(eventsOf(history, "ExternalSubscribedCancelled")).toHaveLength(1);
      expect(eventsOf(history, "ExternalSubscribedPersistentCancelled")).toEqual([]);
    });

    test("can race, and afterwards be waited for both", async () => {
      await using world = await store.world();
      const combines = orchestration("Combines", async (ctx) => {
        const first = await ctx.race({ event: ctx.waitForEvent("race"), message: ctx.dequeueEvent("race") });
        const both = await ctx.all({ event: ctx.waitForEvent("join"), message: ctx.dequeueEvent("join") });
        return [first, both];
      });
      await world.start({ orchestrations: [combines], ...options });
      const handle = await world.client.start(combines, { instanceId: "c" });
      await world.rest();
      await handle.enqueueEvent("race", "fast");
      await world.rest();
      await handle.raiseEvent("join", "left");
      await world.rest();
      await handle.enqueueEvent("join", "right");

      expect(await world.settle(handle.result())).toEqual([
        { winner: "message", value: "fast" },
        { event: "left", message: "right" },
      ]);
      const history = await world.history("c");
      expect(eventsOf(history, "ExternalSubscribedCancelled")).toMatchObject([{ reason: "dropped_future" }]);
      expect(eventsOf(history, "ExternalSubscribedPersistentCancelled")).toEqual([]);
    });
  });
});
