// Pruning: old executions go, the current one never, and an instance that runs does not notice. P§11.

import { describe, expect, test } from "vitest";
import { orchestration } from "../../src/define.js";
import type { PruneOptions } from "../../src/provider/admin.js";
import type { TestWorld } from "../../src/testing/test-world.js";
import { onEveryStore } from "./stores.js";

/** A minute for each execution. */
const counts = orchestration("Counts", async (ctx, { n, last }: { n: number; last: number }): Promise<string> => {
  await ctx.scheduleTimer("1m");
  return n < last ? ctx.continueAsNew({ n: n + 1, last }) : `Final: ${n}`;
});

/** Its start, its timer twice, its end. */
const EVENTS_OF_AN_EXECUTION = 4;

onEveryStore((store) => {
  /** A world in which each instance has that many executions, the last one completed. */
  async function openChains(executions: number, ...instanceIds: readonly string[]): Promise<TestWorld> {
    const world = await store.world();
    await world.start({ orchestrations: [counts] });
    for (const instanceId of instanceIds) {
      const input = { n: 1, last: executions };
      expect(await world.run(counts, { instanceId, input })).toBe(`Final: ${executions}`);
    }
    return world;
  }

  /** A world with an instance in the middle of that execution. */
  async function openRunning(execution: number, last: number) {
    const world = await store.world();
    const runtime = await world.start({ orchestrations: [counts] });
    const handle = await world.client.start(counts, { instanceId: "c", input: { n: 1, last } });
    for (let n = 1; n < execution; n += 1) await world.advance("1m");
    expect(await world.client.getStatus("c")).toMatchObject({ status: "Running", executionId: execution });
    return { world, runtime, handle };
  }

  describe("pruning a chain that has ended", () => {
    test("keeps the last executions with their histories, and takes the others", async () => {
      await using world = await openChains(6, "c");
      const kept = [await world.history("c", 5), await world.history("c", 6)];

      expect(await world.client.pruneExecutions("c", { keepLast: 2 })).toEqual({
        instancesProcessed: 1,
        executionsDeleted: 4,
        eventsDeleted: 4 * EVENTS_OF_AN_EXECUTION,
      });
      expect(await world.client.listExecutions("c")).toEqual([5, 6]);
      expect([await world.history("c", 5), await world.history("c", 6)]).toEqual(kept);
      expect(await world.history("c", 4)).toEqual([]);
      await expect(world.client.getExecutionInfo("c", 4)).rejects.toMatchObject({ code: "DUROXIDE_NOT_FOUND" });
      expect(await world.client.getStatus("c")).toMatchObject({ status: "Completed", output: "Final: 6" });
    });

    test("takes nothing the second time", async () => {
      await using world = await openChains(3, "c");
      await world.client.pruneExecutions("c", { keepLast: 2 });

      expect(await world.client.pruneExecutions("c", { keepLast: 2 })).toMatchObject({ executionsDeleted: 0 });
      expect(await world.client.listExecutions("c")).toEqual([2, 3]);
    });
  });

  describe("the current execution", () => {
    const options: [string, PruneOptions][] = [
      ["that keep none", { keepLast: 0 }],
      ["that keep one", { keepLast: 1 }],
      ["that say nothing", {}],
      ["that take whatever has ended till the end of time", { completedBeforeMs: Number.MAX_SAFE_INTEGER }],
    ];

    test.each(options)("stays when it has completed, with options %s", async (_what, given) => {
      await using world = await openChains(3, "c");
      const current = await world.history("c", 3);

      expect(await world.client.pruneExecutions("c", given)).toMatchObject({ executionsDeleted: 2 });
      expect(await world.client.pruneExecutions("c", given)).toMatchObject({ executionsDeleted: 0 });
      expect(await world.client.listExecutions("c")).toEqual([3]);
      expect(await world.history("c", 3)).toEqual(current);
    });

    test.each(options)("stays while it runs, with options %s", async (_what, given) => {
      const { world, handle } = await openRunning(3, 4);
      await using _ = world;

      expect(await world.client.pruneExecutions("c", given)).toMatchObject({ executionsDeleted: 2 });
      expect(await world.client.listExecutions("c")).toEqual([3]);
      expect(await world.settle(handle.result())).toBe("Final: 4");
    });

    test("stays when it is the only one", async () => {
      await using world = await openChains(1, "c");

      expect(await world.client.pruneExecutions("c")).toMatchObject({ executionsDeleted: 0, eventsDeleted: 0 });
      expect(await world.client.listExecutions("c")).toEqual([1]);
      expect(await world.client.getStatus("c")).toMatchObject({ status: "Completed", output: "Final: 1" });
    });
  });

  describe("an instance that is pruned while it runs", () => {
    test("goes on to its end, by whichever runtime", async () => {
      const { world, runtime, handle } = await openRunning(3, 5);
      await using _ = world;

      expect(await world.client.pruneExecutions("c", { keepLast: 1 })).toMatchObject({ executionsDeleted: 2 });
      expect(await world.client.getStatus("c")).toMatchObject({ status: "Running", executionId: 3 });
      await runtime.restart();
      expect(await world.settle(handle.result())).toBe("Final: 5");
      expect(await world.client.listExecutions("c")).toEqual([3, 4, 5]);
      expect(await world.eventTypes("c", 3)).toEqual([
        "OrchestrationStarted",
        "TimerCreated",
        "TimerFired",
        "OrchestrationContinuedAsNew",
      ]);
    });

    test("keeps its values and the messages that nobody took yet", async () => {
      await using world = await store.world();
      const collects = orchestration("Collects", async (ctx, round: number): Promise<unknown> => {
        if (round === 1) ctx.kv.set("first", "round 1");
        await ctx.scheduleTimer("1m");
        if (round < 3) return ctx.continueAsNew(round + 1);
        return [ctx.kv.get("first"), await ctx.dequeueEvent("inbox")];
      });
      const runtime = await world.start({ orchestrations: [collects] });
      const handle = await world.client.start(collects, { instanceId: "c", input: 1 });
      await handle.enqueueEvent("inbox", "sent in round 1");
      await world.advance("2m");

      expect(await world.client.pruneExecutions("c")).toMatchObject({ executionsDeleted: 2 });
      await runtime.restart();
      expect(await world.settle(handle.result())).toEqual(["round 1", "sent in round 1"]);
    });
  });

  describe("pruning in bulk", () => {
    test("goes for the instances that are named, and leaves the others as they are", async () => {
      await using world = await openChains(4, "a", "b", "other");

      expect(await world.client.pruneExecutionsBulk({ instanceIds: ["a", "b"] }, { keepLast: 1 })).toEqual({
        instancesProcessed: 2,
        executionsDeleted: 6,
        eventsDeleted: 6 * EVENTS_OF_AN_EXECUTION,
      });
      expect(await world.client.listExecutions("a")).toEqual([4]);
      expect(await world.client.listExecutions("b")).toEqual([4]);
      expect(await world.client.listExecutions("other")).toEqual([1, 2, 3, 4]);
    });

    test("without conditions goes for what runs, too, and lets it run on", async () => {
      const { world, runtime, handle } = await openRunning(6, 10);
      await using _ = world;

      expect(await world.client.pruneExecutionsBulk({}, { keepLast: 2 })).toEqual({
        instancesProcessed: 1,
        executionsDeleted: 4,
        eventsDeleted: 4 * EVENTS_OF_AN_EXECUTION,
      });
      expect(await world.client.listExecutions("c")).toEqual([5, 6]);
      expect(await world.client.getStatus("c")).toMatchObject({ status: "Running", executionId: 6 });
      await runtime.restart();
      expect(await world.settle(handle.result())).toBe("Final: 10");
    });
  });
});
