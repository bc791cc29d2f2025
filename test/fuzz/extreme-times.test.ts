// Times of every size, wherever a duration may stand: kept to the millisecond, or refused with an error of ours.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { orchestration } from "../../src/define.js";
import { durationMs } from "../../src/duration.js";
import type { Backoff, OrchestrationContext } from "../../src/engine/orchestration-context.js";
import { eventsOf } from "../behaviours/events-of.js";
import { onEveryStore } from "../behaviours/stores.js";
import { activityFailed, Driver, fired, NOW, runTurn } from "../engine/drive.js";
import { tries } from "./budget.js";
import { codeOf, verdictOf } from "./junk.js";

const DAY_MS = 86_400_000;
/** A thousand years, by the longest count. */
const LONGEST_MS = 366_000 * DAY_MS;

const EXTREMES: readonly number[] = [
  0,
  -0,
  0.4,
  1,
  -1,
  Number.MIN_VALUE,
  -Number.MIN_VALUE,
  2 ** 31 - 1,
  2 ** 31,
  2 ** 31 + 1,
  2 ** 32,
  365 * DAY_MS,
  LONGEST_MS,
  LONGEST_MS + 1,
  1e15,
  8.64e15,
  Number.MAX_SAFE_INTEGER,
  Number.MAX_SAFE_INTEGER + 2,
  1e308,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  Number.NaN,
];

const anyNumber = fc.oneof(fc.constantFrom(...EXTREMES), fc.double(), fc.maxSafeInteger(), fc.nat());
const anyTextOfTime = fc
  .tuple(
    fc.oneof(anyNumber.map(String), fc.stringMatching(/^\d{1,400}(\.\d{1,400})?$/)),
    fc.constantFrom("ms", "s", "m", "h", "d", "w", "y", ""),
  )
  .map(([amount, unit]) => `${amount}${unit}`);
const anyDuration = fc.oneof(anyNumber, anyTextOfTime);

/** What a number of milliseconds means; null: it is no duration. */
function meaningOf(ms: number): number | null {
  return ms >= 0 && ms <= LONGEST_MS ? Math.floor(ms) + 0 : null;
}

describe("a duration", () => {
  test("in numbers is cut to whole milliseconds, from none to a thousand years", () => {
    fc.assert(
      fc.property(anyNumber, (ms) => {
        const meaning = meaningOf(ms);
        if (meaning === null) expect(refusal(() => durationMs(ms, "timer"))).toBe("DUROXIDE_INVALID_INPUT");
        else expect(durationMs(ms, "timer")).toBe(meaning);
      }),
      tries(1_000),
    );
  });

  test("in words is a whole number of milliseconds in the same range, or refused", () => {
    fc.assert(
      fc.property(anyTextOfTime, (text) => {
        const verdict = refusal(() => expect(meaningOf(durationMs(text, "timer"))).not.toBeNull());
        expect(verdict).toMatch(/^accepted$|^DUROXIDE_INVALID_INPUT$/);
        if (verdict === "accepted") expect(Number.isSafeInteger(durationMs(text, "timer"))).toBe(true);
      }),
      tries(1_000),
    );
  });
});

describe("inside an orchestration", () => {
  const places: Readonly<Record<string, (ctx: OrchestrationContext, duration: never) => unknown>> = {
    "a timer": (ctx, delay) => ctx.scheduleTimer(delay),
    "the timeout of a retry": (ctx, timeout) => ctx.scheduleActivity("A", 1, { retry: { timeout } }),
    "a fixed backoff": (ctx, delay) => ctx.scheduleActivity("A", 1, { retry: { backoff: { kind: "fixed", delay } } }),
    "the base of a backoff": (ctx, base) =>
      ctx.scheduleActivity("A", 1, { retry: { backoff: { kind: "linear", base } } }),
    "the end of a backoff": (ctx, max) =>
      ctx.scheduleActivity("A", 1, { retry: { backoff: { kind: "exponential", max } } }),
  };
  test.each(Object.keys(places))("%s of any size is an exact time, or refused at the call", async (place) => {
    await fc.assert(
      fc.asyncProperty(anyDuration, async (duration) => {
        let verdict = "";
        const { timers } = await runTurn({
          code: async (ctx) => {
            verdict = refusal(() => places[place]!(ctx, duration as never));
          },
        });
        expect(verdict).toMatch(/^accepted$|^DUROXIDE_INVALID_INPUT$/);
        if (typeof duration === "number") expect(verdict === "accepted").toBe(meaningOf(duration) !== null);
        for (const { fireAtMs } of timers) expect(Number.isSafeInteger(fireAtMs) && fireAtMs >= NOW).toBe(true);
      }),
      tries(150),
    );
  });

  test("pauses of retries never leave their bounds, however often is tried", async () => {
    const anyMs = fc.constantFrom(0, 1, 1_000, DAY_MS, 2 ** 31, LONGEST_MS);
    const anyMultiplier = fc.constantFrom(1, 1.5, 2, 1_000);
    await fc.assert(
      fc.asyncProperty(
        anyMs,
        anyMs,
        anyMultiplier,
        fc.integer({ min: 1, max: 120 }),
        async (base, max, multiplier, nth) => {
          const pause = await pauseAfter(nth, { kind: "exponential", base, max, multiplier });
          const growth = multiplier ** (nth - 1);
          expect(pause).toBe(base === 0 ? 0 : Math.trunc(Math.min(base * growth, max)));
        },
      ),
      tries(40),
    );
  });
});

onEveryStore((store) => {
  describe("on a store", () => {
    test("a timer of any size fires at its time, not before and not much later", async () => {
      const sleeper = orchestration("Sleeper", async (ctx, ms: number) => {
        const before = await ctx.utcNow();
        await ctx.scheduleTimer(ms);
        return (await ctx.utcNow()) - before;
      });
      await using world = await store.world();
      await world.start({ orchestrations: [sleeper] });
      for (const ms of EXTREMES.filter((each) => (meaningOf(each) ?? LONGEST_MS) <= 400 * DAY_MS)) {
        const passed = await world.run(sleeper, { input: ms });
        expect(passed, `${ms} ms`).toBeGreaterThanOrEqual(Math.floor(ms));
        expect(passed, `${ms} ms`).toBeLessThan(ms + 1_000);
      }
    });

    test("a time of centuries is kept as it is", async () => {
      const sleeper = orchestration("Sleeper", async (ctx, ms: number) => ctx.scheduleTimer(ms));
      await using world = await store.world();
      await world.start({ orchestrations: [sleeper] });
      const startedAt = world.clock.now();
      await world.client.start(sleeper, { instanceId: "timer", input: LONGEST_MS });
      await world.client.start(sleeper, { instanceId: "delayed", input: 0, delay: LONGEST_MS });
      await world.advance("1d");

      const [timer] = eventsOf(await world.history("timer"), "TimerCreated");
      expect(timer?.fireAtMs).toBe(startedAt + LONGEST_MS);
      expect(await world.client.getStatus("timer")).toMatchObject({ status: "Running" });
      expect(await world.client.getStatus("delayed")).toMatchObject({ status: "Pending" });
    });

    test("starts with any delay, and waits with any timeout, are accepted or refused", async () => {
      await using world = await store.world();
      await fc.assert(
        fc.asyncProperty(anyDuration, async (delay) => {
          const verdict = await verdictOf(() => world.client.start("Nobody", { delay }));
          expect(verdict).toMatch(/^accepted$|^DUROXIDE_INVALID_INPUT$/);
          if (typeof delay === "number") expect(verdict === "accepted").toBe(meaningOf(delay) !== null);
        }),
        tries(40),
      );
      for (const timeoutMs of EXTREMES.filter((each) => !(each > 2 ** 33))) {
        const verdict = await verdictOf(() => world.settle(world.client.waitForOrchestration("nobody", { timeoutMs })));
        expect(verdict, `${timeoutMs}`).toBe(timeoutMs >= 0 ? "DUROXIDE_TIMEOUT" : "DUROXIDE_INVALID_OPTIONS");
      }
    });
  });
});

/** "accepted", or the code of what was thrown. */
function refusal(call: () => unknown): string {
  try {
    call();
    return "accepted";
  } catch (error) {
    return codeOf(error);
  }
}

/** How long is waited after the n-th failure. */
async function pauseAfter(failures: number, backoff: Backoff): Promise<number> {
  const retry = { backoff, maxAttempts: Number.MAX_SAFE_INTEGER };
  const driver = new Driver({ code: async (ctx) => ctx.scheduleActivity("A", 1, { retry }) });
  let outcome = await driver.turn();
  let pauseMs = 0;
  for (let failed = 0; failed < failures; failed += 1) {
    outcome = await driver.turn(activityFailed(outcome.activities[0]!.id, "no"));
    const [timer] = outcome.timers;
    pauseMs = timer === undefined ? 0 : timer.fireAtMs - driver.history.at(-1)!.timestampMs;
    if (timer !== undefined) outcome = await driver.turn(fired(timer.id));
  }
  return pauseMs;
}
