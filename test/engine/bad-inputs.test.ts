// What ctx refuses before anything is recorded, and what it checks when values come back.

import { describe, expect, test } from "vitest";
import { z } from "zod";
import { activity, event, orchestration, type Schema } from "../../src/define.js";
import type { OrchestrationContext } from "../../src/engine/orchestration-context.js";
import {
  type Code,
  childCompleted,
  completed,
  DoubtedDriver,
  failureOf,
  outputOf,
  queued,
  raised,
  runTurn,
  summary,
} from "./drive.js";

const cyclic: { self?: unknown } = {};
cyclic.self = cyclic;

describe("a call with an argument that cannot be", () => {
  test.each<[string, (ctx: OrchestrationContext) => unknown, string]>([
    [
      "an activity that is nothing",
      (ctx) => ctx.scheduleActivity(undefined as never),
      "activity: a definition or a name",
    ],
    ["an activity that is a number", (ctx) => ctx.scheduleActivity(42 as never), "got 42"],
    ["an activity that is null", (ctx) => ctx.scheduleActivity(null as never), "activity: a definition or a name"],
    [
      "a child that is an object",
      (ctx) => ctx.scheduleSubOrchestration({} as never),
      "sub-orchestration: a definition",
    ],
    [
      "a detached start of nothing",
      (ctx) => ctx.startOrchestration(undefined as never, { instanceId: "d" }),
      "orchestration: a def",
    ],
    [
      "an activity that is a function",
      (ctx) => ctx.scheduleActivity((async () => 1) as never),
      'activity: a definition or a name is expected, got a function; give what activity("Name", …) returns.',
    ],
    [
      "an activity that is a named function",
      (ctx) => ctx.scheduleActivity(async function charge() {} as never),
      "activity: a definition or a name is expected, got a function",
    ],
    [
      "an activity that is an orchestration",
      (ctx) => ctx.scheduleActivity(orchestration("Child") as never),
      "activity: a definition or a name is expected, got the orchestration 'Child'.",
    ],
    [
      "a child that is an activity",
      (ctx) => ctx.scheduleSubOrchestration(activity("Charge") as never),
      "sub-orchestration: a definition or a name is expected, got the activity 'Charge'.",
    ],
    [
      "a detached start of an activity",
      (ctx) => ctx.startOrchestration(activity("Charge") as never, { instanceId: "d" }),
      "orchestration: a definition or a name is expected, got the activity 'Charge'.",
    ],
    [
      "an event that is an activity",
      (ctx) => ctx.waitForEvent(activity("Charge") as never),
      "event: a definition or a name is expected, got the activity 'Charge'.",
    ],
    ["a cyclic input", (ctx) => ctx.scheduleActivity("A", cyclic), "input of activity 'A': $.self refers back"],
    ["a BigInt", (ctx) => ctx.scheduleActivity("A", { n: 1n }), "$.n is a BigInt"],
    ["a function", (ctx) => ctx.scheduleSubOrchestration("C", () => 1), "is a function"],
    ["a promise", (ctx) => ctx.scheduleActivity("A", Promise.resolve(1)), "await it first"],
    ["NaN for the next execution", (ctx) => ctx.continueAsNew({ n: Number.NaN }), "$.n is NaN"],
    ["an empty event name", (ctx) => ctx.waitForEvent(""), "event name is empty"],
    ["an event that is nothing", (ctx) => ctx.waitForEvent(undefined as never), "event: a definition or a name"],
    ["an endless queue name", (ctx) => ctx.dequeueEvent("q".repeat(257)), "257 bytes"],
    ["an empty session", (ctx) => ctx.scheduleActivity("A", 1, { sessionId: "" }), "session of activity 'A' is empty"],
    ["a tag with NUL", (ctx) => ctx.scheduleActivity("A", 1, { tag: "a\0b" }), "NUL"],
    [
      "a child id that is reserved",
      (ctx) => ctx.scheduleSubOrchestration("C", 1, { instanceId: "sub::7" }),
      "reserved for sub-orchestrations",
    ],
    [
      "a detached id inside a family",
      (ctx) => ctx.startOrchestration("C", { instanceId: "root::sub::2" }),
      "reserved for sub-orchestrations",
    ],
    ["a status that is no text", (ctx) => ctx.setCustomStatus(5 as never), "custom status: a string is expected"],
    ["an empty key", (ctx) => ctx.kv.set("", 1), "key is empty"],
    ["a key that is no text", (ctx) => ctx.kv.delete(5 as never), "key must be a string"],
    ["a text that is none", (ctx) => ctx.kv.setText("k", 5 as never), "key 'k': a string is expected"],
    ["a value that JSON loses", (ctx) => ctx.kv.set("k", new Map()), "value of key 'k': $ is a Map"],
    ["a read of no instance", (ctx) => ctx.readKv("", "k"), "instance id is empty"],
    ["a misspelled option", (ctx) => ctx.scheduleActivity("A", 1, { sesionId: "s" } as never), "sessionId"],
    [
      "a misspelled policy",
      (ctx) => ctx.scheduleActivity("A", 1, { retry: { maxAttemps: 2 } } as never),
      "maxAttempts",
    ],
    ["a backoff of no kind", (ctx) => ctx.scheduleActivity("A", 1, { retry: { backoff: {} } } as never), "kind"],
    ["a version that is none", (ctx) => ctx.scheduleSubOrchestration("C", 1, { version: "new" }), "version"],
    ["a next version that is none", (ctx) => ctx.continueAsNew(1, { version: "new" }), "version"],
    ["a detached start without an id", (ctx) => ctx.startOrchestration("C", undefined as never), "instance id"],
    ["all of no list", (ctx) => ctx.all(7 as never), "ctx.all: an array or an object"],
    [
      "all of a promise",
      (ctx) => ctx.all(Promise.resolve(1) as never),
      "got a promise. Put it in a list: ctx.all([…])",
    ],
    ["all of a function", (ctx) => ctx.all((async () => 1) as never), "got a function. Put it in a list"],
    [
      "race of a set",
      (ctx) => ctx.race(new Set([async () => 1]) as never),
      "got an iterable that is no array. Spread it: ctx.race([...it]).",
    ],
    ["race of null", (ctx) => ctx.race(null as never), "ctx.race: an array or an object"],
  ])("fails with a message and records nothing: %s", async (_, call, message) => {
    const outcome = await new DoubtedDriver({
      code: async (ctx) => {
        await call(ctx);
      },
    }).turn();

    expect(failureOf(outcome)).toMatchObject({
      kind: { type: "OrchestrationFailed" },
      message: expect.stringContaining(message),
    });
    expect(summary(outcome.events)).toEqual(["OrchestrationStarted(1)", "OrchestrationFailed(2)"]);
  });

  test.each(["all", "race"] as const)("ctx.%s of a task is refused: it takes a list", async (combine) => {
    const outcome = await new DoubtedDriver({
      code: async (ctx) => {
        const task = ctx.scheduleTimer("1s") as never;
        await (combine === "all" ? ctx.all(task) : ctx.race(task));
      },
    }).turn();

    const message = `ctx.${combine}: an array or an object of branches is expected, got a durable task. Put it in a list: ctx.${combine}([…]).`;
    expect(failureOf(outcome)).toMatchObject({ message });
  });

  test("a branch may be called then", async () => {
    const outcome = await new DoubtedDriver({ code: async (ctx) => ctx.all({ then: async () => 1 }) }).turn();
    expect(outputOf(outcome)).toEqual({ then: 1 });
  });

  test("can be caught, and code goes on", async () => {
    const outcome = await new DoubtedDriver({
      code: async (ctx) => {
        try {
          ctx.scheduleTimer("soon");
        } catch (error) {
          ctx.kv.setText("caught", (error as { code: string }).code);
        }
        await ctx.scheduleTimer(1);
      },
    }).turn();

    expect(summary(outcome.events).slice(1)).toEqual(["KeyValueSet(2)", "TimerCreated(3)"]);
    expect(outcome.events[1]).toMatchObject({ value: "DUROXIDE_INVALID_INPUT" });
  });

  test("takes an input as it is at the call, whatever becomes of it later", async () => {
    const outcome = await runTurn({
      code: async (ctx) => {
        const order = { items: [1] };
        const task = ctx.scheduleActivity("A", order);
        order.items.push(2);
        await task;
      },
    });

    expect(outcome.activities).toMatchObject([{ input: '{"items":[1]}' }]);
  });
});

describe("definitions with schemas", () => {
  const charge = activity({ name: "Charge", input: z.object({ amount: z.number() }), output: z.number() });
  const child = orchestration({ name: "Child", input: z.string(), output: z.string() });
  const approval = event("approval", { schema: z.object({ by: z.string() }) });
  const asynchronous: Schema<string> = {
    "~standard": { version: 1, vendor: "test", validate: async () => Promise.reject(new Error("refused later")) },
  };

  test("refuse bad input at the call", async () => {
    const outcome = await new DoubtedDriver({
      code: async (ctx) => {
        const said: string[] = [];
        for (const call of [
          () => ctx.scheduleActivity(charge, { amount: "5" } as never),
          () => ctx.scheduleSubOrchestration(child, 5 as never),
          () => ctx.startOrchestration(child, { instanceId: "d", input: 5 as never }),
        ]) {
          try {
            call();
          } catch (error) {
            said.push((error as Error).message);
          }
        }
        return said;
      },
    }).turn();

    expect(outputOf(outcome)).toEqual([
      expect.stringMatching(/input of activity 'Charge' is invalid: amount: /),
      expect.stringMatching(/input of sub-orchestration 'Child' is invalid/),
      expect.stringMatching(/input of orchestration 'Child' is invalid/),
    ]);
    expect(outcome.events).toHaveLength(2);
  });

  test.each<[string, Code, Parameters<DoubtedDriver["turn"]>[0], unknown]>([
    ["an activity's result", (ctx) => ctx.scheduleActivity(charge, { amount: 5 }), completed(2, "five"), 5],
    ["a child's result", (ctx) => ctx.scheduleSubOrchestration(child, "in"), childCompleted(2, 5), "out"],
    ["an event", (ctx) => ctx.waitForEvent(approval), raised("approval", {}), { by: "me" }],
    ["a message", (ctx) => ctx.dequeueEvent(approval), queued("approval", {}), { by: "me" }],
  ])("fail the task, not the turn, where what comes back does not fit: %s", async (_, task, bad) => {
    const driver = new DoubtedDriver({
      code: async (ctx, input) => {
        const said = await task(ctx, input).catch((error: { code: string }) => error.code);
        await ctx.scheduleTimer(1);
        return said;
      },
    });
    await driver.turn();
    const outcome = await driver.turn(bad);

    expect(outcome.timers).toHaveLength(1);
    const id = outcome.timers[0]!.id;
    expect(
      outputOf(await driver.turn({ type: "TimerFired", instance: "test-instance", executionId: 1, id, fireAtMs: 1 })),
    ).toBe("DUROXIDE_INVALID_INPUT");
  });

  test("give code what the schema made of it", async () => {
    const trimmed = activity({ name: "Trim", output: z.string().trim() });
    const driver = new DoubtedDriver({ code: async (ctx) => ctx.scheduleActivity(trimmed) });
    await driver.turn();

    expect(outputOf(await driver.turn(completed(2, "  text  ")))).toBe("text");
  });

  test("that validate asynchronously cannot tell at the call, and fail what comes back", async () => {
    const slow = activity({ name: "Slow", input: asynchronous, output: asynchronous });
    const driver = new DoubtedDriver({
      code: async (ctx) => ctx.scheduleActivity(slow, "in").catch((error: { code: string }) => error.code),
    });
    expect((await driver.turn()).activities).toMatchObject([{ name: "Slow", input: '"in"' }]);

    expect(outputOf(await driver.turn(completed(2, "out")))).toBe("DUROXIDE_MISUSE");
  });
});
