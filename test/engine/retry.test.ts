// Activities that are tried again. R§4.3.

import { describe, expect, test } from "vitest";
import type { RetryPolicy } from "../../src/engine/orchestration-context.js";
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

/** The pauses of a call that never succeeds, in milliseconds. */
async function pausesOf(retry: RetryPolicy): Promise<number[]> {
  const driver = new Driver({ code: retried(retry), nowMs: NOW });
  const pauses: number[] = [];
  let outcome = await driver.turn();
  for (let turn = 2; outcome.result.kind === "waiting"; turn += 1) {
    const [activity] = outcome.activities;
    const [timer] = outcome.timers;
    if (timer !== undefined) pauses.push(timer.fireAtMs - NOW - (turn - 1));
    outcome = await driver.turn(activity !== undefined ? activityFailed(activity.id, "no") : fired(timer!.id));
  }
  return pauses;
}

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
  test.each<[string, RetryPolicy, number[]]>([
    ["by default doubles from 100 ms, for two more attempts", {}, [100, 200]],
    ["is bounded by 30 s", { maxAttempts: 11 }, [100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000]],
    ["fixed", { maxAttempts: 4, backoff: { kind: "fixed", delay: 7 } }, [7, 7, 7]],
    ["fixed of zero is no timer", { maxAttempts: 4, backoff: { kind: "fixed", delay: 0 } }, []],
    ["none is no timer", { maxAttempts: 4, backoff: { kind: "none" } }, []],
    ["linear", { maxAttempts: 5, backoff: { kind: "linear", base: 10, max: 25 } }, [10, 20, 25, 25]],
    [
      "exponential with a fraction is cut to whole milliseconds",
      { maxAttempts: 5, backoff: { kind: "exponential", base: 10, multiplier: 1.5, max: "30ms" } },
      [10, 15, 22, 30],
    ],
    ["after one attempt there is none", { maxAttempts: 1 }, []],
  ])("%s", async (_, policy, pauses) => {
    expect(await pausesOf(policy)).toEqual(pauses);
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

    expect(failureOf(outcome)).toMatchObject({ message: "timeout: activity timed out" });
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

    expect(failureOf(outcome)).toMatchObject({ message: "timeout: activity timed out" });
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

  test.each<[string, RetryPolicy]>([
    ["no attempts", { maxAttempts: 0 }],
    ["half an attempt", { maxAttempts: 1.5 }],
    ["a negative pause", { backoff: { kind: "fixed", delay: -1 } }],
    ["a shrinking backoff", { backoff: { kind: "exponential", multiplier: 0.5 } }],
    ["a timeout that is none", { timeout: "soon" }],
  ])("is refused with %s, before anything is scheduled", async (_, retry) => {
    const outcome = await runTurn({ code: retried(retry) });

    expect(failureOf(outcome)).toMatchObject({ kind: { type: "OrchestrationFailed" } });
    expect(summary(outcome.events)).toEqual(["OrchestrationStarted(1)", "OrchestrationFailed(2)"]);
  });
});
