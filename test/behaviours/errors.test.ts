// What goes wrong, who may catch it, and how the instance ends. R§1.9, R§3.14, R§5.6.

import { describe, expect, test } from "vitest";
import { z } from "zod";
import { activity, event, orchestration } from "../../src/define.js";
import { orchestrationFailed } from "../../src/history/error-details.js";
import { mockActivity } from "../../src/testing/mock-activity.js";
import { eventsOf } from "./events-of.js";
import { onEveryStore } from "./stores.js";

onEveryStore((store) => {
  describe("an orchestration that compensates", () => {
    const debit = activity<string, string>("Debit", (_ctx, account) => {
      if (account === "fail") throw new Error(`bad:${account}`);
      return `debited:${account}`;
    });
    const ship = activity<string, string>("Ship", (_ctx, address) => {
      if (address === "fail_ship") throw new Error("ship_failed");
      return "shipped";
    });
    const credit = activity<string, string>("Credit", (_ctx, account) => `credited:${account}`);
    const order = orchestration("Order", async (ctx, { account, address }: { account: string; address: string }) => {
      try {
        await ctx.scheduleActivity(debit, account);
      } catch (error) {
        return `debit_failed:${(error as Error).message}`;
      }
      try {
        await ctx.scheduleActivity(ship, address);
        return "ok";
      } catch {
        return `rolled_back:${await ctx.scheduleActivity(credit, account)}`;
      }
    });

    test.each([
      ["takes back what was done before a later step failed", "ada", "fail_ship", "rolled_back:credited:ada", 3],
      ["takes nothing back where everything went well", "ada", "home", "ok", 2],
      ["goes no further where the first step failed", "fail", "home", "debit_failed:bad:fail", 1],
    ])("%s", async (_what, account, address, output, activities) => {
      await using world = await store.world();
      await world.start({ orchestrations: [order], activities: [debit, ship, credit] });

      expect(await world.run(order, { instanceId: "o", input: { account, address } })).toBe(output);
      const history = await world.history("o");
      expect(eventsOf(history, "ActivityScheduled").map(({ name }) => name)).toEqual(
        ["Debit", "Ship", "Credit"].slice(0, activities),
      );
      expect(history.at(-1)).toMatchObject({ type: "OrchestrationCompleted" });
    });
  });

  describe("an orchestration that throws", () => {
    test("at once has a history of two events", async () => {
      await using world = await store.world();
      const fails = orchestration("Fails", async () => {
        throw new Error("oops");
      });
      await world.start({ orchestrations: [fails] });
      await world.client.start(fails, { instanceId: "f" });
      await world.ending("f");

      expect(await world.history("f")).toMatchObject([
        { type: "OrchestrationStarted" },
        { type: "OrchestrationFailed", details: orchestrationFailed("oops") },
      ]);
      expect(await world.client.getStatus("f")).toMatchObject({
        status: "Failed",
        details: orchestrationFailed("oops"),
        error: "oops",
      });
    });

    test("what an activity threw fails with the activity's message", async () => {
      await using world = await store.world();
      const fails = activity("Fails", async () => {
        throw new Error("bad");
      });
      const passesOn = orchestration("PassesOn", async (ctx) => ctx.scheduleActivity(fails));
      await world.start({ orchestrations: [passesOn], activities: [fails] });
      await world.client.start(passesOn, { instanceId: "p" });
      await world.ending("p");

      expect(await world.client.getStatus("p")).toMatchObject({ details: orchestrationFailed("bad") });
      expect((await world.history("p")).at(-1)).toMatchObject({
        type: "OrchestrationFailed",
        details: orchestrationFailed("bad"),
      });
    });

    test("something that is no error fails with the text of it", async () => {
      await using world = await store.world();
      const odd = orchestration("Odd", async () => {
        throw { odd: true };
      });
      await world.start({ orchestrations: [odd] });
      await world.client.start(odd, { instanceId: "o" });
      await world.ending("o");

      expect(await world.client.getStatus("o")).toMatchObject({ details: orchestrationFailed('{"odd":true}') });
    });

    test("because it broke a rule of the engine has panicked, and says which", async () => {
      await using world = await store.world();
      const slowly = event("slowly", { schema: z.string().refine(async () => true) });
      const breaks = orchestration("Breaks", async (ctx) => ctx.dequeueEvent(slowly));
      await world.start({ orchestrations: [breaks] });
      await world.client.start(breaks, { instanceId: "b" });
      await world.client.enqueueEvent("b", slowly, "message");
      await world.ending("b");

      const message = expect.stringMatching(/validates asynchronously, which would not replay/);
      expect(await world.client.getStatus("b")).toMatchObject({
        details: { category: "application", kind: { type: "Panicked" }, message, retryable: false },
        error: expect.stringMatching(/^orchestration panicked: .*validates asynchronously/),
      });
      expect(world.factsOf("loop-failed")).toEqual([]);
    });
  });

  describe("an activity that nobody registers", () => {
    test("fails its orchestration as poison, and no code can catch that", async () => {
      await using world = await store.world();
      const other = mockActivity("Other", () => "other");
      const catches = orchestration("Catches", async (ctx) => {
        try {
          return await ctx.scheduleActivity("Missing", "input");
        } catch {
          return "caught";
        }
      });
      await world.start({
        orchestrations: [catches],
        activities: [other],
        maxAttempts: 3,
        unregisteredBackoff: { baseMs: 10, maxMs: 50 },
      });
      await world.client.start(catches, { instanceId: "c" });
      await world.ending("c");

      const poison = {
        category: "poison",
        maxAttempts: 3,
        messageType: { type: "Activity", instance: "c", executionId: 1, activityName: "Missing", activityId: 2 },
      };
      expect(await world.client.getStatus("c")).toMatchObject({ status: "Failed", details: poison });
      expect(await world.history("c")).toMatchObject([
        { type: "OrchestrationStarted" },
        { type: "ActivityScheduled", name: "Missing" },
        { type: "ActivityFailed", sourceEventId: 2, details: poison },
        { type: "OrchestrationFailed", details: poison },
      ]);
      expect(world.factsOf("activity-unregistered").map(({ delayMs }) => delayMs)).toEqual([10, 20, 40]);
      expect(other.calls).toEqual([]);
    });
  });

  describe("a value of the wrong shape", () => {
    test("fails the activity that it is given to, and the orchestration can catch that", async () => {
      await using world = await store.world();
      const add = activity(
        { name: "Add", input: z.object({ a: z.number(), b: z.number() }) },
        (_ctx, { a, b }) => a + b,
      );
      const calls = orchestration("Calls", async (ctx) => {
        try {
          return await ctx.scheduleActivity("Add", "not-json");
        } catch (error) {
          return (error as Error).message;
        }
      });
      await world.start({ orchestrations: [calls], activities: [add] });

      expect(await world.run(calls, { instanceId: "c" })).toMatch(/^The input of activity 'Add' is invalid: /);
      expect(eventsOf(await world.history("c"), "ActivityFailed")).toMatchObject([
        { details: { category: "application", kind: { type: "ActivityFailed" } } },
      ]);
    });

    test.each([
      ["text that is no JSON", "not-json"],
      ["JSON of another shape", '{"approved":"yes"}'],
    ])("in an event fails the wait, and the orchestration can catch that: %s", async (_what, data) => {
      await using world = await store.world();
      const approval = event("approval", { schema: z.object({ approved: z.boolean() }) });
      const waits = orchestration("Waits", async (ctx) => {
        const first = await ctx.waitForEvent(approval).catch(() => "decode_err");
        return [first, await ctx.waitForEvent(approval)];
      });
      await world.start({ orchestrations: [waits] });
      const handle = await world.client.start(waits, { instanceId: "w" });
      await world.advance("10ms");
      await world.provider.enqueueForOrchestrator({ type: "ExternalRaised", instance: "w", name: "approval", data });
      await world.advance("10ms");
      await handle.raiseEvent(approval, { approved: true });

      expect(await world.settle(handle.result())).toEqual(["decode_err", { approved: true }]);
    });
  });

  describe("an instance that has completed", () => {
    test("is not touched by events that come too late", async () => {
      await using world = await store.world();
      const waits = orchestration("Waits", async (ctx) => ctx.waitForEvent<string>("go"));
      await world.start({ orchestrations: [waits] });
      const handle = await world.client.start(waits, { instanceId: "w" });
      await world.advance("10ms");
      await handle.raiseEvent("go", "first");
      expect(await world.settle(handle.result())).toBe("first");
      const before = await world.history("w");
      await handle.raiseEvent("go", "second");
      await world.advance("10ms");

      expect(await world.history("w")).toEqual(before);
      expect(await world.settle(handle.result())).toBe("first");
      expect(await world.provider.admin?.getQueueDepths()).toMatchObject({ orchestratorQueue: 0 });
    });

    test("is not started again under its id: the second start answers with what the first returned", async () => {
      await using world = await store.world();
      const stamped = mockActivity<void, string>("Stamp", () => `at ${world.clock.now()}`);
      const once = orchestration("Once", async (ctx) => ctx.scheduleActivity(stamped));
      await world.start({ orchestrations: [once], activities: [stamped] });
      const first = await world.run(once, { instanceId: "o" });
      const before = await world.history("o");
      await world.advance("1h");

      expect(await world.run(once, { instanceId: "o" })).toBe(first);
      expect(stamped.calls.length).toBe(1);
      expect(await world.history("o")).toEqual(before);
    });
  });

  describe("an event that comes before anybody waits", () => {
    test("is lost, even where the instance runs already", async () => {
      await using world = await store.world();
      const late = orchestration("Late", async (ctx) => {
        await ctx.scheduleTimer("10ms");
        const first = await ctx.race({ event: ctx.waitForEvent("go"), timer: ctx.scheduleTimer("500ms") });
        return first.winner === "timer" ? "early-event-dropped" : "delivered";
      });
      await world.start({ orchestrations: [late] });
      const handle = await world.client.start(late, { instanceId: "l" });
      await world.advance("1ms");
      await handle.raiseEvent("go", "early");

      expect(await world.settle(handle.result())).toBe("early-event-dropped");
      expect(eventsOf(await world.history("l"), "ExternalEvent").length).toBe(1);
    });
  });

  describe("a history", () => {
    test("has no cap: one of thousands of events completes, and replays", async () => {
      await using world = await store.world();
      const talkative = orchestration("Talkative", async (ctx) => {
        for (let round = 0; round < 20; round += 1) {
          for (let n = 0; n < 150; n += 1) ctx.setCustomStatus(`${round}:${n}`);
          await ctx.scheduleTimer("1s");
        }
        return ctx.customStatus;
      });
      const runtime = await world.start({ orchestrations: [talkative] });
      const handle = await world.client.start(talkative, { instanceId: "t" });
      await world.advance("15s");
      await runtime.restart();

      expect(await world.settle(handle.result())).toBe("19:149");
      expect((await world.history("t")).length).toBe(1 + 20 * (150 + 2) + 1);
    });
  });
});
