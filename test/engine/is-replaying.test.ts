// What code can know of being re-run, and the log lines that must not be written twice. Catalogue A11; R§3.8, R§4.13.

import { describe, expect, test } from "vitest";
import {
  activityDone,
  type Code,
  completed,
  Driver,
  historyOf,
  outputOf,
  queued,
  runTurn,
  scheduled,
  started,
} from "./drive.js";

/** Notes the flag at every point that code reaches. */
const observed =
  (flags: boolean[]): Code =>
  async (ctx) => {
    flags.push(ctx.isReplaying);
    await ctx.scheduleActivity("A");
    flags.push(ctx.isReplaying);
    await ctx.scheduleActivity("B");
    flags.push(ctx.isReplaying);
    return "result";
  };

describe("isReplaying", () => {
  test("is false in a first turn, and in every turn that goes on in memory", async () => {
    const flags: boolean[] = [];
    const driver = new Driver({ code: observed(flags) });
    await driver.turn();
    await driver.turn(completed(2, 1));

    expect(outputOf(await driver.turn(completed(4, 1)))).toBe("result");
    expect(flags).toEqual([false, false, false]);
  });

  test("is true for everything that history led to, the last recorded answer included", async () => {
    const flags: boolean[] = [];
    const history = historyOf(started, scheduled("A"), [activityDone(1), 2], scheduled("B"), [activityDone(1), 4]);
    const outcome = await runTurn({ code: observed(flags), history });

    expect(outputOf(outcome)).toBe("result");
    expect(flags).toEqual([true, true, true]);
  });

  test("is false for what the messages of this turn lead to", async () => {
    const flags: boolean[] = [];
    const history = historyOf(started, scheduled("A"), [activityDone(1), 2], scheduled("B"));
    await runTurn({ code: observed(flags), history, messages: [completed(4, 1)] });

    expect(flags).toEqual([true, true, false]);
  });

  test("is true for what a recorded binding leads to", async () => {
    const flags: boolean[] = [];
    const code: Code = async (ctx) => {
      for (let n = 0; n < 2; n += 1) {
        await ctx.dequeueEvent("q");
        flags.push(ctx.isReplaying);
      }
      await ctx.waitForEvent("E");
    };
    const driver = new Driver({ code });
    await driver.turn(queued("q", 1), queued("q", 2));
    await runTurn({ code, history: driver.history });

    expect(flags).toEqual([false, false, true, true]);
  });

  test("is true at the start where only the start is recorded", async () => {
    const flags: boolean[] = [];
    await runTurn({ code: observed(flags), history: historyOf(started) });

    expect(flags).toEqual([true]);
  });
});

describe("trace", () => {
  test("is written once, however often code is re-run", async () => {
    const traces: string[] = [];
    const code: Code = async (ctx) => {
      ctx.trace.info("started");
      await Promise.all([
        ctx.scheduleActivity("A").then(() => ctx.trace.debug("A done")),
        ctx.scheduleActivity("B").then(() => ctx.trace.error("B done")),
      ]);
      ctx.trace.warn("done");
    };
    const history: Driver["history"] = [];
    for (const messages of [[], [completed(2, 1)], [completed(3, 1)]]) {
      const outcome = await runTurn({ code, traces, history, messages });
      history.push(...outcome.events);
    }

    expect(traces).toEqual(["info: started", "debug: A done", "error: B done", "warn: done"]);
  });
});
