// The key-value store over the whole life of an instance: continue-as-new, age, pruned executions, deletion. R§4.12, P§9.

import { describe, expect, test } from "vitest";
import { activity, orchestration } from "../../src/define.js";
import { onEveryStore } from "./stores.js";

const echo = activity("Echo", async (_ctx, text: string) => text);

/** Writes two keys in its first execution, and one of them again in its second. */
const overwrites = orchestration("Overwrites", async (ctx, round: number): Promise<void> => {
  ctx.kv.set("shared", `execution ${round}`);
  if (round === 2) return;
  ctx.kv.set("first only", `execution ${round}`);
  return ctx.continueAsNew(2);
});

onEveryStore((store) => {
  describe.each([
    ["kept in memory between its turns", {}],
    ["replayed from its history in every turn", { warmCacheBytes: 0 }],
    ["run one turn and one activity at a time", { orchestrationConcurrency: 1, workerConcurrency: 1 }],
  ])("after continue-as-new, an instance that is %s", (_how, options) => {
    test("reads what the execution before has written", async () => {
      await using world = await store.world();
      const survives = orchestration("Survives", async (ctx, round: number): Promise<unknown> => {
        if (round === 2) return ctx.kv.get("counter");
        ctx.kv.set("counter", 1);
        return ctx.continueAsNew(2);
      });
      await world.start({ orchestrations: [survives], ...options });

      expect(await world.run(survives, { instanceId: "s", input: 1 })).toBe(1);
      expect(await world.client.getKvValue("s", "counter")).toBe(1);
      expect(await world.eventTypes("s", 2)).toEqual(["OrchestrationStarted", "OrchestrationCompleted"]);
    });

    test("goes on adding to it, turn after turn", async () => {
      await using world = await store.world();
      const adds = orchestration("Adds", async (ctx, round: number): Promise<unknown> => {
        if (round === 1) {
          ctx.kv.set("counter", 5);
          return ctx.continueAsNew(2);
        }
        for (let n = 0; n < 3; n += 1) {
          ctx.kv.set("counter", ctx.kv.get<number>("counter")! + 1);
          await ctx.scheduleActivity(echo, `${n}`);
        }
        return ctx.kv.get("counter");
      });
      await world.start({ orchestrations: [adds], activities: [echo], ...options });

      expect(await world.run(adds, { instanceId: "a", input: 1 })).toBe(8);
      expect(await world.client.getKvValue("a", "counter")).toBe(8);
    });

    test("deletes one inherited key and keeps the other", async () => {
      await using world = await store.world();
      const deletes = orchestration("Deletes", async (ctx, round: number): Promise<unknown> => {
        if (round === 1) {
          ctx.kv.set("token", "secret");
          ctx.kv.set("other", "alive");
          return ctx.continueAsNew(2);
        }
        ctx.kv.delete("token");
        await ctx.scheduleActivity(echo, "x");
        return [ctx.kv.get("token") ?? "none", ctx.kv.get("other")];
      });
      await world.start({ orchestrations: [deletes], activities: [echo], ...options });

      expect(await world.run(deletes, { instanceId: "d", input: 1 })).toEqual(["none", "alive"]);
      expect(await world.client.getKvAllValues("d")).toEqual(new Map([["other", "alive"]]));
    });
  });

  describe("continue-as-new", () => {
    test("lets the next execution overwrite, and keeps what it does not", async () => {
      await using world = await store.world();
      await world.start({ orchestrations: [overwrites] });
      await world.run(overwrites, { instanceId: "o", input: 1 });

      expect(await world.client.getKvAllValues("o")).toEqual(
        new Map([
          ["first only", "execution 1"],
          ["shared", "execution 2"],
        ]),
      );
    });

    test("lets the next execution clear everything", async () => {
      await using world = await store.world();
      const clears = orchestration("Clears", async (ctx, round: number): Promise<unknown> => {
        if (round === 2) {
          ctx.kv.clear();
          return ctx.kv.keys();
        }
        ctx.kv.set("a", 1);
        ctx.kv.set("b", 2);
        return ctx.continueAsNew(2);
      });
      await world.start({ orchestrations: [clears] });

      expect(await world.run(clears, { instanceId: "c", input: 1 })).toEqual([]);
      expect(await world.client.getKvAllValues("c")).toEqual(new Map());
    });

    test("carries a count through three executions", async () => {
      await using world = await store.world();
      const counts = orchestration("Counts", async (ctx, round: number): Promise<unknown> => {
        if (round === 3) return ctx.kv.get("counter");
        ctx.kv.set("counter", (ctx.kv.get<number>("counter") ?? 0) + 1);
        return ctx.continueAsNew(round + 1);
      });
      await world.start({ orchestrations: [counts] });

      expect(await world.run(counts, { instanceId: "c", input: 1 })).toBe(2);
      expect(await world.client.getKvValue("c", "counter")).toBe(2);
    });

    test("gathers the keys of all executions", async () => {
      await using world = await store.world();
      const gathers = orchestration("Gathers", async (ctx, round: number): Promise<void> => {
        ctx.kv.set(`key ${round}`, `value ${round}`);
        ctx.kv.set("latest", round);
        if (round < 4) return ctx.continueAsNew(round + 1);
      });
      await world.start({ orchestrations: [gathers] });
      await world.run(gathers, { instanceId: "g", input: 0 });

      expect(await world.client.getKvAllValues("g")).toEqual(
        new Map<string, unknown>([...[0, 1, 2, 3, 4].map((n) => [`key ${n}`, `value ${n}`] as const), ["latest", 4]]),
      );
      expect(await world.client.listExecutions("g")).toEqual([1, 2, 3, 4, 5]);
    });
  });

  describe.each([
    ["kept in memory", {}],
    ["replayed", { warmCacheBytes: 0 }],
  ])("pruning by age, %s,", (_how, options) => {
    test("removes what was written before, and keeps what is as old as the limit", async () => {
      await using world = await store.world();
      const prunes = orchestration("Prunes", async (ctx, round: number): Promise<unknown> => {
        if (round === 1) {
          ctx.kv.set("old 1", 1);
          ctx.kv.set("old 2", 2);
          return ctx.continueAsNew(2);
        }
        await ctx.scheduleTimer("50ms");
        const now = await ctx.utcNow();
        ctx.kv.set("fresh", 3);
        const removed = ctx.kv.pruneUpdatedBefore(now);
        await ctx.scheduleTimer("1s");
        return [removed, ctx.kv.keys()];
      });
      await world.start({ orchestrations: [prunes], ...options });

      expect(await world.run(prunes, { instanceId: "p", input: 1 })).toEqual([2, ["fresh"]]);
      expect(await world.client.getKvAllValues("p")).toEqual(new Map([["fresh", 3]]));
    });

    test("goes by the age of each key, over several executions", async () => {
      await using world = await store.world();
      const prunes = orchestration("Prunes", async (ctx, limitMs: number | null): Promise<unknown> => {
        if (ctx.executionId === 1) {
          ctx.kv.set("old", 1);
          await ctx.scheduleTimer("1h");
          return ctx.continueAsNew(null);
        }
        if (limitMs === null) {
          const now = await ctx.utcNow();
          ctx.kv.set("recent", 2);
          await ctx.scheduleTimer("1h");
          return ctx.continueAsNew(now);
        }
        const removed = ctx.kv.pruneUpdatedBefore(limitMs);
        await ctx.scheduleTimer("1s");
        return [removed, ctx.kv.keys()];
      });
      await world.start({ orchestrations: [prunes], ...options });

      expect(await world.run(prunes, { instanceId: "p", input: null })).toEqual([1, ["recent"]]);
      expect(await world.client.listExecutions("p")).toEqual([1, 2, 3]);
      expect(await world.client.getKvAllValues("p")).toEqual(new Map([["recent", 2]]));
    });

    test("removes nothing that is younger than the limit", async () => {
      await using world = await store.world();
      const prunes = orchestration("Prunes", async (ctx, round: number): Promise<unknown> => {
        if (round === 1) {
          ctx.kv.set("a", 1);
          ctx.kv.set("b", 2);
          return ctx.continueAsNew(2);
        }
        const removed = ctx.kv.pruneUpdatedBefore(0);
        await ctx.scheduleTimer("1s");
        return [removed, ctx.kv.get("a"), ctx.kv.get("b")];
      });
      await world.start({ orchestrations: [prunes], ...options });

      expect(await world.run(prunes, { instanceId: "p", input: 1 })).toEqual([0, 1, 2]);
      expect(await world.eventTypes("p", 2)).not.toContain("KeyValueCleared");
    });

    test("removes nothing where there is nothing", async () => {
      await using world = await store.world();
      const prunes = orchestration("Prunes", async (ctx) => ctx.kv.pruneUpdatedBefore(Number.MAX_SAFE_INTEGER));
      await world.start({ orchestrations: [prunes], ...options });

      expect(await world.run(prunes, { instanceId: "p" })).toBe(0);
      expect(await world.eventTypes("p")).toEqual(["OrchestrationStarted", "OrchestrationCompleted"]);
    });

    test("removes what the same turn has written, too", async () => {
      await using world = await store.world();
      const prunes = orchestration("Prunes", async (ctx) => {
        ctx.kv.set("a", 1);
        ctx.kv.set("b", 2);
        const removed = ctx.kv.pruneUpdatedBefore(Number.MAX_SAFE_INTEGER);
        await ctx.scheduleTimer("1s");
        return [removed, ctx.kv.get("a") ?? "none", ctx.kv.get("b") ?? "none"];
      });
      await world.start({ orchestrations: [prunes], ...options });

      expect(await world.run(prunes, { instanceId: "p" })).toEqual([2, "none", "none"]);
      expect(await world.client.getKvAllValues("p")).toEqual(new Map());
    });

    test("takes a key of the same turn to be as old as the turn", async () => {
      await using world = await store.world();
      const prunes = orchestration("Prunes", async (ctx) => {
        ctx.kv.set("k", 1);
        const now = await ctx.utcNow();
        const removed = [ctx.kv.pruneUpdatedBefore(now), ctx.kv.pruneUpdatedBefore(now + 1)];
        await ctx.scheduleTimer("1s");
        return removed;
      });
      await world.start({ orchestrations: [prunes], ...options });

      expect(await world.run(prunes, { instanceId: "p" })).toEqual([0, 1]);
      expect(await world.client.getKvValue("p", "k")).toBeUndefined();
    });
  });

  describe("the removal of old executions", () => {
    const KEPT = new Map([
      ["first only", "execution 1"],
      ["shared", "execution 2"],
    ]);

    test("keeps the values that they wrote", async () => {
      await using world = await store.world();
      await world.start({ orchestrations: [overwrites] });
      await world.run(overwrites, { instanceId: "o", input: 1 });

      expect(await world.client.pruneExecutions("o", { keepLast: 1 })).toMatchObject({ executionsDeleted: 1 });
      expect(await world.client.listExecutions("o")).toEqual([2]);
      expect(await world.client.getKvAllValues("o")).toEqual(KEPT);
    });

    test("of many instances keeps theirs", async () => {
      await using world = await store.world();
      await world.start({ orchestrations: [overwrites] });
      for (const id of ["o1", "o2"]) await world.run(overwrites, { instanceId: id, input: 1 });

      const pruned = await world.client.pruneExecutionsBulk({ instanceIds: ["o1", "o2"] }, { keepLast: 1 });
      expect(pruned).toMatchObject({ instancesProcessed: 2, executionsDeleted: 2 });
      for (const id of ["o1", "o2"]) expect(await world.client.getKvAllValues(id)).toEqual(KEPT);
    });
  });

  describe("a deleted instance", () => {
    test.each([
      ["by force", { force: true }],
      ["without force", {}],
    ])("%s has no values left", async (_how, options) => {
      await using world = await store.world();
      await world.start({ orchestrations: [overwrites] });
      for (const id of ["gone", "kept"]) await world.run(overwrites, { instanceId: id, input: 1 });
      expect(await world.client.getKvValue("gone", "shared")).toBe("execution 2");

      expect(await world.client.deleteInstance("gone", options)).toMatchObject({ executionsDeleted: 2 });
      for (const key of ["shared", "first only"]) expect(await world.client.getKvValue("gone", key)).toBeUndefined();
      expect(await world.client.getKvAllValues("gone")).toEqual(new Map());
      expect((await world.client.getKvAllValues("kept")).size).toBe(2);
    });

    test("leaves nothing to who is started under its id", async () => {
      await using world = await store.world();
      const counts = orchestration("Counts", async (ctx) => {
        ctx.kv.set(`key ${ctx.kv.size}`, 1);
        return ctx.kv.keys();
      });
      await world.start({ orchestrations: [counts] });
      await world.run(counts, { instanceId: "c" });
      await world.client.deleteInstance("c");

      expect(await world.run(counts, { instanceId: "c" })).toEqual(["key 0"]);
    });
  });
});
