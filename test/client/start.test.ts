import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { Client } from "../../src/client/client.js";
import type { OrchestrationHandle } from "../../src/client/handle.js";
import { orchestration } from "../../src/define.js";
import type { StartOrchestration } from "../../src/history/work-item.js";
import type { Provider } from "../../src/provider/provider.js";
import { MemoryProvider } from "../../src/providers/memory/index.js";
import { commitTurn, openClient, STARTED } from "./driver.js";

interface Order {
  readonly amount: number;
}

const checkout = orchestration<Order, string>("Checkout");
const cleanUp = orchestration("CleanUp");

describe("a start", () => {
  test("queues one StartOrchestration that says everything, and answers with a handle", async () => {
    const { client, provider } = openClient();

    const handle = await client.start(checkout, { instanceId: "order-1", input: { amount: 5 } });

    expect(handle.instanceId).toBe("order-1");
    expect(await queuedStart(provider)).toEqual({
      type: "StartOrchestration",
      instance: "order-1",
      orchestration: "Checkout",
      input: '{"amount":5}',
      version: null,
      parentInstance: null,
      parentId: null,
      executionId: 1,
    });
  });

  test("costs one call to the store", async () => {
    const { client, store } = openClient();
    await client.start(checkout, { instanceId: "order-1", input: { amount: 5 } });
    expect([...store.calls]).toEqual([["enqueueForOrchestrator", 1]]);
  });

  test("takes its id from newId where nobody chose one", async () => {
    const { client } = openClient({ newId: () => "made-up" });
    expect((await client.start(cleanUp)).instanceId).toBe("made-up");
  });

  test("takes a random UUID by default, another one each time", async () => {
    const { client } = openClient();
    const [first, second] = [await client.start(cleanUp), await client.start(cleanUp)];
    expect(first.instanceId).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    expect(second.instanceId).not.toBe(first.instanceId);
  });

  test("works by name for an orchestration that lives elsewhere", async () => {
    const { client, provider } = openClient();
    await client.start("Elsewhere", { instanceId: "e-1", input: [1, "two"] });
    expect(await queuedStart(provider)).toMatchObject({ orchestration: "Elsewhere", input: '[1,"two"]' });
  });

  test("sends null where there is no input", async () => {
    const { client, provider } = openClient();
    await client.start(cleanUp, { instanceId: "c-1", input: undefined });
    expect(await queuedStart(provider)).toMatchObject({ input: "null" });
  });

  test("asks for the version of its options, else of its definition, else for none", async () => {
    const { client, provider } = openClient();
    const pinned = orchestration<void, void>({ name: "Pinned", version: "2.1.0" });

    await client.start(pinned, { instanceId: "p-1", version: "3.0.0" });
    expect(await queuedStart(provider)).toMatchObject({ version: "3.0.0" });
    await client.start(pinned, { instanceId: "p-2" });
    expect(await queuedStart(provider)).toMatchObject({ version: "2.1.0" });
    await client.start("Pinned", { instanceId: "p-3" });
    expect(await queuedStart(provider)).toMatchObject({ version: null });
  });

  test("with a delay is pending, and cannot be fetched before its time", async () => {
    const { client, store, provider } = openClient();
    const handle = await client.start(cleanUp, { instanceId: "later", delay: "5m" });

    await store.storeClock.advance(299_999);
    expect(await provider.fetchOrchestrationItem({ lockTimeoutMs: 1_000 })).toBeNull();
    expect(await handle.status()).toMatchObject({ status: "Pending" });
    await store.storeClock.advance(1);
    expect(await queuedStart(provider)).toMatchObject({ instance: "later" });
  });

  test("sends what the input was at the call, even if it changes while the schema takes its time", async () => {
    const { client, provider } = openClient();
    const slow = orchestration<{ amount: number }, void>({
      name: "Slow",
      input: z.object({ amount: z.number() }).refine(async () => true),
    });
    const input = { amount: 1 };

    const starting = client.start(slow, { instanceId: "s-1", input });
    input.amount = 2;
    await starting;

    expect(await queuedStart(provider)).toMatchObject({ input: '{"amount":1}' });
  });
});

describe("a second start under the same id", () => {
  test("has no effect while the first is queued: nothing more is queued", async () => {
    const { client, provider } = openClient();
    await client.start(checkout, { instanceId: "order-1", input: { amount: 1 } });

    const again = await client.start(checkout, { instanceId: "order-1", input: { amount: 2 } });

    expect(again.instanceId).toBe("order-1");
    const messages = await commitTurn(provider, { events: [STARTED] });
    expect(messages).toHaveLength(1);
    expect(messages[0]).toMatchObject({ input: '{"amount":1}' });
  });

  test("has no effect once the instance runs", async () => {
    const { client, provider } = openClient();
    await client.start(cleanUp, { instanceId: "c-1" });
    await commitTurn(provider, { events: [STARTED] });

    await client.start(cleanUp, { instanceId: "c-1" });

    expect(await provider.fetchOrchestrationItem({ lockTimeoutMs: 1_000 })).toBeNull();
  });

  test("fails if it asks to be told, whether the first is queued or runs", async () => {
    const { client, provider } = openClient();
    await client.start(cleanUp, { instanceId: "c-1", ifExists: "fail" });
    const told = { code: "DUROXIDE_ALREADY_EXISTS", instanceId: "c-1" };

    await expect(client.start(cleanUp, { instanceId: "c-1", ifExists: "fail" })).rejects.toMatchObject(told);
    await commitTurn(provider, { events: [STARTED] });
    await expect(client.start(cleanUp, { instanceId: "c-1", ifExists: "fail" })).rejects.toMatchObject(told);
  });
});

describe("what cannot be right is refused before anything is written:", () => {
  const refusedIds: ReadonlyArray<readonly [what: string, id: unknown]> = [
    ["an empty id", ""],
    ["an over-long id", "x".repeat(257)],
    ["an id that is over-long in bytes only", "é".repeat(129)],
    ["a control character in the id", "order\n1"],
    ["a NUL in the id", "order\0"],
    ["half a surrogate pair in the id", "order-\ud800"],
    ["an id that begins like a child's", "sub::1"],
    ["an id that looks like a child's", "order-1::sub::2"],
    ["an id that is no string", 42],
    ["null, which is no id left out but one that is missing", null],
  ];
  for (const [what, id] of refusedIds) {
    test(what, async () => {
      const { client, store } = openClient();
      await expect(client.start(cleanUp, { instanceId: id as string })).rejects.toMatchObject({
        code: "DUROXIDE_INVALID_INPUT",
      });
      expect(store.calls.size).toBe(0);
    });
  }

  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;
  const refusedInputs: ReadonlyArray<readonly [what: string, input: unknown]> = [
    ["a BigInt", 1n],
    ["a BigInt inside", { amount: [1n] }],
    ["a cycle", cycle],
    ["a function", () => 1],
    ["a symbol", Symbol("s")],
    ["NaN", Number.NaN],
    ["Infinity inside", { amount: Number.POSITIVE_INFINITY }],
    ["a Map", new Map([["a", 1]])],
  ];
  for (const [what, input] of refusedInputs) {
    test(`${what} as input, with the name of the orchestration in the message`, async () => {
      const { client, store } = openClient();
      const starting = client.start("Checkout", { instanceId: "order-1", input });
      await expect(starting).rejects.toMatchObject({ code: "DUROXIDE_INVALID_INPUT" });
      await expect(starting).rejects.toThrow("input of orchestration 'Checkout'");
      expect(store.calls.size).toBe(0);
    });
  }

  test("an empty name, an empty version, a delay that is none", async () => {
    const { client, store } = openClient();
    const refused = { code: "DUROXIDE_INVALID_INPUT" };
    await expect(client.start("")).rejects.toMatchObject(refused);
    await expect(client.start("X", { version: "" })).rejects.toMatchObject(refused);
    await expect(client.start("X", { delay: "soon" })).rejects.toMatchObject(refused);
    await expect(client.start("X", { delay: -1 })).rejects.toMatchObject(refused);
    expect(store.calls.size).toBe(0);
  });

  test("a misspelled option, with the right one in the message", async () => {
    const { client } = openClient();
    const misspelled = { instanceid: "x" } as object;
    await expect(client.start("X", misspelled)).rejects.toThrow("Did you mean 'instanceId'?");
    await expect(client.start("X", { ifExists: "replace" as "use" })).rejects.toMatchObject({
      code: "DUROXIDE_INVALID_OPTIONS",
    });
  });

  test("wrong options of the client itself", () => {
    const provider = new MemoryProvider();
    expect(() => new Client(provider, { pollIntervalMs: 0 })).toThrow("pollIntervalMs");
    expect(() => new Client(provider, { pollInterval: 5 } as object)).toThrow("Did you mean 'pollIntervalMs'?");
  });

  test("input that its schema refuses, with every issue and its path", async () => {
    const { client, store } = openClient();
    const typed = orchestration<{ items: { price: number }[]; who: string }, void>({
      name: "Typed",
      input: z.object({ items: z.array(z.object({ price: z.number() })), who: z.string() }),
    });
    const bad = { items: [{ price: "free" }], who: 7 } as never;

    const starting = client.start(typed, { instanceId: "t-1", input: bad });

    await expect(starting).rejects.toMatchObject({ code: "DUROXIDE_INVALID_INPUT" });
    await expect(starting).rejects.toThrow(/items\[0\]\.price: .*; who: /);
    expect(store.calls.size).toBe(0);
  });

  test("input that an asynchronous schema refuses", async () => {
    const { client, store } = openClient();
    const picky = orchestration<string, void>({
      name: "Picky",
      input: z.string().refine(async (text) => text !== "no", "not that one"),
    });
    await expect(client.start(picky, { input: "no" })).rejects.toThrow("not that one");
    expect(store.calls.size).toBe(0);
    await expect(client.start(picky, { input: "yes" })).resolves.toBeDefined();
  });
});

describe("a schema that fills in or changes", () => {
  test("does not touch what is sent: the worker applies it where the value is used", async () => {
    const { client, provider } = openClient();
    const trimmed = orchestration<string, void>({ name: "Trimmed", input: z.string().trim() });
    await client.start(trimmed, { instanceId: "t-1", input: "  hi  " });
    expect(await queuedStart(provider)).toMatchObject({ input: '"  hi  "' });
  });
});

describe("the types of a start", () => {
  test("follow the definition", async () => {
    const { client } = openClient();
    const optional = orchestration<string | undefined, number>("Optional");

    expectTypeOf(await client.start(checkout, { input: { amount: 1 } })).toEqualTypeOf<OrchestrationHandle<string>>();
    expectTypeOf(await client.start(cleanUp)).toEqualTypeOf<OrchestrationHandle<void>>();
    expectTypeOf(await client.start(optional, {})).toEqualTypeOf<OrchestrationHandle<number>>();
    expectTypeOf(await client.start("Name", { input: 1 })).toEqualTypeOf<OrchestrationHandle<unknown>>();
    expectTypeOf(await client.start<string>("Name")).toEqualTypeOf<OrchestrationHandle<string>>();
    expectTypeOf(client.getHandle(checkout, "x")).toEqualTypeOf<OrchestrationHandle<string>>();
    expectTypeOf(client.getHandle("x")).toEqualTypeOf<OrchestrationHandle<unknown>>();
    expectTypeOf(client.getHandle<number>("Name", "x")).toEqualTypeOf<OrchestrationHandle<number>>();
    expectTypeOf(client.getHandle(checkout, "x").result).returns.resolves.toEqualTypeOf<string>();
  });

  test("require an input where the orchestration takes one, and refuse one where it takes none", () => {
    const typesOnly = (client: Client) => [
      // @ts-expect-error the input is missing
      client.start(checkout),
      // @ts-expect-error the input is missing
      client.start(checkout, { instanceId: "x" }),
      // @ts-expect-error the input is of another type
      client.start(checkout, { input: { amount: "1" } }),
      // @ts-expect-error the input is of another type, though it may be left out
      client.start(orchestration<string | undefined, void>("Optional"), { input: 1 }),
      // @ts-expect-error it takes no input
      client.start(cleanUp, { input: 1 }),
      // @ts-expect-error there is no such option
      client.start(checkout, { input: { amount: 1 }, instance: "x" }),
    ];
    expect(typesOnly).toBeTypeOf("function");
  });
});

describe("a handle on an instance that somebody else started", () => {
  test("asks the store nothing until it is used", () => {
    const { client, store } = openClient();
    expect(client.getHandle(checkout, "order-1").instanceId).toBe("order-1");
    expect(client.getHandle("Checkout", "order-1").instanceId).toBe("order-1");
    expect(client.getHandle("order-1").instanceId).toBe("order-1");
    expect(store.calls.size).toBe(0);
  });

  test("may be on a sub-orchestration, but not on an id that cannot be", () => {
    const { client } = openClient();
    expect(client.getHandle("order-1::sub::2").instanceId).toBe("order-1::sub::2");
    expect(() => client.getHandle("")).toThrow("instance id");
    expect(() => client.getHandle(checkout, undefined as unknown as string)).toThrow("instance id");
  });
});

async function queuedStart(provider: Provider): Promise<StartOrchestration> {
  const [start] = await commitTurn(provider, { events: [STARTED] });
  if (start?.type !== "StartOrchestration") throw new Error(`expected a start, got ${start?.type}`);
  return start;
}
