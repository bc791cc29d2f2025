// Histories that the runtime ended, not the code: what code had decided until then must fit.

import { describe, expect, test } from "vitest";
import { type ErrorDetails, limitExceeded, nondeterminism } from "../../src/history/error-details.js";
import { activityFailed, type Code, cancel, completed, eventOf, historyOf, queued, started } from "../engine/drive.js";
import { recorded, replayed } from "./recorded.js";

const INSTANCE = "Instance 'test-instance', execution 1";

describe("an execution that the runtime ended", () => {
  const poison: ErrorDetails = {
    category: "poison",
    attemptCount: 11,
    maxAttempts: 10,
    messageType: { type: "Orchestration", instance: "test-instance", executionId: 1 },
    message: "[]",
  };
  const steps: Code = async (ctx) => {
    const a = await ctx.scheduleActivity("A");
    const b = await ctx.scheduleActivity("B", a);
    return [a, b];
  };
  const other: Code = async (ctx) => {
    await ctx.scheduleActivity("A");
    return ctx.scheduleActivity("C");
  };
  const failedWith = (details: ErrorDetails) => ({ type: "OrchestrationFailed", details }) as const;
  const givenUp = { type: "ActivityCancelRequested", reason: "orchestration_terminal_failed" } as const;

  test("by poison: what it had decided before must fit", async () => {
    const before = await recorded(steps, [[completed(2, 1)]]);
    const history = [...before, eventOf(5, givenUp, 4), eventOf(6, failedWith(poison))];

    expect(await replayed(history, steps)).toEqual({ status: "failed", events: 6, details: poison });
    await expect(replayed(history, other)).rejects.toThrow(
      `${INSTANCE}, event 4: history records ActivityScheduled(name="B", input="1")`,
    );
  });

  test("before any code ran: there is nothing to compare", async () => {
    const history = historyOf(started, failedWith(poison));

    expect(await replayed(history, steps)).toMatchObject({ status: "failed", details: poison });
  });

  test("because an activity failed in a way that is not the application's: code has never heard of it", async () => {
    const infrastructure: ErrorDetails = {
      category: "infrastructure",
      operation: "load",
      message: "no disk",
      retryable: false,
    };
    const catching: Code = async (ctx) => {
      try {
        return await ctx.scheduleActivity("A");
      } catch {
        return ctx.scheduleActivity("Recover");
      }
    };
    const history = await recorded(catching, [[activityFailed(2, infrastructure)]]);

    expect(history.at(-1)).toMatchObject(failedWith(infrastructure));
    expect(await replayed(history, catching)).toMatchObject({ status: "failed", details: infrastructure });
    await expect(replayed(history, async (ctx) => ctx.scheduleActivity("B"))).rejects.toThrow("event 2");
  });

  test("for nondeterminism: the code that wrote it fits, the code that failed it does not", async () => {
    const before = await recorded(steps, [[completed(2, 1)]]);
    const history = await recorded(other, [[completed(4, 2)]], { history: before });

    expect(history.at(-1)).toMatchObject({ type: "OrchestrationFailed", details: { kind: "Nondeterminism" } });
    expect(await replayed(history, steps)).toMatchObject({ status: "failed" });
    await expect(replayed(history, other)).rejects.toThrow("event 4: history records ActivityScheduled");
  });

  test("for a foreign await: the turn was cut short, and what it had decided must fit", async () => {
    const foreign: Code = async (ctx) => {
      ctx.scheduleActivity("A");
      await new Promise(() => {});
    };
    const history = await recorded(foreign);

    expect(history.at(-1)).toMatchObject({ details: { category: "configuration" } });
    expect(await replayed(history, foreign)).toMatchObject({ status: "failed" });
    expect(
      await replayed(history, async (ctx) => ctx.all([ctx.scheduleActivity("A"), ctx.scheduleActivity("B")])),
    ).toMatchObject({ status: "failed" });
    await expect(replayed(history, async (ctx) => ctx.scheduleActivity("B"))).rejects.toThrow("event 2");
  });

  test("for a failure of its child that is not the application's", async () => {
    const details = nondeterminism("schedule mismatch");
    const parent: Code = async (ctx) => ctx.scheduleSubOrchestration("Child");
    const history = await recorded(parent, [
      [{ type: "SubOrchFailed", parentInstance: "test-instance", parentExecutionId: 1, parentId: 2, details }],
    ]);

    expect(await replayed(history, parent)).toMatchObject({ status: "failed", details });
  });

  describe("for a broken limit", () => {
    const broken = {
      category: "application",
      kind: { type: "OrchestrationFailed" },
      message: "Custom status size (10 bytes) exceeds limit (5 bytes)",
      retryable: false,
    } as const;
    const talkative: Code = async (ctx) => {
      await ctx.scheduleActivity("A");
      ctx.setCustomStatus("0123456789");
      return ctx.waitForEvent("next");
    };

    test("in a turn that is lost: what it had decided before must fit", async () => {
      const before = await recorded(talkative);
      const history = [...before, eventOf(3, givenUp, 2), eventOf(4, failedWith(broken))];

      expect(await replayed(history, talkative)).toMatchObject({ status: "failed", details: broken });
      await expect(replayed(history, async (ctx) => ctx.scheduleActivity("B"))).rejects.toThrow("event 2");
    });

    test.each<[what: string, details: ErrorDetails]>([
      [
        "of a payload",
        { ...broken, message: "Input of activity 'B' (20 bytes) exceeds limit (10 bytes). Keep it elsewhere" },
      ],
      [
        "of a payload at its end",
        { ...broken, message: "Output of the orchestration (20 bytes) exceeds limit (10 bytes)." },
      ],
      [
        "of a failure, which was cut",
        { ...broken, message: `${"x".repeat(20)}… (cut: 99999 bytes exceeds limit (16384 bytes))` },
      ],
      ["of its history", limitExceeded("maxHistoryEvents", "History size (101 events) exceeds limit (100 events).")],
    ])("%s, when limits were other ones: what it had decided before must fit", async (_what, details) => {
      const before = await recorded(steps);
      const history = [...before, eventOf(3, givenUp, 2), eventOf(4, failedWith(details))];

      expect(await replayed(history, steps)).toMatchObject({ status: "failed", details });
      await expect(replayed(history, async (ctx) => ctx.scheduleActivity("B"))).rejects.toThrow("event 2");
    });

    test("in the first turn: the same limit is broken again", async () => {
      const history = historyOf(started, failedWith(broken));
      const atOnce: Code = async (ctx) => ctx.setCustomStatus("0123456789");

      expect(await replayed(history, atOnce, { limits: { maxCustomStatusBytes: 5 } })).toMatchObject({
        status: "failed",
      });
    });

    test("that only code of its own speaks of: its end is compared as any other", async () => {
      const history = await recorded(async () => {
        throw new Error("cart of 11 exceeds limit (10)");
      });

      await expect(replayed(history, async () => "ok")).rejects.toThrow("but the code now ends with");
    });

    test("that it did not break then", async () => {
      const code: Code = async (ctx) => {
        ctx.setCustomStatus("x");
        return "done";
      };
      const history = await recorded(code);

      await expect(
        replayed(
          history,
          async (ctx) => {
            ctx.setCustomStatus("x");
            ctx.setCustomStatus("0123456789");
            return "done";
          },
          { limits: { maxCustomStatusBytes: 5 } },
        ),
      ).rejects.toThrow("but the code now ends with OrchestrationFailed(details=");
    });
  });

  test("on request: what came in the same turn counts, and what was open is given up again", async () => {
    const code: Code = async (ctx) => {
      await ctx.scheduleActivity("A");
      return ctx.all([ctx.scheduleActivity("B"), ctx.dequeueEvent("inbox"), ctx.waitForEvent("E")]);
    };
    const history = await recorded(code, [[completed(2, 1), cancel("enough"), queued("other", 1)]]);

    expect(await replayed(history, code)).toMatchObject({ status: "cancelled", reason: "enough" });
    const waitsForLess: Code = async (ctx) => {
      await ctx.scheduleActivity("A");
      ctx.scheduleActivity("B");
      ctx.dequeueEvent("inbox");
      ctx.waitForEvent("E").cancel();
      return ctx.waitForEvent("F");
    };
    await expect(replayed(history, waitsForLess)).rejects.toThrow('decides ExternalSubscribed(name="F")');
  });
});
