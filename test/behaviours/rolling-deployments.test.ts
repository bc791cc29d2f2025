// Instances that outlive the code, the process and the engine that began them. R§2.2, R§2.6, R§5.5, R§6.6.

import { describe, expect, test } from "vitest";
import { activity, orchestration } from "../../src/define.js";
import { ENGINE_VERSION, type Event, type EventPayload } from "../../src/history/event.js";
import { mockActivity } from "../../src/testing/mock-activity.js";
import { seedInstanceWithPinnedVersion } from "../../src/testing/seeds.js";
import { onEveryStore } from "./stores.js";

/** Impatient, so that a deployment of seconds is enough. */
const NODE = { maxAttempts: 50, unregisteredBackoff: { baseMs: 50, maxMs: 200 } };

onEveryStore((store) => {
  describe("a rolling deployment", () => {
    const oldActivity = activity("OldActivity", () => "old");
    const newActivity = activity<string, string>("NewActivity");
    const uses = orchestration("UsesNew", async (ctx, input: string) => ctx.scheduleActivity(newActivity, input));
    const newCode = () => mockActivity(newActivity, (_ctx, input) => `NewActivity result: ${input}`);

    test("of a new activity: nodes that do not know it yet give it back, for the one that does", async () => {
      await using world = await store.world();
      const added = newCode();
      const before = { orchestrations: [uses], activities: [oldActivity], ...NODE };
      const nodes = [await world.start(before), await world.start(before)];
      const handle = await world.client.start(uses, { instanceId: "u", input: "x" });
      await world.rest();
      await world.start({ ...before, activities: [oldActivity, added] });

      expect(await world.settle(handle.result())).toBe("NewActivity result: x");
      const givenBack = world.factsOf("activity-unregistered");
      expect(givenBack.length).toBeGreaterThan(0);
      expect(new Set(givenBack.map(({ ref }) => `${ref.activityName}, ${ref.attempt}`))).toEqual(
        new Set(["NewActivity, 1"]),
      );
      expect(added.calls).toMatchObject([{ input: "x", attempt: 1 }]);

      for (const node of nodes) {
        await node.shutdown();
        await node.restart({ activities: [oldActivity, added] });
      }
      expect(await world.run(uses, { input: "y" })).toBe("NewActivity result: y");
      expect(world.factsOf("activity-unregistered")).toHaveLength(givenBack.length);
    });

    test("of a new activity that no node knows yet: it waits for the first that does, and is not failed", async () => {
      await using world = await store.world();
      const added = newCode();
      const before = { orchestrations: [uses], activities: [oldActivity], ...NODE };
      const nodes = [await world.start(before), await world.start(before), await world.start(before)];
      const handle = await world.client.start(uses, { instanceId: "u", input: "x" });
      await world.advance("2s");
      expect(await handle.status()).toMatchObject({ status: "Running" });
      expect(world.factsOf("activity-unregistered").length).toBeGreaterThan(5);

      for (const node of nodes) {
        await node.shutdown();
        await node.restart({ activities: [oldActivity, added] });
      }

      expect(await world.settle(handle.result())).toBe("NewActivity result: x");
      expect(added.calls).toMatchObject([{ input: "x", attempt: 1 }]);
      expect(await world.eventTypes("u")).toEqual([
        "OrchestrationStarted",
        "ActivityScheduled",
        "ActivityCompleted",
        "OrchestrationCompleted",
      ]);
    });

    test("of a new version: an instance that continues as it waits for the nodes that know it", async () => {
      await using world = await store.world();
      const v1 = orchestration({ name: "Job", version: "1.0.0" }, async (ctx, input: string) =>
        ctx.continueAsNew(`${input} from v1`, { version: "2.0.0" }),
      );
      const v2 = orchestration({ name: "Job", version: "2.0.0" }, async (_ctx, input: string) => `completed: ${input}`);
      const nodes = [
        await world.start({ orchestrations: [v1], ...NODE }),
        await world.start({ orchestrations: [v1], ...NODE }),
      ];
      const handle = await world.client.start("Job", { instanceId: "j", input: "x" });
      await world.advance("1s");
      expect(await handle.status()).toMatchObject({ status: "Running", executionId: 1 });
      expect(new Set(world.factsOf("turn-abandoned").map(({ why }) => why))).toEqual(new Set(["unregistered"]));

      for (const node of nodes) {
        await node.shutdown();
        await node.restart({ orchestrations: [v1, v2] });
      }

      expect(await world.settle(handle.result())).toBe("completed: x from v1");
      expect(await world.eventTypes("j", 1)).toEqual(["OrchestrationStarted", "OrchestrationContinuedAsNew"]);
      expect((await world.history("j", 2))[0]).toMatchObject({ type: "OrchestrationStarted", version: "2.0.0" });
    });
  });

  describe("an eternal orchestration", () => {
    /** The first version waits for events; the second takes messages from a mailbox, whose event kinds came later. */
    const v1 = orchestration({ name: "Eternal", version: "1.0.0" }, async (ctx) => {
      const seen: string[] = [];
      while (seen.length < 3) seen.push(await ctx.waitForEvent<string>("news"));
      return ctx.continueAsNew(seen, { version: "2.0.0" });
    });
    const v2 = orchestration({ name: "Eternal", version: "2.0.0" }, async (ctx, seen: readonly string[]) => {
      const all = [...seen];
      while (all.length < 5) all.push(await ctx.dequeueEvent<string>("mail"));
      return `upgraded:${all.join("+")}`;
    });

    test("goes over to newer kinds of events with its next execution, and mixes them in none", async () => {
      await using world = await store.world();
      await world.start({ orchestrations: [v1, v2] });
      await world.client.start("Eternal", { instanceId: "e", version: "1.0.0" });
      for (const data of ["old-0", "old-1", "old-2"]) {
        await world.rest();
        await world.client.raiseEvent("e", "news", data);
      }
      await world.rest();
      for (const data of ["new-0", "new-1"]) await world.client.enqueueEvent("e", "mail", data);

      expect(await world.ending("e")).toEqual({
        status: "Completed",
        output: '"upgraded:old-0+old-1+old-2+new-0+new-1"',
      });
      expect(new Set(await world.eventTypes("e", 1))).toEqual(
        new Set(["OrchestrationStarted", "ExternalSubscribed", "ExternalEvent", "OrchestrationContinuedAsNew"]),
      );
      expect(new Set(await world.eventTypes("e", 2))).toEqual(
        new Set([
          "OrchestrationStarted",
          "ExternalSubscribedPersistent",
          "ExternalEventPersistent",
          "OrchestrationCompleted",
        ]),
      );
    });

    test("that an older engine began goes on with this one, and the next execution is this one's", async () => {
      await using world = await store.world();
      await seedInstanceWithPinnedVersion(world.provider, "e", "0.1.10", { orchestration: "Eternal", input: "null" });
      await world.provider.appendWithExecution("e", 1, writtenByOldEngine("e"));
      await world.start({ orchestrations: [v1, v2] });
      await world.client.raiseEvent("e", "news", "old-2");
      await world.rest();
      for (const data of ["new-0", "new-1"]) await world.client.enqueueEvent("e", "mail", data);

      expect((await world.ending("e")).output).toBe('"upgraded:old-0+old-1+old-2+new-0+new-1"');
      const engines = async (executionId: number) =>
        (await world.history("e", executionId)).map(({ duroxideVersion }) => duroxideVersion);
      expect(await engines(1)).toEqual([...Array(6).fill("0.1.10"), ENGINE_VERSION, ENGINE_VERSION]);
      expect(new Set(await engines(2))).toEqual(new Set([ENGINE_VERSION]));
    });

    /** All after the first event, up to the third wait. */
    function writtenByOldEngine(instanceId: string): Event[] {
      const payloads: EventPayload[] = [
        { type: "ExternalSubscribed", name: "news" },
        { type: "ExternalEvent", name: "news", data: '"old-0"' },
        { type: "ExternalSubscribed", name: "news" },
        { type: "ExternalEvent", name: "news", data: '"old-1"' },
        { type: "ExternalSubscribed", name: "news" },
      ];
      return payloads.map((payload, place) => ({
        ...payload,
        eventId: place + 2,
        sourceEventId: null,
        instanceId,
        executionId: 1,
        timestampMs: 1_700_000_000_000,
        duroxideVersion: "0.1.10",
      }));
    }
  });
});
