// An execution that ends in the next one. Catalogue A1; R§2.12, R§3.6, R§4.10.

import { describe, expect, test } from "vitest";
import { type Code, completed, DoubtedDriver, fired, INSTANCE, outputOf, queued, summary } from "./drive.js";

describe("continueAsNew", () => {
  test("ends the execution with the input of the next", async () => {
    let wasReached = false;
    const outcome = await new DoubtedDriver({
      code: async (ctx) => {
        await ctx.continueAsNew("new-input");
        wasReached = true;
      },
    }).turn();

    expect(outcome.result).toEqual({
      kind: "continuedAsNew",
      input: '"new-input"',
      version: null,
      carried: [],
      customStatus: null,
    });
    expect(outcome.events.at(-1)).toMatchObject({ type: "OrchestrationContinuedAsNew", input: '"new-input"' });
    expect(wasReached).toBe(false);
  });

  test("may name the version of the next", async () => {
    const outcome = await new DoubtedDriver({
      code: async (ctx) => ctx.continueAsNew(undefined, { version: "2.0.0" }),
    }).turn();

    expect(outcome.result).toMatchObject({ input: "null", version: "2.0.0" });
  });

  test("takes effect without being awaited, and the first call wins over the second and over the result", async () => {
    const outcome = await new DoubtedDriver({
      code: async (ctx) => {
        ctx.continueAsNew("first");
        ctx.continueAsNew("second");
        return "result";
      },
    }).turn();

    expect(outcome.result).toMatchObject({ kind: "continuedAsNew", input: '"first"' });
  });

  test("wins over an error thrown after it", async () => {
    const outcome = await new DoubtedDriver({
      code: async (ctx) => {
        ctx.continueAsNew("next");
        throw new Error("ignored");
      },
    }).turn();

    expect(outcome.result.kind).toBe("continuedAsNew");
  });

  test("lets code run to its next rest; what that decides is recorded, and only detached starts are honoured", async () => {
    const outcome = await new DoubtedDriver({
      code: async (ctx) => {
        ctx.scheduleSubOrchestration("C");
        ctx.continueAsNew("new-input");
        ctx.scheduleActivity("A");
        ctx.startOrchestration("D", { instanceId: "detached" });
        await ctx.scheduleTimer(1);
        ctx.setCustomStatus("never reached");
      },
    }).turn();

    expect(summary(outcome.events)).toEqual([
      "OrchestrationStarted(1)",
      "SubOrchestrationScheduled(2)",
      "ActivityScheduled(3)",
      "OrchestrationChained(4)",
      "TimerCreated(5)",
      "ActivityCancelRequested(6<3)",
      "OrchestrationContinuedAsNew(7)",
    ]);
    expect(outcome.result).toMatchObject({ kind: "continuedAsNew", input: '"new-input"' });
    expect(outcome).toMatchObject({ activities: [], timers: [], children: [], cancelledChildren: [] });
    expect(outcome.detached).toMatchObject([{ instance: "detached" }]);
  });

  test("delivers nothing more: the rest of the batch is recorded only", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        const other = ctx.scheduleActivity("B");
        await ctx.scheduleActivity("A");
        ctx.continueAsNew(1);
        await other;
        ctx.setCustomStatus("never reached");
      },
    });
    await driver.turn();
    const outcome = await driver.turn(completed(3, 1), completed(2, 1));

    expect(summary(outcome.events)).toEqual([
      "ActivityCompleted(4<3)",
      "ActivityCompleted(5<2)",
      "OrchestrationContinuedAsNew(6)",
    ]);
  });

  test("gives up everything that is open", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        ctx.scheduleActivity("A");
        ctx.scheduleSubOrchestration("C");
        ctx.scheduleTimer(9);
        ctx.waitForEvent("E");
        ctx.dequeueEvent("q");
        await ctx.scheduleTimer(1);
        return ctx.continueAsNew(1);
      },
    });
    await driver.turn();
    const outcome = await driver.turn(fired(7));

    expect(summary(outcome.events)).toEqual([
      "TimerFired(8<7)",
      "ExternalSubscribedCancelled(9<5)",
      "ExternalSubscribedPersistentCancelled(10<6)",
      "ActivityCancelRequested(11<2)",
      "OrchestrationContinuedAsNew(12)",
    ]);
    expect(outcome.events[3]).toMatchObject({ reason: "orchestration_terminal_continued_as_new" });
    expect(outcome.cancelledChildren).toMatchObject([{ instance: `${INSTANCE}::sub::3` }]);
    expect(outcome).toMatchObject({ cancelledActivities: [2], cancelledTimers: [4] });
  });

  test("takes along the custom status", async () => {
    const keep: Code = async (ctx) => ctx.continueAsNew(1);
    const change: Code = async (ctx) => {
      ctx.setCustomStatus("busy");
      return ctx.continueAsNew(1);
    };
    const clear: Code = async (ctx) => {
      ctx.resetCustomStatus();
      return ctx.continueAsNew(1);
    };
    const statuses: unknown[] = [];
    for (const code of [keep, change, clear]) {
      const { result } = await new DoubtedDriver({ code, customStatus: "inherited" }).turn();
      statuses.push(result.kind === "continuedAsNew" && result.customStatus);
    }

    expect(statuses).toEqual(["inherited", "busy", null]);
  });
});

describe("mailbox messages", () => {
  const carriedBy = async (code: Code, ...batches: Parameters<DoubtedDriver["turn"]>[]) => {
    const driver = new DoubtedDriver({ code });
    let outcome = await driver.turn(...(batches[0] ?? []));
    for (const batch of batches.slice(1)) outcome = await driver.turn(...batch);
    return outcome.result.kind === "continuedAsNew" ? outcome.result.carried : outcome.result.kind;
  };

  test("that nobody took go along, oldest first, over all mailboxes", async () => {
    const carried = await carriedBy(
      async (ctx) => {
        await ctx.dequeueEvent("a");
        return ctx.continueAsNew(1);
      },
      [queued("b", 1), queued("a", 2), queued("a", 3), queued("b", 4)],
    );

    expect(carried).toEqual([
      ["b", "1"],
      ["a", "3"],
      ["b", "4"],
    ]);
  });

  test("that a held wait was assigned but nobody saw go along", async () => {
    const hold: Code = async (ctx) => {
      const held = ctx.dequeueEvent("q");
      await ctx.scheduleTimer(1);
      ctx.continueAsNew(1);
      return held;
    };

    expect(await carriedBy(hold, [], [queued("q", 1), fired(3)])).toEqual([["q", "1"]]);
    expect(await carriedBy(hold, [], [queued("q", 1)], [queued("q", 2), fired(3)])).toEqual([
      ["q", "1"],
      ["q", "2"],
    ]);
    expect(await carriedBy(hold, [queued("q", 1)], [fired(4), queued("q", 2)])).toEqual([
      ["q", "1"],
      ["q", "2"],
    ]);
  });

  test("that a dropped wait gave back go along at their place", async () => {
    const carried = await carriedBy(
      async (ctx) => {
        const held = ctx.dequeueEvent("q");
        const second = await ctx.dequeueEvent("q");
        held.cancel();
        return ctx.continueAsNew(second);
      },
      [],
      [queued("q", 1), queued("q", 2), queued("q", 3)],
    );

    expect(carried).toEqual([
      ["q", "1"],
      ["q", "3"],
    ]);
  });

  test("that come in the batch after the call go along, even to a loser that still listens", async () => {
    const carried = await carriedBy(
      async (ctx) => {
        await Promise.race([ctx.dequeueEvent("q"), ctx.scheduleTimer(1)]);
        return ctx.continueAsNew(1);
      },
      [],
      [fired(3), queued("q", "late")],
    );

    expect(carried).toEqual([["q", '"late"']]);
  });

  test("that code took stay behind", async () => {
    const carried = await carriedBy(
      async (ctx) => {
        const seen = [await ctx.dequeueEvent("q"), await ctx.dequeueEvent("q")];
        return ctx.continueAsNew(seen);
      },
      [queued("q", 1)],
      [queued("q", 2)],
    );

    expect(carried).toEqual([]);
  });

  test("that are carried are the first to be taken by the next execution", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => [ctx.executionId, await ctx.dequeueEvent("q"), await ctx.dequeueEvent("q")],
      executionId: 2,
    });

    expect(outputOf(await driver.turn(queued("q", "m2"), queued("q", "m3")))).toEqual([2, "m2", "m3"]);
  });
});
