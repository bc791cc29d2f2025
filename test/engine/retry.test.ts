// Activities that are tried again. R§4.3.

import { describe, expect, test } from "vitest";
import type { Backoff, RetryPolicy } from "../../src/engine/orchestration-context.js";
import type { OrchestratorItem } from "../../src/history/work-item.js";
import {
  activityFailed,
  type Code,
  completed,
  DoubtedDriver,
  Driver,
  failureOf,
  fired,
  NOW,
  outputOf,
  raised,
  runTurn,
  summary,
} from "./drive.js";

const retried =
  (retry: RetryPolicy): Code =>
  async (ctx) =>
    ctx.scheduleActivity("A", "in", { retry });

/** The course of a call that never succeeds. */
interface Course {
  readonly attempts: number;
  /** In milliseconds; none where no attempt is limited. */
  readonly timeouts: readonly number[];
  /** In milliseconds, one for each attempt but the last; null where the next one follows without a timer. */
  readonly pauses: readonly (number | null)[];
}

async function courseOf(retry: RetryPolicy): Promise<Course> {
  const driver = new Driver({ code: retried(retry), nowMs: NOW });
  const timeouts: number[] = [];
  const pauses: (number | null)[] = [];
  let attempts = 0;
  let hasPaused = true;
  let outcome = await driver.turn();
  for (let nowMs = NOW + 1; outcome.result.kind === "waiting"; nowMs += 1) {
    const [activity] = outcome.activities;
    const delays = outcome.timers.map(({ fireAtMs }) => fireAtMs - nowMs);
    if (activity === undefined) {
      pauses.push(...delays);
      hasPaused = true;
      outcome = await driver.turn(fired(outcome.timers[0]!.id));
    } else {
      if (!hasPaused) pauses.push(null);
      attempts += 1;
      timeouts.push(...delays);
      hasPaused = false;
      outcome = await driver.turn(activityFailed(activity.id, "no"));
    }
  }
  return { attempts, timeouts, pauses };
}

const WITHOUT_PAUSE = { backoff: { kind: "none" } } as const;

describe("a policy", () => {
  test("that says nothing is three attempts, exponential pauses and no timeout", async () => {
    expect(await courseOf({})).toEqual({ attempts: 3, timeouts: [], pauses: [100, 200] });
    expect((await courseOf({ maxAttempts: 12 })).pauses.slice(7)).toEqual([12_800, 25_600, 30_000, 30_000]);
  });

  test.each([
    ["a single attempt", 1],
    ["five attempts", 5],
    ["a thousand attempts", 1_000],
  ])("may ask for %s in all", async (_, maxAttempts) => {
    const course = await courseOf({ ...WITHOUT_PAUSE, maxAttempts });

    expect(course).toMatchObject({ attempts: maxAttempts, timeouts: [] });
    expect(course.pauses).toHaveLength(maxAttempts - 1);
  });

  test.each([
    ["a minute", "1m", 60_000],
    ["a millisecond", 1, 1],
    ["no time at all, which is a limit too", 0, 0],
  ])("may limit every attempt to %s", async (_, timeout, ms) => {
    const course = await courseOf({ ...WITHOUT_PAUSE, timeout });

    expect(course).toMatchObject({ attempts: 3, timeouts: [ms, ms, ms] });
  });
});

describe("a failed attempt", () => {
  test("is followed by a pause and another one, all in the history", async () => {
    const driver = new DoubtedDriver({ code: retried({ backoff: { kind: "fixed", delay: "1s" } }) });
    expect((await driver.turn()).activities).toMatchObject([{ id: 2, name: "A", input: '"in"' }]);
    expect((await driver.turn(activityFailed(2, "first"))).timers).toEqual([{ id: 4, fireAtMs: NOW + 2 + 1_000 }]);
    expect((await driver.turn(fired(4))).activities).toMatchObject([{ id: 6 }]);
    const outcome = await driver.turn(completed(6, "at last"));

    expect(outputOf(outcome)).toBe("at last");
  });

  test("is said once, and not again on replay", async () => {
    const traces: string[] = [];
    const code = retried({ backoff: { kind: "none" } });
    const driver = new Driver({ code, traces });
    await driver.turn();
    await driver.turn(activityFailed(2, "first"));
    await runTurn({ code, traces, history: driver.history, messages: [activityFailed(4, "second")] });

    expect(traces).toEqual([
      "warn: Activity 'A' attempt 1/3 failed: first. Retrying...",
      "warn: Activity 'A' attempt 2/3 failed: second. Retrying...",
    ]);
  });

  test("that was the last is the failure of the call", async () => {
    const driver = new DoubtedDriver({ code: retried({ maxAttempts: 2, backoff: { kind: "none" } }) });
    await driver.turn();
    expect(summary((await driver.turn(activityFailed(2, "first"))).events)).toEqual([
      "ActivityFailed(3<2)",
      "ActivityScheduled(4)",
    ]);

    expect(failureOf(await driver.turn(activityFailed(4, "second")))).toMatchObject({ message: "second" });
  });

  test("that is not the application's fault ends the orchestration", async () => {
    const details = { category: "infrastructure", operation: "o", message: "m", retryable: true } as const;
    const driver = new DoubtedDriver({ code: retried({}) });
    await driver.turn();

    expect(failureOf(await driver.turn(activityFailed(2, details)))).toEqual(details);
  });

  test("is not tried again where the policy says so", async () => {
    const asked: unknown[] = [];
    const shouldRetry = (error: Error, attempt: number) => {
      asked.push([error.name, error.message, attempt]);
      return error.message !== "hopeless";
    };
    const driver = new Driver({ code: retried({ maxAttempts: 9, backoff: { kind: "none" }, shouldRetry }) });
    await driver.turn();
    await driver.turn(activityFailed(2, "hopeful"));

    expect(failureOf(await driver.turn(activityFailed(4, "hopeless")))).toMatchObject({ message: "hopeless" });
    expect(asked).toEqual([
      ["ActivityFailedError", "hopeful", 1],
      ["ActivityFailedError", "hopeless", 2],
    ]);
  });

  test("asks a policy that throws, and the call fails with what it threw", async () => {
    const driver = new DoubtedDriver({
      code: retried({
        shouldRetry: () => {
          throw new Error("policy broke");
        },
      }),
    });
    await driver.turn();

    expect(failureOf(await driver.turn(activityFailed(2, "no")))).toMatchObject({ message: "policy broke" });
  });
});

describe("the pause", () => {
  test.each<[string, Backoff, Readonly<Record<number, number | null>>]>([
    ["none is no timer", { kind: "none" }, { 1: null, 2: null, 100: null }],
    ["fixed is always the same", { kind: "fixed", delay: "5s" }, { 1: 5_000, 2: 5_000, 10: 5_000, 100: 5_000 }],
    ["fixed of zero is no timer", { kind: "fixed", delay: 0 }, { 1: null, 5: null }],
    ["linear grows with every attempt", { kind: "linear", base: 100 }, { 1: 100, 2: 200, 3: 300, 10: 1_000 }],
    [
      "linear grows up to its bound",
      { kind: "linear", base: "1s", max: "5s" },
      { 1: 1_000, 5: 5_000, 10: 5_000, 100: 5_000 },
    ],
    ["linear from zero is no timer", { kind: "linear", base: 0, max: "10s" }, { 1: null, 100: null }],
    ["linear is bounded by 30 s unless told otherwise", { kind: "linear", base: "16s" }, { 1: 16_000, 2: 30_000 }],
    ["exponential doubles", { kind: "exponential", base: 100 }, { 1: 100, 2: 200, 3: 400, 4: 800 }],
    [
      "exponential grows up to its bound",
      { kind: "exponential", base: 100, max: 500 },
      { 1: 100, 2: 200, 3: 400, 4: 500, 10: 500 },
    ],
    [
      "exponential grows by its multiplier",
      { kind: "exponential", base: 100, multiplier: 3, max: "60s" },
      { 1: 100, 2: 300, 3: 900 },
    ],
    [
      "exponential with a multiplier of one stays the same",
      { kind: "exponential", base: 500, multiplier: 1 },
      { 1: 500, 5: 500, 100: 500 },
    ],
    ["exponential from zero is no timer", { kind: "exponential", base: 0, max: "30s" }, { 1: null, 100: null }],
    [
      "exponential is bounded by 30 s unless told otherwise",
      { kind: "exponential" },
      { 1: 100, 8: 12_800, 9: 25_600, 10: 30_000, 100: 30_000 },
    ],
    [
      "exponential with a fraction is cut to whole milliseconds",
      { kind: "exponential", base: 10, multiplier: 1.5, max: "30ms" },
      { 1: 10, 2: 15, 3: 22, 4: 30 },
    ],
  ])("%s", async (_, backoff, expected) => {
    const failedAttempts = Object.keys(expected).map(Number);
    const { pauses } = await courseOf({ backoff, maxAttempts: Math.max(...failedAttempts) + 1 });

    expect(Object.fromEntries(failedAttempts.map((n) => [n, pauses[n - 1]]))).toEqual(expected);
  });

  test("is the backoff's after every attempt but the last", async () => {
    const { pauses } = await courseOf({ maxAttempts: 6, backoff: { kind: "fixed", delay: "2s" } });

    expect(pauses).toEqual([2_000, 2_000, 2_000, 2_000, 2_000]);
  });
});

describe("a timeout", () => {
  const limited = (more: RetryPolicy = {}): Code => retried({ timeout: 50, backoff: { kind: "none" }, ...more });

  test("is a timer after the activity, dropped when the activity is in time", async () => {
    const driver = new DoubtedDriver({ code: limited() });
    expect(summary((await driver.turn()).events)).toEqual([
      "OrchestrationStarted(1)",
      "ActivityScheduled(2)",
      "TimerCreated(3)",
    ]);
    const outcome = await driver.turn(completed(2, "in time"));

    expect(outputOf(outcome)).toBe("in time");
    expect(outcome.cancelledTimers).toEqual([3]);
  });

  test("cancels the attempt and fails the call at once", async () => {
    const driver = new DoubtedDriver({ code: limited() });
    await driver.turn();
    const outcome = await driver.turn(fired(3));

    expect(failureOf(outcome)).toMatchObject({ message: "timeout: activity timed out: 'A' took longer than 50 ms" });
    expect(outcome.cancelledActivities).toEqual([2]);
  });

  test("is tried again where the policy wants it, each attempt with its own", async () => {
    const driver = new DoubtedDriver({ code: limited({ retryOnTimeout: true, maxAttempts: 3 }) });
    await driver.turn();
    expect(await driver.turn(fired(3))).toMatchObject({
      activities: [{ id: 5 }],
      timers: [{ id: 6 }],
      cancelledActivities: [2],
    });
    expect(await driver.turn(activityFailed(5, "no"))).toMatchObject({ activities: [{ id: 9 }], cancelledTimers: [6] });
    const outcome = await driver.turn(fired(10));

    expect(failureOf(outcome)).toMatchObject({ message: "timeout: activity timed out: 'A' took longer than 50 ms" });
  });
});

describe("a retried call", () => {
  test("that loses a race is dropped whatever it is doing: trying or pausing", async () => {
    const code: Code = async (ctx) => {
      const call = ctx.scheduleActivity("A", 1, { retry: { backoff: { kind: "fixed", delay: 5 }, timeout: 50 } });
      const first = await ctx.race([call, ctx.waitForEvent("stop")]);
      await ctx.waitForEvent("go on");
      return first.index;
    };
    const batches: OrchestratorItem[][] = [[], [activityFailed(2, "no")]];
    const seen: unknown[] = [];
    for (const [place, prefix] of batches.entries()) {
      const driver = new DoubtedDriver({ code });
      await driver.turn();
      if (place > 0) await driver.turn(...prefix);
      const { cancelledActivities, cancelledTimers } = await driver.turn(raised("stop", 1));
      seen.push({ cancelledActivities, cancelledTimers });
      expect(outputOf(await driver.turn(raised("go on", 1)))).toBe(1);
    }

    expect(seen).toEqual([
      { cancelledActivities: [2], cancelledTimers: [3] },
      { cancelledActivities: [], cancelledTimers: [6] },
    ]);
  });

  test("keeps its session and tag over all attempts", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) =>
        ctx.scheduleActivity("A", 1, { sessionId: "s", tag: "gpu", retry: { backoff: { kind: "none" } } }),
    });
    const calls = [...(await driver.turn()).activities, ...(await driver.turn(activityFailed(2, "no"))).activities];

    expect(calls).toMatchObject([
      { id: 2, sessionId: "s", tag: "gpu" },
      { id: 4, sessionId: "s", tag: "gpu" },
    ]);
  });

  test("runs beside others like any task", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        const retry = { backoff: { kind: "none" } } as const;
        return Promise.all(["A", "B"].map((name) => ctx.scheduleActivity(name, 1, { retry })));
      },
    });
    await driver.turn();
    await driver.turn(activityFailed(2, "no"), completed(3, "b"));

    expect(outputOf(await driver.turn(completed(6, "a")))).toEqual(["a", "b"]);
  });

  test.each<[string, RetryPolicy, string]>([
    ["no attempts", { maxAttempts: 0 }, "option 'maxAttempts' must be an integer from 1 "],
    ["half an attempt", { maxAttempts: 1.5 }, "option 'maxAttempts' must be an integer from 1 "],
    ["a negative pause", { backoff: { kind: "fixed", delay: -1 } }, "backoff of activity 'A': -1 is no duration"],
    [
      "a shrinking backoff",
      { backoff: { kind: "exponential", multiplier: 0.5 } },
      "option 'multiplier' must be a number from 1 to 1000",
    ],
    ["a timeout that is none", { timeout: "soon" }, 'retry timeout: "soon" is no duration'],
  ])("is refused with %s, before anything is scheduled", async (_, retry, message) => {
    const outcome = await runTurn({ code: retried(retry) });

    expect(failureOf(outcome)).toMatchObject({
      kind: { type: "OrchestrationFailed" },
      message: expect.stringContaining(message),
    });
    expect(summary(outcome.events)).toEqual(["OrchestrationStarted(1)", "OrchestrationFailed(2)"]);
  });
});
