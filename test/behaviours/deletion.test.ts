// Deletion: a tree goes as a whole, what runs only by force, and nothing of it comes back. P§11.

import { describe, expect, test } from "vitest";
import { activity, type OrchestrationDefinition, orchestration } from "../../src/define.js";
import { mockActivity } from "../../src/testing/mock-activity.js";
import type { TestWorld } from "../../src/testing/test-world.js";
import { onEveryStore } from "./stores.js";

/** Ends only when nobody wants it any more. */
const endless = activity("Endless", (ctx): Promise<string> => {
  return new Promise((_resolve, reject) => ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason)));
});

const works = orchestration("Works", async (ctx) => ctx.scheduleActivity(endless));
const sleeps = orchestration("Sleeps", async (ctx) => void (await ctx.scheduleTimer("1h")));
const waits = orchestration("Waits", async (ctx) => ctx.waitForEvent<string>("go"));
const says = orchestration("Says", async (_ctx, word: string) => word);
const family = orchestration("Family", async (ctx, words: string[]) =>
  ctx.all(words.map((word) => ctx.scheduleSubOrchestration(says, word))),
);
const delegates = orchestration("Delegates", async (ctx) => ctx.scheduleSubOrchestration(waits));
/** Ends when it is told to, and gives its child up. */
const forsakes = orchestration("Forsakes", async (ctx) => {
  void ctx.scheduleSubOrchestration(waits);
  return ctx.waitForEvent<string>("end");
});
const continues = orchestration("Continues", async (ctx, round: number): Promise<string> => {
  return round < 2 ? ctx.continueAsNew(round + 1) : `round ${round}`;
});

const CODE = {
  orchestrations: [works, sleeps, waits, says, family, delegates, forsakes, continues],
  activities: [endless],
};
const EMPTY_QUEUES = { orchestratorQueue: 0, workerQueue: 0, timerQueue: 0 };

async function expectGone({ client }: TestWorld, ...instanceIds: readonly string[]): Promise<void> {
  for (const id of instanceIds) {
    expect(await client.getStatus(id)).toEqual({ status: "NotFound" });
    expect(await client.readHistory(id)).toEqual([]);
    expect(await client.listExecutions(id)).toEqual([]);
    await expect(client.getInstanceInfo(id)).rejects.toMatchObject({ code: "DUROXIDE_NOT_FOUND" });
    expect(await client.listAllInstances()).not.toContain(id);
  }
}

onEveryStore((store) => {
  async function openFamily(): Promise<TestWorld> {
    const world = await store.world();
    await world.start(CODE);
    expect(await world.run(family, { instanceId: "p", input: ["a", "b"] })).toEqual(["a", "b"]);
    return world;
  }

  describe("a deletion by force", () => {
    test.each<[string, OrchestrationDefinition<void, unknown>, number]>([
      ["an activity", works, 1],
      ["a timer", sleeps, 1],
      ["an event", waits, 0],
    ])("takes an instance that waits for %s, and nothing of it comes back", async (_what, waiting, queued) => {
      await using world = await store.world();
      await world.start(CODE);
      await world.client.start(waiting, { instanceId: "w" });
      await world.advance("1s");
      expect(await world.client.getStatus("w")).toMatchObject({ status: "Running" });

      expect(await world.client.deleteInstance("w", { force: true })).toEqual({
        instancesDeleted: 1,
        executionsDeleted: 1,
        eventsDeleted: 2,
        queueMessagesDeleted: queued,
      });
      await expectGone(world, "w");
      expect(await world.client.getQueueDepths()).toEqual(EMPTY_QUEUES);

      await world.client.raiseEvent("w", "go", "too late");
      await world.advance("2h");
      await expectGone(world, "w");
      expect(world.factsOf("orchestration-ended")).toEqual([]);
    });

    test("gives the slots back to those who come after", async () => {
      await using world = await store.world();
      const counted = mockActivity<string, string>("Counted", (_ctx, word) => word.toUpperCase());
      const calls = orchestration("Calls", async (ctx, word: string) => ctx.scheduleActivity(counted, word));
      await world.start({
        orchestrations: [...CODE.orchestrations, calls],
        activities: [endless, counted],
        orchestrationConcurrency: 1,
        workerConcurrency: 1,
      });
      await world.client.start(works, { instanceId: "w" });
      await world.advance("1s");
      await world.client.deleteInstance("w", { force: true });

      const words = ["one", "two", "three"];
      for (const word of words) expect(await world.run(calls, { input: word })).toBe(word.toUpperCase());
      expect(counted.calls.map(({ input }) => input)).toEqual(words);
      const endings = world.factsOf("activity-ended").map(({ ref, outcome }) => [ref.activityName, outcome]);
      expect(endings).toEqual([["Endless", "cancelled"], ...words.map(() => ["Counted", "success"])]);
    });

    test("takes children along whose start is only queued", async () => {
      await using world = await store.world();
      const runtime = await world.start(CODE);
      const crashed = runtime.crashAt("after-turn-commit", { instanceId: "d" });
      await world.client.start(delegates, { instanceId: "d" });
      await world.settle(crashed);
      expect(await world.client.listAllInstances()).toEqual(["d"]);

      expect(await world.client.deleteInstance("d", { force: true })).toMatchObject({
        instancesDeleted: 1,
        queueMessagesDeleted: 1,
      });
      await runtime.restart();
      await world.advance("1h");
      expect(await world.client.listAllInstances()).toEqual([]);
      expect(await world.client.getQueueDepths()).toEqual(EMPTY_QUEUES);
    });
  });

  describe("a tree", () => {
    test("is deleted by its root, never by a child", async () => {
      await using world = await openFamily();
      expect(await world.client.getInstanceTree("p")).toEqual({
        rootId: "p",
        allIds: ["p", "p::sub::2", "p::sub::3"],
      });
      for (const child of ["p::sub::2", "p::sub::3"]) {
        for (const force of [false, true]) {
          await expect(world.client.deleteInstance(child, { force })).rejects.toMatchObject({
            code: "DUROXIDE_SUB_ORCHESTRATION",
            instanceId: child,
            message: expect.stringContaining("is a sub-orchestration. Delete the root"),
          });
        }
      }
      expect(await world.client.listAllInstances()).toHaveLength(3);

      expect(await world.client.deleteInstance("p")).toMatchObject({ instancesDeleted: 3, executionsDeleted: 3 });
      await expectGone(world, "p", "p::sub::2", "p::sub::3");
    });

    test.each([false, true])("is never torn apart: its root alone is refused, forced: %s", async (force) => {
      await using world = await store.world();
      await world.start(CODE);
      await world.run(family, { instanceId: "p", input: ["a"] });
      const { admin } = world.provider;
      const histories = async () => [await world.history("p"), await world.history("p::sub::2")];
      const before = await histories();

      await expect(admin?.deleteInstancesAtomic(["p"], force)).rejects.toMatchObject({
        kind: "orphans",
        message: expect.stringMatching(/child|orphan/i),
      });
      expect(await histories()).toEqual(before);
      expect(await world.client.getStatus("p")).toMatchObject({ status: "Completed", output: ["a"] });

      const whole = await admin?.deleteInstancesAtomic(["p", "p::sub::2"], force);
      expect(whole).toMatchObject({ instancesDeleted: 2, eventsDeleted: before.flat().length });
      await expectGone(world, "p", "p::sub::2");
    });

    test("is deleted once, though two ask for it at the same time", async () => {
      await using world = await openFamily();
      const outcomes = await Promise.allSettled([1, 2].map(() => world.client.deleteInstance("p")));

      const deleted = outcomes.map((outcome) => (outcome.status === "fulfilled" ? outcome.value.instancesDeleted : 0));
      expect(deleted.reduce((sum, count) => sum + count)).toBe(3);
      for (const outcome of outcomes) {
        if (outcome.status === "rejected") expect(outcome.reason).toMatchObject({ code: "DUROXIDE_NOT_FOUND" });
      }
      await expectGone(world, "p", "p::sub::2", "p::sub::3");
    });
  });

  describe("the id of a deleted instance", () => {
    test("can be used again after the instance ended", async () => {
      await using world = await store.world();
      await world.start(CODE);
      expect(await world.run(says, { instanceId: "s", input: "first" })).toBe("first");
      await world.client.deleteInstance("s");

      expect(await world.run(says, { instanceId: "s", input: "second" })).toBe("second");
      expect(await world.history("s")).toMatchObject([
        { type: "OrchestrationStarted", input: '"second"' },
        { type: "OrchestrationCompleted", output: '"second"' },
      ]);
    });

    test("can be used again after the instance was taken while it ran", async () => {
      await using world = await store.world();
      await world.start(CODE);
      await world.client.start(works, { instanceId: "s" });
      await world.advance("1s");
      await world.client.deleteInstance("s", { force: true });

      expect(await world.run(says, { instanceId: "s", input: "second" })).toBe("second");
      await world.advance("1h");
      expect(await world.eventTypes("s")).toEqual(["OrchestrationStarted", "OrchestrationCompleted"]);
      expect(await world.client.listExecutions("s")).toEqual([1]);
    });
  });

  describe("a deletion is refused", () => {
    test.each([false, true])("for an instance that is not there, forced: %s", async (force) => {
      await using world = await store.world();
      await world.start(CODE);

      await expect(world.client.deleteInstance("nobody", { force })).rejects.toMatchObject({
        code: "DUROXIDE_NOT_FOUND",
        message: expect.stringContaining("not found"),
      });
    });

    test("while the instance runs, which runs on", async () => {
      await using world = await store.world();
      await world.start(CODE);
      await world.client.start(delegates, { instanceId: "d" });
      await world.rest();
      const before = await world.history("d");

      await expect(world.client.deleteInstance("d")).rejects.toMatchObject({
        code: "DUROXIDE_STILL_RUNNING",
        message: expect.stringContaining("is still running"),
      });
      expect(await world.history("d")).toEqual(before);
      await world.client.raiseEvent("d::sub::2", "go", "on");
      expect(await world.ending("d")).toEqual({ status: "Completed", output: '"on"' });
    });

    test("between two executions, because the instance goes on", async () => {
      await using world = await store.world();
      const runtime = await world.start(CODE);
      const crashed = runtime.crashAt("after-turn-commit");
      await world.client.start(continues, { instanceId: "c", input: 1 });
      await world.settle(crashed);
      expect(await world.client.listInstancesByStatus("ContinuedAsNew")).toEqual(["c"]);

      await expect(world.client.deleteInstance("c")).rejects.toMatchObject({ code: "DUROXIDE_STILL_RUNNING" });
      expect(await world.client.deleteInstanceBulk({ instanceIds: ["c"] })).toMatchObject({ instancesDeleted: 0 });

      await runtime.restart();
      expect(await world.ending("c")).toEqual({ status: "Completed", output: '"round 2"' });
      expect(await world.client.deleteInstance("c")).toMatchObject({ instancesDeleted: 1, executionsDeleted: 2 });
    });
  });

  describe("a bulk deletion", () => {
    test("takes of those that it names what has ended, and leaves what runs", async () => {
      await using world = await store.world();
      await world.start(CODE);
      await world.run(says, { instanceId: "ended", input: "word" });
      await world.run(says, { instanceId: "not named", input: "word" });
      await world.client.start(waits, { instanceId: "running" });
      await world.rest();

      expect(await world.client.deleteInstanceBulk({ instanceIds: ["ended", "running"] })).toEqual({
        instancesDeleted: 1,
        executionsDeleted: 1,
        eventsDeleted: 2,
        queueMessagesDeleted: 0,
      });
      await expectGone(world, "ended");
      expect(await world.client.getStatus("not named")).toMatchObject({ status: "Completed" });
      await world.client.raiseEvent("running", "go", "still here");
      expect(await world.ending("running")).toEqual({ status: "Completed", output: '"still here"' });
    });

    test("takes a parent with its children, and a child not by itself", async () => {
      await using world = await store.world();
      await world.start(CODE);
      await world.run(family, { instanceId: "p", input: ["a"] });

      const child = await world.client.deleteInstanceBulk({ instanceIds: ["p::sub::2"] });
      expect(child).toMatchObject({ instancesDeleted: 0 });
      expect(await world.client.listChildren("p")).toEqual(["p::sub::2"]);
      expect(await world.client.deleteInstanceBulk({ instanceIds: ["p"] })).toMatchObject({ instancesDeleted: 2 });
      await expectGone(world, "p", "p::sub::2");
    });

    test("passes over an ended parent as long as its child has not ended", async () => {
      await using world = await store.world();
      const runtime = await world.start(CODE);
      await world.client.start(forsakes, { instanceId: "p" });
      await world.rest();
      const crashed = runtime.crashAt("after-turn-commit", { instanceId: "p" });
      await world.client.raiseEvent("p", "end", "over");
      await world.settle(crashed);
      expect(await world.client.getStatus("p")).toMatchObject({ status: "Completed", output: "over" });
      expect(await world.client.getStatus("p::sub::2")).toMatchObject({ status: "Running" });

      expect(await world.client.deleteInstanceBulk({})).toMatchObject({ instancesDeleted: 0 });
      await expect(world.client.deleteInstance("p")).rejects.toMatchObject({ code: "DUROXIDE_STILL_RUNNING" });
      expect(await world.client.listAllInstances()).toHaveLength(2);
      await runtime.restart();
      expect(await world.ending("p::sub::2")).toMatchObject({ status: "Failed" });
      expect(await world.client.deleteInstanceBulk({})).toMatchObject({ instancesDeleted: 2 });
    });
  });
});
