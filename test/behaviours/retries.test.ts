// Activities tried again by their orchestration: attempts, pauses and deadlines are ordinary durable work.
// R§4.4; the arithmetic of the pauses is in test/engine/retry.test.ts.

import { describe, expect, test } from "vitest";
import { sleep } from "../../src/clock.js";
import { activity, orchestration } from "../../src/define.js";
import type { RetryPolicy } from "../../src/engine/orchestration-context.js";
import { orchestrationFailed } from "../../src/history/error-details.js";
import { mockActivity } from "../../src/testing/mock-activity.js";
import type { TestWorld } from "../../src/testing/test-world.js";
import { eventsOf } from "./events-of.js";
import { onEveryStore } from "./stores.js";

const work = activity<string, string>("Work");

/** Fails until the attempt that is told, and says in every answer which attempt it was. */
function succeedsAt(attempt: number) {
  let count = 0;
  return mockActivity(work, () => {
    count += 1;
    if (count < attempt) throw new Error(`fail on attempt ${count}`);
    return `success on attempt ${count}`;
  });
}

/** Its n-th attempt takes so long and then succeeds; null: fails at once. */
function taking(world: TestWorld, ...durationsMs: readonly (number | null)[]) {
  let count = 0;
  return mockActivity(work, async () => {
    const durationMs = durationsMs[count] ?? null;
    count += 1;
    if (durationMs === null) throw new Error(`fail on attempt ${count}`);
    await sleep(world.clock, durationMs);
    return "in time";
  });
}

const retried = (policy: RetryPolicy) =>
  orchestration("Retried", async (ctx) => ctx.scheduleActivity(work, "test", { retry: policy }));

const NO_PAUSE = { kind: "none" } as const;

onEveryStore((store) => {
  describe("an activity with a retry policy", () => {
    test("that succeeds is scheduled once, and nothing else is", async () => {
      await using world = await store.world();
      const worker = mockActivity(work, (_ctx, input) => `success:${input}`);
      const once = retried({ maxAttempts: 3 });
      await world.start({ orchestrations: [once], activities: [worker] });

      expect(await world.run(once, { instanceId: "o" })).toBe("success:test");
      expect(await world.eventTypes("o")).toEqual([
        "OrchestrationStarted",
        "ActivityScheduled",
        "ActivityCompleted",
        "OrchestrationCompleted",
      ]);
    });

    test.each([
      [3, 3],
      [4, 4],
      [10, 20],
    ])("that succeeds at attempt %i of %i runs exactly so often, and history has every attempt", async (at, max) => {
      await using world = await store.world();
      const worker = succeedsAt(at);
      const persists = retried({ maxAttempts: max, backoff: NO_PAUSE });
      await world.start({ orchestrations: [persists], activities: [worker] });

      expect(await world.run(persists, { instanceId: "p" })).toBe(`success on attempt ${at}`);
      expect(worker.calls.length).toBe(at);
      const history = await world.history("p");
      expect(eventsOf(history, "ActivityScheduled").length).toBe(at);
      expect(eventsOf(history, "ActivityFailed").length).toBe(at - 1);
      expect(eventsOf(history, "TimerCreated")).toEqual([]);
    });

    test.each([1, 3])("that fails in all of %i attempts fails with the message of the last", async (maxAttempts) => {
      await using world = await store.world();
      const worker = succeedsAt(100);
      const hopeless = retried({ maxAttempts, backoff: NO_PAUSE });
      await world.start({ orchestrations: [hopeless], activities: [worker] });
      await world.client.start(hopeless, { instanceId: "h" });
      await world.ending("h");

      const message = `fail on attempt ${maxAttempts}`;
      expect(await world.client.getStatus("h")).toMatchObject({ details: orchestrationFailed(message) });
      expect(worker.calls.length).toBe(maxAttempts);
    });

    test("has one idempotency key for all its attempts, crashed ones included, and no other call has it", async () => {
      await using world = await store.world();
      const worker = succeedsAt(3);
      const slow = { kind: "fixed", delay: "1m" } as const;
      const twice = orchestration("Twice", async (ctx) => {
        await ctx.scheduleActivity(work, "first", { retry: { maxAttempts: 5, backoff: slow } });
        await ctx.scheduleActivity(work, "second", { retry: { maxAttempts: 5, backoff: slow } });
      });
      const runtime = await world.start({ orchestrations: [twice], activities: [worker] });
      const crashed = runtime.crashAt("before-activity-commit", { nth: 2 });
      const handle = await world.client.start(twice, { instanceId: "t" });
      await world.settle(crashed);
      await runtime.restart();
      await world.settle(handle.result());

      const keys = worker.calls.map(({ idempotencyKey }) => idempotencyKey);
      const [first, second] = [...new Set(keys)];
      expect(keys).toEqual([first, first, first, second]);
      expect(first).toBe("t:1:2");
    });

    test("carries typed values", async () => {
      await using world = await store.world();
      const double = mockActivity<{ value: number }, { result: number }>("Double", (_ctx, { value }) => ({
        result: value * 2,
      }));
      double.failNext("not yet");
      const typed = orchestration("Typed", async (ctx, input: { value: number }) =>
        ctx.scheduleActivity(double, input, { retry: { maxAttempts: 3 } }),
      );
      await world.start({ orchestrations: [typed], activities: [double] });

      expect(await world.run(typed, { input: { value: 21 } })).toEqual({ result: 42 });
      expect(double.calls.map(({ input }) => input)).toEqual([{ value: 21 }, { value: 21 }]);
    });

    test("is not run again by replays", async () => {
      await using world = await store.world();
      const worker = succeedsAt(1);
      const goesOn = orchestration("GoesOn", async (ctx) => {
        const result = await ctx.scheduleActivity(work, "test", { retry: { maxAttempts: 3 } });
        for (let n = 0; n < 3; n += 1) await ctx.scheduleTimer("1s");
        return result;
      });
      await world.start({ orchestrations: [goesOn], activities: [worker], warmCacheBytes: 0 });

      expect(await world.run(goesOn, { instanceId: "g" })).toBe("success on attempt 1");
      expect(world.factsOf("turn-committed").map(({ isWarm }) => isWarm)).toEqual(Array(5).fill(false));
      expect(worker.calls.length).toBe(1);
    });

    test("goes on with its attempts after a crash, and none is forgotten or repeated", async () => {
      await using world = await store.world();
      const worker = succeedsAt(3);
      const persists = retried({ maxAttempts: 3, backoff: { kind: "fixed", delay: "1m" } });
      const runtime = await world.start({ orchestrations: [persists], activities: [worker] });
      const handle = await world.client.start(persists, { instanceId: "p" });
      await world.advance("30s");
      runtime.kill();
      await runtime.restart();

      expect(await world.settle(handle.result())).toBe("success on attempt 3");
      expect(worker.calls.length).toBe(3);
      expect(eventsOf(await world.history("p"), "ActivityScheduled").length).toBe(3);
    });

    test("is scheduled and answered once in every execution", async () => {
      await using world = await store.world();
      const worker = mockActivity(work, (_ctx, input) => input);
      const rounds = orchestration("Rounds", async (ctx, round: number): Promise<string> => {
        const result = await ctx.scheduleActivity(work, `round ${round}`, { retry: { maxAttempts: 3 } });
        return round < 2 ? ctx.continueAsNew(round + 1) : result;
      });
      await world.start({ orchestrations: [rounds], activities: [worker] });

      expect(await world.run(rounds, { instanceId: "r", input: 0 })).toBe("round 2");
      expect(worker.calls.map(({ input }) => input)).toEqual(["round 0", "round 1", "round 2"]);
      for (const execution of [1, 2, 3]) {
        expect(eventsOf(await world.history("r", execution), "ActivityCompleted")).toMatchObject([
          { sourceEventId: 2, result: `"round ${execution - 1}"` },
        ]);
      }
    });

    test("is none of the business of other instances, which count their own", async () => {
      await using world = await store.world();
      const counts = new Map<string, number>();
      const worker = mockActivity(work, ({ instanceId }, succeedsAt) => {
        const count = (counts.get(instanceId) ?? 0) + 1;
        counts.set(instanceId, count);
        if (count < Number(succeedsAt)) throw new Error("not yet");
        return `${instanceId} at ${count}`;
      });
      const retries = orchestration("Retries", async (ctx, at: string) =>
        ctx.scheduleActivity(work, at, { retry: { maxAttempts: 5, backoff: { kind: "fixed", delay: "10ms" } } }),
      );
      await world.start({ orchestrations: [retries], activities: [worker] });
      const handles = [
        await world.client.start(retries, { instanceId: "a", input: "2" }),
        await world.client.start(retries, { instanceId: "b", input: "3" }),
      ];

      expect(await world.settle(Promise.all(handles.map((handle) => handle.result())))).toEqual(["a at 2", "b at 3"]);
      expect(eventsOf(await world.history("a"), "ActivityScheduled").length).toBe(2);
      expect(eventsOf(await world.history("b"), "ActivityScheduled").length).toBe(3);
    });
  });

  describe("the pause between two attempts", () => {
    test("is a durable timer for every failure", async () => {
      await using world = await store.world();
      const pausing = retried({ maxAttempts: 3, backoff: { kind: "fixed", delay: "50ms" } });
      await world.start({ orchestrations: [pausing], activities: [succeedsAt(3)] });
      const startMs = world.clock.now();

      expect(await world.run(pausing, { instanceId: "p" })).toBe("success on attempt 3");
      expect(world.clock.now() - startMs).toBe(100);
      const history = await world.history("p");
      expect(eventsOf(history, "TimerCreated").length).toBe(2);
      expect(eventsOf(history, "TimerFired").length).toBe(2);
    });
  });

  describe("the timeout of an attempt", () => {
    test("fails the call when it passes first", async () => {
      await using world = await store.world();
      const slow = retried({ maxAttempts: 1, timeout: "100ms" });
      await world.start({ orchestrations: [slow], activities: [taking(world, 10_000)] });
      const startMs = world.clock.now();
      await world.client.start(slow, { instanceId: "s" });

      expect(await world.ending("s")).toEqual({
        status: "Failed",
        output: "timeout: activity timed out: 'Work' took longer than 100 ms",
      });
      expect(world.clock.now() - startMs).toBe(100);
    });

    test("does nothing where the activity is in time", async () => {
      await using world = await store.world();
      const fast = retried({ maxAttempts: 3, timeout: "60s" });
      const worker = mockActivity(work, (_ctx, input) => `fast:${input}`);
      await world.start({ orchestrations: [fast], activities: [worker] });
      const startMs = world.clock.now();

      expect(await world.run(fast, { instanceId: "f" })).toBe("fast:test");
      expect(world.clock.now()).toBe(startMs);
      await world.advance("2m");
      expect(await world.eventTypes("f")).toEqual([
        "OrchestrationStarted",
        "ActivityScheduled",
        "TimerCreated",
        "ActivityCompleted",
        "OrchestrationCompleted",
      ]);
    });

    test("is not retried: the attempt is cancelled, and the call is over", async () => {
      await using world = await store.world();
      const worker = taking(world, 200, 0, 0);
      const slow = retried({ maxAttempts: 3, timeout: "150ms" });
      await world.start({ orchestrations: [slow], activities: [worker] });
      await world.client.start(slow, { instanceId: "s" });

      expect(await world.ending("s")).toMatchObject({
        output: "timeout: activity timed out: 'Work' took longer than 150 ms",
      });
      await world.advance("1m");
      expect(worker.calls.length).toBe(1);
      expect(await world.eventTypes("s")).toEqual([
        "OrchestrationStarted",
        "ActivityScheduled",
        "TimerCreated",
        "TimerFired",
        "ActivityCancelRequested",
        "OrchestrationFailed",
      ]);
    });

    test("is for one attempt: after a failure the next has its own", async () => {
      await using world = await store.world();
      const worker = taking(world, null, 1_000);
      const slow = retried({ maxAttempts: 3, backoff: NO_PAUSE, timeout: "500ms" });
      await world.start({ orchestrations: [slow], activities: [worker] });
      await world.client.start(slow, { instanceId: "s" });

      expect(await world.ending("s")).toMatchObject({
        output: "timeout: activity timed out: 'Work' took longer than 500 ms",
      });
      expect(await world.eventTypes("s")).toEqual([
        "OrchestrationStarted",
        "ActivityScheduled",
        "TimerCreated",
        "ActivityFailed",
        "ActivityScheduled",
        "TimerCreated",
        "TimerFired",
        "ActivityCancelRequested",
        "OrchestrationFailed",
      ]);
    });

    test("can be caught, and replays as it happened", async () => {
      await using world = await store.world();
      const catches = orchestration("Catches", async (ctx) => {
        const outcome = await ctx
          .scheduleActivity(work, "test", { retry: { maxAttempts: 1, timeout: "50ms" } })
          .catch((error: Error) => error.message);
        await ctx.scheduleTimer("1m");
        return outcome;
      });
      const worker = taking(world, 10_000);
      const runtime = await world.start({ orchestrations: [catches], activities: [worker], warmCacheBytes: 0 });
      const handle = await world.client.start(catches, { instanceId: "c" });
      await world.advance("1s");
      runtime.kill();
      await runtime.restart();

      expect(await world.settle(handle.result())).toBe("timeout: activity timed out: 'Work' took longer than 50 ms");
      expect(worker.calls.length).toBe(1);
      const history = await world.history("c");
      expect(eventsOf(history, "TimerCreated").length).toBe(2);
      expect(eventsOf(history, "TimerFired").length).toBe(2);
    });
  });

  describe("a retry on a session", () => {
    const onSession = (maxAttempts: number) =>
      orchestration("OnSession", async (ctx) => {
        const sessionId = await ctx.newGuid();
        const retry: RetryPolicy = { maxAttempts, backoff: { kind: "fixed", delay: "10ms" } };
        return ctx.scheduleActivity(work, "test", { sessionId, retry });
      });

    test("keeps the session over its attempts, which all go to one worker", async () => {
      await using world = await store.world();
      const seen: (string | null)[][] = [];
      const worker = mockActivity(work, ({ sessionId, workerId }) => {
        seen.push([sessionId, workerId]);
        if (seen.length === 1) throw new Error("not yet");
        return `ok attempt ${seen.length}`;
      });
      const persists = onSession(3);
      await world.start({ orchestrations: [persists], activities: [worker] });
      await world.start({ activities: [worker] });

      expect(await world.run(persists, { instanceId: "p" })).toBe("ok attempt 2");
      expect(seen.length).toBe(2);
      expect(seen[1]).toEqual(seen[0]);
      const attempts = eventsOf(await world.history("p"), "ActivityScheduled").filter(({ name }) => name === "Work");
      expect(attempts.map(({ sessionId }) => sessionId)).toEqual([seen[0]![0], seen[0]![0]]);
    });

    test("that fails in all attempts fails with the activity's message", async () => {
      await using world = await store.world();
      const worker = mockActivity(work, () => {
        throw new Error("nope");
      });
      const hopeless = onSession(2);
      await world.start({ orchestrations: [hopeless], activities: [worker] });
      await world.client.start(hopeless, { instanceId: "h" });

      expect(await world.ending("h")).toEqual({ status: "Failed", output: "nope" });
      expect(worker.calls.length).toBe(2);
    });

    test("carries typed values", async () => {
      await using world = await store.world();
      const query = mockActivity<{ sql: string }, { rows: number }>("Query", () => ({ rows: 42 }));
      query.failNext("transient");
      const report = orchestration("Report", async (ctx) => {
        const options = { sessionId: await ctx.newGuid(), retry: { maxAttempts: 3 } };
        const { rows } = await ctx.scheduleActivity(query, { sql: "select 1" }, options);
        return `rows=${rows}`;
      });
      await world.start({ orchestrations: [report], activities: [query] });

      expect(await world.run(report, { instanceId: "r" })).toBe("rows=42");
      expect(query.calls.map(({ input }) => input)).toEqual([{ sql: "select 1" }, { sql: "select 1" }]);
      const attempts = eventsOf(await world.history("r"), "ActivityScheduled").filter(({ name }) => name === "Query");
      const sessionId = attempts[0]?.sessionId;
      expect(sessionId).toMatch(/^[\da-f-]{36}$/);
      expect(attempts).toMatchObject([{ sessionId }, { sessionId }]);
    });
  });
});
