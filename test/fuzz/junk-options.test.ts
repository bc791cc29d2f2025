// Whatever is passed for options, arguments and definitions: an error of ours, or accepted; never another error, and what
// is refused leaves nothing behind.

import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { Client } from "../../src/client/client.js";
import { activity, event, orchestration } from "../../src/define.js";
import { DEFAULT_LIMITS } from "../../src/history/limits.js";
import { withPayloadCodec } from "../../src/provider/payload-codec.js";
import { MemoryProvider } from "../../src/providers/memory/index.js";
import { entraPassword, migrations } from "../../src/providers/postgres/index.js";
import { POSTGRES_DEFAULTS, resolveOptions } from "../../src/providers/postgres/options.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";
import { SQLITE_DEFAULTS } from "../../src/providers/sqlite/options.js";
import { DEFAULT_RUNTIME_OPTIONS } from "../../src/runtime/options.js";
import { Registry } from "../../src/runtime/registry.js";
import { Runtime } from "../../src/runtime/runtime.js";
import {
  assertDeterministic,
  checkHistory,
  historyProblems,
  importHistory,
  importInstance,
  mockActivity,
  replay,
  type TestRuntime,
  TestWorld,
} from "../../src/testing/index.js";
import { tries } from "./budget.js";
import { anyJunk, noOptions, ODDITIES, unreadable, verdictOf } from "./junk.js";

/** As a caller without types may pass it. */
const given = (value: unknown): never => value as never;

const folder = mkdtempSync(join(tmpdir(), "duroxide-junk-"));
const store = new MemoryProvider();
const client = new Client(store);
const nothing = orchestration("Nothing", async () => {});

afterAll(async () => {
  await store[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

/** Tries the call with junk of all kinds; `undo` closes what was opened after all. */
async function expectTyped(
  call: (junk: unknown) => unknown,
  { junk = anyJunk, runs = 60, undo = () => {} }: Trial = {},
): Promise<void> {
  if (junk === anyJunk) for (const make of [...ODDITIES, unreadable]) await verdictOf(() => call(make()), undo);
  await fc.assert(
    fc.asyncProperty(junk, async (value) => {
      await verdictOf(() => call(value), undo);
    }),
    tries(runs),
  );
}

/** Tries every option with every oddity, and several at once with junk of all kinds. */
async function expectTypedOptions(
  call: (options: object) => unknown,
  names: readonly string[],
  trial: Omit<Trial, "junk"> = {},
): Promise<void> {
  for (const name of names) {
    for (const make of ODDITIES) await verdictOf(() => call({ [name]: make() }), trial.undo);
  }
  await expectTyped((options) => call(options as object), { ...trial, junk: anyOptions(names) });
}

interface Trial {
  readonly junk?: fc.Arbitrary<unknown>;
  readonly runs?: number;
  readonly undo?: (accepted: unknown) => unknown;
}

/** One of the names, mostly, with junk for its value; and now and then a name that nobody knows. */
function anyOptions(names: readonly string[]): fc.Arbitrary<object> {
  const name = fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...names) }, fc.string(), fc.constant("__proto__"));
  return fc.array(fc.tuple(name, anyJunk), { minLength: 1, maxLength: 2 }).map(Object.fromEntries);
}

describe("a runtime", () => {
  const names = [...Object.keys(DEFAULT_RUNTIME_OPTIONS), "provider", "orchestrations", "activities", "registry"];
  const undo = (runtime: unknown) => (runtime as Runtime).shutdown({ graceMs: 0 });

  test("refuses junk in place of its options, and of each of them", async () => {
    const listeners = process.listenerCount("unhandledRejection");
    await expectTyped((junk) => Runtime.start(given(junk)), { undo });
    await expectTypedOptions((options) => Runtime.start({ provider: store, ...options }), names, { runs: 300, undo });
    expect(process.listenerCount("unhandledRejection")).toBe(listeners);
  });

  test("refuses junk inside the options that have parts", async () => {
    const parts = fc.tuple(
      fc.constantFrom("unregisteredBackoff", "supportedReplayVersions", "limits", "tagFilter", "versionPolicies"),
      anyOptions([
        "baseMs",
        "maxMs",
        "min",
        "max",
        ...Object.keys(DEFAULT_LIMITS),
        "kind",
        "tags",
        "Nothing",
        "constructor",
      ]),
    );
    await expectTyped(
      (junk) => {
        const [name, options] = junk as [string, object];
        return Runtime.start({ provider: store, orchestrations: [nothing], [name]: options });
      },
      { junk: parts, runs: 300, undo },
    );
    const tagFilters = fc.record({
      kind: fc.constantFrom("tags", "default-and"),
      tags: fc.oneof(fc.array(anyJunk), anyJunk),
    });
    await expectTyped((tagFilter) => Runtime.start({ provider: store, tagFilter: given(tagFilter) }), {
      junk: tagFilters,
      undo,
    });
  });

  test("that runs refuses junk, and goes on", async () => {
    const runtime = await Runtime.start({ provider: store });
    await expectTyped((junk) => runtime.observe(given(junk)), { undo: (stop) => (stop as () => void)() });
    await expectTyped((junk) => runtime.shutdown(given(junk)), { junk: noOptions });
    await expectTyped((junk) => runtime.shutdown({ graceMs: given(junk) }));
    await runtime.shutdown();
  });
});

describe("a registry", () => {
  test("refuses junk for definitions and policies", async () => {
    const names = ["orchestrations", "activities", "versionPolicies"];
    const list = fc.array(
      fc.oneof(
        anyJunk,
        fc.record({
          kind: fc.constantFrom("activity", "orchestration"),
          name: anyJunk,
          version: anyJunk,
          run: anyJunk,
        }),
      ),
    );
    const contents = fc.dictionary(
      fc.constantFrom(...names),
      fc.oneof(anyJunk, list, fc.dictionary(fc.string(), anyJunk)),
    );
    await expectTyped((junk) => Registry.of(given(junk)));
    await expectTyped((junk) => Registry.of(given(junk)), { junk: contents, runs: 300 });
    await expectTyped((junk) => Registry.of({}).merge(given(junk)));
    await expectTyped((junk) => Registry.of({ orchestrations: [nothing] }).merge(given(junk)), {
      junk: contents,
      runs: 300,
    });
  });

  test("is asked about junk, and says no", async () => {
    const registry = Registry.of({ orchestrations: [nothing] });
    await expectTyped((junk) => registry.hasActivity(given(junk)));
    await expectTyped((junk) => registry.orchestrationVersions(given(junk)));
  });
});

describe("a definition", () => {
  const definitions: readonly [string, (...args: never[]) => unknown, readonly string[]][] = [
    ["activity", activity, ["name", "input", "output", "kind"]],
    ["orchestration", orchestration, ["name", "version", "input", "output", "kind"]],
    ["event", event, ["schema"]],
  ];
  test.each(definitions)("%s is made of what it should be, or refused", async (_kind, define, names) => {
    await expectTyped((junk) => define(given(junk)));
    await expectTyped((junk) => define(given("Name"), given(junk)));
    await expectTypedOptions((options) => define(given(options)), names);
    await expectTypedOptions((options) => define(given("Name"), given(options)), names);
    await expectTypedOptions(
      (options) =>
        define(
          given({ name: "Name", ...options }),
          given(async () => {}),
        ),
      names,
    );
  });
});

describe("a provider", () => {
  test("in memory refuses junk for its options", async () => {
    const undo = (provider: unknown) => (provider as MemoryProvider)[Symbol.asyncDispose]();
    await expectTyped((junk) => new MemoryProvider(given(junk)), { undo });
    await expectTypedOptions((options) => new MemoryProvider(options), ["clock", "newId", "onWarning"], { undo });
  });

  test("on SQLite refuses junk for its options, and makes no file then", async () => {
    const undo = (provider: unknown) => (provider as SqliteProvider).close();
    await expectTyped((junk) => SqliteProvider.open(given(junk)), { junk: noOptions.filter(isNoPath), undo });
    await expectTyped((junk) => SqliteProvider.open(":memory:", given(junk)), { undo });
    await expectTyped(
      async (junk) => {
        const file = join(folder, "refused.db");
        const verdict = await verdictOf(
          () => SqliteProvider.open(file, given({ ...(junk as object), durability: "always" })),
          undo,
        );
        expect(verdict).toBe("DUROXIDE_INVALID_OPTIONS");
        expect(readdirSync(folder)).toEqual([]);
      },
      { junk: anyOptions(Object.keys(SQLITE_DEFAULTS)) },
    );
    const names = Object.keys(SQLITE_DEFAULTS);
    await expectTypedOptions((options) => SqliteProvider.open(":memory:", options), names, { undo });
  });

  test("on PostgreSQL refuses junk for its options, and shows no password", async () => {
    const names = Object.keys(POSTGRES_DEFAULTS).concat("listenConnectionString");
    const parts = ["host", "port", "database", "user", "password", "ssl"];
    const url = "postgres://ada:tOpSeCrEt@localhost/test";
    const discreet = async (call: () => unknown): Promise<unknown> => {
      try {
        return await call();
      } catch (error) {
        expect(String(error)).not.toContain("tOpSeCrEt");
        throw error;
      }
    };
    await expectTyped((junk) => resolveOptions(junk, undefined));
    await expectTyped((junk) => discreet(() => resolveOptions(`${url}?${junk}`, undefined)), { junk: fc.string() });
    await expectTyped((junk) => discreet(() => resolveOptions(url, given(junk))));
    await expectTypedOptions((options) => discreet(() => resolveOptions(url, options)), names, { runs: 200 });
    await expectTypedOptions((options) => {
      const connection = { host: "localhost", user: "ada", password: "tOpSeCrEt", ...options };
      return discreet(() => resolveOptions(connection, undefined));
    }, parts);
    await expectTypedOptions(
      (ssl) => {
        return discreet(() =>
          resolveOptions({ host: "localhost", user: "ada", password: "tOpSeCrEt", ssl }, undefined),
        );
      },
      ["ca", "cert", "key", "rejectUnauthorized", "servername"],
    );
    await expectTyped((junk) => migrations(given(junk)));
    await expectTyped((junk) => migrations(given({ schema: junk })));
    await expectTyped((junk) => entraPassword(given(junk)));
  });
});

describe("a client", () => {
  const ids = ["i", "__proto__"];

  test("is made of a provider and good options, or refused", async () => {
    await expectTyped((junk) => new Client(given(junk)));
    await expectTyped((junk) => new Client(store, given(junk)));
    const names = ["clock", "newId", "pollIntervalMs", "recheckIntervalMs", "limits"];
    await expectTypedOptions((options) => new Client(store, options), names);
  });

  test("of a provider with a codec is refused where either is none", async () => {
    await expectTyped((junk) => withPayloadCodec(given(junk), { encode: (text) => text, decode: (text) => text }));
    await expectTyped((junk) => withPayloadCodec(store, given(junk)));
    await expectTypedOptions((codec) => withPayloadCodec(store, given(codec)), ["encode", "decode"]);
  });

  const calls: Readonly<Record<string, (junk: never) => unknown>> = {
    "start: the orchestration": (junk) => client.start(junk),
    "start: the options": (junk) => client.start("Nothing", junk),
    "getHandle: the id": (junk) => client.getHandle(junk),
    "getHandle: the orchestration": (junk) => client.getHandle(junk, "i"),
    "getHandle: the id of a definition": (junk) => client.getHandle(nothing, junk),
    "raiseEvent: the id": (junk) => client.raiseEvent(junk, "e"),
    "raiseEvent: the event": (junk) => client.raiseEvent("i", junk),
    "raiseEvent: the data": (junk) => client.raiseEvent("i", "e", junk),
    "enqueueEvent: the queue": (junk) => client.enqueueEvent("i", junk),
    "enqueueEvent: the data": (junk) => client.enqueueEvent("i", "q", junk),
    "cancel: the id": (junk) => client.cancel(junk),
    "cancel: the reason": (junk) => client.cancel("i", junk),
    "getStatus: the id": (junk) => client.getStatus(junk),
    "waitForOrchestration: the id": (junk) => client.waitForOrchestration(junk, { timeoutMs: 0 }),
    "waitForStatusChange: the version": (junk) =>
      client.waitForStatusChange("i", { timeoutMs: 0, lastSeenVersion: junk }),
    "waitForKvValue: the key": (junk) => client.waitForKvValue("i", junk, { timeoutMs: 0 }),
    "waitForOrchestration: the signal": (junk) => client.waitForOrchestration("i", { timeoutMs: 0, signal: junk }),
    "getKvValue: the key": (junk) => client.getKvValue("i", junk),
    "getKvValue: the id": (junk) => client.getKvValue(junk, "k"),
    "getKvText: the key": (junk) => client.getKvText("i", junk),
    "getKvAllValues: the id": (junk) => client.getKvAllValues(junk),
    "readHistory: the id": (junk) => client.readHistory(junk),
    "readHistory: the execution": (junk) => client.readHistory("i", junk),
    "listInstancesByStatus: the status": (junk) => client.listInstancesByStatus(junk),
    "getInstanceInfo: the id": (junk) => client.getInstanceInfo(junk),
    "getInstanceStats: the id": (junk) => client.getInstanceStats(junk),
    "listExecutions: the id": (junk) => client.listExecutions(junk),
    "getExecutionInfo: the execution": (junk) => client.getExecutionInfo("i", junk),
    "getInstanceTree: the id": (junk) => client.getInstanceTree(junk),
    "getParentId: the id": (junk) => client.getParentId(junk),
    "listChildren: the id": (junk) => client.listChildren(junk),
    "deleteInstance: the id": (junk) => client.deleteInstance(junk),
    "deleteInstance: the options": (junk) => client.deleteInstance("i", junk),
    "deleteInstanceBulk: the filter": (junk) => client.deleteInstanceBulk(junk),
    "pruneExecutions: the options": (junk) => client.pruneExecutions("i", junk),
    "pruneExecutionsBulk: the filter": (junk) => client.pruneExecutionsBulk(junk),
    "pruneExecutionsBulk: the options": (junk) => client.pruneExecutionsBulk({}, junk),
  };
  test.each(Object.keys(calls))("takes junk for %s, or refuses it", async (name) => {
    await expectTyped((junk) => calls[name]!(given(junk)));
  });

  const options: Readonly<Record<string, readonly [call: (options: never) => unknown, names: readonly string[]]>> = {
    start: [
      (given) => client.start("Nothing", given),
      ["instanceId", "input", "version", "ifExists", "delay", "constructor"],
    ],
    waitForOrchestration: [(given: object) => client.waitForOrchestration("i", timed(given)), ["timeoutMs", "signal"]],
    deleteInstance: [(given) => client.deleteInstance("i", given), ["force"]],
    deleteInstanceBulk: [(given) => client.deleteInstanceBulk(given), ["instanceIds", "completedBeforeMs", "limit"]],
    pruneExecutions: [(given) => client.pruneExecutions("i", given), ["keepLast", "completedBeforeMs"]],
  };
  test.each(Object.keys(options))("takes junk for each option of %s, or refuses it", async (name) => {
    const [call, names] = options[name]!;
    await expectTypedOptions((options) => call(given(options)), names);
  });

  test.each(ids)("waits for %s with no options but junk, and refuses it", async (id) => {
    const handle = client.getHandle(id);
    for (const wait of [
      (junk: never) => client.waitForOrchestration(id, junk),
      (junk: never) => client.waitForStatusChange(id, junk),
      (junk: never) => client.waitForKvValue(id, "k", junk),
      (junk: never) => handle.result(junk),
      (junk: never) => handle.waitForKv("k", junk),
    ]) {
      await fc.assert(
        fc.asyncProperty(noOptions, async (junk) => {
          expect(await verdictOf(() => wait(given(junk)))).toBe("DUROXIDE_INVALID_OPTIONS");
        }),
        tries(30),
      );
    }
  });
});

describe("the tools for tests", () => {
  const calls: Readonly<Record<string, (junk: never) => unknown>> = {
    "TestWorld.open": (junk) => TestWorld.open(junk),
    "TestWorld.open, provider": (junk) => TestWorld.open({ provider: () => junk }),
    "TestWorld.open, startMs": (junk) => TestWorld.open({ startMs: junk }),
    checkHistory: (junk) => checkHistory(junk),
    "checkHistory, an event": (junk) => checkHistory([junk, junk]),
    "checkHistory, a field": (junk) =>
      checkHistory([{ type: "OrchestrationStarted", eventId: 1, name: junk } as never]),
    historyProblems: (junk) => historyProblems(junk),
    importHistory: (junk) => importHistory(junk),
    replay: (junk) => replay(junk, nothing),
    "replay, the code": (junk) => replay([], junk),
    "replay, the options": (junk) => replay([], nothing, junk),
    "replay, the key-values": (junk) => replay([], nothing, { kv: junk }),
    "replay, the limits": (junk) => replay([], nothing, { limits: junk }),
    assertDeterministic: (junk) => assertDeterministic(junk, nothing),
    "importInstance, the provider": (junk) => importInstance(junk, []),
    "importInstance, the histories": (junk) => importInstance(store, junk),
    "importInstance, a history": (junk) => importInstance(store, [junk]),
    "importInstance, the options": (junk) => importInstance(store, [], junk),
    "mockActivity, the activity": (junk) => mockActivity(junk, () => 1),
    "mockActivity, the implementation": (junk) => mockActivity("A", junk),
  };
  test.each(Object.keys(calls))("take junk for %s, or refuse it", async (name) => {
    const undo = (accepted: unknown) => (accepted instanceof TestWorld ? accepted[Symbol.asyncDispose]() : undefined);
    await expectTyped((junk) => calls[name]!(given(junk)), { undo });
  });

  test("start no runtime with junk, and none is left in the world", async () => {
    await using world = await TestWorld.open({ patienceMs: 0 });
    const names = ["orchestrations", "activities", "observers", "tagFilter", "provider", "limits"];
    const undo = (runtime: unknown) => (runtime as TestRuntime).shutdown({ graceMs: 0 });
    await expectTypedOptions((options) => world.start({ orchestrations: [nothing], ...options }), names, { undo });
  });
});

function isNoPath(junk: unknown): boolean {
  return typeof junk !== "string";
}

/** A wait without an end would never tell. */
function timed(options: object): object {
  const { timeoutMs, ...others } = options as { readonly timeoutMs?: unknown };
  const isForEver = timeoutMs === undefined || (typeof timeoutMs === "number" && timeoutMs > 0);
  return isForEver ? { ...others, timeoutMs: 0 } : options;
}
