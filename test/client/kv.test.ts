import { describe, expect, expectTypeOf, test } from "vitest";
import type { EventPayload } from "../../src/history/event.js";
import { commitTurn, completing, openClient, STARTED, wakeAndCommit } from "./driver.js";

function set(key: string, value: string): EventPayload {
  return { type: "KeyValueSet", key, value, lastUpdatedAtMs: 1_700_000_000_000 };
}

async function openRunning(...events: readonly EventPayload[]) {
  const opened = openClient();
  const handle = await opened.client.start("Test", { instanceId: "i" });
  await commitTurn(opened.provider, { events: [STARTED, ...events] });
  return { ...opened, handle };
}

describe("a value of the key-value store", () => {
  test("is decoded from JSON", async () => {
    const { client, handle } = await openRunning(set("cart", '{"items":2}'));
    expect(await client.getKvValue<{ items: number }>("i", "cart")).toEqual({ items: 2 });
    expect(await handle.getKv("cart")).toEqual({ items: 2 });
  });

  test("is the text itself where it is no JSON, as other runtimes write it", async () => {
    const { client } = await openRunning(set("progress", "50%"));
    expect(await client.getKvValue("i", "progress")).toBe("50%");
  });

  test("can be read as it is stored", async () => {
    const { client } = await openRunning(set("name", '"Ada"'));
    expect(await client.getKvText("i", "name")).toBe('"Ada"');
  });

  test("may be null, which is not the same as none", async () => {
    const { client } = await openRunning(set("nothing", "null"));
    expect(await client.getKvValue("i", "nothing")).toBeNull();
    expect(await client.getKvValue("i", "nobody")).toBeUndefined();
    expect(await client.getKvText("i", "nobody")).toBeUndefined();
    expect(await client.getKvValue("nobody", "nothing")).toBeUndefined();
  });

  test("may stand under the empty key", async () => {
    const { client } = await openRunning(set("", "1"));
    expect(await client.getKvValue("i", "")).toBe(1);
  });

  test("is still there after the end", async () => {
    const { client, provider } = await openRunning(set("a", "1"));
    await wakeAndCommit(provider, "i", completing(null));
    expect(await client.getKvValue("i", "a")).toBe(1);
  });

  test("has the type that the caller names", async () => {
    const { client, handle } = await openRunning();
    expectTypeOf(client.getKvValue<number>("i", "a")).resolves.toEqualTypeOf<number | undefined>();
    expectTypeOf(handle.getKv("a")).resolves.toEqualTypeOf<unknown>();
    expectTypeOf(handle.waitForKv<number>).returns.resolves.toEqualTypeOf<number>();
  });
});

describe("all values of the key-value store", () => {
  test("come decoded, without what was cleared", async () => {
    const { client, provider } = await openRunning(set("a", "1"), set("b", "two"), set("c", "3"));
    await wakeAndCommit(provider, "i", { events: [{ type: "KeyValueCleared", key: "c" }] });
    expect(await client.getKvAllValues("i")).toEqual(
      new Map<string, unknown>([
        ["a", 1],
        ["b", "two"],
      ]),
    );
  });

  test("are none for an unknown instance", async () => {
    const { client } = openClient();
    expect(await client.getKvAllValues("nobody")).toEqual(new Map());
  });
});

describe("a wait for a value", () => {
  test("resolves at once where there is one", async () => {
    const { client } = await openRunning(set("a", "1"));
    expect(await client.waitForKvValue("i", "a")).toBe(1);
    expect(await client.waitForKvValue("i", "a", { timeoutMs: 0 })).toBe(1);
  });

  test("resolves to a value that is null", async () => {
    const { client } = await openRunning(set("a", "null"));
    expect(await client.waitForKvValue("i", "a")).toBeNull();
  });

  test("is woken by the turn that sets it, without time passing", async () => {
    const { handle, provider, clock } = await openRunning();
    const before = clock.now();
    const waiting = handle.waitForKv<string>("response");
    await wakeAndCommit(provider, "i", { events: [set("other", "0")] });
    await wakeAndCommit(provider, "i", { events: [set("response", '"olleh"')] });
    expect(await waiting).toBe("olleh");
    expect(clock.now()).toBe(before);
  });

  test("times out where none comes, also after the end of the instance", async () => {
    const { client, clock, provider } = await openRunning();
    await wakeAndCommit(provider, "i", completing(null));
    const waiting = clock.run(client.waitForKvValue("i", "a", { timeoutMs: 1_500 }));
    await expect(waiting).rejects.toMatchObject({ code: "DUROXIDE_TIMEOUT" });
    await expect(waiting).rejects.toThrow("a value under key 'a' of instance 'i'. It has completed.");
  });
});
