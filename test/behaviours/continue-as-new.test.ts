// One instance in several executions, each with a history of its own. R§2.12, R§3.6.

import { describe, expect, test } from "vitest";
import { activity, orchestration } from "../../src/define.js";
import type { OrchestrationContext } from "../../src/engine/orchestration-context.js";
import { eventsOf } from "./events-of.js";
import { onEveryStore } from "./stores.js";

onEveryStore((store) => {
  describe("continue-as-new", () => {
    test("leaves a history for every execution, and the last one counts", async () => {
      await using world = await store.world();
      const counter = orchestration("Counter", async (ctx, count: number): Promise<string> => {
        return count < 2 ? ctx.continueAsNew(count + 1) : `done:${count}`;
      });
      await world.start({ orchestrations: [counter] });

      expect(await world.run(counter, { instanceId: "c", input: 0 })).toBe("done:2");
      expect(await world.client.listExecutions("c")).toEqual([1, 2, 3]);
      for (const executionId of [1, 2]) {
        expect(await world.history("c", executionId)).toMatchObject([
          { type: "OrchestrationStarted", eventId: 1, executionId, input: String(executionId - 1) },
          { type: "OrchestrationContinuedAsNew", eventId: 2, executionId, input: String(executionId) },
        ]);
      }
      const last = await world.history("c", 3);
      expect(last).toMatchObject([
        { type: "OrchestrationStarted", eventId: 1, executionId: 3, input: "2" },
        { type: "OrchestrationCompleted", eventId: 2, executionId: 3, output: '"done:2"' },
      ]);
      expect(await world.provider.read("c")).toEqual(last);
      expect(await world.client.getStatus("c")).toMatchObject({ status: "Completed", executionId: 3 });
    });

    test.each<[string, (ctx: OrchestrationContext, next: number) => Promise<void>]>([
      ["returned", (ctx, next) => ctx.continueAsNew(next)],
      ["awaited", async (ctx, next) => void (await ctx.continueAsNew(next))],
      ["called only", async (ctx, next) => void ctx.continueAsNew(next)],
    ])("takes effect however it is asked for: %s", async (_how, next) => {
      await using world = await store.world();
      const counter = orchestration("Counter", async (ctx, count: number): Promise<string | undefined> => {
        if (count === 2) return `done:${count}`;
        await next(ctx, count + 1);
        return "not to be seen";
      });
      await world.start({ orchestrations: [counter] });

      expect(await world.run(counter, { instanceId: "c", input: 0 })).toBe("done:2");
      expect(await world.client.listExecutions("c")).toEqual([1, 2, 3]);
      expect(await world.eventTypes("c", 1)).toEqual(["OrchestrationStarted", "OrchestrationContinuedAsNew"]);
    });
  });

  describe("an event for an instance that has continued as new", () => {
    const secondWaits = orchestration("SecondWaits", async (ctx, round: number): Promise<string> => {
      return round === 1 ? ctx.continueAsNew(2) : ctx.waitForEvent<string>("Go");
    });

    test("goes to the execution that runs now", async () => {
      await using world = await store.world();
      await world.start({ orchestrations: [secondWaits] });
      const handle = await world.client.start(secondWaits, { instanceId: "s", input: 1 });
      await world.rest();
      expect(await world.eventTypes("s", 2)).toEqual(["OrchestrationStarted", "ExternalSubscribed"]);
      await handle.raiseEvent("Go", "ok");

      expect(await world.settle(handle.result())).toBe("ok");
      expect(await world.eventTypes("s", 1)).not.toContain("ExternalEvent");
      expect(eventsOf(await world.history("s", 2), "ExternalEvent")).toMatchObject([{ data: '"ok"', executionId: 2 }]);
      expect(await world.provider.read("s")).toEqual(await world.history("s", 2));
    });

    test("and has not begun anew yet is recorded there, too early for its wait", async () => {
      await using world = await store.world();
      const runtime = await world.start({ orchestrations: [secondWaits], orchestrationConcurrency: 1 });
      const crashed = runtime.crashAt("after-turn-commit");
      const handle = await world.client.start(secondWaits, { instanceId: "s", input: 1 });
      await world.settle(crashed);
      expect(await world.client.listExecutions("s")).toEqual([1]);
      await handle.raiseEvent("Go", "early");
      await runtime.restart();
      await world.rest();
      await handle.raiseEvent("Go", "late");

      expect(await world.settle(handle.result())).toBe("late");
      expect(await world.eventTypes("s", 1)).toEqual(["OrchestrationStarted", "OrchestrationContinuedAsNew"]);
      expect(await world.history("s", 2)).toMatchObject([
        { type: "OrchestrationStarted" },
        { type: "ExternalEvent", data: '"early"' },
        { type: "ExternalSubscribed" },
        { type: "ExternalEvent", data: '"late"' },
        { type: "OrchestrationCompleted" },
      ]);
    });
  });

  describe("an answer that belongs to another execution", () => {
    test.each([
      ["an earlier one", 1],
      ["a later one", 999],
      ["none that can be", 0],
    ])("is dropped and reported: %s", async (_which, executionId) => {
      await using world = await store.world();
      const result = activity("Result", () => "the real result");
      const calls = orchestration("Calls", async (ctx, round: number): Promise<string> => {
        if (round === 1) return ctx.continueAsNew(2);
        const answer = ctx.scheduleActivity(result);
        await ctx.waitForEvent("go");
        return answer;
      });
      const runtime = await world.start({ orchestrations: [calls], activities: [result], workerConcurrency: 0 });
      const handle = await world.client.start(calls, { instanceId: "c", input: 1 });
      await world.rest();
      const before = await world.history("c", 2);
      expect(before.map(({ type }) => type)).toEqual([
        "OrchestrationStarted",
        "ActivityScheduled",
        "ExternalSubscribed",
      ]);
      for (const id of [2, 999]) {
        const item = { instance: "c", executionId, id, result: '"forged"' };
        await world.provider.enqueueForOrchestrator({ type: "ActivityCompleted", ...item });
      }
      await world.advance("1m");

      expect(await world.history("c", 2)).toEqual(before);
      const dropped = world.factsOf("messages-dropped");
      expect(new Set(dropped.map(({ why }) => why))).toEqual(new Set(["other-execution"]));
      expect(dropped.reduce((sum, { count }) => sum + count, 0)).toBe(2);
      expect(await handle.status()).toMatchObject({ status: "Running" });
      await runtime.restart({ workerConcurrency: 1 });
      await handle.raiseEvent("go");
      expect(await world.settle(handle.result())).toBe("the real result");
    });
  });
});
