// What can be known of an instance: by its own code, by clients, and from its history.

import { describe, expect, test } from "vitest";
import { activity, orchestration } from "../../src/define.js";
import { isTerminal } from "../../src/history/event.js";
import type { StartOrchestration } from "../../src/history/work-item.js";
import { eventsOf } from "./events-of.js";
import { onEveryStore } from "./stores.js";

onEveryStore((store) => {
  const waits = orchestration("Waits", async (ctx) => ctx.waitForEvent<string>("go"));

  describe("an instance", () => {
    test("ends with what its code makes of the result of an activity", async () => {
      await using world = await store.world();
      const increment = activity("A", (_ctx, text: string) => String(Number(text) + 1));
      const calls = orchestration("Calls", async (ctx) => `a=${await ctx.scheduleActivity(increment, "2")}`);
      await world.start({ orchestrations: [calls], activities: [increment] });

      await world.client.start(calls, { instanceId: "c" });
      expect(await world.ending("c")).toEqual({ status: "Completed", output: '"a=3"' });
      expect(await world.history("c")).toMatchObject([
        { type: "OrchestrationStarted" },
        { type: "ActivityScheduled", name: "A", input: '"2"' },
        { type: "ActivityCompleted", sourceEventId: 2, result: '"3"' },
        { type: "OrchestrationCompleted", output: '"a=3"' },
      ]);
    });

    test("that is started twice runs once", async () => {
      await using world = await store.world();
      let runs = 0;
      const counts = orchestration("Counts", async () => {
        runs += 1;
        return runs;
      });
      await world.start({ orchestrations: [counts] });
      const handles = await Promise.all([1, 2].map(() => world.client.start(counts, { instanceId: "c" })));

      expect(await world.settle(Promise.all(handles.map((handle) => handle.result())))).toEqual([1, 1]);
      await world.advance("1m");
      expect(runs).toBe(1);
      const history = await world.history("c");
      expect(eventsOf(history, "OrchestrationStarted")).toHaveLength(1);
      expect(history.filter(isTerminal)).toHaveLength(1);
    });

    test("whose start comes twice, and once more when it has ended, runs once", async () => {
      await using world = await store.world();
      let runs = 0;
      const counts = orchestration("Counts", async () => {
        runs += 1;
        return runs;
      });
      const start: StartOrchestration = {
        type: "StartOrchestration",
        instance: "c",
        orchestration: "Counts",
        input: "null",
        version: null,
        parentInstance: null,
        parentId: null,
        executionId: 1,
      };
      for (let times = 0; times < 2; times += 1) await world.provider.enqueueForOrchestrator(start);
      await world.start({ orchestrations: [counts] });
      expect(await world.ending("c")).toEqual({ status: "Completed", output: "1" });
      await world.provider.enqueueForOrchestrator(start);
      await world.advance("1m");

      expect(runs).toBe(1);
      expect(await world.eventTypes("c")).toEqual(["OrchestrationStarted", "OrchestrationCompleted"]);
      expect(await world.client.listExecutions("c")).toEqual([1]);
      expect(await world.client.getQueueDepths()).toMatchObject({ orchestratorQueue: 0 });
      expect(world.factsOf("messages-dropped")).toMatchObject([
        { instanceId: "c", why: "duplicate-start", count: 1 },
        { instanceId: "c", why: "instance-ended", count: 1 },
      ]);
    });

    test("is not found, then runs, then has completed or failed", async () => {
      await using world = await store.world();
      const fails = orchestration("Fails", async () => {
        throw new Error("boom");
      });
      await world.start({ orchestrations: [waits, fails] });
      expect(await world.client.getStatus("w")).toEqual({ status: "NotFound" });

      await world.client.start(waits, { instanceId: "w" });
      await world.rest();
      expect(await world.client.getStatus("w")).toMatchObject({ status: "Running" });
      await world.client.raiseEvent("w", "go", "ok");
      await world.ending("w");
      expect(await world.client.getStatus("w")).toMatchObject({ status: "Completed", output: "ok" });

      await world.client.start(fails, { instanceId: "f" });
      await world.ending("f");
      expect(await world.client.getStatus("f")).toMatchObject({
        status: "Failed",
        error: "boom",
        details: { category: "application", kind: { type: "OrchestrationFailed" }, message: "boom" },
      });
    });

    test("knows itself: its id, its execution, its name and its version", async () => {
      await using world = await store.world();
      const introspects = orchestration({ name: "Introspects", version: "2.1.0" }, async (ctx) => ({
        instanceId: ctx.instanceId,
        executionId: ctx.executionId,
        orchestrationName: ctx.orchestrationName,
        orchestrationVersion: ctx.orchestrationVersion,
      }));
      await world.start({ orchestrations: [introspects] });

      expect(await world.run(introspects, { instanceId: "me" })).toEqual({
        instanceId: "me",
        executionId: 1,
        orchestrationName: "Introspects",
        orchestrationVersion: "2.1.0",
      });
    });

    test("is known with its parent, where it has one", async () => {
      await using world = await store.world();
      const child = orchestration({ name: "Child", version: "1.1.0" }, async () => "child");
      const root = orchestration({ name: "Root", version: "1.2.0" }, async (ctx) =>
        ctx.scheduleSubOrchestration(child),
      );
      await world.start({ orchestrations: [root, child] });
      await world.run(root, { instanceId: "inst-desc" });

      expect(await world.client.getInstanceInfo("inst-desc")).toMatchObject({
        orchestrationName: "Root",
        orchestrationVersion: "1.2.0",
        parentInstanceId: null,
      });
      expect(await world.client.getInstanceInfo("inst-desc::sub::2")).toMatchObject({
        orchestrationName: "Child",
        orchestrationVersion: "1.1.0",
        parentInstanceId: "inst-desc",
      });
      expect((await world.history("inst-desc"))[0]).toMatchObject({ parentInstance: null, parentId: null });
      expect((await world.history("inst-desc::sub::2"))[0]).toMatchObject({
        parentInstance: "inst-desc",
        parentId: 2,
      });
    });
  });

  describe("the executions of an instance", () => {
    test("keep a history each, and the latest is what is read where none is named", async () => {
      await using world = await store.world();
      const twice = orchestration("Twice", async (ctx, round: number): Promise<string> => {
        await ctx.waitForEvent("go");
        return round === 1 ? ctx.continueAsNew(2) : "over";
      });
      await world.start({ orchestrations: [twice] });
      const handle = await world.client.start(twice, { instanceId: "t", input: 1 });
      await world.rest();
      await world.client.raiseEvent("t", "go");
      await world.rest();
      expect(await world.client.listExecutions("t")).toEqual([1, 2]);
      const first = await world.history("t", 1);
      expect(first.at(-1)).toMatchObject({ type: "OrchestrationContinuedAsNew" });
      await world.client.raiseEvent("t", "go");
      expect(await world.settle(handle.result())).toBe("over");

      expect(await world.history("t", 1)).toEqual(first);
      const second = await world.history("t", 2);
      expect(second.map(({ type, executionId }) => [type, executionId])).toEqual([
        ["OrchestrationStarted", 2],
        ["ExternalSubscribed", 2],
        ["ExternalEvent", 2],
        ["OrchestrationCompleted", 2],
      ]);
      expect(await world.client.readHistory("t")).toEqual(second);
      expect(await world.client.listExecutions("t")).toEqual([1, 2]);
    });
  });
});
