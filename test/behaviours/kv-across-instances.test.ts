// What one instance sees of another's values: all that is committed if it asks, and nothing otherwise. R§4.12, R§3.13.

import { describe, expect, test } from "vitest";
import { activity, orchestration } from "../../src/define.js";
import type { TestWorld } from "../../src/testing/test-world.js";
import { onEveryStore } from "./stores.js";

const echo = activity("Echo", async (_ctx, text: string) => text);

const writer = orchestration("Writer", async (ctx, value: unknown) => {
  ctx.kv.set("value", value);
  for (;;) ctx.kv.set("value", await ctx.waitForEvent("update"));
});

const reader = orchestration("Reader", async (ctx, from: string) => ctx.readKv(from, "value"));

/** An instance that runs, with this value committed. */
async function startWriter(world: TestWorld, instanceId: string, value: unknown): Promise<void> {
  const handle = await world.client.start(writer, { instanceId, input: value });
  await world.settle(handle.waitForKv("value"));
}

onEveryStore((store) => {
  describe("a read of another instance's value", () => {
    test.each([
      ["a text", "42"],
      ["an array", [1, 2, 3]],
      ["an object", { retries: 3, hosts: ["a", "b"] }],
    ])("gives what that one has committed while it runs: %s", async (_what, value) => {
      await using world = await store.world();
      await world.start({ orchestrations: [writer, reader] });
      await startWriter(world, "writer", value);

      expect(await world.run(reader, { instanceId: "r", input: "writer" })).toEqual(value);
      expect(await world.client.getStatus("writer")).toMatchObject({ status: "Running" });
      expect(await world.eventTypes("r")).toEqual([
        "OrchestrationStarted",
        "ActivityScheduled",
        "ActivityCompleted",
        "OrchestrationCompleted",
      ]);
    });

    test("gives null where there is no such instance, or no such key", async () => {
      await using world = await store.world();
      const asks = orchestration("Asks", async (ctx) => [
        await ctx.readKv("nobody", "value"),
        await ctx.readKv("writer", "nothing"),
      ]);
      await world.start({ orchestrations: [writer, asks] });
      await startWriter(world, "writer", 1);

      expect(await world.run(asks)).toEqual([null, null]);
    });

    test("gives the same on replay, whatever has become of it", async () => {
      await using world = await store.world();
      const remembers = orchestration("Remembers", async (ctx) => {
        const value = await ctx.readKv<string>("writer", "value");
        const step = await ctx.scheduleActivity(echo, `with ${value}`);
        await ctx.waitForEvent("go");
        return [value, step];
      });
      const runtime = await world.start({ orchestrations: [writer, remembers], activities: [echo] });
      await startWriter(world, "writer", "stable");
      const handle = await world.client.start(remembers, { instanceId: "r" });
      await world.advance("1s");
      await world.client.raiseEvent("writer", "update", "changed");
      await world.advance("1s");
      expect(await world.client.getKvValue("writer", "value")).toBe("changed");

      runtime.kill();
      await runtime.restart();
      await handle.raiseEvent("go");
      expect(await world.settle(handle.result())).toEqual(["stable", "with stable"]);
    });

    test("is made afresh by every call", async () => {
      await using world = await store.world();
      const compares = orchestration("Compares", async (ctx) => {
        const before = await ctx.readKv("writer", "value");
        await ctx.waitForEvent("again");
        return [before, await ctx.readKv("writer", "value")];
      });
      await world.start({ orchestrations: [writer, compares], warmCacheBytes: 0 });
      await startWriter(world, "writer", 1);
      const handle = await world.client.start(compares, { instanceId: "c" });
      await world.advance("1s");
      await world.client.raiseEvent("writer", "update", 2);
      await world.advance("1s");
      await handle.raiseEvent("again");

      expect(await world.settle(handle.result())).toEqual([1, 2]);
    });

    test("may be of its own, as an earlier turn has committed it", async () => {
      await using world = await store.world();
      const reflects = orchestration("Reflects", async (ctx) => {
        ctx.kv.set("value", "mine");
        await ctx.scheduleActivity(echo, "x");
        return ctx.readKv(ctx.instanceId, "value");
      });
      await world.start({ orchestrations: [reflects], activities: [echo] });

      expect(await world.run(reflects)).toBe("mine");
    });

    test("is answered for many at once", async () => {
      await using world = await store.world();
      await world.start({ orchestrations: [writer, reader] });
      await startWriter(world, "writer", "from the producer");
      const ids = Array.from({ length: 10 }, (_, n) => `reader-${n}`);
      const handles = await Promise.all(
        ids.map((id) => world.client.start(reader, { instanceId: id, input: "writer" })),
      );

      expect(await world.settle(Promise.all(handles.map((handle) => handle.result())))).toEqual(
        ids.map(() => "from the producer"),
      );
    });
  });

  describe("parent and child", () => {
    const child = orchestration("Child", async (ctx) => {
      const inherited = ctx.kv.has("name");
      ctx.kv.set("name", "child");
      return inherited;
    });
    const parent = orchestration("Parent", async (ctx) => {
      ctx.kv.set("name", "parent");
      const inherited = await ctx.scheduleSubOrchestration(child, undefined, { instanceId: "child" });
      return [inherited, ctx.kv.get("name")];
    });

    test("have values of their own", async () => {
      await using world = await store.world();
      await world.start({ orchestrations: [parent, child] });

      expect(await world.run(parent, { instanceId: "parent" })).toEqual([false, "parent"]);
      expect(await world.client.getKvAllValues("parent")).toEqual(new Map([["name", "parent"]]));
      expect(await world.client.getKvAllValues("child")).toEqual(new Map([["name", "child"]]));
    });

    test("lose them together when the parent is deleted", async () => {
      await using world = await store.world();
      await world.start({ orchestrations: [parent, child] });
      await world.run(parent, { instanceId: "parent" });

      expect(await world.client.deleteInstance("parent")).toMatchObject({ instancesDeleted: 2 });
      expect(await world.client.getKvValue("parent", "name")).toBeUndefined();
      expect(await world.client.getKvValue("child", "name")).toBeUndefined();
    });
  });
});
