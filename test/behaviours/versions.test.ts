// Which version of an orchestration runs, and that an execution keeps the one it began with. R§2.4, R§2.6, R§4.14.

import { describe, expect, test } from "vitest";
import { activity, orchestration } from "../../src/define.js";
import type { Event } from "../../src/history/event.js";
import { Registry } from "../../src/runtime/registry.js";
import { mockActivity } from "../../src/testing/mock-activity.js";
import type { TestWorld } from "../../src/testing/test-world.js";
import { onEveryStore } from "./stores.js";

/** An orchestration of that version, which puts a word before its input. */
function says(name: string, version: string, word: string) {
  return orchestration({ name, version }, async (_ctx, input: string) => `${word}:${input}`);
}

/** With which version each execution began, in order. */
async function versionsOf(world: TestWorld, instanceId: string): Promise<string[]> {
  const executions = (await world.provider.admin?.listExecutions(instanceId)) ?? [];
  const histories = await Promise.all(executions.map((executionId) => world.history(instanceId, executionId)));
  return histories.map(([first]) => startedOf(first).version);
}

function startedOf(event: Event | undefined): Extract<Event, { type: "OrchestrationStarted" }> {
  if (event?.type !== "OrchestrationStarted") throw new Error(`a history begins with ${event?.type}`);
  return event;
}

describe("a registry of versions", () => {
  const order = orchestration("Order", async () => {});

  test("lists an orchestration that names none as 1.0.0", () => {
    const registry = Registry.of({ orchestrations: [order] });

    expect(registry.orchestrationNames()).toEqual(["Order"]);
    expect(registry.orchestrationVersions("Order")).toEqual(["1.0.0"]);
  });

  test("lists all of a name, and the highest is the newest", () => {
    const registry = Registry.of({
      orchestrations: [says("Order", "2.0.0", "v2"), order, says("Order", "1.1.0", "v1.1")],
    });

    expect(registry.orchestrationVersions("Order")).toEqual(["1.0.0", "1.1.0", "2.0.0"]);
    expect(registry.resolveOrchestration("Order", null)?.version).toBe("2.0.0");
  });

  test("resolves by policy, and by the newer policy where it is changed", () => {
    const latest = Registry.of({ orchestrations: [order, says("Order", "1.1.0", "v1.1")] });
    const pinned = latest.merge({ versionPolicies: { Order: "1.0.0" } });
    const freed = pinned.merge({ versionPolicies: { Order: "latest" } });

    const resolved = [latest, pinned, freed].map((registry) => registry.resolveOrchestration("Order", null)?.version);
    expect(resolved).toEqual(["1.1.0", "1.0.0", "1.1.0"]);
  });

  test.each([
    ["without a version", [order, order], "Order@1.0.0"],
    ["with the same version", [says("Order", "1.2.0", "a"), says("Order", "1.2.0", "b")], "Order@1.2.0"],
  ])("refuses one that is listed twice %s", (_how, orchestrations, label) => {
    expect(() => Registry.of({ orchestrations })).toThrow(`duplicate orchestration registration: ${label}`);
  });

  test("finds nothing under a version or a name that is not listed", () => {
    const registry = Registry.of({ orchestrations: [order] });

    expect(registry.resolveOrchestration("Order", "9.9.9")).toBeNull();
    expect(registry.resolveOrchestration("Missing", "1.0.0")).toBeNull();
  });
});

onEveryStore((store) => {
  describe("a start", () => {
    const [v1, v11] = [says("Order", "1.0.0", "v1"), says("Order", "1.1.0", "v1.1")];

    test("by name runs the version that it names, though there is a newer one", async () => {
      await using world = await store.world();
      await world.start({ orchestrations: [v1, says("Order", "2.0.0", "v2")] });
      const handle = await world.client.start("Order", { instanceId: "o", version: "1.0.0", input: "X" });

      expect(await world.settle(handle.result())).toBe("v1:X");
      expect(await world.client.getStatus("o")).toMatchObject({ orchestrationVersion: "1.0.0" });
    });

    test("by definition runs the definition's version, or the one that it names", async () => {
      await using world = await store.world();
      const [one, two] = (["1.0.0", "2.0.0"] as const).map((version) =>
        orchestration({ name: "Typed", version }, async () => Number(version[0])),
      );
      await world.start({ orchestrations: [one!, two!] });

      expect(await world.run(one!, { instanceId: "defined" })).toBe(1);
      expect(await world.run(two!, { instanceId: "named", version: "1.0.0" })).toBe(1);
      expect(await versionsOf(world, "named")).toEqual(["1.0.0"]);
    });

    test("that names none runs the newest", async () => {
      await using world = await store.world();
      await world.start({ orchestrations: [v1, v11] });
      const handle = await world.client.start("Order", { instanceId: "o", input: "X" });

      expect(await world.settle(handle.result())).toBe("v1.1:X");
      expect(await world.eventTypes("o")).toEqual(["OrchestrationStarted", "OrchestrationCompleted"]);
      expect(await versionsOf(world, "o")).toEqual(["1.1.0"]);
    });

    test("that names none runs the one of the policy", async () => {
      await using world = await store.world();
      await world.start({ orchestrations: [v1, v11], versionPolicies: { Order: "1.0.0" } });
      const handle = await world.client.start("Order", { instanceId: "o", input: "Y" });

      expect(await world.settle(handle.result())).toBe("v1:Y");
      expect(await versionsOf(world, "o")).toEqual(["1.0.0"]);
    });
  });

  describe("a sub-orchestration", () => {
    const [c1, c11] = [says("Child", "1.0.0", "c1"), says("Child", "1.1.0", "c1.1")];
    const parent = orchestration("Parent", async (ctx, input: string) =>
      ctx.scheduleSubOrchestration<string>("Child", input),
    );

    test("runs the version that its parent names, and otherwise the newest", async () => {
      await using world = await store.world();
      const both = orchestration("Both", async (ctx) => [
        await ctx.scheduleSubOrchestration("Child", "a", { version: "1.0.0" }),
        await ctx.scheduleSubOrchestration("Child", "b"),
      ]);
      await world.start({ orchestrations: [both, c1, c11] });

      expect(await world.run(both, { instanceId: "b" })).toEqual(["c1:a", "c1.1:b"]);
      expect(await versionsOf(world, "b::sub::2")).toEqual(["1.0.0"]);
      expect(await versionsOf(world, "b::sub::4")).toEqual(["1.1.0"]);
    });

    test("runs the newest, until a policy pins it", async () => {
      await using world = await store.world();
      const runtime = await world.start({ orchestrations: [parent, c1, c11] });

      expect(await world.run(parent, { input: "Z" })).toBe("c1.1:Z");
      await runtime.shutdown();
      await runtime.restart({ versionPolicies: { Child: "1.0.0" } });
      expect(await world.run(parent, { input: "Q" })).toBe("c1:Q");
    });

    test("is the newer one as soon as that is deployed, and its parent need not change", async () => {
      await using world = await store.world();
      const runtime = await world.start({ orchestrations: [parent, c1] });
      expect(await world.run(parent, { instanceId: "before", input: "inp" })).toBe("c1:inp");
      await runtime.shutdown();
      await runtime.restart({ orchestrations: [parent, c1, c11] });

      expect(await world.run(parent, { instanceId: "after", input: "inp" })).toBe("c1.1:inp");
      expect(await world.eventTypes("after")).toEqual([
        "OrchestrationStarted",
        "SubOrchestrationScheduled",
        "SubOrchestrationCompleted",
        "OrchestrationCompleted",
      ]);
    });
  });

  describe("a detached orchestration", () => {
    test("runs the newest version, or the one that its creator names", async () => {
      await using world = await store.world();
      const creator = orchestration("Creator", async (ctx) => {
        ctx.startOrchestration("Leaf", { instanceId: "newest", input: "a" });
        ctx.startOrchestration("Leaf", { instanceId: "named", input: "b", version: "1.0.0" });
        return "created";
      });
      await world.start({ orchestrations: [creator, says("Leaf", "1.0.0", "l1"), says("Leaf", "2.0.0", "l2")] });

      expect(await world.run(creator)).toBe("created");
      expect((await world.ending("newest")).output).toBe('"l2:a"');
      expect((await world.ending("named")).output).toBe('"l1:b"');
      const direct = await world.client.start("Leaf", { input: "c" });
      expect(await world.settle(direct.result())).toBe("l2:c");
    });
  });

  describe("continue-as-new", () => {
    test("to a version that it names goes there, whatever the policy says", async () => {
      await using world = await store.world();
      const first = orchestration({ name: "Long", version: "1.0.0" }, async (ctx) =>
        ctx.continueAsNew("from v1", { version: "2.0.0" }),
      );
      await world.start({
        orchestrations: [first, says("Long", "2.0.0", "done by v2")],
        versionPolicies: { Long: "1.0.0" },
      });
      const handle = await world.client.start("Long", { instanceId: "l" });

      expect(await world.settle(handle.result())).toBe("done by v2:from v1");
      expect(await versionsOf(world, "l")).toEqual(["1.0.0", "2.0.0"]);
    });
  });

  /** Kept in memory between turns, or replayed in every turn. */
  const memories: [string, { warmCacheBytes?: number }][] = [
    ["kept in memory", {}],
    ["replayed", { warmCacheBytes: 0 }],
  ];

  describe.each(memories)("an execution that is %s", (_how, options) => {
    /** What the versions of the orchestration saw, turn by turn. */
    interface Sight {
      readonly version: string;
      readonly input: unknown;
    }

    const prune = activity<string, string>("system-prune");
    const prune2 = activity<string, string>("system-prune-2");

    /** Every version schedules another activity, so that the wrong one would not replay. */
    function pruners() {
      const sights: Sight[] = [];
      const version = (version: string, what: typeof prune) =>
        orchestration({ name: "Prune", version }, async (ctx, input: string) => {
          sights.push({ version: ctx.orchestrationVersion, input });
          const first = await ctx.scheduleActivity(what, input);
          sights.push({ version: ctx.orchestrationVersion, input });
          return [first, await ctx.scheduleActivity(what, first)];
        });
      const before = orchestration({ name: "Prune", version: "1.0.1" }, async (ctx, input: string) => {
        sights.push({ version: ctx.orchestrationVersion, input });
        await ctx.scheduleActivity(prune, input);
        return ctx.continueAsNew("continued", { version: "1.0.2" });
      });
      const orchestrations = [before, version("1.0.2", prune), version("1.0.3", prune2)];
      const activities = [prune, prune2].map((what) => mockActivity(what, (_ctx, input) => `pruned:${input}`));
      return { sights, orchestrations, activities };
    }

    const distinct = (sights: readonly Sight[]) => [...new Set(sights.map((sight) => JSON.stringify(sight)))].sort();

    test("keeps its version in turns that bring only answers", async () => {
      await using world = await store.world();
      const { sights, orchestrations, activities } = pruners();
      await world.start({ orchestrations, activities, ...options });
      const handle = await world.client.start("Prune", { instanceId: "p", version: "1.0.2", input: "x" });

      expect(await world.settle(handle.result())).toEqual(["pruned:x", "pruned:pruned:x"]);
      expect(distinct(sights)).toEqual(['{"version":"1.0.2","input":"x"}']);
      expect(activities[1]!.calls).toEqual([]);
      expect(world.factsOf("turn-committed").map(({ ref }) => ref.orchestrationVersion)).toEqual(
        Array(3).fill("1.0.2"),
      );
    });

    test("keeps the version and the input that continue-as-new gave it", async () => {
      await using world = await store.world();
      const { sights, orchestrations, activities } = pruners();
      await world.start({ orchestrations, activities, ...options });
      const handle = await world.client.start("Prune", { instanceId: "p", version: "1.0.1", input: "original" });

      expect(await world.settle(handle.result())).toEqual(["pruned:continued", "pruned:pruned:continued"]);
      expect(distinct(sights)).toEqual([
        '{"version":"1.0.1","input":"original"}',
        '{"version":"1.0.2","input":"continued"}',
      ]);
      expect(activities[1]!.calls).toEqual([]);
      expect((await world.history("p", 2))[0]).toMatchObject({
        type: "OrchestrationStarted",
        eventId: 1,
        version: "1.0.2",
        input: '"continued"',
      });
    });

    test("that belongs to a parent knows all it needs from its own beginning, in every one of its executions", async () => {
      await using world = await store.world();
      const { sights, orchestrations, activities } = pruners();
      const owner = orchestration("Owner", async (ctx) =>
        ctx.scheduleSubOrchestration("Prune", "of the parent", { version: "1.0.1" }),
      );
      await world.start({ orchestrations: [owner, ...orchestrations], activities, ...options });

      expect(await world.run(owner, { instanceId: "o" })).toEqual(["pruned:continued", "pruned:pruned:continued"]);
      expect(distinct(sights)).toEqual([
        '{"version":"1.0.1","input":"of the parent"}',
        '{"version":"1.0.2","input":"continued"}',
      ]);
      const link = { name: "Prune", parentInstance: "o", parentId: 2 };
      expect(startedOf((await world.history("o::sub::2", 1))[0])).toMatchObject({ ...link, version: "1.0.1" });
      expect(startedOf((await world.history("o::sub::2", 2))[0])).toMatchObject({ ...link, version: "1.0.2" });
      expect(
        world.factsOf("orchestration-started").map(({ ref, initiatedBy }) => [ref.executionId, initiatedBy]),
      ).toEqual([
        [1, "client"],
        [1, "suborchestration"],
        [2, "continueAsNew"],
      ]);
    });
  });
});
