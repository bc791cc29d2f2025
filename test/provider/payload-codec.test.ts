// What a payload codec promises: the store sees none of users' texts, everybody else sees nothing but them, and a key that is
// wrong or missing loses nothing.

import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { Client } from "../../src/client/client.js";
import { activity, orchestration } from "../../src/define.js";
import { AlreadyExistsError, InvalidOptionsError, ProviderError } from "../../src/errors.js";
import { InstanceWatchers } from "../../src/provider/kit/instance-watchers.js";
import { type PayloadCodec, withPayloadCodec } from "../../src/provider/payload-codec.js";
import type { InstanceChange, Provider } from "../../src/provider/provider.js";
import { start, started } from "../../src/provider-tests/builders.js";
import { TestSchemas } from "../../src/provider-tests/own-stores.js";
import { create, runTurn } from "../../src/provider-tests/steps.js";
import { MemoryProvider } from "../../src/providers/memory/index.js";
import { PostgresProvider } from "../../src/providers/postgres/index.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";
import { PoisonInjectingProvider } from "../../src/testing/poison-injecting-provider.js";
import { TestWorld } from "../../src/testing/test-world.js";
import { inspect, onEveryStore } from "../behaviours/stores.js";

/** Stands in for a cipher: names its key, never gives the same answer twice, and goes through UTF-8. */
function keyed(...keys: readonly [string, ...string[]]): PayloadCodec {
  let nonce = 0;
  return {
    encode: (text) => `${keys[0]}:${nonce++}:${Buffer.from(text, "utf8").toString("hex")}`,
    decode(text) {
      const [key = "", , hex] = text.split(":");
      if (!keys.includes(key) || hex === undefined) throw new Error("no key fits");
      return Buffer.from(hex, "hex").toString("utf8");
    },
  };
}

function clientOf(world: TestWorld, provider: Provider): Client {
  return new Client(provider, { clock: world.clock, recheckIntervalMs: 86_400_000 });
}

/** Without the codec nobody can tell whether a history is valid: two encodings of a message that is carried over differ. */
const ENCODED = { hasBrokenHistories: true };

const UNDECODABLE = { name: "ProviderError", kind: "payload-codec", retryable: false };

// What is said to the store

/** Stands in every text that is a user's, and in nothing else. */
const SECRET = "s3cr3t";

const echo = activity("Echo", async (_ctx, text: string) => `${SECRET} echo of ${text}`);
const refuse = activity("Refuse", async () => {
  throw new Error(`${SECRET} refusal`);
});
const stuck = activity("Stuck", async (_ctx, text: string) => text);

const child = orchestration("Child", async (ctx, text: string) => {
  if (text.endsWith("fail")) throw new Error(`${SECRET} failure of a child`);
  return ctx.scheduleActivity(echo, text);
});
const keeper = orchestration("Keeper", async (ctx, text: string) => {
  ctx.kv.set("kept", text);
  return text;
});
const endless = orchestration("Endless", async (ctx, _text: string) => {
  ctx.setCustomStatus(`${SECRET} status`);
  await ctx.waitForEvent("never");
});
const hopeless = orchestration("Hopeless", async (ctx, text: string) => ctx.scheduleActivity(stuck, text));

/** Everything that an orchestration can do with a text, over two executions. */
const rich = orchestration("Rich", async (ctx, round: { readonly count: number; readonly text: string }) => {
  if (round.count === 2) {
    const carried = await ctx.dequeueEvent<string>("mail");
    return [`${SECRET} output`, carried, ctx.customStatus, ctx.kv.get("key"), await ctx.readKv("keeper", "kept")];
  }
  ctx.setCustomStatus(`${SECRET} status`);
  ctx.kv.set("key", `${SECRET} value`);
  ctx.kv.setText("text", `${SECRET} text`);
  ctx.startOrchestration(keeper, { instanceId: "detached", input: `${SECRET} input of a detached one` });
  await ctx.scheduleActivity(echo, `${SECRET} input`, { sessionId: "session", retry: { maxAttempts: 2 } });
  await ctx.scheduleActivity(refuse).catch(() => {});
  await ctx.scheduleSubOrchestration(child, `${SECRET} input of a child`);
  await ctx.scheduleSubOrchestration(child, `${SECRET} fail`).catch(() => {});
  await ctx.race({
    event: ctx.waitForEvent("never"),
    mail: ctx.dequeueEvent("nothing"),
    timer: ctx.scheduleTimer("1s"),
  });
  await ctx.waitForEvent("go");
  await ctx.dequeueEvent("mail");
  await ctx.newGuid();
  return ctx.continueAsNew({ count: 2, text: `${SECRET} second input` });
});

/** Lets instances live that leave secrets in all places of a store, and checks that whoever is entitled reads them. */
async function leaveSecrets(world: TestWorld, provider: Provider): Promise<void> {
  const client = clientOf(world, provider);
  const poisoning = new PoisonInjectingProvider(provider);
  const orchestrations = [rich, child, keeper, endless, hopeless];
  await world.start({ provider: poisoning, orchestrations, activities: [echo, refuse, stuck] });

  const kept = await client.start(keeper, { instanceId: "keeper", input: `${SECRET} of another` });
  await world.settle(kept.result());
  const handle = await client.start(rich, { instanceId: "rich", input: { count: 1, text: `${SECRET} first input` } });
  await world.settle(handle.waitForStatusChange());
  await world.advance("2s");
  for (const n of [1, 2, 3]) await handle.enqueueEvent("mail", `${SECRET} mail ${n}`);
  await handle.raiseEvent("go", `${SECRET} event`);
  expect(await world.settle(handle.result())).toEqual([
    `${SECRET} output`,
    `${SECRET} mail 2`,
    `${SECRET} status`,
    `${SECRET} value`,
    `${SECRET} of another`,
  ]);

  const cancelled = await client.start(endless, { instanceId: "cancelled", input: SECRET });
  await world.rest();
  await cancelled.cancel(`${SECRET} reason`);
  await expect(world.settle(cancelled.result())).rejects.toThrow(`${SECRET} reason`);

  poisoning.injectActivityPoison(99);
  const poisoned = await client.start(hopeless, { instanceId: "poisoned", input: `${SECRET} poison` });
  await expect(world.settle(poisoned.result())).rejects.toThrow("poison: activity Stuck");

  expect(await client.getKvText("rich", "text")).toBe(`${SECRET} text`);
  expect(await client.getInstanceInfo("keeper")).toMatchObject({ output: JSON.stringify(`${SECRET} of another`) });
  expect(await client.getExecutionInfo("rich", 1)).toMatchObject({ output: expect.stringContaining("second input") });
  await inspect(provider);
  const history = await client.readHistory("rich", 1);
  expect(history).toEqual(await provider.admin?.readHistoryWithExecutionId("rich", 1));
  expect(new Set(history.filter(saysSecret).map(({ type }) => type))).toEqual(
    new Set([
      ...["OrchestrationStarted", "CustomStatusUpdated", "KeyValueSet", "OrchestrationChained", "ActivityScheduled"],
      ...["ActivityCompleted", "ActivityFailed", "SubOrchestrationScheduled", "SubOrchestrationCompleted"],
      ...["SubOrchestrationFailed", "ExternalEvent", "ExternalEventPersistent", "OrchestrationContinuedAsNew"],
    ]),
  );
}

function saysSecret(value: unknown): boolean {
  return JSON.stringify(value).includes(SECRET);
}

/** Hears every word that is said to the store, and notes which calls said a secret. */
function overheard(inner: Provider, sayers: Set<string>): Provider {
  return new Proxy(inner, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      return (...args: unknown[]): unknown => {
        if (saysSecret(args)) sayers.add(String(name));
        return Reflect.apply(member, target, args);
      };
    },
  });
}

onEveryStore((store) => {
  describe("the store behind a payload codec", () => {
    test("is told no text of a user, whatever orchestrations, activities and clients do", async () => {
      const sayers = new Set<string>();
      await using world = await store.world(ENCODED);
      await leaveSecrets(world, withPayloadCodec(overheard(world.provider, sayers), keyed("A")));
      expect(sayers).toEqual(new Set());
    });

    test("would be told them on many ways without it", async () => {
      const sayers = new Set<string>();
      await using world = await store.world();
      await leaveSecrets(world, overheard(world.provider, sayers));
      expect(sayers).toEqual(new Set(["enqueueForOrchestrator", "ackOrchestrationItem", "ackWorkItem"]));
    });
  });

  describe("a worker with the wrong key", () => {
    const seen: { readonly input: string; readonly attempt: number }[] = [];
    const work = activity("Work", async (ctx, input: string) => {
      seen.push({ input, attempt: ctx.attempt });
      return `done: ${input}`;
    });
    const working = orchestration("Working", async (ctx, input: string) => ctx.scheduleActivity(work, input));
    const waiting = orchestration("Waiting", async (ctx, input: string) => {
      ctx.setCustomStatus(input);
      ctx.kv.set("input", input);
      return [await ctx.dequeueEvent("mail"), await ctx.dequeueEvent("mail"), input];
    });
    const orchestrations = [working, waiting];

    test("fails nothing and loses nothing in half an hour, and whoever has the right one goes on", async () => {
      seen.length = 0;
      await using world = await store.world();
      const right = withPayloadCodec(world.provider, keyed("A"));
      const wrong = withPayloadCodec(world.provider, keyed("B"));
      const client = clientOf(world, right);

      // An activity, messages to a history, and a start: all queued.
      const before = await world.start({ provider: right, orchestrations });
      const one = await client.start(working, { instanceId: "one", input: "one" });
      const two = await client.start(waiting, { instanceId: "two", input: "two" });
      await world.rest();
      await before.shutdown();
      await two.enqueueEvent("mail", "first");
      await two.enqueueEvent("mail", "second");
      const three = await client.start(working, { instanceId: "three", input: "three" });
      world.facts.length = 0;

      const misled = await world.start({ provider: wrong, orchestrations, activities: [work] });
      await world.advance("30m");
      const failures = world.factsOf("loop-failed").map(({ error }) => error);
      expect(failures.length).toBeGreaterThan(3 * 20);
      expect(failures.length).toBeLessThan(3 * 50); // Pauses have grown.
      for (const failure of failures) expect(failure).toMatchObject(UNDECODABLE);
      const happened = new Set(world.facts.map(({ type }) => type));
      expect(happened).toEqual(new Set(["runtime-started", "provider-call", "loop-failed"]));
      expect(await world.provider.admin?.getQueueDepths()).toMatchObject({ orchestratorQueue: 3, workerQueue: 1 });
      await misled.shutdown();

      await world.start({ provider: right, orchestrations, activities: [work] });
      expect(await world.settle(Promise.all([one.result(), two.result(), three.result()]))).toEqual([
        "done: one",
        ["first", "second", "two"],
        "done: three",
      ]);
      expect(seen.toSorted((a, b) => a.input.localeCompare(b.input))).toEqual([
        { input: "one", attempt: 1 },
        { input: "three", attempt: 1 },
      ]);
      expect(world.factsOf("messages-dropped")).toEqual([]);
    });

    test("delays an instance by a minute at most beside a worker with the right one", async () => {
      await using world = await store.world();
      const right = withPayloadCodec(world.provider, keyed("A"));
      await world.start({ provider: withPayloadCodec(world.provider, keyed("B")), orchestrations, activities: [work] });
      const handles = await Promise.all(
        ["a", "b", "c", "d"].map((input) => clientOf(world, right).start(working, { instanceId: input, input })),
      );
      await world.advance("1m");

      const from = world.clock.now();
      await world.start({ provider: right, orchestrations, activities: [work] });
      await world.settle(Promise.all(handles.map((handle) => handle.result())));
      expect(world.clock.now() - from).toBeLessThanOrEqual(60_000);
    });

    test("is told so by every read that holds a text, and may list and delete", async () => {
      await using world = await store.world();
      const right = withPayloadCodec(world.provider, keyed("A"));
      await world.start({ provider: right, orchestrations, activities: [work] });
      const waits = await clientOf(world, right).start(waiting, { instanceId: "i", input: "text" });
      await world.settle(waits.waitForStatusChange());
      const ended = await clientOf(world, right).start(working, { instanceId: "e", input: "text" });
      await world.settle(ended.result());

      const wrong = withPayloadCodec(world.provider, keyed("B"));
      const reads: readonly (() => Promise<unknown> | undefined)[] = [
        () => wrong.read("i"),
        () => wrong.readWithExecution("i", 1),
        () => wrong.getInstanceStatus("i"),
        () => wrong.getInstanceStatus("e"),
        () => wrong.getCustomStatus("i", 0),
        () => wrong.getKvValue("i", "input"),
        () => wrong.getKvAllValues("i"),
        () => wrong.admin?.readHistory("i"),
        () => wrong.admin?.readHistoryWithExecutionId("i", 1),
        () => wrong.admin?.getInstanceInfo("e"),
        () => wrong.admin?.getExecutionInfo("e", 1),
        () => clientOf(world, wrong).waitForOrchestration("e"),
      ];
      for (const read of reads) await expect(read()).rejects.toMatchObject(UNDECODABLE);
      await expect(wrong.getKvValue("i", "input")).rejects.toThrow(
        "getKvValue: The payload codec cannot decode the value of 'input' of instance 'i': no key fits. Nothing is lost; check the keys of this process.",
      );
      expect(await wrong.getKvValue("i", "no such key")).toBeNull();

      const client = clientOf(world, wrong);
      expect((await client.listAllInstances()).toSorted()).toEqual(["e", "i"]);
      await client.deleteInstance("e");
      await client.deleteInstance("i", { force: true });
      expect(await client.listAllInstances()).toEqual([]);
    });
  });
});

describe("a payload that this worker cannot decode", () => {
  const keep = orchestration("Keep", async (ctx, input: string) => {
    ctx.kv.set("kept", input);
    return input;
  });
  const ask = orchestration("Ask", async (ctx) => ctx.readKv("kept", "kept"));

  test("keeps only its own instance waiting", async () => {
    await using world = await TestWorld.open();
    const provider = withPayloadCodec(world.provider, keyed("A"));
    const client = clientOf(world, provider);
    await world.start({ provider, orchestrations: [keep], orchestrationConcurrency: 1 });
    // 50 clients without the codec: nobody here knows what they mean.
    for (let n = 0; n < 50; n += 1) await world.client.start(keep, { instanceId: `clear-${n}`, input: "in the clear" });
    await world.advance("10m");

    for (let n = 0; n < 50; n += 1) {
      const from = world.clock.now();
      const handle = await client.start(keep, { instanceId: `encoded-${n}`, input: "encoded" });
      expect(await world.settle(handle.result())).toBe("encoded");
      expect(world.clock.now() - from).toBeLessThanOrEqual(10_000);
    }
  });

  test("in another instance's values makes the one that asks wait, uncounted, until somebody can", async () => {
    await using world = await TestWorld.open();
    const own = withPayloadCodec(world.provider, keyed("A"));
    const foreign = withPayloadCodec(world.provider, keyed("B"));
    const first = await world.start({ provider: foreign, orchestrations: [keep] });
    const kept = await clientOf(world, foreign).start(keep, { instanceId: "kept", input: "theirs" });
    await world.settle(kept.result());
    await first.shutdown();

    const second = await world.start({ provider: own, orchestrations: [ask] });
    const handle = await clientOf(world, own).start(ask, { instanceId: "ask" });
    await world.advance("2h");
    const abandoned = world.factsOf("turn-abandoned");
    expect(abandoned.length).toBeGreaterThan(20);
    for (const fact of abandoned) expect(fact).toMatchObject({ instanceId: "ask", why: "store-failed", attempt: 1 });
    await second.shutdown();

    await world.start({ provider: withPayloadCodec(world.provider, keyed("A", "B")), orchestrations: [ask] });
    expect(await world.settle(handle.result())).toBe("theirs");
  });
});

describe("a codec that cannot encode for a while", () => {
  class LockedAway implements PayloadCodec {
    isLocked = false;
    readonly #codec = keyed("A");
    encode(text: string): string {
      if (this.isLocked) throw new Error("the key is locked away");
      return this.#codec.encode(text);
    }
    decode(text: string): string {
      return this.#codec.decode(text);
    }
  }

  test("fails no instance and runs no activity twice: what was computed is handed in later", async () => {
    const codec = new LockedAway();
    let runs = 0;
    const lock = activity("Lock", async (_ctx, text: string) => {
      runs += 1;
      codec.isLocked = true;
      return text;
    });
    const locking = orchestration("Locking", async (ctx, text: string) => ctx.scheduleActivity(lock, text));
    const other = orchestration("Other", async (_ctx, text: string) => text);
    await using world = await TestWorld.open();
    const provider = withPayloadCodec(world.provider, codec);
    const client = clientOf(world, provider);
    const late = await client.start(other, { instanceId: "other", input: "b", delay: "1m" });
    const handle = await client.start(locking, { instanceId: "locking", input: "a" });
    await world.start({ provider, orchestrations: [locking, other], activities: [lock] });
    await world.advance("30m");
    await expect(client.start(other, { instanceId: "new", input: "c" })).rejects.toMatchObject({
      ...UNDECODABLE,
      message:
        "enqueueForOrchestrator: The payload codec cannot encode StartOrchestration for instance 'new': the key is locked away. Nothing was written; check the keys of this process.",
    });

    codec.isLocked = false;
    expect(await world.settle(Promise.all([handle.result(), late.result()]))).toEqual(["a", "b"]);
    expect(runs).toBe(1);
    expect(await client.getStatus("new")).toEqual({ status: "NotFound" });
  });

  test("answering something else than a text is refused before anything is written", async () => {
    const codec = keyed("A");
    const provider = withPayloadCodec(new MemoryProvider(), codec);
    codec.encode = () => undefined as unknown as string;
    await expect(provider.enqueueForOrchestrator(start("a"))).rejects.toMatchObject({
      ...UNDECODABLE,
      message: expect.stringContaining("encode answered undefined, not a string"),
    });
    expect(await provider.getInstanceStatus("a")).toBeNull();
  });
});

describe("with a codec that never answers the same twice", () => {
  test("a start under a known id starts nothing", async () => {
    await using world = await TestWorld.open();
    const provider = withPayloadCodec(world.provider, keyed("A"));
    const client = clientOf(world, provider);
    const once = orchestration("Once", async (_ctx, text: string) => text);
    await client.start(once, { instanceId: "once", input: "text" });
    await client.start(once, { instanceId: "once", input: "text" });
    await world.start({ provider, orchestrations: [once] });
    const again = await client.start(once, { instanceId: "once", input: "text" });

    expect(await world.settle(again.result())).toBe("text");
    await expect(client.start(once, { instanceId: "once", input: "text", ifExists: "fail" })).rejects.toThrow(
      AlreadyExistsError,
    );
    expect(world.factsOf("orchestration-started")).toHaveLength(1);
  });

  test("texts that UTF-8 cannot carry come back as they were", async () => {
    const provider = withPayloadCodec(new MemoryProvider(), keyed("A"));
    for (const [place, text] of ["\ud800", "a\udfffb", "\0", "\0\ud83d", "🚀", "", "\\ud800", '"'].entries()) {
      await create(provider, `i${place}`, { events: [{ ...started(`i${place}`), input: text } as never] });
      await runTurn(provider, `i${place}`, { metadata: { status: "Completed", output: text } });
      expect(await provider.read(`i${place}`)).toMatchObject([{ input: text }]);
      expect(await provider.getInstanceStatus(`i${place}`)).toMatchObject({ output: text });
    }
  });
});

describe("a store that was begun without a codec", () => {
  test("goes on with one that lets clear text pass, and what is written from then on is encoded", async () => {
    const migrating: PayloadCodec = {
      encode: (text) => `enc1:${Buffer.from(text).toString("hex")}`,
      decode: (text) => (text.startsWith("enc1:") ? Buffer.from(text.slice(5), "hex").toString() : text),
    };
    const slow = orchestration("Slow", async (ctx, input: string) => {
      ctx.setCustomStatus("waits");
      ctx.kv.set("input", input);
      return `${input}, ${await ctx.dequeueEvent("mail")}`;
    });
    await using world = await TestWorld.open();
    const before = await world.start({ orchestrations: [slow] });
    await world.client.start(slow, { instanceId: "slow", input: "in the clear" });
    await world.rest();
    await world.client.enqueueEvent("slow", "mail", "and now encoded");
    await before.shutdown();

    const provider = withPayloadCodec(world.provider, migrating);
    expect(await provider.getInstanceStatus("slow")).toMatchObject({ customStatus: "waits" });
    expect(await clientOf(world, provider).getKvValue("slow", "input")).toBe("in the clear");
    await world.start({ provider, orchestrations: [slow] });
    const status = await world.settle(clientOf(world, provider).waitForOrchestration("slow"));
    expect(status).toMatchObject({ output: "in the clear, and now encoded" });
    const stored = await world.provider.read("slow");
    expect(stored.map((event) => JSON.stringify(event).includes("enc1:"))).toEqual(
      stored.map(({ type }) => type === "ExternalEventPersistent" || type === "OrchestrationCompleted"),
    );
  });
});

describe("withPayloadCodec", () => {
  const codec = keyed("A");

  test.each<[what: string, provider: unknown, codec: unknown, words: string]>([
    [
      "a provider that is a promise",
      SqliteProvider.open(":memory:"),
      codec,
      "the provider is a promise: await it first",
    ],
    ["no codec", new MemoryProvider(), undefined, "must be an object with encode(text) and decode(text)"],
    ["half a codec", new MemoryProvider(), { encode: codec.encode }, "must be an object with encode(text)"],
    ["a codec with promises", new MemoryProvider(), { ...codec, encode: async () => "" }, "it must be synchronous"],
    ["a codec that loses letters", new MemoryProvider(), { encode: ascii, decode: String }, "is another text"],
    ["a codec that throws", new MemoryProvider(), { ...codec, decode: () => fail() }, "just encoded: out of order"],
  ])("refuses %s", (_what, provider, wrong, words) => {
    const wrap = () => withPayloadCodec(provider as Provider, wrong as PayloadCodec);
    expect(wrap).toThrow(InvalidOptionsError);
    expect(wrap).toThrow(words);
  });

  test("shows the provider that it stands in front of, and closes it", async () => {
    const inner = await SqliteProvider.open(":memory:");
    const provider = withPayloadCodec(inner, codec);
    expect(provider).toMatchObject({ name: inner.name, version: inner.version });
    await provider[Symbol.asyncDispose]();
    await expect(inner.read("a")).rejects.toThrow(ProviderError);
  });

  test("never tells a text that it has encoded: who watches hears that there is something to look for", async () => {
    const inner = new InstanceWatchers();
    const memory = new MemoryProvider();
    const provider = withPayloadCodec(
      new Proxy(memory, { get: (it, key) => (key === "wake" ? inner : Reflect.get(it, key, it)) }),
      codec,
    );
    const heard: (InstanceChange | undefined)[] = [];
    const stop = provider.wake?.watchInstance("a", (change) => heard.push(change));
    inner.changed("a", "turn");
    inner.changed("a", { output: "encoded" });
    stop?.();
    inner.changed("a");

    expect(heard).toEqual(["turn", "state"]);
  });

  function ascii(text: string): string {
    return Buffer.from(text, "ascii").toString("ascii");
  }

  function fail(): never {
    throw new Error("out of order");
  }
});

// The raw stores, as somebody finds them who has the file or the database

describe("somebody who has the store and not the key", () => {
  test("finds no text of a user in the files of SQLite", async () => {
    const folder = mkdtempSync(join(tmpdir(), "duroxide-codec-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const find = () => readdirSync(folder).filter((name) => readFileSync(join(folder, name)).includes(SECRET));
    const store = { durability: "process-crash", crossProcessPollMs: 0 } as const;
    const live = async (file: string, wrap: (provider: Provider) => Provider): Promise<string[]> => {
      const world = await TestWorld.open({
        patienceMs: 0,
        provider: (tools) => SqliteProvider.open(join(folder, file), { ...tools, ...store }),
      });
      await leaveSecrets(world, wrap(world.provider));
      const found = find(); // With the write-ahead log as it is.
      await world[Symbol.asyncDispose]();
      return [...found, ...find()];
    };

    expect(await live("encoded.db", (provider) => withPayloadCodec(provider, keyed("A")))).toEqual([]);
    expect((await live("clear.db", (provider) => provider)).length).toBeGreaterThan(0);
  });

  const url = process.env.DUROXIDE_TEST_PG_URL;
  test.skipIf(url === undefined)("finds no text of a user in the tables of PostgreSQL", async () => {
    const schemas = new TestSchemas(url!);
    onTestFinished(() => schemas.remove());
    const live = async (wrap: (provider: Provider) => Provider): Promise<string[]> => {
      const schema = schemas.take();
      await using world = await TestWorld.open({
        patienceMs: 0,
        provider: (tools) => PostgresProvider.open(url!, { ...tools, schema, wakeUps: "local" }),
      });
      await leaveSecrets(world, wrap(world.provider));
      const tables = await schemas.run<{ readonly name: string }>(schema, TABLES, [schema]);
      expect(tables.length).toBeGreaterThan(8);
      const rows = await Promise.all(
        tables.map(async ({ name }) => ({
          name,
          rows: await schemas.run(schema, `SELECT t::text FROM {schema}.${name} t`),
        })),
      );
      return rows.filter(({ rows: texts }) => saysSecret(texts)).map(({ name }) => name);
    };

    expect(await live((provider) => withPayloadCodec(provider, keyed("A")))).toEqual([]);
    expect(await live((provider) => provider)).toEqual(expect.arrayContaining(["history", "executions", "kv_store"]));
  });
});

const TABLES = "SELECT tablename AS name FROM pg_tables WHERE schemaname = $1";

describe("a codec that answers with a promise that rejects", () => {
  test("is refused, and does not end the process", async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => void unhandled.push(reason);
    process.on("unhandledRejection", note);
    onTestFinished(() => void process.off("unhandledRejection", note));
    const encode = (async () => {
      throw new Error("the key service is down");
    }) as unknown as PayloadCodec["encode"];

    expect(() => withPayloadCodec(new MemoryProvider(), { encode, decode: (text) => text })).toThrow(
      InvalidOptionsError,
    );
    await new Promise((resolve) => setImmediate(resolve)); // Node tells after the microtasks.
    expect(unhandled).toEqual([]);
  });
});

describe("a worker with the wrong key beside one with the right key", () => {
  test("does not keep the sessions whose work it cannot decode", async () => {
    await using world = await TestWorld.open();
    const began = world.clock.now();
    const right = withPayloadCodec(world.provider, keyed("A"));
    const inSession = orchestration("InSession", async (ctx) => ctx.scheduleActivity(echo, "x", { sessionId: "s" }));
    await world.start({
      activities: [echo],
      provider: withPayloadCodec(world.provider, keyed("B")),
      workerNodeId: "wrong",
    });
    const turns = await world.start({ orchestrations: [inSession], provider: right, workerConcurrency: 0 });
    const client = clientOf(world, right);
    const handle = await client.start(inSession, { instanceId: "i" });
    await world.advance("10s"); // The wrong one has it by now.
    await world.start({ activities: [echo], provider: right, workerNodeId: "right" });

    expect(await world.settle(handle.result())).toContain("echo of x");
    expect(world.clock.now()).toBeLessThan(began + 10 * 60_000);
    await turns.shutdown();
  });
});
