// Orchestrations that break the rules: foreign awaits, ctx where it does not belong, throws of every kind.
//
// Architecture §6, rules 3 and 4: three probes, never a hang, never a throw in a foreign callback. Catalogue A14.

import { describe, expect, test } from "vitest";
import type { DurableTask } from "../../src/engine/durable-task.js";
import type { OrchestrationContext } from "../../src/engine/orchestration-context.js";
import { InvalidInputError, MisuseError } from "../../src/errors.js";
import {
  activityDone,
  type Code,
  cancel,
  completed,
  DoubtedDriver,
  Driver,
  expectNondeterminism,
  failureOf,
  fired,
  historyOf,
  outputOf,
  runTurn,
  scheduled,
  started,
  summary,
} from "./drive.js";

const FOREIGN = "awaits something that is not durable";

/** A foreign event: code hooks on to it, the test lets it happen outside any turn. */
class Foreign {
  #callbacks: (() => void)[] = [];

  readonly promise = new Promise<void>((resolve) => this.#callbacks.push(resolve));

  on(callback: () => void): void {
    this.#callbacks.push(callback);
  }

  /** In a macrotask of its own, as I/O would; resolves once everything it set off has run. */
  async happen(): Promise<void> {
    await new Promise<void>((resolve) => setImmediate(resolve));
    for (const callback of this.#callbacks) callback();
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

describe("a function that awaits only something foreign", () => {
  test.each<[string, () => Promise<unknown>]>([
    ["a timeout", () => new Promise((resolve) => setTimeout(resolve, 1))],
    ["an immediate", () => new Promise((resolve) => setImmediate(resolve))],
    ["a promise that never settles", () => new Promise(() => {})],
    ["a race of nothing", () => Promise.race([])],
  ])("fails at the end of the turn, and the message says what to do: %s", async (_, foreign) => {
    const outcome = await runTurn({
      code: async () => {
        await foreign();
      },
    });

    expectNondeterminism(outcome, FOREIGN, "put I/O in an activity");
    expect(outcome.events.at(-1)).toMatchObject({ type: "OrchestrationFailed" });
  });

  test("fails after durable steps too, warm and replayed alike, and gives up what is open", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        ctx.scheduleActivity("unawaited");
        await ctx.scheduleActivity("A");
        await new Promise(() => {});
      },
    });
    await driver.turn();
    const outcome = await driver.turn(completed(3, 1));

    expectNondeterminism(outcome, FOREIGN);
    expect(outcome.cancelledActivities).toEqual([2]);
  });

  test("fails also where what it awaited before had several listeners", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        const task = ctx.scheduleActivity("A");
        await Promise.all([task, task.then(() => {}), ctx.all([task])]);
        await new Promise(() => {});
      },
    });
    await driver.turn();

    expectNondeterminism(await driver.turn(completed(2, 1)), FOREIGN);
  });

  test("is not accused when it was told to stop", async () => {
    const outcome = await runTurn({ code: () => new Promise(() => {}), messages: [cancel("stop")] });

    expect(outcome.result.kind).toBe("cancelled");
  });

  test("may await what settles by itself within the turn", async () => {
    const outcome = await new DoubtedDriver({
      code: async () => {
        await null;
        await Promise.resolve();
        await new Promise<void>((resolve) => queueMicrotask(resolve));
        for (let n = 0; n < 100; n += 1) await (async () => n)();
        return "fine";
      },
    }).turn();

    expect(outputOf(outcome)).toBe("fine");
  });

  test("may await code that settles its own promise once something durable has", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        const settled = new Promise((resolve) => void ctx.scheduleActivity("A").then(resolve));
        return settled;
      },
    });
    await driver.turn();

    expect(outputOf(await driver.turn(completed(2, "a")))).toBe("a");
  });
});

describe("a foreign await beside a durable one", () => {
  /** The first turn passes; then the foreign thing happens; then the next turn tells. */
  const caughtAtNextTurn = async (code: (foreign: Foreign) => Code) => {
    const foreign = new Foreign();
    const driver = new Driver({ code: code(foreign) });
    expect((await driver.turn()).result.kind).toBe("waiting");
    await foreign.happen();
    return driver.turn();
  };

  test("is found when the function finishes outside a turn", async () => {
    const outcome = await caughtAtNextTurn((foreign) => async (ctx) => {
      await Promise.race([ctx.scheduleActivity("A"), foreign.promise]);
    });

    expectNondeterminism(outcome, FOREIGN);
    expect(summary(outcome.events)).toEqual(["ActivityCancelRequested(3<2)", "OrchestrationFailed(4)"]);
  });

  test("is found when the function throws outside a turn", async () => {
    const outcome = await caughtAtNextTurn((foreign) => async (ctx) => {
      await Promise.race([ctx.scheduleActivity("A"), foreign.promise]);
      throw new Error("not the reason");
    });

    expectNondeterminism(outcome, FOREIGN);
  });

  test("is found when code goes on to use ctx, and ctx tells it", async () => {
    const seen: unknown[] = [];
    const outcome = await caughtAtNextTurn((foreign) => async (ctx) => {
      await Promise.race([ctx.scheduleActivity("A"), foreign.promise]);
      await ctx.scheduleActivity("B").catch((error: unknown) => seen.push(error));
      await new Promise(() => {});
    });

    expectNondeterminism(outcome, FOREIGN);
    expect(seen).toEqual([expect.any(MisuseError)]);
    expect(seen[0]).toMatchObject({ code: "DUROXIDE_MISUSE", message: expect.stringContaining("outside a turn") });
  });

  test("is found when code goes on to await a task that it had before", async () => {
    const seen: unknown[] = [];
    const outcome = await caughtAtNextTurn((foreign) => async (ctx) => {
      const task = ctx.scheduleActivity("A");
      ctx.scheduleTimer(1).then(() => {});
      await foreign.promise;
      await task.catch((error: unknown) => seen.push(error));
      await new Promise(() => {});
    });

    expectNondeterminism(outcome, FOREIGN);
    expect(seen).toEqual([expect.any(MisuseError)]);
  });

  test("is found when it settles a branch of ctx.all or ctx.race, which it does not decide", async () => {
    const combinators: readonly ((ctx: OrchestrationContext, branches: Promise<unknown>[]) => Promise<unknown>)[] = [
      (ctx, branches) => ctx.all(branches),
      (ctx, branches) => ctx.race(branches),
    ];
    for (const combine of combinators) {
      let isDecided = false;
      const outcome = await caughtAtNextTurn((foreign) => async (ctx) => {
        await combine(ctx, [ctx.scheduleActivity("A"), foreign.promise]);
        isDecided = true;
      });

      expectNondeterminism(outcome, FOREIGN);
      expect(isDecided).toBe(false);
    }
  });

  test("is found when it settles a branch function", async () => {
    const outcome = await caughtAtNextTurn((foreign) => async (ctx) => {
      const group = ctx.all([
        async () => {
          ctx.scheduleActivity("in the branch");
          await foreign.promise;
        },
        ctx.scheduleActivity("A"),
      ]);
      await group;
    });

    expectNondeterminism(outcome, FOREIGN);
  });

  test("in the loser of a race that is over is nobody's business any more", async () => {
    const foreign = new Foreign();
    const driver = new Driver({
      code: async (ctx) => {
        await ctx.race([ctx.scheduleActivity("A"), async () => foreign.promise]);
        return ctx.scheduleActivity("B");
      },
    });
    await driver.turn();
    await driver.turn(completed(2, 1));
    await foreign.happen();

    expect(outputOf(await driver.turn(completed(4, "b")))).toBe("b");
  });

  test("that is all that is left is found at the end of the turn that leaves it", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => Promise.all([ctx.scheduleActivity("A"), new Promise(() => {})]),
    });
    await driver.turn();

    expectNondeterminism(await driver.turn(completed(2, 1)), FOREIGN);
  });
});

describe("ctx in a foreign callback", () => {
  const calls: readonly [string, (ctx: OrchestrationContext) => unknown][] = [
    ["scheduleActivity", (ctx) => ctx.scheduleActivity("B")],
    ["scheduleActivity with retry", (ctx) => ctx.scheduleActivity("B", 1, { retry: {} })],
    ["scheduleTimer", (ctx) => ctx.scheduleTimer(1)],
    ["waitForEvent", (ctx) => ctx.waitForEvent("E")],
    ["dequeueEvent", (ctx) => ctx.dequeueEvent("q")],
    ["scheduleSubOrchestration", (ctx) => ctx.scheduleSubOrchestration("C")],
    ["continueAsNew", (ctx) => ctx.continueAsNew(1)],
    ["all", (ctx) => ctx.all([() => 1])],
    ["race", (ctx) => ctx.race([() => 1])],
    ["utcNow", (ctx) => ctx.utcNow()],
    ["newGuid", (ctx) => ctx.newGuid()],
    ["readKv", (ctx) => ctx.readKv("i", "k")],
    ["startOrchestration", (ctx) => ctx.startOrchestration("D", { instanceId: "d" })],
    ["setCustomStatus", (ctx) => ctx.setCustomStatus("s")],
    ["resetCustomStatus", (ctx) => ctx.resetCustomStatus()],
    ["kv.set", (ctx) => ctx.kv.set("k", 1)],
    ["kv.setText", (ctx) => ctx.kv.setText("k", "1")],
    ["kv.delete", (ctx) => ctx.kv.delete("k")],
    ["kv.clear", (ctx) => ctx.kv.clear()],
    ["kv.pruneUpdatedBefore", (ctx) => ctx.kv.pruneUpdatedBefore(Number.MAX_SAFE_INTEGER)],
  ];
  const wrong: readonly [string, (ctx: OrchestrationContext) => unknown][] = [
    ["scheduleActivity of nothing", (ctx) => ctx.scheduleActivity(undefined as never)],
    ["scheduleActivity with a function as input", (ctx) => ctx.scheduleActivity("B", () => {})],
    ["a retry of nothing", (ctx) => ctx.scheduleActivity("B", 1, { retry: { maxAttempts: 0 } })],
    ["a timer of no duration", (ctx) => ctx.scheduleTimer("soon")],
    ["an event without a name", (ctx) => ctx.waitForEvent("")],
    ["a queue without a name", (ctx) => ctx.dequeueEvent("")],
    ["a child with a reserved id", (ctx) => ctx.scheduleSubOrchestration("C", 1, { instanceId: "sub::1" })],
    ["a detached start with a reserved id", (ctx) => ctx.startOrchestration("D", { instanceId: "sub::1" })],
    ["continueAsNew with a BigInt", (ctx) => ctx.continueAsNew(1n)],
    ["a race of nothing", (ctx) => ctx.race([])],
    ["all of no list", (ctx) => ctx.all(7 as never)],
    ["readKv without a key", (ctx) => ctx.readKv("i", "")],
    ["a status that is no text", (ctx) => ctx.setCustomStatus(7 as never)],
    ["kv.set without a key", (ctx) => ctx.kv.set("", 1)],
    ["kv.setText of no text", (ctx) => ctx.kv.setText("k", 7 as never)],
  ];

  test.each([...calls, ...wrong])("never throws, and the next turn fails: %s", async (_, call) => {
    const foreign = new Foreign();
    const answers: unknown[] = [];
    const driver = new Driver({
      code: async (ctx) => {
        ctx.kv.set("kept", 1);
        foreign.on(() => answers.push(call(ctx)));
        await ctx.scheduleActivity("A");
      },
    });
    await driver.turn();
    await foreign.happen();

    expect(answers).toHaveLength(1);
    if (answers[0] instanceof Object) {
      await expect(Promise.resolve(answers[0])).rejects.toMatchObject({ code: "DUROXIDE_MISUSE" });
    }
    const outcome = await driver.turn(completed(3, 1));
    expectNondeterminism(outcome, FOREIGN);
    expect(summary(outcome.events)).toEqual(["ActivityCompleted(4<3)", "OrchestrationFailed(5)"]);
    expect(outcome.kvKeyCount).toBe(1);
  });

  test.each<[string, (task: DurableTask<unknown>, group: DurableTask<unknown>) => unknown]>([
    ["then on a task", (task) => task.then(undefined, () => {})],
    ["then on a group", (_, group) => group.then(undefined, () => {})],
    ["cancel of a task", (task) => task.cancel()],
    ["cancel of a group", (_, group) => group.cancel()],
  ])("has no effect on what it was given, and the next turn fails: %s", async (_, use) => {
    const foreign = new Foreign();
    const driver = new Driver({
      code: async (ctx) => {
        const task = ctx.scheduleActivity("A");
        const group = ctx.all([async () => ctx.scheduleActivity("B")]);
        foreign.on(() => use(task, group));
        await ctx.scheduleTimer(1);
      },
    });
    await driver.turn();
    await foreign.happen();
    const outcome = await driver.turn(completed(2, 1));

    expectNondeterminism(outcome, FOREIGN);
    expect(outcome.cancelledActivities).toEqual([3]);
  });

  test("is reported at once, and once, so that somebody sees to a next turn", async () => {
    const foreign = new Foreign();
    const reports: string[] = [];
    const driver = new Driver({
      code: async (ctx) => {
        foreign.on(() => [ctx.scheduleActivity("B"), ctx.scheduleActivity("C")]);
        await ctx.scheduleActivity("A");
      },
      onForeignAwait: (message) => reports.push(message),
    });
    await driver.turn();
    await foreign.happen();

    expect(reports).toEqual([expect.stringContaining(FOREIGN)]);
  });

  test("is reported also where the function simply ends outside a turn", async () => {
    const foreign = new Foreign();
    const reports: string[] = [];
    const driver = new Driver({
      code: async (ctx) => {
        await Promise.race([ctx.scheduleActivity("A"), foreign.promise]);
      },
      onForeignAwait: (message) => reports.push(message),
    });
    await driver.turn();
    await foreign.happen();

    expect(reports).toHaveLength(1);
  });

  test("is not reported where the instance has ended", async () => {
    const foreign = new Foreign();
    const reports: string[] = [];
    const onForeignAwait = (message: string): void => void reports.push(message);
    const useLate = (ctx: OrchestrationContext): void => foreign.on(() => ctx.scheduleActivity("B"));
    const endings: readonly Code[] = [
      async (ctx) => useLate(ctx),
      async (ctx) => {
        useLate(ctx);
        return ctx.continueAsNew(1);
      },
      async (ctx) => {
        useLate(ctx);
        await new Promise(() => {});
      },
    ];
    for (const code of endings) await runTurn({ code, onForeignAwait });
    await foreign.happen();

    expect(reports).toEqual([]);
  });

  test("reads are harmless", async () => {
    const foreign = new Foreign();
    const driver = new Driver({
      code: async (ctx) => {
        foreign.on(() => [ctx.instanceId, ctx.customStatus, ctx.isReplaying, ctx.kv.get("k"), ctx.kv.keys()]);
        return ctx.scheduleActivity("A");
      },
    });
    await driver.turn();
    await foreign.happen();

    expect(outputOf(await driver.turn(completed(2, "a")))).toBe("a");
  });
});

describe("ctx after the end", () => {
  test("is refused, and changes nothing", async () => {
    let leaked: OrchestrationContext | null = null;
    const driver = new Driver({
      code: async (ctx) => {
        leaked = ctx;
        return "done";
      },
    });
    await driver.turn();

    const refused = await leaked!.scheduleActivity("B").catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: "DUROXIDE_MISUSE", message: expect.stringContaining("had ended") });
    expect(await driver.turn(completed(2, 1))).toMatchObject({ result: { kind: "waiting" }, events: [] });
  });

  test("is refused to helpers that outlive the function within the turn", async () => {
    const seen: unknown[] = [];
    const driver = new Driver({
      code: async (ctx) => {
        const task = ctx.scheduleActivity("A");
        const straggle = async () => {
          await task;
          for (let n = 0; n < 20; n += 1) await null;
          await ctx.scheduleActivity("too late").catch((error: unknown) => seen.push(error));
        };
        void straggle();
        await task;
        return "done";
      },
    });
    await driver.turn();
    const outcome = await driver.turn(completed(2, 1));

    expect(summary(outcome.events)).toEqual(["ActivityCompleted(3<2)", "OrchestrationCompleted(4)"]);
    expect(seen).toEqual([expect.any(MisuseError)]);
  });

  test("of another execution does not work either, though a turn is running", async () => {
    const holder: { ctx?: OrchestrationContext; task?: DurableTask<unknown> } = {};
    const first = new Driver({
      code: async (ctx) => {
        holder.ctx = ctx;
        holder.task = ctx.scheduleActivity("A");
        await holder.task;
      },
    });
    await first.turn();
    const second = await runTurn({
      code: async (ctx) =>
        Promise.all(
          [holder.ctx!.scheduleActivity("stolen"), holder.task!, ctx.all([holder.task!])].map((task) =>
            task.catch((error: { code: string }) => error.code),
          ),
        ),
    });

    expect(outputOf(second)).toEqual(["DUROXIDE_MISUSE", "DUROXIDE_MISUSE", "DUROXIDE_MISUSE"]);
    expectNondeterminism(await first.turn(completed(2, 1)), FOREIGN);
  });
});

describe("whatever is thrown", () => {
  const hostile = new Error("unused");
  Object.defineProperty(hostile, "message", {
    get() {
      throw new Error("hostile");
    },
  });

  test.each<[string, unknown, string]>([
    ["an error", new Error("failure"), "failure"],
    ["an error without a message", new RangeError(), "RangeError"],
    ["a text", "a text", "a text"],
    ["a number", 42, "42"],
    ["nothing", undefined, "undefined"],
    ["null", null, "null"],
    ["an object", { why: 1 }, '{"why":1}'],
    ["a symbol", Symbol("s"), "Symbol(s)"],
    ["an error that cannot be read", hostile, ""],
  ])("becomes the recorded failure of the orchestration: %s", async (_, thrown, message) => {
    const outcome = await new DoubtedDriver({
      code: async () => {
        throw thrown;
      },
    }).turn();

    expect(failureOf(outcome)).toMatchObject({
      category: "application",
      kind: { type: "OrchestrationFailed" },
      message: expect.stringContaining(message),
    });
  });

  test("after a recorded step, fails the same way", async () => {
    const outcome = await runTurn({
      code: async (ctx) => {
        await ctx.scheduleActivity("A");
        throw new Error("panic after activity");
      },
      history: historyOf(started, scheduled("A"), [activityDone(1), 2]),
    });

    expect(failureOf(outcome)).toMatchObject({
      kind: { type: "OrchestrationFailed" },
      message: "panic after activity",
    });
    expect(summary(outcome.events)).toEqual(["OrchestrationFailed(4)"]);
  });

  test("by a function that is not async is a failure, not a crash", async () => {
    const outcome = await runTurn({
      code: () => {
        throw new Error("before any promise");
      },
    });

    expect(failureOf(outcome)).toMatchObject({ message: "before any promise" });
  });

  test("in a reaction is thrown where the reaction is awaited", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        const derived = ctx.scheduleTimer(1).then(() => {
          throw new Error("in then");
        });
        await ctx.scheduleTimer(2);
        return derived.catch((error: Error) => error.message);
      },
    });
    await driver.turn();
    await driver.turn(fired(2));

    expect(outputOf(await driver.turn(fired(3)))).toBe("in then");
  });

  test("as a misuse is the engine's own kind of failure", async () => {
    const outcome = await runTurn({
      code: async () => {
        throw new MisuseError("broke a rule");
      },
    });

    expect(failureOf(outcome)).toEqual({
      category: "application",
      kind: { type: "Panicked" },
      message: "broke a rule",
      retryable: false,
    });
  });

  test("by an output that JSON cannot carry is a failure that says so", async () => {
    const outcome = await new DoubtedDriver({ code: async () => ({ big: 1n }) }).turn();

    expect(failureOf(outcome)).toMatchObject({ message: expect.stringContaining("output: $.big is a BigInt") });
  });

  test("keeps the decisions that came before it", async () => {
    const outcome = await new DoubtedDriver({
      code: async (ctx) => {
        ctx.setCustomStatus("trying");
        ctx.startOrchestration("D", { instanceId: "d" });
        throw new InvalidInputError("no");
      },
    }).turn();

    expect(summary(outcome.events)).toEqual([
      "OrchestrationStarted(1)",
      "CustomStatusUpdated(2)",
      "OrchestrationChained(3)",
      "OrchestrationFailed(4)",
    ]);
    expect(outcome.detached).toHaveLength(1);
  });
});
