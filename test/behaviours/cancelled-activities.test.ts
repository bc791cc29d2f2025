// Activities whose orchestration no longer wants them: how they hear of it, and what becomes of their answers.
// R§3.11, R§5.4.

import { describe, expect, test } from "vitest";
import { sleep } from "../../src/clock.js";
import { activity, orchestration } from "../../src/define.js";
import type { OrchestrationContext } from "../../src/engine/orchestration-context.js";
import { ActivityCancelledError } from "../../src/errors.js";
import { cancelled } from "../../src/history/error-details.js";
import { mockActivity } from "../../src/testing/mock-activity.js";
import type { TestWorld } from "../../src/testing/test-world.js";
import { eventsOf } from "./events-of.js";
import { onEveryStore } from "./stores.js";

/** Renewed every second, so that a worker of another process hears of a cancellation within one. */
const SHORT_LOCKS = { workerLockTimeoutMs: 2_000, workerLockRenewalBufferMs: 500 };

const work = activity<void, string>("Work");

/** Ends when its signal is aborted, and remembers when and why. */
function endless(world: TestWorld) {
  const aborts: { readonly atMs: number; readonly reason: unknown }[] = [];
  const mocked = mockActivity(work, ({ signal }) => {
    return new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => {
        aborts.push({ atMs: world.clock.now(), reason: signal.reason });
        reject(signal.reason);
      });
    });
  });
  return { ...mocked, aborts };
}

/** Takes its time, whatever its signal says. */
function deaf(world: TestWorld, ms: number) {
  const ends: number[] = [];
  const mocked = mockActivity(work, async () => {
    await sleep(world.clock, ms);
    ends.push(world.clock.now());
    return "result";
  });
  return { ...mocked, ends };
}

const calls = orchestration("Calls", async (ctx) => ctx.scheduleActivity(work));

onEveryStore((store) => {
  describe("a running activity", () => {
    test("hears at once that its orchestration was cancelled by the same process", async () => {
      await using world = await store.world();
      const worker = endless(world);
      await world.start({ orchestrations: [calls], activities: [worker] });
      await world.client.start(calls, { instanceId: "c" });
      await world.advance("100ms");
      const cancelledAtMs = world.clock.now();
      await world.client.cancel("c", "enough");
      await world.ending("c");

      expect(worker.aborts).toEqual([{ atMs: cancelledAtMs, reason: expect.any(ActivityCancelledError) }]);
      expect(worker.aborts[0]?.reason).toMatchObject({ reason: "cancelled" });
    });

    test("hears with the next renewal of its lock that another process cancelled it", async () => {
      await using world = await store.world();
      const worker = endless(world);
      await world.start({ orchestrations: [calls] });
      await world.start({ activities: [worker], ...SHORT_LOCKS });
      await world.client.start(calls, { instanceId: "c" });
      await world.advance("100ms");
      const cancelledAtMs = world.clock.now();
      await world.client.cancel("c", "enough");
      await world.ending("c");
      expect(worker.aborts).toEqual([]);
      await world.advance("1s");

      expect(worker.aborts).toMatchObject([{ reason: { reason: "cancelled" } }]);
      expect(worker.aborts[0]!.atMs - cancelledAtMs).toBe(900);
      expect(world.factsOf("activity-ended")).toMatchObject([{ outcome: "cancelled" }]);
    });

    const GIVEN_UP: readonly [string, string, (ctx: OrchestrationContext) => Promise<string>][] = [
      [
        "that loses a race",
        "completed_after_race",
        async (ctx) => {
          await ctx.race([ctx.scheduleActivity(work), ctx.scheduleTimer("1s")]);
          await ctx.scheduleTimer("50ms");
          return "completed_after_race";
        },
      ],
      [
        "that is given up by name",
        "completed_after_drop",
        async (ctx) => {
          const task = ctx.scheduleActivity(work);
          await ctx.scheduleTimer("1s");
          task.cancel();
          await ctx.scheduleTimer("50ms");
          return "completed_after_drop";
        },
      ],
      [
        "that a branch leaves open when it is done",
        "completed_without_await",
        async (ctx) => {
          await ctx.all([
            async () => {
              ctx.scheduleActivity(work);
              await ctx.scheduleTimer("1s");
            },
          ]);
          await ctx.scheduleTimer("50ms");
          return "completed_without_await";
        },
      ],
    ];

    test.each(GIVEN_UP)("%s is told to stop at once, and the orchestration goes on", async (_which, output, code) => {
      await using world = await store.world();
      const worker = endless(world);
      const gives = orchestration("Gives", code);
      await world.start({ orchestrations: [gives], activities: [worker] });
      const startMs = world.clock.now();

      expect(await world.run(gives, { instanceId: "g" })).toBe(output);
      expect(worker.aborts).toMatchObject([{ atMs: startMs + 1_000, reason: { reason: "cancelled" } }]);
      expect(await world.history("g")).toMatchObject([
        { type: "OrchestrationStarted" },
        { type: "ActivityScheduled", eventId: 2 },
        { type: "TimerCreated" },
        { type: "TimerFired" },
        { type: "TimerCreated" },
        { type: "ActivityCancelRequested", sourceEventId: 2, reason: "dropped_future" },
        { type: "TimerFired" },
        { type: "OrchestrationCompleted" },
      ]);
    });
  });

  describe("an activity that does not listen", () => {
    test("may come to its end, and its result is recorded nowhere", async () => {
      await using world = await store.world();
      const worker = deaf(world, 500);
      await world.start({ orchestrations: [calls], activities: [worker], ...SHORT_LOCKS });
      await world.client.start(calls, { instanceId: "c" });
      await world.advance("100ms");
      await world.client.cancel("c", "not needed");
      await world.advance("10s");

      expect(worker.ends.length).toBe(1);
      expect(world.factsOf("activity-ended")).toMatchObject([{ outcome: "cancelled", durationMs: 500 }]);
      expect(world.factsOf("activity-detached")).toEqual([]);
      expect(await world.history("c")).toMatchObject([
        { type: "OrchestrationStarted" },
        { type: "ActivityScheduled" },
        { type: "OrchestrationCancelRequested" },
        { type: "ActivityCancelRequested", sourceEventId: 2, reason: "orchestration_terminal_failed" },
        { type: "OrchestrationFailed", details: cancelled("not needed") },
      ]);
    });

    test("loses its slot when the grace period is over, is not run again, and its result is ignored", async () => {
      await using world = await store.world();
      const worker = deaf(world, 5_000);
      const next = mockActivity<void, string>("Next", () => "in its slot");
      const follows = orchestration("Follows", async (ctx) => ctx.scheduleActivity(next));
      await world.start({
        orchestrations: [calls, follows],
        activities: [worker, next],
        workerConcurrency: 1,
        activityCancellationGraceMs: 500,
        ...SHORT_LOCKS,
      });
      await world.client.start(calls, { instanceId: "c" });
      await world.advance("100ms");
      const cancelledAtMs = world.clock.now();
      await world.client.cancel("c", "enough");
      await world.ending("c");

      expect(await world.run(follows)).toBe("in its slot");
      expect(world.clock.now() - cancelledAtMs).toBe(500);
      expect(world.factsOf("activity-detached")).toMatchObject([{ ref: { activityName: "Work" }, graceMs: 500 }]);
      await world.advance("1m");
      expect(worker.ends.length).toBe(1);
      expect(worker.calls.length).toBe(1);
      expect(await world.eventTypes("c")).not.toContain("ActivityCompleted");
    });
  });

  describe("an orchestration that ends before its activity", () => {
    const ENDINGS: readonly [string, () => string, object][] = [
      ["well", () => "done", { type: "OrchestrationCompleted", output: '"done"' }],
      [
        "badly",
        () => {
          throw new Error("boom");
        },
        {
          type: "OrchestrationFailed",
          details: { category: "application", kind: { type: "OrchestrationFailed" }, message: "boom" },
        },
      ],
    ];

    test.each(ENDINGS)("in the turn that schedules it, %s, has it never run", async (_how, end, ending) => {
      await using world = await store.world();
      const worker = deaf(world, 200);
      const leaves = orchestration("Leaves", async (ctx) => {
        ctx.scheduleActivity(work);
        return end();
      });
      await world.start({ orchestrations: [leaves], activities: [worker] });
      await world.client.start(leaves, { instanceId: "l" });
      await world.ending("l");
      await world.advance("1m");

      expect(worker.calls).toEqual([]);
      expect(await world.history("l")).toMatchObject([
        { type: "OrchestrationStarted" },
        { type: "ActivityScheduled" },
        { type: "ActivityCancelRequested", sourceEventId: 2 },
        ending,
      ]);
      expect(await world.provider.admin?.getQueueDepths()).toMatchObject({ workerQueue: 0 });
    });

    test.each(ENDINGS)("while it runs, %s, stays as it ended when the activity answers", async (_how, end, ending) => {
      await using world = await store.world();
      const worker = deaf(world, 200);
      const leaves = orchestration("Leaves", async (ctx) => {
        ctx.scheduleActivity(work);
        await ctx.scheduleTimer("100ms");
        return end();
      });
      await world.start({ orchestrations: [leaves], activities: [worker] });
      await world.client.start(leaves, { instanceId: "l" });
      await world.ending("l");
      expect(worker.ends).toEqual([]);
      const ended = await world.history("l");
      await world.advance("1m");

      expect(worker.ends.length).toBe(1);
      expect(ended.at(-1)).toMatchObject(ending);
      expect(eventsOf(ended, "ActivityCancelRequested")).toMatchObject([{ sourceEventId: 2 }]);
      expect(await world.history("l")).toEqual(ended);
    });
  });
});
