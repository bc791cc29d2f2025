// An instance's key-value store, as its own code and clients see it. R§4.12, R§7.5, R§9.

import { describe, expect, test } from "vitest";
import { z } from "zod";
import { activity, orchestration } from "../../src/define.js";
import type { KvStore } from "../../src/engine/orchestration-context.js";
import { DEFAULT_LIMITS } from "../../src/history/limits.js";
import { createExecution, seedHistoryTurn } from "../../src/testing/seeds.js";
import { onEveryStore } from "./stores.js";

const echo = activity("Echo", async (_ctx, text: string) => text);

interface Writes {
  readonly what: string;
  readonly write: (kv: KvStore) => void;
  readonly stored: Readonly<Record<string, unknown>>;
}

const WRITES_OF_ONE_TURN: readonly Writes[] = [
  { what: "nothing, where nothing was written", write: () => {}, stored: {} },
  { what: "one value", write: (kv) => kv.set("progress", "50%"), stored: { progress: "50%" } },
  {
    what: "several values",
    write: (kv) => {
      kv.set("a", 1);
      kv.set("b", 2);
      kv.set("c", 3);
    },
    stored: { a: 1, b: 2, c: 3 },
  },
  {
    what: "the last of two values of one key",
    write: (kv) => {
      kv.set("k", "first");
      kv.set("k", "second");
    },
    stored: { k: "second" },
  },
  {
    what: "nothing under a key that was deleted",
    write: (kv) => {
      kv.set("x", 10);
      kv.delete("x");
    },
    stored: {},
  },
  {
    what: "the rest, where one of three keys was deleted",
    write: (kv) => {
      kv.set("a", 1);
      kv.set("b", 2);
      kv.set("c", 3);
      kv.delete("b");
    },
    stored: { a: 1, c: 3 },
  },
  {
    what: "nothing, where all keys were cleared",
    write: (kv) => {
      kv.set("a", 1);
      kv.set("b", 2);
      kv.clear();
    },
    stored: {},
  },
  {
    what: "the new value of a key that was deleted and set again",
    write: (kv) => {
      kv.set("key", "old");
      kv.delete("key");
      kv.set("key", "new");
    },
    stored: { key: "new" },
  },
];

function fill(kv: KvStore, prefix: string, count: number): void {
  for (let n = 0; n < count; n += 1) kv.set(`${prefix}${n}`, n);
}

onEveryStore((store) => {
  describe("what a client reads after a turn", () => {
    test.each(WRITES_OF_ONE_TURN.map((row) => [row.what, row] as const))("%s", async (_what, { write, stored }) => {
      await using world = await store.world();
      const writes = orchestration("Writes", async (ctx) => write(ctx.kv));
      await world.start({ orchestrations: [writes] });
      await world.run(writes, { instanceId: "w" });

      expect(await world.client.getKvAllValues("w")).toEqual(new Map(Object.entries(stored)));
      for (const key of ["nope", "progress", "a", "b", "c", "k", "x", "key"]) {
        expect(await world.client.getKvValue("w", key)).toEqual(stored[key]);
      }
    });

    test("is there while the instance still runs", async () => {
      await using world = await store.world();
      const serves = orchestration("Serves", async (ctx) => {
        ctx.kv.set("state", "initialized");
        await ctx.waitForEvent("stop");
      });
      await world.start({ orchestrations: [serves] });
      const handle = await world.client.start(serves, { instanceId: "s" });

      expect(await world.settle(handle.waitForKv("state"))).toBe("initialized");
      expect(await handle.status()).toMatchObject({ status: "Running" });
    });

    test.each(["Completed", "Failed"])("is there after the end of an instance that is %s", async (status) => {
      await using world = await store.world();
      const ends = orchestration("Ends", async (ctx) => {
        ctx.kv.set("status", "done");
        await ctx.scheduleTimer("1s");
        ctx.kv.set("result", 42);
        if (status === "Failed") throw new Error("no more");
      });
      await world.start({ orchestrations: [ends] });
      await world.client.start(ends, { instanceId: "e" });

      expect(await world.ending("e")).toMatchObject({ status });
      await world.advance("30d");
      expect(await world.client.getKvValue("e", "status")).toBe("done");
      expect(await world.client.getKvValue("e", "result")).toBe(42);
    });
  });

  describe("within one turn", () => {
    test("code reads what it has written, and not what it has deleted", async () => {
      await using world = await store.world();
      const reads = orchestration("Reads", async (ctx) => {
        const look = () => ({ value: ctx.kv.get("k") ?? "none", has: ctx.kv.has("k") });
        const seen = [look()];
        ctx.kv.set("k", "value");
        seen.push(look());
        ctx.kv.delete("k");
        return [...seen, look()];
      });
      await world.start({ orchestrations: [reads] });

      expect(await world.run(reads, { instanceId: "r" })).toEqual([
        { value: "none", has: false },
        { value: "value", has: true },
        { value: "none", has: false },
      ]);
      expect(world.factsOf("turn-committed")).toHaveLength(1);
      expect(await world.eventTypes("r")).toEqual([
        "OrchestrationStarted",
        "KeyValueSet",
        "KeyValueCleared",
        "OrchestrationCompleted",
      ]);
    });
  });

  describe.each([
    ["kept in memory between its turns", {}],
    ["replayed from its history in every turn", { warmCacheBytes: 0 }],
    ["run one turn and one activity at a time", { orchestrationConcurrency: 1, workerConcurrency: 1 }],
  ])("an instance that is %s", (_how, options) => {
    test("reads after an activity what it wrote before", async () => {
      await using world = await store.world();
      const persists = orchestration("Persists", async (ctx) => {
        ctx.kv.set("key", "before activity");
        await ctx.scheduleActivity(echo, "x");
        const seen = ctx.kv.get("key");
        ctx.kv.set("key", "after activity");
        return seen;
      });
      await world.start({ orchestrations: [persists], activities: [echo], ...options });

      expect(await world.run(persists, { instanceId: "p" })).toBe("before activity");
      expect(await world.client.getKvValue("p", "key")).toBe("after activity");
    });

    test("reads the latest of what it wrote in several turns", async () => {
      await using world = await store.world();
      const updates = orchestration("Updates", async (ctx) => {
        ctx.kv.set("counter", 1);
        await ctx.scheduleActivity(echo, "x");
        ctx.kv.set("counter", 2);
        await ctx.scheduleActivity(echo, "y");
        return ctx.kv.get("counter");
      });
      await world.start({ orchestrations: [updates], activities: [echo], ...options });

      expect(await world.run(updates, { instanceId: "u" })).toBe(2);
      expect(await world.client.getKvValue("u", "counter")).toBe(2);
    });

    test("adds to a value turns after it wrote it", async () => {
      await using world = await store.world();
      const adds = orchestration("Adds", async (ctx) => {
        ctx.kv.set("counter", 1);
        await ctx.scheduleActivity(echo, "x");
        const seen = ctx.kv.get<number>("counter");
        await ctx.scheduleActivity(echo, "y");
        ctx.kv.set("counter", ctx.kv.get<number>("counter")! + 1);
        return [seen, ctx.kv.get("counter")];
      });
      await world.start({ orchestrations: [adds], activities: [echo], ...options });

      expect(await world.run(adds, { instanceId: "a" })).toEqual([1, 2]);
      expect(await world.client.getKvValue("a", "counter")).toBe(2);
    });

    test("adds to a value in every turn", async () => {
      await using world = await store.world();
      const counts = orchestration("Counts", async (ctx) => {
        for (let round = 0; round < 5; round += 1) {
          ctx.kv.set("counter", (ctx.kv.get<number>("counter") ?? 0) + 1);
          await ctx.scheduleActivity(echo, `round ${round}`);
        }
        return ctx.kv.get("counter");
      });
      await world.start({ orchestrations: [counts], activities: [echo], ...options });

      expect(await world.run(counts, { instanceId: "c" })).toBe(5);
      const written = (await world.history("c")).flatMap((event) => (event.type === "KeyValueSet" ? event.value : []));
      expect(written).toEqual(["1", "2", "3", "4", "5"]);
      expect(await world.client.getKvValue("c", "counter")).toBe(5);
    });

    test("writes and clears between activities and timers", async () => {
      await using world = await store.world();
      const mixes = orchestration("Mixes", async (ctx) => {
        ctx.kv.set("first", 1);
        await ctx.scheduleActivity(echo, "x");
        ctx.kv.set("second", 2);
        await ctx.scheduleTimer(1);
        ctx.kv.clear();
        ctx.kv.set("state", "final");
        return [ctx.kv.keys(), ctx.kv.get("state")];
      });
      await world.start({ orchestrations: [mixes], activities: [echo], ...options });

      expect(await world.run(mixes, { instanceId: "m" })).toEqual([["state"], "final"]);
      expect(await world.client.getKvAllValues("m")).toEqual(new Map([["state", "final"]]));
    });
  });

  describe("a write", () => {
    test("in the branch that wins a race counts, and that of the loser is never made", async () => {
      await using world = await store.world();
      const races = orchestration("Races", async (ctx) => {
        await ctx.race([
          async () => {
            await ctx.scheduleActivity(echo, "x");
            ctx.kv.set("winner", "activity");
          },
          async () => {
            await ctx.scheduleTimer("60s");
            ctx.kv.set("winner", "timer");
          },
        ]);
        await ctx.waitForEvent("read");
        return ctx.kv.get("winner");
      });
      await world.start({ orchestrations: [races], activities: [echo] });
      const handle = await world.client.start(races, { instanceId: "r" });
      await world.advance("2m");
      await handle.raiseEvent("read");

      expect(await world.settle(handle.result())).toBe("activity");
      expect(await world.client.getKvValue("r", "winner")).toBe("activity");
      expect((await world.eventTypes("r")).filter((type) => type === "KeyValueSet")).toHaveLength(1);
    });

    test("for each result of a fan-out is there", async () => {
      await using world = await store.world();
      const names = ["a", "b", "c", "d", "e"];
      const gathers = orchestration("Gathers", async (ctx) => {
        const results = await ctx.all(names.map((name) => ctx.scheduleActivity(echo, `result of ${name}`)));
        for (const [n, result] of results.entries()) ctx.kv.set(names[n]!, result);
      });
      await world.start({ orchestrations: [gathers], activities: [echo] });
      await world.run(gathers, { instanceId: "g" });

      expect(await world.client.getKvAllValues("g")).toEqual(new Map(names.map((name) => [name, `result of ${name}`])));
    });

    test("touches no other instance, however many write at once", async () => {
      await using world = await store.world();
      const writes = orchestration("Writes", async (ctx, id: string) => {
        for (let n = 0; n < 5; n += 1) {
          ctx.kv.set(`key ${n}`, `${id}: ${n}`);
          await ctx.scheduleActivity(echo, id);
        }
      });
      await world.start({ orchestrations: [writes], activities: [echo] });
      const ids = Array.from({ length: 10 }, (_, n) => `writer-${n}`);
      const handles = await Promise.all(ids.map((id) => world.client.start(writes, { instanceId: id, input: id })));
      await world.settle(Promise.all(handles.map((handle) => handle.result())));

      for (const id of ids) {
        const expected = [0, 1, 2, 3, 4].map((n) => [`key ${n}`, `${id}: ${n}`] as const);
        expect(await world.client.getKvAllValues(id)).toEqual(new Map(expected));
      }
    });
  });

  describe("a value", () => {
    test("that is written as text stays that text, byte for byte", async () => {
      await using world = await store.world();
      const text = '{"nested":   [1,2, 3], "ü": "\\u00fc"}';
      const keeps = orchestration("Keeps", async (ctx) => {
        ctx.kv.setText("config", text);
        await ctx.scheduleActivity(echo, "x");
        return ctx.kv.getText("config");
      });
      await world.start({ orchestrations: [keeps], activities: [echo], warmCacheBytes: 0 });

      expect(await world.run(keeps, { instanceId: "k" })).toBe(text);
      expect(await world.client.getKvText("k", "config")).toBe(text);
      expect(await world.client.getKvValue("k", "config")).toEqual({ nested: [1, 2, 3], ü: "ü" });
    });

    test("of another shape than its reader expects comes as it is, and what a check of it throws may be caught", async () => {
      await using world = await store.world();
      const texts = z.record(z.string(), z.string());
      const mistaken = orchestration("Mistaken", async (ctx) => {
        ctx.kv.set("data", [1, 2, 3]);
        ctx.kv.setText("text", "{ no JSON");
        await ctx.scheduleActivity(echo, "x");
        const data = ctx.kv.get<Record<string, string>>("data");
        try {
          return texts.parse(data);
        } catch (error) {
          return { isCaught: error instanceof z.ZodError, data, text: ctx.kv.get<number>("text") };
        }
      });
      await world.start({ orchestrations: [mistaken], activities: [echo], warmCacheBytes: 0 });

      expect(await world.run(mistaken)).toEqual({ isCaught: true, data: [1, 2, 3], text: "{ no JSON" });
    });
  });

  describe("the empty key", () => {
    test("is refused where it would be written, and the code may go on", async () => {
      await using world = await store.world();
      const tries = orchestration("Tries", async (ctx) => {
        try {
          ctx.kv.set("", "value");
        } catch (error) {
          return (error as Error).message;
        }
        return "accepted";
      });
      await world.start({ orchestrations: [tries] });

      expect(await world.run(tries, { instanceId: "t" })).toBe("key is empty; pass a non-empty string.");
      expect(await world.client.getKvAllValues("t")).toEqual(new Map());
    });

    test("that another runtime has written is read by clients and by code", async () => {
      await using world = await store.world();
      const value = "value for the empty key";
      const reads = orchestration("Reads", async (ctx) => ctx.kv.get(""));
      const next = {
        type: "ContinueAsNew",
        instance: "r",
        orchestration: "Reads",
        input: "null",
        version: null,
        carryForwardEvents: [],
      } as const;
      await createExecution(world.provider, "r", { orchestration: "Reads" });
      await seedHistoryTurn(
        world.provider,
        "r",
        [
          { type: "KeyValueSet", key: "", value, lastUpdatedAtMs: world.clock.now() },
          { type: "OrchestrationContinuedAsNew", input: "null" },
        ],
        { metadata: { status: "ContinuedAsNew", output: "null" }, orchestratorItems: [next] },
      );
      expect(await world.client.getKvValue("r", "")).toBe(value);
      await world.start({ orchestrations: [reads] });

      expect(await world.ending("r")).toEqual({ status: "Completed", output: JSON.stringify(value) });
      expect(await world.client.getKvValue("r", "")).toBe(value);
    });
  });

  describe("the limits", () => {
    const { maxKvKeys, maxKvValueBytes } = DEFAULT_LIMITS;

    test("let as many keys pass as there may be", async () => {
      await using world = await store.world();
      const fills = orchestration("Fills", async (ctx) => fill(ctx.kv, "key ", maxKvKeys));
      await world.start({ orchestrations: [fills] });
      await world.run(fills, { instanceId: "f" });

      expect(maxKvKeys).toBe(150);
      expect((await world.client.getKvAllValues("f")).size).toBe(150);
    });

    test("fail an instance that sets one key more, and store nothing of that turn", async () => {
      await using world = await store.world();
      const overfills = orchestration("Overfills", async (ctx) => fill(ctx.kv, "key ", maxKvKeys + 1));
      await world.start({ orchestrations: [overfills] });
      await world.client.start(overfills, { instanceId: "o" });

      expect(await world.ending("o")).toEqual({ status: "Failed", output: "KV key count (151) exceeds limit (150)" });
      expect(await world.client.getKvAllValues("o")).toEqual(new Map());
      expect(await world.eventTypes("o")).toEqual(["OrchestrationStarted", "OrchestrationFailed"]);
    });

    test("count the keys that are left, not those that were", async () => {
      await using world = await store.world();
      const refills = orchestration("Refills", async (ctx) => {
        fill(ctx.kv, "old ", maxKvKeys);
        ctx.kv.clear();
        fill(ctx.kv, "new ", maxKvKeys);
      });
      await world.start({ orchestrations: [refills] });
      await world.run(refills, { instanceId: "r" });

      const keys = [...(await world.client.getKvAllValues("r")).keys()];
      expect(keys).toHaveLength(150);
      expect(keys.every((key) => key.startsWith("new "))).toBe(true);
    });

    test("count a key once, in however many turns it is written", async () => {
      await using world = await store.world();
      const rewrites = orchestration("Rewrites", async (ctx) => {
        for (let round = 0; round < 3; round += 1) {
          fill(ctx.kv, "key ", maxKvKeys);
          await ctx.scheduleTimer("1s");
        }
        return ctx.kv.size;
      });
      await world.start({ orchestrations: [rewrites] });

      expect(await world.run(rewrites, { instanceId: "r" })).toBe(150);
      const values = await world.client.getKvAllValues("r");
      expect(values.size).toBe(150);
      for (let n = 0; n < 150; n += 1) expect(values.get(`key ${n}`)).toBe(n);
    });

    test.each([
      ["as large as it may be", "x".repeat(maxKvValueBytes), null],
      ["as large in bytes", "ü".repeat(maxKvValueBytes / 2), null],
      ["one byte larger", "x".repeat(maxKvValueBytes + 1), "(65537 bytes) exceeds limit (65536 bytes)"],
      ["two bytes larger", "ü".repeat(maxKvValueBytes / 2 + 1), "(65538 bytes) exceeds limit (65536 bytes)"],
    ])("measure a value in bytes: one that is %s", async (_how, text, breach) => {
      await using world = await store.world();
      const writes = orchestration("Writes", async (ctx) => ctx.kv.setText("large", text));
      await world.start({ orchestrations: [writes] });
      await world.client.start(writes, { instanceId: "w" });

      expect(await world.ending("w")).toEqual(
        breach === null
          ? { status: "Completed", output: "null" }
          : { status: "Failed", output: `KV value for key 'large' ${breach}` },
      );
      expect(await world.client.getKvText("w", "large")).toBe(breach === null ? text : undefined);
    });
  });
});
