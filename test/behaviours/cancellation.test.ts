// What a cancel request does to an instance, its children and its waits. R§2.13, R§3.6, R§3.9, R§3.11.

import { describe, expect, test } from "vitest";
import { orchestration } from "../../src/define.js";
import { cancelled } from "../../src/history/error-details.js";
import type { OrchestratorItem } from "../../src/history/work-item.js";
import type { TestWorld } from "../../src/testing/test-world.js";
import { altered } from "../altered.js";
import { eventsOf } from "./events-of.js";
import { onEveryStore } from "./stores.js";

const waits = orchestration("Waits", async (ctx) => ctx.waitForEvent<string>("go"));

/** How the instance ended, with the recorded failure. */
async function failureOf(world: TestWorld, instanceId: string) {
  await world.ending(instanceId);
  return world.client.getStatus(instanceId);
}

const cancelledWith = (reason: string) => ({
  status: "Failed",
  details: cancelled(reason),
  error: `canceled: ${reason}`,
});

onEveryStore((store) => {
  describe("a cancel request", () => {
    test("fails an instance with its reason, and every child with the parent's", async () => {
      await using world = await store.world();
      const parent = orchestration("Parent", async (ctx) => ctx.scheduleSubOrchestration(waits));
      await world.start({ orchestrations: [parent, waits] });
      await world.client.start(parent, { instanceId: "p" });
      await world.advance("10ms");
      await world.client.cancel("p", "by_test");

      expect(await failureOf(world, "p")).toMatchObject(cancelledWith("by_test"));
      expect(await failureOf(world, "p::sub::2")).toMatchObject(cancelledWith("parent canceled"));
      expect(await world.history("p")).toMatchObject([
        { type: "OrchestrationStarted" },
        { type: "SubOrchestrationScheduled", instance: "sub::2" },
        { type: "OrchestrationCancelRequested", reason: "by_test" },
        { type: "OrchestrationFailed", details: cancelled("by_test") },
      ]);
      expect(await world.history("p::sub::2")).toMatchObject([
        { type: "OrchestrationStarted", parentInstance: "p", parentId: 2 },
        { type: "ExternalSubscribed", name: "go" },
        { type: "OrchestrationCancelRequested", reason: "parent canceled" },
        { type: "ExternalSubscribedCancelled", sourceEventId: 2 },
        { type: "OrchestrationFailed", details: cancelled("parent canceled") },
      ]);
    });

    test("reaches all of many children, once each", async () => {
      await using world = await store.world();
      const parent = orchestration("Parent", async (ctx) =>
        ctx.all(Array.from({ length: 5 }, () => ctx.scheduleSubOrchestration(waits))),
      );
      await world.start({ orchestrations: [parent, waits] });
      await world.client.start(parent, { instanceId: "p" });
      await world.advance("10ms");
      await world.client.cancel("p", "multi_test");

      expect(await failureOf(world, "p")).toMatchObject(cancelledWith("multi_test"));
      await world.rest();
      const { allIds } = await world.client.getInstanceTree("p");
      const children = allIds.filter((instance) => instance !== "p");
      expect(children.length).toBe(5);
      for (const child of children) {
        const history = await world.history(child);
        expect(eventsOf(history, "OrchestrationCancelRequested")).toMatchObject([{ reason: "parent canceled" }]);
        expect(history.at(-1)).toMatchObject({ type: "OrchestrationFailed", details: cancelled("parent canceled") });
      }
    });

    test("to a child is an error in the parent, which may go on", async () => {
      await using world = await store.world();
      const parent = orchestration("Parent", async (ctx) => {
        try {
          return await ctx.scheduleSubOrchestration(waits);
        } catch (error) {
          return `child_err:${(error as Error).message}`;
        }
      });
      await world.start({ orchestrations: [parent, waits] });
      const handle = await world.client.start(parent, { instanceId: "p" });
      await world.advance("10ms");
      await world.client.cancel("p::sub::2", "by_test_child");

      expect(await world.settle(handle.result())).toBe("child_err:canceled: by_test_child");
      expect(eventsOf(await world.history("p"), "SubOrchestrationFailed")).toMatchObject([
        { sourceEventId: 2, details: cancelled("by_test_child") },
      ]);
    });

    test("ends the execution that continue-as-new has led to, and leaves the one before as it is", async () => {
      await using world = await store.world();
      const once = orchestration("Once", async (ctx, round: number): Promise<string> => {
        if (round === 1) return ctx.continueAsNew(2);
        return ctx.waitForEvent<string>("go");
      });
      await world.start({ orchestrations: [once] });
      await world.client.start(once, { instanceId: "o", input: 1 });
      await world.advance("10ms");
      await world.client.cancel("o", "by_test_can");

      expect(await failureOf(world, "o")).toMatchObject({ ...cancelledWith("by_test_can"), executionId: 2 });
      expect(await world.eventTypes("o", 1)).toEqual(["OrchestrationStarted", "OrchestrationContinuedAsNew"]);
      expect(await world.eventTypes("o", 2)).toEqual([
        "OrchestrationStarted",
        "ExternalSubscribed",
        "OrchestrationCancelRequested",
        "ExternalSubscribedCancelled",
        "OrchestrationFailed",
      ]);
    });

    test("to an instance that has completed changes nothing", async () => {
      await using world = await store.world();
      const quick = orchestration("Quick", async () => "ok");
      await world.start({ orchestrations: [quick] });
      await world.run(quick, { instanceId: "q" });
      await world.client.cancel("q", "too late");
      await world.advance("1m");

      expect(await world.client.getStatus("q")).toMatchObject({ status: "Completed", output: "ok" });
      expect(await world.eventTypes("q")).toEqual(["OrchestrationStarted", "OrchestrationCompleted"]);
      expect(await world.provider.admin?.getQueueDepths()).toMatchObject({ orchestratorQueue: 0 });
    });

    test("to an id that nobody has started is no error, creates nothing and holds nobody up", async () => {
      await using world = await store.world();
      const quick = orchestration("Quick", async () => "ok");
      await world.start({ orchestrations: [quick], orchestrationConcurrency: 1 });

      await expect(world.client.cancel("does-not-exist", "whatever")).resolves.toBeUndefined();
      expect(await world.run(quick)).toBe("ok");
      await world.advance("1h");
      expect(await world.client.getStatus("does-not-exist")).toEqual({ status: "NotFound" });
      expect(world.factsOf("loop-failed")).toEqual([]);
    });

    test.each(["in one batch", "one by one"])(
      "that is repeated %s is recorded once, with the first reason",
      async (how) => {
        await using world = await store.world();
        const runtime = await world.start({ orchestrations: [waits] });
        await world.client.start(waits, { instanceId: "w" });
        await world.advance("10ms");
        if (how === "in one batch") await runtime.shutdown();
        for (let n = 0; n < 5; n += 1) {
          await world.client.cancel("w", `cancel-${n}`);
          await world.advance("10ms");
        }
        if (how === "in one batch") await runtime.restart();

        expect(await failureOf(world, "w")).toMatchObject(cancelledWith("cancel-0"));
        await world.advance("10ms");
        expect(await world.history("w")).toMatchObject([
          { type: "OrchestrationStarted" },
          { type: "ExternalSubscribed" },
          { type: "OrchestrationCancelRequested", reason: "cancel-0" },
          { type: "ExternalSubscribedCancelled" },
          { type: "OrchestrationFailed", details: cancelled("cancel-0") },
        ]);
        expect(world.factsOf("turn-committed").map(({ messages }) => messages)).toEqual(
          how === "in one batch" ? [1, 5] : [1, 1],
        );
      },
    );

    test("that is queued with the start, before any runtime is up, wins over completion", async () => {
      await using world = await store.world();
      const quick = orchestration("Quick", async () => "ok");
      await world.client.start(quick, { instanceId: "q" });
      await world.client.cancel("q", "early_cancel");
      await world.start({ orchestrations: [quick] });

      expect(await failureOf(world, "q")).toMatchObject(cancelledWith("early_cancel"));
      expect(await world.eventTypes("q")).toEqual([
        "OrchestrationStarted",
        "OrchestrationCancelRequested",
        "OrchestrationFailed",
      ]);
    });
  });

  describe("a child that loses a race", () => {
    test.each([
      ["with an id that the runtime made", undefined, "sub::2", "p::sub::2"],
      ["with an id of its own", "my-explicit-child-id", "my-explicit-child-id", "my-explicit-child-id"],
    ])("%s is cancelled", async (_which, instanceId, recorded, child) => {
      await using world = await store.world();
      const parent = orchestration("Parent", async (ctx) => {
        const first = await ctx.race({
          child_won: ctx.scheduleSubOrchestration(waits, undefined, instanceId === undefined ? {} : { instanceId }),
          timer_won: ctx.scheduleTimer("100ms"),
        });
        return first.winner;
      });
      await world.start({ orchestrations: [parent, waits] });

      expect(await world.run(parent, { instanceId: "p" })).toBe("timer_won");
      expect(await failureOf(world, child)).toMatchObject(cancelledWith("parent dropped sub-orchestration future"));
      const history = await world.history("p");
      expect(eventsOf(history, "SubOrchestrationScheduled")).toMatchObject([{ instance: recorded }]);
      expect(eventsOf(history, "SubOrchestrationCancelRequested")).toMatchObject([
        { sourceEventId: 2, reason: "dropped_future" },
      ]);
    });
  });

  describe("a child that its parent gives up", () => {
    test("while it runs is cancelled", async () => {
      await using world = await store.world();
      const parent = orchestration("Parent", async (ctx) => {
        const child = ctx.scheduleSubOrchestration(waits);
        await ctx.scheduleTimer("50ms");
        child.cancel();
        await ctx.scheduleTimer("50ms");
        return "done";
      });
      await world.start({ orchestrations: [parent, waits] });

      expect(await world.run(parent, { instanceId: "p" })).toBe("done");
      expect(await failureOf(world, "p::sub::2")).toMatchObject(
        cancelledWith("parent dropped sub-orchestration future"),
      );
    });

    test("right after it was scheduled is recorded as given up, and never started", async () => {
      await using world = await store.world();
      const parent = orchestration("Parent", async (ctx) => {
        ctx.scheduleSubOrchestration(waits).cancel();
        await ctx.scheduleTimer("50ms");
        return "done";
      });
      await world.start({ orchestrations: [parent, waits] });

      expect(await world.run(parent, { instanceId: "p" })).toBe("done");
      await world.advance("1m");
      expect(await world.eventTypes("p")).toEqual([
        "OrchestrationStarted",
        "SubOrchestrationScheduled",
        "TimerCreated",
        "SubOrchestrationCancelRequested",
        "TimerFired",
        "OrchestrationCompleted",
      ]);
      expect(await world.client.getStatus("p::sub::2")).toEqual({ status: "NotFound" });
    });

    test("and its user cancels at the same time ends once, with the reason that came first", async () => {
      await using world = await store.world();
      const batches: (readonly OrchestratorItem[])[] = [];
      const recording = altered(world.provider, {
        fetchOrchestrationItem: async (options) => {
          const locked = await world.provider.fetchOrchestrationItem(options);
          if (locked?.item.instance === "combo-child") batches.push(locked.item.messages);
          return locked;
        },
      });
      const parent = orchestration("Parent", async (ctx) => {
        const child = ctx.scheduleSubOrchestration(waits, undefined, { instanceId: "combo-child" });
        await ctx.waitForEvent("drop");
        child.cancel();
        return "parent_done";
      });
      const runtime = await world.start({
        provider: recording,
        orchestrations: [waits, parent],
        orchestrationConcurrency: 1,
      });
      const handle = await world.client.start(parent, { instanceId: "p" });
      await world.advance("10ms");
      await runtime.shutdown();
      await world.client.raiseEvent("p", "drop");
      await world.client.cancel("combo-child", "user_cancel");
      await runtime.restart();

      expect(await world.settle(handle.result())).toBe("parent_done");
      expect(await failureOf(world, "combo-child")).toMatchObject(cancelledWith("user_cancel"));
      expect(batches.at(-1)).toEqual([
        { type: "CancelInstance", instance: "combo-child", reason: "user_cancel" },
        { type: "CancelInstance", instance: "combo-child", reason: "parent dropped sub-orchestration future" },
      ]);
      expect(eventsOf(await world.history("combo-child"), "OrchestrationCancelRequested").length).toBe(1);
      expect(eventsOf(await world.history("p"), "SubOrchestrationCancelRequested")).toMatchObject([
        { reason: "dropped_future" },
      ]);
    });
  });

  describe("an event", () => {
    test("that is raised before anybody waits for it is recorded, and no later wait gets it", async () => {
      await using world = await store.world();
      const late = orchestration("Late", async (ctx) => {
        await ctx.scheduleTimer("100ms");
        const first = await ctx.race({ event: ctx.waitForEvent("MyEvent"), timeout: ctx.scheduleTimer("500ms") });
        return first.winner;
      });
      await world.start({ orchestrations: [late] });
      const handle = await world.client.start(late, { instanceId: "l" });
      await world.advance("50ms");
      await world.client.raiseEvent("l", "MyEvent", "early");

      expect(await world.settle(handle.result())).toBe("timeout");
      const history = await world.history("l");
      expect(eventsOf(history, "ExternalEvent")).toMatchObject([{ name: "MyEvent", data: '"early"' }]);
      const [wait] = eventsOf(history, "ExternalSubscribed");
      expect(eventsOf(history, "ExternalSubscribedCancelled")).toMatchObject([
        { sourceEventId: wait?.eventId, reason: "dropped_future" },
      ]);
    });

    test("goes past a wait that was given up, to the one that is open", async () => {
      await using world = await store.world();
      const twice = orchestration("Twice", async (ctx) => {
        await ctx.race([ctx.waitForEvent("Signal"), ctx.scheduleTimer("100ms")]);
        return `got:${await ctx.waitForEvent<string>("Signal")}`;
      });
      await world.start({ orchestrations: [twice] });
      const handle = await world.client.start(twice, { instanceId: "t" });
      await world.advance("200ms");
      await world.client.raiseEvent("t", "Signal", "hello");

      expect(await world.settle(handle.result())).toBe("got:hello");
      expect(await world.history("t")).toMatchObject([
        { type: "OrchestrationStarted" },
        { type: "ExternalSubscribed", eventId: 2 },
        { type: "TimerCreated" },
        { type: "TimerFired" },
        { type: "ExternalSubscribed", eventId: 5 },
        { type: "ExternalSubscribedCancelled", sourceEventId: 2, reason: "dropped_future" },
        { type: "ExternalEvent", data: '"hello"' },
        { type: "OrchestrationCompleted" },
      ]);
    });
  });

  describe("events", () => {
    test.each([
      ["that differ", ["first", "second"]],
      ["that are alike", ["same_payload", "same_payload"]],
    ])("%s answer one wait each, in order", async (_which, payloads) => {
      await using world = await store.world();
      const two = orchestration("Two", async (ctx) => [
        await ctx.waitForEvent<string>("Signal"),
        await ctx.waitForEvent<string>("Signal"),
      ]);
      await world.start({ orchestrations: [two] });
      const handle = await world.client.start(two, { instanceId: "t" });
      for (const payload of payloads) {
        await world.advance("10ms");
        expect((await handle.status()).status).toBe("Running");
        await handle.raiseEvent("Signal", payload);
      }

      expect(await world.settle(handle.result())).toEqual(payloads);
      expect(eventsOf(await world.history("t"), "ExternalEvent").length).toBe(2);
    });
  });
});
