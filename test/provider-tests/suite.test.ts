// The suite itself: whatever a case or a provider does, there is a result, and it is the right one.

import { describe, expect, test } from "vitest";
import { InvalidOptionsError } from "../../src/errors.js";
import { ProviderWrapper } from "../../src/provider/index.js";
import {
  BrokenPromiseError,
  CATEGORIES,
  type Category,
  describeWith,
  formatReport,
  type ProviderCase,
  type ProviderFactory,
  runCase,
  validate,
} from "../../src/provider-tests/index.js";
import { memoryStore } from "../../src/provider-tests/own-stores.js";
import { MemoryProvider } from "../../src/providers/memory/index.js";

function outcomeOf(run: ProviderCase["run"], factory: ProviderFactory = memoryStore, timeoutMs?: number) {
  const it: ProviderCase = { id: "it", promise: "It holds", run };
  const category: Category = { name: "trial", about: "A trial.", cases: [it] };
  return runCase(category, it, factory, timeoutMs).then(({ outcome }) => outcome);
}

describe("a case", () => {
  test("that checks something, and finds it right, has passed", async () => {
    expect(await outcomeOf(async (t) => t.equal(1, 1, "one"))).toEqual({ kind: "passed" });
  });

  test("that checks nothing has failed", async () => {
    const outcome = await outcomeOf(async (t) => void (await t.open()));
    expect(outcome).toMatchObject({ kind: "failed", error: { message: "The case checked nothing." } });
  });

  test("that does not end has failed, and says so", async () => {
    const outcome = await outcomeOf(() => new Promise(() => {}), memoryStore, 20);
    expect(outcome).toMatchObject({ kind: "failed", error: { message: expect.stringContaining("hangs") } });
  });

  test("whose provider cannot be closed has failed, and its store is closed all the same", async () => {
    const closed: string[] = [];
    class Unclosable extends ProviderWrapper {
      readonly #dispose: () => Promise<void>;
      constructor(dispose: () => Promise<void>) {
        super(new MemoryProvider());
        this.#dispose = dispose;
      }
      override [Symbol.asyncDispose](): PromiseLike<void> {
        return this.#dispose();
      }
    }
    const broken = new Error("cannot close");
    const factoryOf = (dispose: () => Promise<void>): ProviderFactory => ({
      open: async () => ({ provider: new Unclosable(dispose), close: async () => void closed.push("store") }),
    });
    const openAndCheck: ProviderCase["run"] = async (t) => void t.found(await t.open(), "the store");

    const refusing = await outcomeOf(
      openAndCheck,
      factoryOf(() => Promise.reject(broken)),
    );
    expect(refusing).toEqual({ kind: "failed", error: broken });
    expect(closed).toEqual(["store"]);
    const hanging = await outcomeOf(
      openAndCheck,
      factoryOf(() => new Promise(() => {})),
      20,
    );
    expect(hanging).toMatchObject({ kind: "failed", error: { message: expect.stringContaining("cannot be closed") } });
  });

  test("whose store cannot be opened, or closed, has failed with that error", async () => {
    const broken = new Error("no disk");
    const cannotOpen: ProviderFactory = { open: () => Promise.reject(broken) };
    const cannotClose: ProviderFactory = {
      open: async ({ clock }) => ({ provider: new MemoryProvider({ clock }), close: () => Promise.reject(broken) }),
    };
    const openAndCheck: ProviderCase["run"] = async (t) => void t.found(await t.open(), "the store");

    expect(await outcomeOf(openAndCheck, cannotOpen)).toEqual({ kind: "failed", error: broken });
    expect(await outcomeOf(openAndCheck, cannotClose)).toEqual({ kind: "failed", error: broken });
  });

  test("is skipped, with a reason, where provider or factory do not offer what it needs", async () => {
    class WithoutManagement extends ProviderWrapper {
      override get admin(): null {
        return null;
      }
      override get wake(): null {
        return null;
      }
    }
    const bare: ProviderFactory = {
      open: async ({ clock }) => ({ provider: new WithoutManagement(new MemoryProvider({ clock })) }),
    };
    const reasons = await Promise.all([
      outcomeOf(async (t) => void t.found((await t.open()).admin, "management"), bare),
      outcomeOf(async (t) => void t.found((await t.open()).wake, "the wake source"), bare),
      outcomeOf(async (t) => (await t.open()).corruptHistory("a"), bare),
      outcomeOf(async (t) => (await t.open()).corruptQueues("a"), bare),
      outcomeOf(async (t) => void t.found(await (await t.open()).reopen(), "the store again"), bare),
      outcomeOf(async (t) => t.ok((await (await t.open()).maxAttemptCount("a")) > 0, "attempts"), bare),
      outcomeOf(async (t) => void t.found(await (await t.open()).openAnother(), "another"), bare),
      outcomeOf(async (t) => void t.found(t.exactTime, "a clock"), { ...bare, time: "real" }),
    ]);
    expect(reasons).toEqual([
      { kind: "skipped", reason: "the provider has no `admin`" },
      { kind: "skipped", reason: "the provider has no `wake`" },
      { kind: "skipped", reason: "the factory has no `corruptHistory`" },
      { kind: "skipped", reason: "the factory has no `corruptQueues`" },
      { kind: "skipped", reason: "the factory has no `reopen`" },
      { kind: "skipped", reason: "the factory has no `maxAttemptCount`" },
      { kind: "skipped", reason: "the factory has no `openAnother`" },
      { kind: "skipped", reason: "needs exact milliseconds, and this provider lives in real time" },
    ]);
  });

  test("names what is wrong with what a factory opened", async () => {
    const opens = (store: unknown) =>
      outcomeOf(async (t) => void t.found(await t.open(), "it"), { open: async () => store } as ProviderFactory);
    const mistakes: ReadonlyArray<[unknown, RegExp]> = [
      [new MemoryProvider(), /return \{ provider \}/],
      [{ provider: Promise.resolve(new MemoryProvider()) }, /is a promise/],
      [{ provider: new MemoryProvider(), openanother: () => {} }, /Did you mean 'openAnother'/],
      [{}, /no 'provider'/],
      [undefined, /must be an object/],
    ];
    for (const [store, message] of mistakes) {
      const outcome = await opens(store);
      expect(outcome).toMatchObject({ kind: "failed", error: { message: expect.stringMatching(message) } });
    }
  });

  test("says what it looked at, what it expected and what it got", async () => {
    const outcome = await outcomeOf(async (t) => t.equal([1, 2], [1, 3], "the events of the history"));
    const message = "the events of the history: expected [ 1, 3 ], got [ 1, 2 ]. They differ at [1].";
    expect(outcome).toMatchObject({ kind: "failed", error: { name: "BrokenPromiseError", message } });
  });
});

describe("a check", () => {
  const passes = async (run: ProviderCase["run"]) => (await outcomeOf(run)).kind === "passed";

  test("of equality looks into arrays, maps and objects, and takes undefined for absent", async () => {
    const same: ReadonlyArray<[unknown, unknown]> = [
      [{ a: 1, b: undefined }, { a: 1 }],
      [new Map([["k", { v: 1 }]]), new Map([["k", { v: 1 }]])],
      [[{ a: [Number.NaN] }], [{ a: [Number.NaN] }]],
    ];
    const different: ReadonlyArray<[unknown, unknown]> = [
      [{ a: 1 }, { a: 1, b: null }],
      [new Map([["k", 1]]), new Map([["k", 2]])],
      [new Map([["k", 1]]), { k: 1 }],
      [
        [1, 2],
        [1, 2, 3],
      ],
      [null, {}],
      ["1", 1],
    ];
    for (const [a, b] of same) expect(await passes(async (t) => t.equal(a, b, "it"))).toBe(true);
    for (const [a, b] of different) {
      expect(await passes(async (t) => t.equal(a, b, "it"))).toBe(false);
      expect(await passes(async (t) => t.equal(b, a, "it"))).toBe(false);
    }
  });

  test("of a shape looks at the fields that it names, and at the whole of an array", async () => {
    const actual = { a: { b: 1, c: 2 }, list: [{ x: 1, y: 2 }] };
    expect(await passes(async (t) => t.matches(actual, { a: { b: 1 } }, "it"))).toBe(true);
    expect(await passes(async (t) => t.matches(actual, { list: [{ x: 1 }] }, "it"))).toBe(true);
    expect(await passes(async (t) => t.matches(actual, { a: { b: 2 } }, "it"))).toBe(false);
    expect(await passes(async (t) => t.matches(actual, { list: [] }, "it"))).toBe(false);
  });

  test("of a refusal wants a ProviderError of the right kind", async () => {
    const ack = () => new MemoryProvider().ackWorkItem("none", null);
    expect(await passes(async (t) => void (await t.refused(ack(), "lock-lost", "it")))).toBe(true);
    expect(await passes(async (t) => void (await t.refused(ack(), ["corrupt", "lock-lost"], "it")))).toBe(true);
    expect(await passes(async (t) => void (await t.refused(ack(), "for good", "it")))).toBe(true);
    expect(await passes(async (t) => void (await t.refused(ack(), "corrupt", "it")))).toBe(false);
    expect(await passes(async (t) => void (await t.refused(Promise.resolve(1), "lock-lost", "it")))).toBe(false);
    const other = Promise.reject(new Error("lock-lost"));
    expect(await passes(async (t) => void (await t.refused(other, "lock-lost", "it")))).toBe(false);
  });
});

describe("validate", () => {
  test("reports every case of the chosen categories, in order, and tells of each as it ends", async () => {
    const told: string[] = [];
    const report = await validate(memoryStore, {
      categories: ["wake", "custom_status"],
      onResult: ({ id }) => told.push(id),
    });
    const expected = ["wake", "custom_status"].flatMap((name) => CATEGORIES.find((it) => it.name === name)!.cases);
    expect(report.results.map(({ id }) => id)).toEqual(expected.map(({ id }) => id));
    expect(told).toEqual(expected.map(({ id }) => id));
    expect(report.failed).toBe(0);
    expect(report.passed + report.skipped).toBe(expected.length);
  });

  test("runs in real time where the provider has a clock of its own", async () => {
    const factory: ProviderFactory = { time: "real", open: async () => ({ provider: new MemoryProvider() }) };
    const report = await validate(factory, { categories: ["atomicity", "custom_status", "poison_message"] });
    expect(formatReport(report)).toMatch(/\d+ passed, 0 failed, \d+ skipped$/);
  });

  test("refuses options that mean nothing", async () => {
    await expect(validate(memoryStore, { categories: ["sesions"] })).rejects.toThrow(/no category 'sesions'.*sessions/);
    const mistakes: ReadonlyArray<[object, object]> = [
      [memoryStore, { concurrency: 0 }],
      [memoryStore, { categories: [] }],
      [memoryStore, { categories: "sessions" }],
      [{ ...memoryStore, time: "Real" }, {}],
      [{ ...memoryStore, poling: "short" }, {}],
      [{ ...memoryStore, lockTimeoutMs: "1 s" }, {}],
      [{}, {}],
    ];
    for (const [factory, options] of mistakes) {
      await expect(validate(factory as ProviderFactory, options)).rejects.toBeInstanceOf(InvalidOptionsError);
      if (Object.keys(options).length > 0) continue;
      const runner = { describe: () => {}, test: () => {} };
      expect(() => describeWith(runner, "it", factory as ProviderFactory)).toThrow(InvalidOptionsError);
    }
  });
});

test("a report closes with the counts, and names broken promises and reasons of skips", () => {
  const base = { category: "atomicity", promise: "It is atomic", durationMs: 1 };
  const text = formatReport({
    passed: 1,
    failed: 1,
    skipped: 1,
    results: [
      { ...base, id: "first", outcome: { kind: "passed" } },
      { ...base, id: "second", outcome: { kind: "failed", error: new BrokenPromiseError("the history: expected 1") } },
      { ...base, id: "third", outcome: { kind: "skipped", reason: "no disk here" } },
    ],
  });
  expect(text).toContain("atomicity              1 passed, 1 failed, 1 skipped");
  expect(text).toContain("atomicity/second: It is atomic");
  expect(text).toContain("the history: expected 1");
  expect(text).toContain("no disk here: atomicity/third");
  expect(text.endsWith("\n1 passed, 1 failed, 1 skipped")).toBe(true);
});

test("any runner that can describe and test runs the suite: a test a case, failures thrown, skips told", async () => {
  const groups: string[] = [];
  const tests = new Map<string, (context: { skip(reason?: string): unknown }) => Promise<void>>();
  const runner = {
    describe: (name: string, body: () => void) => {
      groups.push(name);
      body();
    },
    test: (name: string, body: (context: { skip(reason?: string): unknown }) => Promise<void>) => tests.set(name, body),
  };
  describeWith(runner, "broken", { open: () => Promise.reject(new Error("no store")) });

  expect(groups).toHaveLength(1 + CATEGORIES.length);
  expect(tests.size).toBe(CATEGORIES.flatMap(({ cases }) => cases).length);
  const skips: Array<string | undefined> = [];
  const [first] = tests.values();
  await expect(first!({ skip: (reason) => skips.push(reason) })).rejects.toThrow("no store");
  expect(skips).toEqual([]);
});

test("cases have unique ids in their category, and promises that are sentences of their own", () => {
  for (const { cases } of CATEGORIES) expect(new Set(cases.map(({ id }) => id)).size).toBe(cases.length);
  const promises = CATEGORIES.flatMap(({ cases }) => cases.map(({ promise }) => promise));
  expect(new Set(promises).size).toBe(promises.length);
  for (const promise of promises) expect(promise).toMatch(/^[A-Z0-9"'`].*[^.]$/);
});
