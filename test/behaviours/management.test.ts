// What operators learn from a client, while runtimes work and after: lists, details, trees, counts. P§10, P§11.

import { describe, expect, test } from "vitest";
import { sleep } from "../../src/clock.js";
import { activity, orchestration } from "../../src/define.js";
import type { ExecutionStatus } from "../../src/provider/provider.js";
import { mockActivity } from "../../src/testing/mock-activity.js";
import type { TestWorld } from "../../src/testing/test-world.js";
import { onEveryStore } from "./stores.js";

const greet = activity("Greet", async (_ctx, name: string) => `Hello, ${name}!`);
const greets = orchestration("Greets", async (ctx, name: string) => ctx.scheduleActivity(greet, name));
const fails = orchestration("Fails", async () => {
  throw new Error("no stock");
});
const waits = orchestration("Waits", async (ctx) => ctx.waitForEvent<string>("go"));
const counts = orchestration("Counts", async (ctx, n: number): Promise<string> => {
  return n < 3 ? ctx.continueAsNew(n + 1) : `final: ${n}`;
});
const grandchild = orchestration("Grandchild", async () => "grandchild");
const child = orchestration("Child", async (ctx) => ctx.scheduleSubOrchestration(grandchild));
const parent = orchestration("Parent", async (ctx) => ctx.scheduleSubOrchestration(child));
const both = orchestration("Both", async (ctx) => ctx.all([1, 2].map(() => ctx.scheduleSubOrchestration(grandchild))));
const names = orchestration("Names", async (ctx) =>
  ctx.all(
    ["child-1", "child-2"].map((instanceId) => ctx.scheduleSubOrchestration(grandchild, undefined, { instanceId })),
  ),
);

const CODE = {
  orchestrations: [greets, fails, waits, counts, grandchild, child, parent, both, names],
  activities: [greet],
};
const EMPTY_QUEUES = { orchestratorQueue: 0, workerQueue: 0, timerQueue: 0 };
/** What a client written in plain JavaScript may ask for. */
const NO_STATUS = "Unknown" as ExecutionStatus;

/** How many events the store holds, by reading them all. */
async function eventsIn({ client }: TestWorld): Promise<number> {
  let events = 0;
  for (const id of await client.listAllInstances()) {
    for (const executionId of await client.listExecutions(id)) {
      events += (await client.readHistory(id, executionId)).length;
    }
  }
  return events;
}

onEveryStore((store) => {
  async function openRunning(): Promise<TestWorld> {
    const world = await store.world();
    await world.start(CODE);
    return world;
  }

  /** Two that completed, one that failed, one that waits: "ada", "bob", "failed", "waiting". */
  async function openMixed(): Promise<TestWorld> {
    const world = await openRunning();
    for (const name of ["ada", "bob"]) await world.run(greets, { instanceId: name, input: name });
    await world.client.start(fails, { instanceId: "failed" });
    expect(await world.ending("failed")).toMatchObject({ status: "Failed" });
    await world.client.start(waits, { instanceId: "waiting" });
    await world.rest();
    return world;
  }

  describe("an empty store", () => {
    test("offers management, and has nothing to tell", async () => {
      await using world = await openRunning();

      expect(world.client.hasManagementCapability()).toBe(true);
      expect(await world.client.listAllInstances()).toEqual([]);
      expect(await world.client.getSystemMetrics()).toEqual({
        totalInstances: 0,
        totalExecutions: 0,
        runningInstances: 0,
        completedInstances: 0,
        failedInstances: 0,
        totalEvents: 0,
      });
      expect(await world.client.getQueueDepths()).toEqual(EMPTY_QUEUES);
    });
  });

  describe("an instance that has completed", () => {
    test("is listed, described and counted", async () => {
      await using world = await openRunning();
      const createdAtMs = world.clock.now();
      expect(await world.run(greets, { instanceId: "g", input: "Ada" })).toBe("Hello, Ada!");

      expect(await world.client.listAllInstances()).toEqual(["g"]);
      expect(await world.client.listInstancesByStatus("Completed")).toEqual(["g"]);
      expect(await world.client.getInstanceInfo("g")).toEqual({
        instanceId: "g",
        orchestrationName: "Greets",
        orchestrationVersion: "1.0.0",
        currentExecutionId: 1,
        status: "Completed",
        output: '"Hello, Ada!"',
        createdAtMs,
        updatedAtMs: world.clock.now(),
        parentInstanceId: null,
      });
      expect(await world.client.listExecutions("g")).toEqual([1]);
      expect(await world.client.getExecutionInfo("g", 1)).toEqual({
        executionId: 1,
        status: "Completed",
        output: '"Hello, Ada!"',
        startedAtMs: createdAtMs,
        completedAtMs: world.clock.now(),
        eventCount: 4,
      });
      expect(await world.client.getSystemMetrics()).toMatchObject({ totalInstances: 1, totalExecutions: 1 });
    });
  });

  describe("lists", () => {
    test("find all that have completed, and none that runs", async () => {
      await using world = await openRunning();
      for (const name of ["a", "b", "c"]) await world.run(greets, { instanceId: name, input: name });

      expect([...(await world.client.listAllInstances())].sort()).toEqual(["a", "b", "c"]);
      expect([...(await world.client.listInstancesByStatus("Completed"))].sort()).toEqual(["a", "b", "c"]);
      expect(await world.client.listInstancesByStatus("Running")).toEqual([]);
    });

    test("tell those that completed, failed and run apart", async () => {
      await using world = await openMixed();

      expect([...(await world.client.listInstancesByStatus("Completed"))].sort()).toEqual(["ada", "bob"]);
      expect(await world.client.listInstancesByStatus("Failed")).toEqual(["failed"]);
      expect(await world.client.listInstancesByStatus("Running")).toEqual(["waiting"]);
      expect(await world.client.listInstancesByStatus("ContinuedAsNew")).toEqual([]);
    });

    test("know no instance of a status that there is not, and the client refuses to look", async () => {
      await using world = await openMixed();

      expect(await world.provider.admin?.listInstancesByStatus(NO_STATUS)).toEqual([]);
      await expect(world.client.listInstancesByStatus(NO_STATUS)).rejects.toMatchObject({
        code: "DUROXIDE_INVALID_INPUT",
        message: expect.stringContaining("status"),
      });
    });
  });

  describe("the executions of a chain", () => {
    test("have a status each, and the instance that of the last", async () => {
      await using world = await openRunning();
      expect(await world.run(counts, { instanceId: "c", input: 0 })).toBe("final: 3");

      expect(await world.client.listExecutions("c")).toEqual([1, 2, 3, 4]);
      const executions = await Promise.all([1, 2, 3, 4].map((id) => world.client.getExecutionInfo("c", id)));
      expect(executions.map(({ status, output }) => [status, output])).toEqual([
        ["ContinuedAsNew", "1"],
        ["ContinuedAsNew", "2"],
        ["ContinuedAsNew", "3"],
        ["Completed", '"final: 3"'],
      ]);
      expect(await world.client.getInstanceInfo("c")).toMatchObject({ currentExecutionId: 4, status: "Completed" });
      expect(await world.client.getSystemMetrics()).toMatchObject({ totalInstances: 1, totalExecutions: 4 });
    });

    test("have a history each, which begins with its start and its input", async () => {
      await using world = await openRunning();
      await world.run(counts, { instanceId: "c", input: 0 });

      expect(await world.provider.admin?.latestExecutionId("c")).toBe(4);
      for (const executionId of await world.client.listExecutions("c")) {
        expect(await world.provider.admin?.readHistoryWithExecutionId("c", executionId)).toMatchObject([
          { type: "OrchestrationStarted", eventId: 1, executionId, input: String(executionId - 1) },
          { type: executionId < 4 ? "OrchestrationContinuedAsNew" : "OrchestrationCompleted", executionId },
        ]);
      }
      expect(await world.provider.admin?.readHistory("c")).toEqual(await world.history("c", 4));
    });
  });

  describe("a tree", () => {
    test("can be walked down, generation by generation, and up again", async () => {
      await using world = await openRunning();
      await world.run(parent, { instanceId: "p" });

      expect(await world.client.listChildren("p")).toEqual(["p::sub::2"]);
      expect(await world.client.listChildren("p::sub::2")).toEqual(["p::sub::2::sub::2"]);
      expect(await world.client.listChildren("p::sub::2::sub::2")).toEqual([]);
      expect(await world.client.getParentId("p::sub::2::sub::2")).toBe("p::sub::2");
      expect(await world.client.getParentId("p::sub::2")).toBe("p");
      expect(await world.client.getParentId("p")).toBeNull();
      await expect(world.client.getParentId("nobody")).rejects.toMatchObject({ code: "DUROXIDE_NOT_FOUND" });
    });

    test("has children under ids of their own, where their parent gives them none", async () => {
      await using world = await openRunning();
      await world.run(both, { instanceId: "p" });

      expect(await world.client.getInstanceTree("p")).toEqual({
        rootId: "p",
        allIds: ["p", "p::sub::2", "p::sub::3"],
      });
    });

    test("has children under the ids that their parent gave them", async () => {
      await using world = await openRunning();
      await world.run(names, { instanceId: "p" });

      const { rootId, allIds } = await world.client.getInstanceTree("p");
      expect(rootId).toBe("p");
      expect(allIds[0]).toBe("p");
      expect([...allIds].sort()).toEqual(["child-1", "child-2", "p"]);
    });

    test("of an instance without children is the instance alone", async () => {
      await using world = await openMixed();
      expect(await world.client.getInstanceTree("ada")).toEqual({ rootId: "ada", allIds: ["ada"] });
    });
  });

  describe("counts", () => {
    test("agree with what the lists and the histories say", async () => {
      await using world = await openMixed();

      expect(await world.client.getSystemMetrics()).toEqual({
        totalInstances: 4,
        totalExecutions: 4,
        runningInstances: 1,
        completedInstances: 2,
        failedInstances: 1,
        totalEvents: await eventsIn(world),
      });
      expect(await eventsIn(world)).toBe(4 + 4 + 2 + 2);
    });

    test("of the queues fall as the work is taken, and are 0 when all is done", async () => {
      await using world = await store.world();
      const slow = activity("Slow", () => sleep(world.clock, 500));
      const slows = orchestration("Slows", async (ctx) => ctx.scheduleActivity(slow));
      for (let n = 1; n <= 5; n += 1) await world.client.start(slows, { instanceId: `slow-${n}` });
      const depths = async () => world.client.getQueueDepths();
      expect(await depths()).toEqual({ ...EMPTY_QUEUES, orchestratorQueue: 5 });

      await world.start({ orchestrations: [slows], activities: [slow], workerConcurrency: 2 });
      await world.advance("100ms");
      expect(await depths()).toEqual({ ...EMPTY_QUEUES, workerQueue: 3 });
      await world.advance("500ms");
      expect(await depths()).toEqual({ ...EMPTY_QUEUES, workerQueue: 1 });
      await world.advance("1400ms");
      expect(await depths()).toEqual(EMPTY_QUEUES);
      expect(await world.client.listInstancesByStatus("Completed")).toHaveLength(5);
    });

    test("and histories account for every step of many orders", async () => {
      await using world = await store.world();
      const steps = ["Validate", "Charge", "Ship"].map((name) =>
        mockActivity<string, string>(name, (_ctx, order) => `${order} ${name}`),
      );
      const order = orchestration("Order", async (ctx, id: string) => {
        let state = id;
        for (const step of steps) state = await ctx.scheduleActivity(step, state);
        return state;
      });
      await world.start({ orchestrations: [order], activities: steps });
      const ids = [1, 2, 3, 4, 5].map((n) => `order-${n}`);
      for (const id of ids) await world.client.start(order, { instanceId: id, input: id });
      for (const id of ids) {
        expect(await world.ending(id)).toEqual({ status: "Completed", output: `"${id} Validate Charge Ship"` });
      }

      for (const step of steps) expect(step.calls.map(({ instanceId }) => instanceId).sort()).toEqual(ids);
      for (const id of ids) {
        expect(await world.eventTypes(id)).toEqual([
          "OrchestrationStarted",
          ...steps.flatMap(() => ["ActivityScheduled", "ActivityCompleted"]),
          "OrchestrationCompleted",
        ]);
      }
      expect(await world.client.getSystemMetrics()).toEqual({
        totalInstances: 5,
        totalExecutions: 5,
        runningInstances: 0,
        completedInstances: 5,
        failedInstances: 0,
        totalEvents: 5 * 8,
      });
      expect([...(await world.client.listInstancesByStatus("Completed"))].sort()).toEqual(ids);
      expect(await world.client.getQueueDepths()).toEqual(EMPTY_QUEUES);
    });
  });

  describe("an instance that is not known", () => {
    test("is told by an error where something is asked of it, and by nothing in lists and histories", async () => {
      await using world = await openMixed();
      const notFound = { code: "DUROXIDE_NOT_FOUND", message: expect.stringContaining("not found") };

      await expect(world.client.getInstanceInfo("nobody")).rejects.toMatchObject(notFound);
      await expect(world.client.getExecutionInfo("nobody", 1)).rejects.toMatchObject(notFound);
      await expect(world.client.getExecutionInfo("ada", 2)).rejects.toMatchObject(notFound);
      expect(await world.client.readHistory("nobody")).toEqual([]);
      expect(await world.client.listExecutions("nobody")).toEqual([]);
    });

    test("is the same to the store itself", async () => {
      await using world = await openMixed();
      const { admin } = world.provider;
      const notFound = { kind: "not-found", message: expect.stringContaining("not found") };

      await expect(admin?.getInstanceInfo("nobody")).rejects.toMatchObject(notFound);
      await expect(admin?.getExecutionInfo("nobody", 1)).rejects.toMatchObject(notFound);
      expect(await admin?.readHistory("nobody")).toEqual([]);
      expect(await admin?.readHistoryWithExecutionId("nobody", 1)).toEqual([]);
      expect(await admin?.listExecutions("nobody")).toEqual([]);
      expect(await admin?.latestExecutionId("nobody")).toBe(1);
    });
  });
});
