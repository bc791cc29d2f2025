// Calls whose answers no history records: which of them are noticed, in whose code, and what becomes of that code.

import { AsyncResource } from "node:async_hooks";
import nodeCrypto, { randomUUID } from "node:crypto";
import nodeTimers, { setTimeout as nodeTimeout } from "node:timers";
import timersPromises, { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { systemClock } from "../../src/clock.js";
import { activity, event, type Schema } from "../../src/define.js";
import { DeterminismGuard } from "../../src/engine/determinism-guard.js";
import { keepRejections } from "../../src/engine/rejection-guard.js";
import { codeLocation } from "../../src/engine/scope.js";
import { watchCalls } from "../../src/engine/watched-calls.js";
import { NondeterministicCallError } from "../../src/errors.js";
import { timeOrderedId } from "../../src/time-ordered-id.js";
import {
  activityDone,
  type Code,
  completed,
  type Drive,
  Driver,
  historyOf,
  INSTANCE,
  raised,
  runTurn,
  scheduled,
  started,
  summary,
} from "./drive.js";

/** What the guard has let pass. */
let passed: string[] = [];
let release: () => void = () => {};

beforeEach(() => {
  passed = [];
  release = watchCalls();
});
afterEach(() => release());

function guarded(code: Code): Pick<Drive, "code" | "watch"> {
  const names = { orchestrationName: "Checkout", instanceId: INSTANCE };
  return {
    code,
    watch: (execution) => new DeterminismGuard(execution, names, ({ call }) => void passed.push(call)),
  };
}

/** Whatever the work throws is lost. */
const late = (work: () => unknown) =>
  Promise.resolve()
    .then(work)
    .catch(() => {});

/** A schema that looks around while it checks. */
const looking: Schema<number> = {
  "~standard": {
    version: 1,
    vendor: "test",
    validate: (value) => ({ value: Number(value) + (Date.now() > 0 ? 1 : 0) }),
  },
};

const TIME = "its value would be another one on replay. Use `await ctx.utcNow()`.";
const CHANCE = "its value would be another one on replay. Use `await ctx.newGuid()`, or draw it in an activity.";
const TIMER = "no history records when it fires. Use `await ctx.scheduleTimer(…)`.";
const ANSWER = "its answer would be another one on replay. Call it in an activity.";

describe("code of a new instance that calls what no history records", () => {
  test.each<[string, () => unknown, string]>([
    ["Date.now()", () => Date.now(), TIME],
    ["new Date()", () => new Date(), TIME],
    ["new Date()", () => Date(), TIME],
    ["new Date()", () => new (new Date(0).constructor as DateConstructor)(), TIME],
    ["performance.now()", () => performance.now(), TIME],
    ["Math.random()", () => Math.random(), CHANCE],
    ["crypto.randomUUID()", () => crypto.randomUUID(), CHANCE],
    ["crypto.randomUUID()", () => randomUUID(), CHANCE],
    ["crypto.getRandomValues()", () => crypto.getRandomValues(new Uint8Array(2)), CHANCE],
    ["crypto.getRandomValues()", () => nodeCrypto.webcrypto.getRandomValues(new Uint8Array(2)), CHANCE],
    ["crypto.getRandomValues()", () => nodeCrypto.getRandomValues(new Uint8Array(2)), CHANCE],
    ["crypto.randomBytes()", () => nodeCrypto.randomBytes(2), CHANCE],
    ["crypto.randomInt()", () => nodeCrypto.randomInt(2), CHANCE],
    ["crypto.randomFillSync()", () => nodeCrypto.randomFillSync(Buffer.alloc(2)), CHANCE],
    ["setTimeout()", () => setTimeout(() => {}, 1), TIMER],
    ["setTimeout()", () => nodeTimeout(() => {}, 1), TIMER],
    ["setTimeout()", () => pause(1), TIMER],
    ["setTimeout()", () => promisify(setTimeout)(1), TIMER],
    ["setInterval()", () => clearInterval(setInterval(() => {}, 1)), TIMER],
    ["setImmediate()", () => setImmediate(() => {}), TIMER],
    ["setImmediate()", () => timersPromises.setImmediate(), TIMER],
    ["scheduler.wait()", () => timersPromises.scheduler.wait(1), TIMER],
    ["fetch()", () => fetch("http://localhost:1").catch(() => {}), ANSWER],
  ])("fails: %s, by %s", async (call, look, advice) => {
    const { result } = await runTurn(guarded(async () => void look()));

    const message = `${call} was called in orchestration 'Checkout' (instance '${INSTANCE}'): ${advice}`;
    const error = { code: "DUROXIDE_NONDETERMINISTIC_CALL", call, message };
    expect(result).toMatchObject({ kind: "failed", details: { category: "application", message }, error });
    expect((result as { error: Error }).error).toBeInstanceOf(NondeterministicCallError);
    expect((result as { error: Error }).error.stack).toContain("determinism-guard.test.ts");
    expect(passed).toEqual([]);
  });

  test.each<[string, Code]>([
    ["in a branch", async (ctx) => ctx.all([ctx.waitForEvent("e"), async () => Date.now()])],
    ["in a callback of a task", async (ctx) => ctx.newGuid().then(() => Date.now())],
    ["in a helper that nobody awaits", async (ctx) => [void late(() => Date.now()), await ctx.newGuid()]],
    ["in the schema of an argument", async (ctx) => ctx.scheduleActivity(activity({ name: "A", input: looking }), 1)],
  ])("fails %s", async (_where, code) => {
    const { result } = await runTurn(guarded(code));

    expect(result).toMatchObject({ kind: "failed", error: { call: "Date.now()" } });
  });

  test.each<[string, Code]>([
    ["after an await", async (ctx) => [await ctx.waitForEvent("e"), Date.now()]],
    ["in the schema of what arrives", async (ctx) => ctx.waitForEvent(event("e", { schema: looking }))],
  ])("fails %s, a turn later", async (_where, code) => {
    const driver = new Driver(guarded(code));

    expect((await driver.turn()).result).toEqual({ kind: "waiting" });
    expect((await driver.turn(raised("e", 1))).result).toMatchObject({ kind: "failed", error: { call: "Date.now()" } });
  });

  test("decides nothing after the call", async () => {
    const after: unknown[] = [];
    const code: Code = async (ctx) => {
      ctx.scheduleActivity("Before");
      Date.now();
      ctx.setCustomStatus("after");
      after.push(await ctx.scheduleActivity("After").catch((error: { code: string }) => error.code));
      return ctx.continueAsNew("again");
    };

    const { result, events, activities } = await runTurn(guarded(code));

    expect(result).toMatchObject({ kind: "failed", error: { call: "Date.now()" } });
    expect(summary(events)).toEqual([
      "OrchestrationStarted(1)",
      "ActivityScheduled(2)",
      "ActivityCancelRequested(3<2)",
      "OrchestrationFailed(4)",
    ]);
    expect(activities).toEqual([]);
    expect(after).toEqual(["DUROXIDE_MISUSE"]);
  });

  // Where a throw would be nobody's, and end the process.
  test.each<[string, (look: () => void) => void]>([
    ["a microtask", queueMicrotask],
    ["a tick", (look) => process.nextTick(look)],
    [
      "a listener",
      (look) => {
        const target = new EventTarget();
        target.addEventListener("now", look);
        target.dispatchEvent(new Event("now"));
      },
    ],
  ])("fails in %s, and the call is answered", async (_where, later) => {
    let answer: unknown;
    const code: Code = async (ctx) => {
      later(() => {
        answer = Date.now();
      });
      await ctx.newGuid();
      await ctx.waitForEvent("e");
    };

    const { result } = await runTurn(guarded(code));

    expect(result).toMatchObject({ kind: "failed", error: { call: "Date.now()" } });
    expect(answer).toBeTypeOf("number");
  });

  test("leaves nothing behind in what it shares with others", async () => {
    let memo: Promise<number> | null = null;
    const shared = () => {
      memo ??= late(() => Date.now()) as Promise<number>;
      return memo;
    };

    await runTurn(guarded(async (ctx) => [await ctx.newGuid(), await shared()]));

    expect(await shared()).toBeTypeOf("number");
  });

  test("fails as any other when it is cancelled in the same turn", async () => {
    const driver = new Driver(guarded(async (ctx) => [await ctx.waitForEvent("e"), Date.now()]));
    await driver.turn();

    const { result } = await driver.turn(raised("e", 1), {
      type: "CancelInstance",
      instance: INSTANCE,
      reason: "enough",
    });
    expect(result).toMatchObject({ kind: "cancelled", reason: "enough" });
  });
});

test("code that makes dates out of what is recorded is left alone", async () => {
  const code: Code = async (ctx) => {
    class Day extends Date {}
    const [date, day] = [new Date(5), new Day(2024, 0, 1)];
    const isDate = [date instanceof Date, day instanceof Date, date.constructor === Date, day.constructor === Day];
    return [isDate, new Date(await ctx.utcNow()).getTime() > 0, Date.UTC(1970, 0), Date.parse("1970-01-01T00:00Z")];
  };

  const { result } = await runTurn(guarded(code));
  expect(result).toEqual({ kind: "completed", output: "[[true,true,true,true],true,0,0]" });
});

describe("an instance that has a history", () => {
  const code: Code = async (ctx) => {
    const at = [Date.now(), Date.now()];
    await ctx.scheduleActivity("A");
    return [...at, Date.parse(new Date().toISOString())].every((time) => time > 1_000_000);
  };

  test("goes on as if there were no guard, on replay and after it, and each call is told once", async () => {
    const history = historyOf(started, scheduled("A"));

    const { result } = await runTurn({ ...guarded(code), history, messages: [completed(2, 1)] });

    expect(result).toEqual({ kind: "completed", output: "true" });
    expect(passed).toEqual(["Date.now()", "new Date()"]);
  });

  test("may call in the first turn of a later execution", async () => {
    const { result } = await runTurn({ ...guarded(code), executionId: 2 });

    expect(result).toEqual({ kind: "waiting" });
    expect(passed).toEqual(["Date.now()"]);
  });

  test("gets what others get: times, timers, dice", async () => {
    const seen: unknown[] = [];
    const looks: Code = async (ctx) => {
      await ctx.scheduleActivity("A");
      seen.push(typeof Date(), new Date() instanceof Date, Math.random() < 1, typeof performance.now());
      seen.push(crypto.randomUUID().length, nodeCrypto.randomBytes(3).length, typeof setTimeout(() => {}, 0).unref());
    };
    const history = historyOf(started, scheduled("A"), [activityDone(1), 2]);

    await runTurn({ ...guarded(looks), history });

    expect(seen).toEqual(["string", true, true, "number", 36, 3, "object"]);
    expect(passed).toHaveLength(6);
  });

  test("is told of the call that it makes, not of those that are made within", async () => {
    using _fetch = vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response(String(Date.now())));
    release();
    release = watchCalls();
    const code: Code = async (ctx) => {
      await ctx.scheduleActivity("A");
      void fetch("http://localhost");
    };

    await runTurn({ ...guarded(code), history: historyOf(started, scheduled("A")), messages: [completed(2, 1)] });
    expect(passed).toEqual(["fetch()"]);
  });

  test("keeps its own place in what it leaves behind, such as the callback of a timer", async () => {
    let arrive: (at: unknown) => void = () => {};
    const place = new Promise((resolve) => {
      arrive = resolve;
    });
    const code: Code = async (ctx) => {
      await ctx.scheduleActivity("A");
      setTimeout(() => arrive(codeLocation.getStore()?.instanceId), 0);
    };
    const driver = new Driver({ ...guarded(code), history: historyOf(started, scheduled("A")) });

    await driver.turn(completed(2, 1));
    expect(await place).toBe(INSTANCE);
    expect(passed).toEqual(["setTimeout()"]);
  });
});

describe("a call that is not the code's", () => {
  test.each<[string, () => unknown]>([
    ["of the system's clock", () => systemClock.now()],
    ["of a timer of the system's clock", () => systemClock.setTimer(0, () => {}).clear()],
    ["for the id of an instance", () => timeOrderedId(0)],
    ["of a console that notes the time", () => console.info("noted")],
  ])("is let pass: one %s", async (_whose, call) => {
    using written = vi.spyOn(console, "info").mockImplementation(() => void Date.now());
    release();
    release = watchCalls();

    const { result } = await runTurn(guarded(async () => void call()));

    expect(result).toEqual({ kind: "completed", output: "null" });
    expect(written.mock.calls.length).toBe(_whose.includes("console") ? 1 : 0);
  });

  test("is let pass in an activity, and in an execution without a guard", async () => {
    expect(keepRejections(INSTANCE, () => typeof Date.now())).toBe("number");
    expect((await runTurn({ code: async () => typeof Date.now() })).result).toMatchObject({ output: '"number"' });
  });

  test("is let pass outside a turn, where a throw would end the process, and after the end", async () => {
    let foreign = (): number => Number.NaN;
    const code: Code = async (ctx) => {
      foreign = AsyncResource.bind(() => Date.now());
      await ctx.waitForEvent("e");
    };
    const driver = new Driver(guarded(code));

    await driver.turn();
    expect(foreign()).toBeGreaterThan(0);
    expect((await driver.turn(raised("e", 1))).result).toMatchObject({ kind: "completed" });
    expect(foreign()).toBeGreaterThan(0);
    expect(passed).toEqual([]);
  });
});

describe("the watch over calls", () => {
  const places: readonly [object, string][] = [
    [globalThis, "Date"],
    [Date, "now"],
    [Date.prototype, "constructor"],
    [performance, "now"],
    [Math, "random"],
    [console, "log"],
    [crypto, "randomUUID"],
    [nodeCrypto, "randomUUID"],
    [globalThis, "setTimeout"],
    [nodeTimers, "setImmediate"],
    [timersPromises, "setTimeout"],
    [globalThis, "fetch"],
  ];
  const found = () => places.map(([owner, key]) => Object.getOwnPropertyDescriptor(owner, key));
  let unwatched: ReturnType<typeof found> = [];

  beforeEach(() => {
    release();
    unwatched = found();
  });

  test("is there while anybody needs it, and gone afterwards", async () => {
    const first = watchCalls();
    const second = watchCalls();
    first();
    first();
    expect((await runTurn(guarded(async () => Date.now()))).result).toMatchObject({ kind: "failed" });

    second();
    expect(found()).toEqual(unwatched);
    expect((await runTurn(guarded(async () => typeof Date.now()))).result).toMatchObject({ kind: "completed" });
  });

  const nextTick = () => new Promise<void>((resolve) => process.nextTick(resolve));

  test("shows everybody else the real Date, during a turn too, and between turns leaves it as it is", async () => {
    const RealDate = Date;
    const stop = watchCalls();
    let [inside, isOver]: [unknown, boolean] = [null, false];
    const outside = new Set<unknown>();
    const code: Code = async (ctx) => {
      inside = Date;
      await ctx.newGuid();
    };

    const turn = runTurn(guarded(code)).finally(() => {
      isOver = true;
    });
    for (; !isOver; await nextTick()) outside.add(Date).add(new Date(0).constructor);
    await turn;

    expect([...outside]).toEqual([RealDate]);
    expect(inside).not.toBe(RealDate);
    expect(found()[0]).toEqual(unwatched[0]); // The mock timers of node:test look at the descriptor.
    stop();
  });

  test("shows everybody else functions that are like the real ones", () => {
    const { setTimeout: realTimeout } = globalThis;
    const stop = watchCalls();

    expect(Object.getOwnPropertyNames(setTimeout).sort()).toEqual(Object.getOwnPropertyNames(realTimeout).sort());
    expect([setTimeout.name, setTimeout.length]).toEqual([realTimeout.name, realTimeout.length]);
    expect(Math.abs(Date.parse(new Date().toISOString()) - Date.now())).toBeLessThan(60_000);
    stop();
  });

  test("leaves alone what somebody else puts there, and hands calls on when that one puts it back", async () => {
    const stop = watchCalls();
    vi.useFakeTimers({ now: 1_000 });
    stop();
    expect([Date.now(), new Date().toISOString()]).toEqual([1_000, "1970-01-01T00:00:01.000Z"]);
    vi.useRealTimers();

    expect(Date.now()).toBeGreaterThan(1_000_000);
    await pause(0);
    watchCalls()();
    expect(found()).toEqual(unwatched);
  });

  test("sees through fake timers that were there before", async () => {
    vi.useFakeTimers({ now: 1_000 });
    const stop = watchCalls();

    expect(Date.now()).toBe(1_000);
    const { result } = await runTurn({ ...guarded(async () => [Date.now(), new Date(0).getTime()]), executionId: 2 });
    expect(result).toEqual({ kind: "completed", output: "[1000,0]" });
    expect(passed).toEqual(["Date.now()"]);

    stop();
    vi.useRealTimers();
    expect(found()).toEqual(unwatched);
  });
});

describe("what stands in for a function", () => {
  test("shows everything that the function shows, such as how often a mock was called", () => {
    release();
    const fetched = Object.assign(async () => "mocked", { calls: 0 });
    const counting = new Proxy(fetched, { get: (target, key) => (key === "count" ? 7 : Reflect.get(target, key)) });
    vi.stubGlobal("fetch", counting);
    release = watchCalls();
    fetched.calls = 3;

    const shown = fetch as unknown as { readonly calls: number; readonly count: number };
    expect([shown.calls, shown.count]).toEqual([3, 7]);
    release();
    vi.unstubAllGlobals();
  });

  test("is put where something is, and what was there comes back as it was", () => {
    release();
    const before = Object.getOwnPropertyDescriptor(globalThis, "fetch")!;
    const real = globalThis.fetch;
    Object.defineProperty(globalThis, "fetch", { get: () => real, configurable: true, enumerable: true });
    watchCalls()();
    expect(Object.getOwnPropertyDescriptor(globalThis, "fetch")?.get).toBeTypeOf("function");
    Object.defineProperty(globalThis, "fetch", before);
  });

  test("is not needed: a process without a global, or with one that throws, can be watched", () => {
    release();
    const before = Object.getOwnPropertyDescriptor(globalThis, "performance")!;
    Object.defineProperty(globalThis, "performance", { value: undefined, configurable: true, writable: true });
    Object.defineProperty(console, "broken", {
      get() {
        throw new Error("do not look");
      },
      configurable: true,
      enumerable: true,
    });
    try {
      watchCalls()();
    } finally {
      Object.defineProperty(globalThis, "performance", before);
      Reflect.deleteProperty(console, "broken");
    }
  });
});
