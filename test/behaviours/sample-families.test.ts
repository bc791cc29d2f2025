// Small programs of more than one orchestration, execution or version. R§4.6, R§4.9, R§4.10, R§6.2.

import { describe, expect, test } from "vitest";
import { activity, orchestration } from "../../src/define.js";
import { mockActivity } from "../../src/testing/mock-activity.js";
import { onEveryStore } from "./stores.js";

const echo = activity("Echo", (_ctx, text: string) => text);

onEveryStore((store) => {
  describe("a sub-orchestration", () => {
    test("is called like a function", async () => {
      await using world = await store.world();
      const upper = activity("Upper", (_ctx, text: string) => text.toUpperCase());
      const childUpper = orchestration("ChildUpper", async (ctx, text: string) => ctx.scheduleActivity(upper, text));
      const parent = orchestration(
        "Parent",
        async (ctx, text: string) => `parent:${await ctx.scheduleSubOrchestration(childUpper, text)}`,
      );
      await world.start({ orchestrations: [parent, childUpper], activities: [upper] });

      expect(await world.run(parent, { instanceId: "p", input: "hi" })).toBe("parent:HI");
      expect(await world.client.listChildren("p")).toEqual(["p::sub::2"]);
      expect(await world.history("p::sub::2")).toMatchObject([
        { type: "OrchestrationStarted", name: "ChildUpper", input: '"hi"', parentInstance: "p", parentId: 2 },
        { type: "ActivityScheduled", name: "Upper" },
        { type: "ActivityCompleted" },
        { type: "OrchestrationCompleted", output: '"HI"' },
      ]);
    });

    test("can be one of several that run side by side", async () => {
      await using world = await store.world();
      const sum = orchestration("ChildSum", async (_ctx, [a, b]: [number, number]) => a + b);
      const parent = orchestration("Parent", async (ctx) => {
        const [first, second] = await ctx.all([
          ctx.scheduleSubOrchestration(sum, [1, 2]),
          ctx.scheduleSubOrchestration(sum, [3, 4]),
        ]);
        return `total=${first + second}`;
      });
      await world.start({ orchestrations: [parent, sum] });

      expect(await world.run(parent, { instanceId: "p" })).toBe("total=10");
      expect((await world.client.listChildren("p")).toSorted()).toEqual(["p::sub::2", "p::sub::3"]);
      const types = await world.eventTypes("p");
      expect(types.slice(0, 3)).toEqual([
        "OrchestrationStarted",
        "SubOrchestrationScheduled",
        "SubOrchestrationScheduled",
      ]);
    });
  });

  describe("a detached orchestration", () => {
    const worker = orchestration("Worker", async (ctx, text: string) => ctx.scheduleActivity(echo, text));

    test("lives under the very id that it is given, and on after its creator", async () => {
      await using world = await store.world();
      const coordinator = orchestration("Coordinator", async (ctx) => {
        ctx.startOrchestration(worker, { instanceId: "W1", input: "A" });
        ctx.startOrchestration(worker, { instanceId: "W2", input: "B" });
        return "scheduled";
      });
      await world.start({ orchestrations: [coordinator, worker], activities: [echo] });

      expect(await world.run(coordinator, { instanceId: "c" })).toBe("scheduled");
      expect(await world.ending("W1")).toEqual({ status: "Completed", output: '"A"' });
      expect(await world.ending("W2")).toEqual({ status: "Completed", output: '"B"' });
      expect((await world.client.listAllInstances()).toSorted()).toEqual(["W1", "W2", "c"]);
      expect(await world.client.getParentId("W1")).toBeNull();
      expect((await world.history("W1")).at(-1)).toMatchObject({ type: "OrchestrationCompleted", output: '"A"' });
    });

    test("is in nobody's way: its creator goes on, over turns and restarts", async () => {
      await using world = await store.world();
      const creator = orchestration("Creator", async (ctx) => {
        ctx.startOrchestration(worker, { instanceId: "detached-child", input: "child-payload" });
        return ctx.scheduleActivity(echo, "hello");
      });
      const runtime = await world.start({ orchestrations: [creator, worker], activities: [echo] });
      const crashed = runtime.crashAt("after-turn-commit", { instanceId: "c" });
      const handle = await world.client.start(creator, { instanceId: "c" });
      await world.settle(crashed);
      await runtime.restart();

      expect(await world.settle(handle.result())).toBe("hello");
      expect(await world.ending("detached-child")).toEqual({ status: "Completed", output: '"child-payload"' });
      expect(await world.eventTypes("c")).toEqual([
        "OrchestrationStarted",
        "OrchestrationChained",
        "ActivityScheduled",
        "ActivityCompleted",
        "OrchestrationCompleted",
      ]);
    });
  });

  describe("an orchestration that continues as new", () => {
    test("counts on in executions of their own", async () => {
      await using world = await store.world();
      const counter = orchestration("Counter", async (ctx, count: number): Promise<string> => {
        return count < 3 ? ctx.continueAsNew(count + 1) : `final:${count}`;
      });
      await world.start({ orchestrations: [counter] });

      expect(await world.run(counter, { instanceId: "c", input: 0 })).toBe("final:3");
      expect(await world.client.listExecutions("c")).toEqual([1, 2, 3, 4]);
    });

    test("can prune its own past, through the client of an activity", async () => {
      await using world = await store.world();
      const processBatch = mockActivity<number, void>("ProcessBatch", () => {});
      const deleted: number[] = [];
      const pruneSelf = activity("PruneSelf", async ({ client, instanceId }) => {
        const { executionsDeleted } = await client.pruneExecutions(instanceId, { keepLast: 1 });
        deleted.push(executionsDeleted);
      });
      const eternal = orchestration("Eternal", async (ctx, batch: number): Promise<string> => {
        await ctx.scheduleActivity(processBatch, batch);
        await ctx.scheduleActivity(pruneSelf);
        return batch < 5 ? ctx.continueAsNew(batch + 1) : `Completed ${batch} batches`;
      });
      await world.start({ orchestrations: [eternal], activities: [processBatch, pruneSelf] });

      expect(await world.run(eternal, { instanceId: "e", input: 1 })).toBe("Completed 5 batches");
      expect(processBatch.calls.map(({ input }) => input)).toEqual([1, 2, 3, 4, 5]);
      expect(deleted).toEqual([0, 1, 1, 1, 1]);
      expect(await world.client.listExecutions("e")).toEqual([5]);
    });
  });

  describe("of several versions", () => {
    const v1 = orchestration({ name: "Job", version: "1.0.0" }, async () => "v1");
    const v2 = orchestration({ name: "Job", version: "2.0.0" }, async () => "v2");

    test("a start gets the newest, or the one that the policy of a deployment names", async () => {
      await using world = await store.world();
      const runtime = await world.start({ orchestrations: [v1, v2] });

      expect(await world.run(orchestration<void, string>("Job"))).toBe("v2");
      await runtime.shutdown();
      await runtime.restart({ versionPolicies: { Job: "1.0.0" } });
      expect(await world.run(orchestration<void, string>("Job"))).toBe("v1");
    });

    test("a child gets the one that its parent names, else the policy's", async () => {
      await using world = await store.world();
      const parent = orchestration("Parent", async (ctx) => {
        const named = await ctx.scheduleSubOrchestration<string>("Job", null, { version: "1.0.0" });
        const newest = await ctx.scheduleSubOrchestration<string>("Job");
        return `${named}-${newest}`;
      });
      await world.start({ orchestrations: [parent, v1, v2] });

      expect(await world.run(parent, { instanceId: "p" })).toBe("v1-v2");
      expect((await world.history("p::sub::2"))[0]).toMatchObject({ version: "1.0.0" });
      expect((await world.history("p::sub::4"))[0]).toMatchObject({ version: "2.0.0" });
    });

    test("an execution that continues as new hands over to the newest", async () => {
      await using world = await store.world();
      const old = orchestration({ name: "LongRunner", version: "1.0.0" }, async (ctx, state: string) =>
        ctx.continueAsNew(`v1:${state}`),
      );
      const upgraded = orchestration(
        { name: "LongRunner", version: "2.0.0" },
        async (_ctx, state: string) => `upgraded:${state}`,
      );
      await world.start({ orchestrations: [old, upgraded] });
      await world.client.start("LongRunner", { instanceId: "l", version: "1.0.0", input: "state" });

      expect(await world.ending("l")).toEqual({ status: "Completed", output: '"upgraded:v1:state"' });
      expect(await world.client.listExecutions("l")).toEqual([1, 2]);
      expect(await world.history("l", 1)).toMatchObject([
        { type: "OrchestrationStarted", version: "1.0.0", input: '"state"' },
        { type: "OrchestrationContinuedAsNew", input: '"v1:state"' },
      ]);
      expect(await world.history("l", 2)).toMatchObject([
        { type: "OrchestrationStarted", version: "2.0.0", input: '"v1:state"' },
        { type: "OrchestrationCompleted" },
      ]);
    });
  });
});
