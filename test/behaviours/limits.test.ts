// How large things may be: what is too large fails in words that say what to do, nothing of it is stored, and a warning
// comes before the error. R§2.10, R§9.

import { describe, expect, test } from "vitest";
import { activity, orchestration } from "../../src/define.js";
import type { OrchestrationContext } from "../../src/engine/orchestration-context.js";
import { eventBytes } from "../../src/history/event-size.js";
import { DEFAULT_LIMITS, type Limits } from "../../src/history/limits.js";
import { PoisonInjectingProvider } from "../../src/testing/poison-injecting-provider.js";
import type { TestWorld } from "../../src/testing/test-world.js";
import { onEveryStore } from "./stores.js";

const MiB = 1_048_576;

/** As JSON it is that many bytes long. */
function payload(bytes: number): string {
  return "x".repeat(bytes - 2);
}

const echo = activity("Echo", async (_ctx, text: string) => text);
const make = activity("Make", async (_ctx, bytes: number) => payload(bytes));
const step = activity("Step", async (_ctx, n: number) => n + 1);
const child = orchestration("Child", async (_ctx, text: string) => text.length);

/** One activity after the other. Two events each, beside the first and the last. */
const chain = orchestration("Chain", async (ctx, steps: number) => {
  let n = 0;
  while (n < steps) n = await ctx.scheduleActivity(step, n);
  return n;
});

/** What must not be told of work that broke a limit: it is failed at once, not tried again. */
function expectNoTrouble(world: TestWorld): void {
  for (const type of ["loop-failed", "turn-abandoned", "orchestration-poisoned", "activity-poisoned"] as const) {
    expect(world.factsOf(type)).toEqual([]);
  }
}

/** The warnings that were told. */
function warnings(world: TestWorld): readonly object[] {
  return world.factsOf("limit-near").map(({ limit, value, max }) => ({ limit, value, max }));
}

onEveryStore((store) => {
  describe("a payload that the code decides on", () => {
    const decisions: readonly (readonly [
      what: string,
      run: (ctx: OrchestrationContext, text: string) => Promise<unknown>,
    ])[] = [
      ["Input of activity 'Echo'", async (ctx, text) => ctx.scheduleActivity(echo, text)],
      ["Input of sub-orchestration 'Child'", async (ctx, text) => ctx.scheduleSubOrchestration(child, text)],
      [
        "Input of orchestration 'Child'",
        async (ctx, text) => ctx.startOrchestration(child, { instanceId: "free", input: text }),
      ],
      [
        "Input of continue-as-new",
        async (ctx, text) => (ctx.executionId > 1 ? null : ctx.continueAsNew(payload(text.length + 2))),
      ],
      ["Output of the orchestration", async (_ctx, text) => text],
    ];

    test.each(decisions)("passes at its limit, and fails the orchestration beyond: %s", async (what, run) => {
      await using world = await store.world();
      const decides = orchestration("Decides", async (ctx, bytes: number | string) => {
        await ctx.scheduleActivity(step, 0);
        return run(ctx, typeof bytes === "string" ? bytes : payload(bytes));
      });
      await world.start({
        orchestrations: [decides, child],
        activities: [echo, step],
        limits: { maxPayloadBytes: 1_000 },
      });
      await world.client.start(decides, { instanceId: "fits", input: 1_000 });
      await world.client.start(decides, { instanceId: "breaks", input: 1_001 });

      expect(await world.ending("fits")).toMatchObject({ status: "Completed" });
      expect(await world.settle(world.client.waitForOrchestration("breaks"))).toMatchObject({
        status: "Failed",
        details: {
          category: "application",
          message: `${what} (1001 bytes) exceeds limit (1000 bytes). Keep it elsewhere and pass where it is, or raise limits.maxPayloadBytes.`,
        },
      });
      expect(await world.eventTypes("breaks")).toEqual([
        "OrchestrationStarted",
        "ActivityScheduled",
        "ActivityCancelRequested", // Its answer came with the turn that is not stored.
        "OrchestrationFailed",
      ]);
      expectNoTrouble(world);
      await world.assertDeterministic();
    });

    test("may be a mebibyte, wherever it stands, unless it is said otherwise", async () => {
      await using world = await store.world();
      const passes = orchestration("Passes", async (ctx, text: string) => {
        const answer = await ctx.scheduleActivity(echo, text);
        const length = await ctx.scheduleSubOrchestration(child, answer);
        const raised = await ctx.waitForEvent<string>("raised");
        const queued = await ctx.dequeueEvent<string>("queued");
        return `${raised.length === length ? queued : ""}`;
      });
      await world.start({ orchestrations: [passes, child], activities: [echo] });
      const text = payload(MiB);
      const handle = await world.client.start(passes, { instanceId: "p", input: text });
      await world.rest();
      await handle.raiseEvent("raised", text);
      await handle.enqueueEvent("queued", text);

      expect((await world.settle(handle.result())) === text).toBe(true);
      expect(warnings(world)).toEqual([]);
    });
  });

  describe("a payload that arrives", () => {
    test("is taken, however large: whoever sent it had a limit of its own", async () => {
      await using world = await store.world();
      const listens = orchestration("Listens", async (ctx, text: string) => {
        const raised = await ctx.waitForEvent<string>("raised");
        return text.length + raised.length;
      });
      await world.start({ orchestrations: [listens], limits: { maxPayloadBytes: 100 } });
      const handle = await world.client.start(listens, { instanceId: "l", input: payload(500) });
      await world.rest();
      await handle.raiseEvent("raised", payload(300));

      expect(await world.settle(handle.result())).toBe(498 + 298);
      expect(warnings(world)).toEqual([{ limit: "maxPayloadBytes", value: 500, max: 100 }]);
    });
  });

  describe("the result of an activity that is too large", () => {
    test("fails the activity, which the code may catch, and is not tried again", async () => {
      await using world = await store.world();
      const catches = orchestration("Catches", async (ctx, bytes: number) =>
        ctx.scheduleActivity(make, bytes).then(
          (text) => text.length,
          (error: Error) => `caught: ${error.message}`,
        ),
      );
      await world.start({
        orchestrations: [catches],
        activities: [make],
        workerConcurrency: 1,
        limits: { maxPayloadBytes: 1_000 },
      });

      expect(await world.run(catches, { instanceId: "breaks", input: 1_001 })).toBe(
        "caught: output of activity 'Make' (1001 bytes) exceeds limit (1000 bytes). Keep it elsewhere and pass where it is, or raise limits.maxPayloadBytes.",
      );
      expect(await world.run(catches, { instanceId: "fits", input: 1_000 })).toBe(998);
      expect(world.factsOf("activity-ended").map(({ outcome, ref }) => [outcome, ref.attempt])).toEqual([
        ["failed", 1],
        ["success", 1],
      ]);
      expectNoTrouble(world);
      await world.assertDeterministic();
    });
  });

  describe("a failure whose message is too long", () => {
    const message = `no such order: ${"x".repeat(20_000)}`;
    const cut = `${message.slice(0, 4_096)}… (cut: 20015 bytes exceeds limit (17000 bytes))`;
    const throws = activity("Throws", async () => {
      throw new Error(message);
    });

    const limits = { maxPayloadBytes: 17_000 };

    test("keeps its beginning: of an activity", async () => {
      await using world = await store.world();
      const catches = orchestration("Catches", async (ctx) =>
        ctx.scheduleActivity(throws).catch((error: Error) => error.message),
      );
      await world.start({ orchestrations: [catches], activities: [throws], limits });

      expect(await world.run(catches, { instanceId: "c" })).toBe(cut);
      expect((await world.history("c"))[2]).toMatchObject({ type: "ActivityFailed", details: { message: cut } });
    });

    test("keeps its beginning: of the orchestration itself", async () => {
      await using world = await store.world();
      const fails = orchestration("Fails", async () => {
        throw new Error(message);
      });
      await world.start({ orchestrations: [fails], limits });
      await world.client.start(fails, { instanceId: "f" });

      expect(await world.settle(world.client.waitForOrchestration("f"))).toMatchObject({
        status: "Failed",
        details: { category: "application", message: cut },
      });
      await world.assertDeterministic();
    });

    test.each<[of: string, inject: (provider: PoisonInjectingProvider) => void]>([
      ["Orchestration", (provider) => provider.injectOrchestrationPoison(11)],
      ["Activity", (provider) => provider.injectActivityPoison(11)],
    ])("keeps its beginning: of poison, which tells what was tried: %s", async (of, inject) => {
      await using world = await store.world();
      const provider = new PoisonInjectingProvider(world.provider);
      inject(provider);
      const passes = orchestration("Passes", async (ctx, text: string) => ctx.scheduleActivity(echo, text));
      await world.start({ provider, orchestrations: [passes], activities: [echo], limits });
      await world.client.start(passes, { instanceId: "p", input: payload(limits.maxPayloadBytes) });

      expect(await world.settle(world.client.waitForOrchestration("p"))).toMatchObject({
        status: "Failed",
        details: {
          category: "poison",
          messageType: { type: of },
          message: expect.stringMatching(/^.{4096}… \(cut: 17\d{3} bytes exceeds limit \(17000 bytes\)\)$/),
        },
      });
    });
  });

  describe.each([
    ["in memory", DEFAULT_LIMITS.maxHistoryBytes],
    ["read anew with every turn", 0],
  ])("a history that is %s", (_where, warmCacheBytes) => {
    const run = async (limits: Partial<Limits>, steps: number) => {
      const world = await store.world();
      await world.start({ orchestrations: [chain], activities: [step], warmCacheBytes, limits });
      await world.client.start(chain, { instanceId: "c", input: steps });
      return world;
    };

    test("ends with its execution's failure where a turn would make it too long: the turn is not stored", async () => {
      await using world = await run({ maxHistoryEvents: 20 }, 1_000);

      expect(await world.settle(world.client.waitForOrchestration("c"))).toMatchObject({
        status: "Failed",
        details: {
          category: "configuration",
          kind: "LimitExceeded",
          resource: "maxHistoryEvents",
          message:
            "History size (22 events) exceeds limit (20 events). Let the orchestration continue as new (ctx.continueAsNew) before its history grows so long, or raise limits.maxHistoryEvents.",
        },
      });
      const types = await world.eventTypes("c");
      expect(types.length).toBe(22); // 20, and how it ended.
      expect(types.slice(-2)).toEqual(["ActivityCancelRequested", "OrchestrationFailed"]);
      expect(warnings(world)).toEqual([{ limit: "maxHistoryEvents", value: 10, max: 20 }]);
      expectNoTrouble(world);
      await world.assertDeterministic();
    });

    test("may be as long as the limit, and longer by the turn that ends it", async () => {
      await using exact = await run({ maxHistoryEvents: 4 }, 1);
      await using longer = await run({ maxHistoryEvents: 20 }, 10);

      expect(await exact.ending("c")).toEqual({ status: "Completed", output: "1" });
      expect(await longer.ending("c")).toMatchObject({ status: "Completed", output: "10" });
      expect((await longer.history("c")).length).toBe(22);
    });

    test("is weighed by its payloads, too", async () => {
      await using world = await store.world();
      const weighs = orchestration("Weighs", async (ctx) => {
        for (;;) await ctx.scheduleActivity(make, 10_000);
      });
      await world.start({
        orchestrations: [weighs],
        activities: [make],
        warmCacheBytes,
        limits: { maxHistoryBytes: 100_000 },
      });
      await world.client.start(weighs, { instanceId: "w" });

      expect(await world.settle(world.client.waitForOrchestration("w"))).toMatchObject({
        status: "Failed",
        details: {
          kind: "LimitExceeded",
          resource: "maxHistoryBytes",
          message: expect.stringMatching(
            /^History size \(1\d{5} bytes\) exceeds limit \(100000 bytes\)\. .*continueAsNew/,
          ),
        },
      });
      const bytes = (await world.history("w")).reduce((sum, event) => sum + eventBytes(event), 0);
      expect(bytes).toBeGreaterThan(90_000);
      expect(bytes).toBeLessThan(101_000);
      expect(warnings(world)).toMatchObject([{ limit: "maxHistoryBytes", max: 100_000 }]);
    });

    test("begins anew with continue-as-new", async () => {
      await using world = await store.world();
      const rounds = orchestration("Rounds", async (ctx, left: number) => {
        for (let n = 0; n < 4; n += 1) await ctx.scheduleActivity(step, n);
        return left === 0 ? "done" : ctx.continueAsNew(left - 1);
      });
      await world.start({
        orchestrations: [rounds],
        activities: [step],
        warmCacheBytes,
        limits: { maxHistoryEvents: 9 },
      });

      expect(await world.run(rounds, { instanceId: "r", input: 20 })).toBe("done");
    });

    test("warns once, though the process that takes the next turn is another one", async () => {
      await using world = await store.world();
      const waits = orchestration("Waits", async (ctx) => {
        for (let n = 0; n < 6; n += 1) await ctx.dequeueEvent("go");
        return "done";
      });
      const runtime = await world.start({ orchestrations: [waits], warmCacheBytes, limits: { maxHistoryEvents: 14 } });
      const handle = await world.client.start(waits, { instanceId: "w" });
      for (let n = 0; n < 6; n += 1) {
        await handle.enqueueEvent("go");
        await world.settle(runtime.shutdown());
        await runtime.restart();
      }

      expect(await world.settle(handle.result())).toBe("done");
      expect(warnings(world)).toMatchObject([{ limit: "maxHistoryEvents", max: 14 }]);
    });
  });

  describe("an execution whose history is too long", () => {
    test("is failed, not stuck, where messages flood it", async () => {
      await using world = await store.world();
      const waits = orchestration("Waits", async (ctx) => ctx.waitForEvent("never"));
      await world.start({ orchestrations: [waits], limits: { maxHistoryEvents: 20 } });
      const handle = await world.client.start(waits, { instanceId: "w" });
      for (let n = 0; n < 30; n += 1) await handle.enqueueEvent("inbox", n);

      expect(await world.ending("w")).toMatchObject({ status: "Failed" });
      expect((await world.history("w")).length).toBeLessThanOrEqual(22);
      await handle.enqueueEvent("inbox", "late");
      await world.rest();
      expectNoTrouble(world);
    });

    test("takes its parent with it, as all that is wrong with what is deployed", async () => {
      await using world = await store.world();
      const parent = orchestration("Parent", async (ctx) => ctx.scheduleSubOrchestration(chain, 1_000));
      await world.start({ orchestrations: [parent, chain], activities: [step], limits: { maxHistoryEvents: 20 } });
      await world.client.start(parent, { instanceId: "p" });

      expect(await world.settle(world.client.waitForOrchestration("p"))).toMatchObject({
        status: "Failed",
        details: { category: "configuration", kind: "LimitExceeded", resource: "maxHistoryEvents" },
      });
    });

    test("can be cancelled at the limit, and says why it ended", async () => {
      await using world = await store.world();
      const waits = orchestration("Waits", async (ctx) => ctx.waitForEvent("never"));
      await world.start({ orchestrations: [waits], limits: { maxHistoryEvents: 3 } });
      const handle = await world.client.start(waits, { instanceId: "w" });
      await world.rest();
      await handle.enqueueEvent("inbox", 1);
      await world.rest();
      expect((await world.history("w")).length).toBe(3);
      await handle.cancel("enough");

      expect(await world.ending("w")).toEqual({ status: "Failed", output: "canceled: enough" });
    });
  });

  describe("a warning", () => {
    const uses: readonly (readonly [limit: keyof Limits, max: number, use: (ctx: OrchestrationContext) => void])[] = [
      ["maxCustomStatusBytes", 10, (ctx) => ctx.setCustomStatus("12345")],
      ["maxKvValueBytes", 10, (ctx) => ctx.kv.setText("a", "12345")],
      [
        "maxKvKeys",
        10,
        (ctx) => {
          for (const key of "abcde") ctx.kv.setText(key, "");
        },
      ],
      ["maxPayloadBytes", 10, (ctx) => void ctx.scheduleActivity(echo, "123")],
    ];

    test.each(uses)("comes once for an execution at half of %s, and not below", async (limit, max, use) => {
      await using world = await store.world();
      const twice = orchestration("Twice", async (ctx) => {
        if (ctx.executionId > 1) return;
        use(ctx);
        await ctx.scheduleTimer("1s");
        use(ctx);
        await ctx.scheduleTimer("1s");
        return ctx.continueAsNew();
      });
      const contents = { orchestrations: [twice], activities: [echo] };
      const runtime = await world.start({ ...contents, limits: { [limit]: max + 1 } });
      await world.run(twice, { instanceId: "below" });
      expect(warnings(world)).toEqual([]);
      expect(runtime.metrics.snapshot().limitWarnings).toBe(0);

      await runtime.restart({ limits: { [limit]: max } });
      await world.run(twice, { instanceId: "half" });
      expect(world.factsOf("limit-near")).toMatchObject([
        { ref: { instanceId: "half", executionId: 1, orchestrationName: "Twice" }, limit, value: 5, max },
        ...(limit === "maxKvKeys" ? [{ ref: { executionId: 2 }, limit, value: 5, max }] : []),
      ]);
      expect(runtime.metrics.toPrometheus()).toContain(`duroxide_limit_warnings_total{limit="${limit}"}`);
    });

    test("comes with what continue-as-new takes along", async () => {
      await using world = await store.world();
      const hoards = orchestration("Hoards", async (ctx) => {
        if (ctx.executionId > 1) return;
        await ctx.waitForEvent("go");
        return ctx.continueAsNew();
      });
      await world.start({ orchestrations: [hoards], limits: { maxCarryForwardEvents: 4 } });
      const handle = await world.client.start(hoards, { instanceId: "h" });
      for (const message of ["a", "b"]) await handle.enqueueEvent("inbox", message);
      await world.rest();
      await handle.raiseEvent("go");

      await world.settle(handle.result());
      expect(warnings(world)).toEqual([{ limit: "maxCarryForwardEvents", value: 2, max: 4 }]);
    });
  });
});
