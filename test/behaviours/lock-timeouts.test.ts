// Whoever works keeps its lock for as long as it takes, so that nobody else does the same. R§5.3, R§6.1, R§6.5.

import { describe, expect, test } from "vitest";
import { sleep } from "../../src/clock.js";
import { activity, orchestration } from "../../src/define.js";
import type { Provider } from "../../src/provider/provider.js";
import { renewalIntervalMs } from "../../src/runtime/lock-renewal.js";
import { type RuntimeOptions, resolveRuntimeOptions } from "../../src/runtime/options.js";
import { ControlledProvider } from "../../src/testing/controlled-provider.js";
import type { TestWorld } from "../../src/testing/test-world.js";
import { altered } from "../altered.js";
import { onEveryStore } from "./stores.js";

describe("the options of locks", () => {
  test("are five seconds for turns and thirty for activities, renewed two and five seconds before", () => {
    expect(resolveRuntimeOptions({})).toMatchObject({
      orchestratorLockTimeoutMs: 5_000,
      orchestratorLockRenewalBufferMs: 2_000,
      workerLockTimeoutMs: 30_000,
      workerLockRenewalBufferMs: 5_000,
    });
  });

  test.each<RuntimeOptions>([
    { orchestratorLockTimeoutMs: 10_000, workerLockTimeoutMs: 120_000 },
    { orchestratorLockTimeoutMs: 1_000, workerLockTimeoutMs: 5_000 },
    { orchestratorLockRenewalBufferMs: 5_000 },
  ])("are kept as they are given: %o", (options) => {
    expect(resolveRuntimeOptions(options)).toMatchObject(options);
  });
});

describe("the time between two renewals", () => {
  test.each([
    ["half the lock, where the buffer is shorter", 30_000, 5_000, 15_000],
    ["less than half, where the buffer asks for it", 30_000, 20_000, 10_000],
    ["a tenth of the lock, where the buffer is nearly all of it", 5_000, 4_999, 500],
    ["half the lock, where the buffer is longer than the lock", 2_000, 5_000, 1_000],
    ["half the lock in fractions of a second", 100, 20, 50],
    ["never nothing", 1, 0, 1],
  ])("is %s: of %d ms with a buffer of %d ms, %d ms", (_what, lockMs, bufferMs, everyMs) => {
    expect(renewalIntervalMs(lockMs, bufferMs)).toBe(everyMs);
  });
});

/** Takes note of when an activity's lock was renewed. */
function notingRenewals(world: TestWorld) {
  const startMs = world.clock.now();
  const renewedAt: number[] = [];
  const provider: Provider = altered(world.provider, {
    renewWorkItemLock: (...args) => {
      renewedAt.push(world.clock.now() - startMs);
      return world.provider.renewWorkItemLock(...args);
    },
  });
  return { provider, renewedAt };
}

onEveryStore((store) => {
  const process = activity("Process", (_ctx, what: string) => `processed: ${what}`);
  const processes = orchestration("Processes", async (ctx, what: string) => ctx.scheduleActivity(process, what));

  describe("an orchestration", () => {
    test.each([
      ["a minute", 60_000],
      ["a second", 1_000],
    ])("completes under locks of %s, which is what the store is asked for", async (_long, lockMs) => {
      await using world = await store.world();
      const asked = { turns: new Set<number>(), activities: new Set<number>() };
      const provider = altered(world.provider, {
        fetchOrchestrationItem: (options) => {
          asked.turns.add(options.lockTimeoutMs);
          return world.provider.fetchOrchestrationItem(options);
        },
        fetchWorkItem: (options) => {
          asked.activities.add(options.lockTimeoutMs);
          return world.provider.fetchWorkItem(options);
        },
      });
      const options = { orchestratorLockTimeoutMs: lockMs, workerLockTimeoutMs: lockMs };
      await world.start({ provider, orchestrations: [processes], activities: [process], ...options });

      expect(await world.run(processes, { input: "data" })).toBe("processed: data");
      expect([...asked.turns, ...asked.activities]).toEqual([lockMs, lockMs]);
    });
  });

  describe("the lock of an activity", () => {
    test.each([
      { takesMs: 6_000, lockMs: 3_000, bufferMs: 1_000, renewedAt: [1_500, 3_000, 4_500] },
      { takesMs: 3_000, lockMs: 2_000, bufferMs: 1_000, renewedAt: [1_000, 2_000] },
      { takesMs: 3_500, lockMs: 2_000, bufferMs: 5_000, renewedAt: [1_000, 2_000, 3_000] },
      { takesMs: 6_000, lockMs: 5_000, bufferMs: 2_000, renewedAt: [2_500, 5_000] },
      { takesMs: 6_000, lockMs: 5_000, bufferMs: 3_500, renewedAt: [1_500, 3_000, 4_500] },
    ])(
      "of $lockMs ms with a buffer of $bufferMs ms is kept for $takesMs ms, and nobody runs it again",
      async ({ takesMs, lockMs, bufferMs, renewedAt }) => {
        await using world = await store.world();
        const attempts: number[] = [];
        const slow = activity("Slow", async (ctx) => {
          attempts.push(ctx.attempt);
          await sleep(world.clock, takesMs);
          return ctx.signal.aborted ? "aborted" : "undisturbed";
        });
        const waitsForIt = orchestration("WaitsForIt", async (ctx) => ctx.scheduleActivity(slow));
        const noted = notingRenewals(world);
        const locks = { workerLockTimeoutMs: lockMs, workerLockRenewalBufferMs: bufferMs };
        const code = { orchestrations: [waitsForIt], activities: [slow] };
        await world.start({ ...code, ...locks, provider: noted.provider });
        await world.start({ ...code, ...locks, provider: noted.provider });
        const startMs = world.clock.now();

        expect(await world.run(waitsForIt)).toBe("undisturbed");
        expect(world.clock.now() - startMs).toBe(takesMs);
        await world.advance(2 * lockMs);
        expect(attempts).toEqual([1]);
        expect(noted.renewedAt.filter((atMs) => atMs < takesMs)).toEqual(renewedAt);
      },
    );

    test("is kept for each of several that run at once", async () => {
      await using world = await store.world();
      const runs: string[] = [];
      const slow = activity("Slow", async (_ctx, name: string) => {
        runs.push(name);
        await sleep(world.clock, 6_000);
        return name;
      });
      const three = orchestration("Three", async (ctx) =>
        ctx.all(["a", "b", "c"].map((name) => ctx.scheduleActivity(slow, name))),
      );
      const locks = { workerLockTimeoutMs: 3_000, workerLockRenewalBufferMs: 1_000 };
      await world.start({ orchestrations: [three], activities: [slow], workerConcurrency: 3, ...locks });
      await world.start({ orchestrationConcurrency: 0, activities: [slow], ...locks });
      const startMs = world.clock.now();

      expect(await world.run(three)).toEqual(["a", "b", "c"]);
      expect(world.clock.now() - startMs).toBe(6_000);
      expect(runs.sort()).toEqual(["a", "b", "c"]);
      expect(world.factsOf("activity-ended").map(({ outcome }) => outcome)).toEqual(["success", "success", "success"]);
    });
  });

  describe("the lock of a turn", () => {
    test("is kept while the turn takes its time, and nobody takes it again", async () => {
      await using world = await store.world();
      let runs = 0;
      const quick = orchestration("Quick", async () => {
        runs += 1;
        return "done";
      });
      const provider = new ControlledProvider(world.provider, { clock: world.clock });
      using ack = provider.hold("ackOrchestrationItem", "entering");
      await world.start({ provider, orchestrations: [quick], orchestratorLockTimeoutMs: 2_000 });
      const handle = await world.client.start(quick, { instanceId: "q" });
      await world.settle(ack.reached);
      await world.start({ orchestrations: [quick], orchestratorLockTimeoutMs: 2_000 });

      await world.advance("4s");
      expect(await world.history("q")).toEqual([]);
      expect(provider.calls("renewOrchestrationItemLock")).toBeGreaterThanOrEqual(3);
      ack.release();
      expect(await world.settle(handle.result())).toBe("done");
      expect(runs).toBe(1);
      expect(world.factsOf("turn-lock-lost")).toEqual([]);
    });
  });
});
