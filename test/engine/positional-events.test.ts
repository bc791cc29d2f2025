// Events that answer a question which is being asked right now. R§3.9, R§3.16.

import { describe, expect, test } from "vitest";
import type { OrchestratorItem } from "../../src/history/work-item.js";
import { type Code, completed, DoubtedDriver, fired, outputOf, raised, summary } from "./drive.js";

async function play(code: Code, ...batches: readonly OrchestratorItem[][]) {
  const driver = new DoubtedDriver({ code });
  let outcome = await driver.turn(...(batches[0] ?? []));
  for (const batch of batches.slice(1)) outcome = await driver.turn(...batch);
  return outcome;
}

describe("an event", () => {
  test("answers the oldest open wait of its name", async () => {
    const outcome = await play(
      async (ctx) => {
        const [first, second] = [ctx.waitForEvent("E"), ctx.waitForEvent("E")];
        return [await second, await first];
      },
      [],
      [raised("E", 1), raised("F", "nobody's")],
      [raised("E", 2)],
    );

    expect(outputOf(outcome)).toEqual([2, 1]);
  });

  test("that comes before the wait is lost", async () => {
    const code: Code = async (ctx) => {
      await ctx.scheduleActivity("A");
      return ctx.waitForEvent("E");
    };

    expect((await play(code, [raised("E", "with the start")])).result.kind).toBe("waiting");
    expect((await play(code, [], [raised("E", "early")], [completed(2, 1)])).result.kind).toBe("waiting");
    expect(outputOf(await play(code, [], [completed(2, 1)], [raised("E", "in time")]))).toBe("in time");
  });

  test("in the batch that leads to the wait is lost too: the wait is not bound yet", async () => {
    const code: Code = async (ctx) => {
      await ctx.scheduleActivity("A");
      return ctx.waitForEvent("E");
    };

    expect((await play(code, [], [completed(2, 1), raised("E", "early")])).result.kind).toBe("waiting");
    expect(outputOf(await play(code, [], [completed(2, 1), raised("E", "early")], [raised("E", "next")]))).toBe("next");
  });

  test("of equal content answers a wait of its own", async () => {
    const outcome = await play(
      async (ctx) => Promise.all([ctx.waitForEvent("E"), ctx.waitForEvent("E")]),
      [],
      [raised("E", "same"), raised("E", "same")],
    );

    expect(outputOf(outcome)).toEqual(["same", "same"]);
  });

  test("beyond the open waits is lost, not kept for later ones", async () => {
    const outcome = await play(
      async (ctx) => [await ctx.waitForEvent("E"), await ctx.waitForEvent("E")],
      [],
      [raised("E", 1), raised("E", "one too many")],
      [raised("E", 2)],
    );

    expect(outputOf(outcome)).toEqual([1, 2]);
  });
});

describe("a race between an event and a timer", () => {
  const code: Code = async (ctx) => {
    const first = await ctx.race({ event: ctx.waitForEvent("E"), late: ctx.scheduleTimer(1) });
    return [first.winner, await ctx.waitForEvent("E")];
  };

  test("won by the timer lets no late event of the batch reach the wait that replaces the loser", async () => {
    for (let round = 0; round < 2; round += 1) {
      const outcome = await play(code, [], [fired(3), raised("E", "stale")], [raised("E", "fresh")]);

      expect(outputOf(outcome)).toEqual(["late", "fresh"]);
    }
  });

  test("won by the event leaves the next event to the next wait", async () => {
    for (let round = 0; round < 2; round += 1) {
      const outcome = await play(code, [], [raised("E", "first"), fired(3)], [raised("E", "second")]);

      expect(outputOf(outcome)).toEqual(["event", "second"]);
    }
  });

  test("records the loser as dropped, once", async () => {
    const driver = new DoubtedDriver({ code });
    await driver.turn();
    const outcome = await driver.turn(fired(3), raised("E", "stale"));

    expect(summary(outcome.events)).toEqual([
      "TimerFired(4<3)",
      "ExternalEvent(5)",
      "ExternalSubscribed(6)",
      "ExternalSubscribedCancelled(7<2)",
    ]);
  });
});

describe("a wait that is dropped", () => {
  test("while open makes room: the next event goes to the next wait", async () => {
    const outcome = await play(
      async (ctx) => {
        const [dropped, kept] = [ctx.waitForEvent("E"), ctx.waitForEvent("E")];
        await ctx.scheduleTimer(1);
        dropped.cancel();
        return kept;
      },
      [],
      [fired(4), raised("E", "for the second")],
    );

    expect(outputOf(outcome)).toBe("for the second");
  });

  test("with its answer unseen takes the answer with it", async () => {
    const outcome = await play(
      async (ctx) => {
        const [dropped, kept] = [ctx.waitForEvent("E"), ctx.waitForEvent("E")];
        await ctx.scheduleTimer(1);
        dropped.cancel();
        return kept;
      },
      [],
      [raised("E", "seen by nobody"), fired(4)],
      [raised("E", "second")],
    );

    expect(outputOf(outcome)).toBe("second");
  });
});

test("an answer that nobody awaits yet is kept for its wait", async () => {
  const outcome = await play(
    async (ctx) => {
      const held = ctx.waitForEvent("E");
      await ctx.scheduleTimer(1);
      await ctx.scheduleTimer(1);
      return held;
    },
    [],
    [raised("E", "kept"), fired(3)],
    [raised("E", "lost"), fired(6)],
  );

  expect(outputOf(outcome)).toBe("kept");
});

test("events do not survive continue-as-new", async () => {
  const outcome = await play(
    async (ctx) => {
      await ctx.scheduleTimer(1);
      return ctx.continueAsNew(1);
    },
    [],
    [raised("E", 1), fired(2)],
  );

  expect(outcome.result).toMatchObject({ kind: "continuedAsNew", carried: [] });
});
