// Mailboxes: every message is taken once, in order, by code that listens. R§3.10, R§3.16, R§3.17 B.
//
// Every scenario runs twice through a DoubtedDriver, which replays it from every turn's prefix.

import { describe, expect, test } from "vitest";
import type { OrchestrationContext } from "../../src/engine/orchestration-context.js";
import type { OrchestratorItem } from "../../src/history/work-item.js";
import {
  activityFailed,
  type Code,
  completed,
  DoubtedDriver,
  failureOf,
  fired,
  outputOf,
  queued,
  raised,
  summary,
} from "./drive.js";

/** All turns of a scenario, taken twice over: the last outcome. */
async function play(code: Code, ...batches: readonly OrchestratorItem[][]) {
  const histories: string[][] = [];
  let last = await takeTurns();
  last = await takeTurns();
  expect(histories[0]).toEqual(histories[1]);
  return { ...last, history: histories[0] };

  async function takeTurns() {
    const driver = new DoubtedDriver({ code });
    let outcome = await driver.turn(...(batches[0] ?? []));
    for (const batch of batches.slice(1)) outcome = await driver.turn(...batch);
    histories.push(summary(driver.history));
    return outcome;
  }
}

describe("messages", () => {
  test("that came before anybody asked are taken in one turn, one after the other", async () => {
    const outcome = await play(
      async (ctx) => [await ctx.dequeueEvent("q"), await ctx.dequeueEvent("q")],
      [queued("q", "m1"), queued("q", "m2")],
    );

    expect(outputOf(outcome)).toEqual(["m1", "m2"]);
    expect(outcome.history).toEqual([
      "OrchestrationStarted(1)",
      "ExternalEventPersistent(2)",
      "ExternalEventPersistent(3)",
      "ExternalSubscribedPersistent(4)",
      "ExternalSubscribedPersistent(5)",
      "OrchestrationCompleted(6)",
    ]);
  });

  test("two hundred and more do not exhaust a turn", async () => {
    const outcome = await play(
      async (ctx) => {
        let sum = 0;
        for (let n = 0; n < 250; n += 1) sum += await ctx.dequeueEvent<number>("q");
        return sum;
      },
      Array.from({ length: 250 }, (_, n) => queued("q", n)),
    );

    expect(outputOf(outcome)).toBe(31_125);
  });

  test("go to the waits in the order of their creation, whoever is awaited first", async () => {
    const code: Code = async (ctx) => {
      const [first, second] = [ctx.dequeueEvent("q"), ctx.dequeueEvent("q")];
      return [await second, await first];
    };

    expect(outputOf(await play(code, [], [queued("q", 1)], [queued("q", 2)]))).toEqual([2, 1]);
    expect(outputOf(await play(code, [queued("q", 1), queued("q", 2)]))).toEqual([2, 1]);
  });

  test("of one mailbox do not go to another, nor to events of its name", async () => {
    const outcome = await play(
      async (ctx) => Promise.all([ctx.dequeueEvent("a"), ctx.waitForEvent("b"), ctx.dequeueEvent("b")]),
      [],
      [queued("b", "for b"), raised("a", "lost"), raised("b", "event")],
      [queued("a", "for a")],
    );

    expect(outputOf(outcome)).toEqual(["for a", "event", "for b"]);
  });

  test("of equal text are messages of their own", async () => {
    const outcome = await play(
      async (ctx) => [await ctx.dequeueEvent("q"), await ctx.dequeueEvent("q")],
      [],
      [queued("q", "same")],
      [queued("q", "same")],
    );

    expect(outputOf(outcome)).toEqual(["same", "same"]);
  });

  test("that several waits can take at once are handed out by schedule id, not by argument order", async () => {
    const pair = (ctx: OrchestrationContext) => {
      const [first, second] = [ctx.dequeueEvent("q"), ctx.dequeueEvent("q")];
      return [second, first];
    };
    const code: Code = async (ctx) => {
      const { index, value } = await ctx.race(pair(ctx));
      return [index, value, await ctx.dequeueEvent("q")];
    };

    expect(outputOf(await play(code, [queued("q", "m1"), queued("q", "m2")]))).toEqual([1, "m1", "m2"]);
    expect(outputOf(await play(code, [], [queued("q", "m1"), queued("q", "m2")]))).toEqual([1, "m1", "m2"]);
    expect(outputOf(await play(code, [], [queued("q", "m1")], [queued("q", "m2")]))).toEqual([1, "m1", "m2"]);
  });
});

describe("a race between a message and a timer", () => {
  const code: Code = async (ctx) => {
    const first = await ctx.race({ message: ctx.dequeueEvent("q"), late: ctx.scheduleTimer(1) });
    return [first.winner, await ctx.dequeueEvent("q")];
  };

  test("won by the timer leaves the message of the same batch to the next wait", async () => {
    expect(outputOf(await play(code, [], [fired(3), queued("q", "m1")]))).toEqual(["late", "m1"]);
    expect(outputOf(await play(code, [], [fired(3)], [queued("q", "m1")]))).toEqual(["late", "m1"]);
  });

  test("won by the message leaves the next message to the next wait", async () => {
    expect(outputOf(await play(code, [], [queued("q", "m1"), fired(3)], [queued("q", "m2")]))).toEqual([
      "message",
      "m2",
    ]);
    expect(outputOf(await play(code, [], [queued("q", "m1"), queued("q", "m2")]))).toEqual(["message", "m2"]);
  });

  test("round after round loses nothing, in whatever order they come", async () => {
    const loop: Code = async (ctx) => {
      const seen: unknown[] = [];
      while (seen.length < 4) {
        const first = await ctx.race([ctx.dequeueEvent("q"), ctx.scheduleTimer(1)]);
        if (first.index === 0) seen.push(first.value);
      }
      return seen;
    };
    const outcome = await play(
      loop,
      [],
      [fired(3), queued("q", 1)],
      [queued("q", 2), queued("q", 3)],
      [queued("q", 4), fired(3)],
    );

    expect(outputOf(outcome)).toEqual([1, 2, 3, 4]);
  });
});

describe("a wait that is dropped", () => {
  test("before its message came frees its place at once", async () => {
    const outcome = await play(
      async (ctx) => {
        const dropped = ctx.dequeueEvent("q");
        const kept = ctx.dequeueEvent("q");
        await ctx.scheduleTimer(1);
        dropped.cancel();
        return kept;
      },
      [],
      [fired(4), queued("q", "m1")],
    );

    expect(outputOf(outcome)).toBe("m1");
  });

  test("with an unseen message gives it back, at its old place", async () => {
    const code: Code = async (ctx) => {
      const held = ctx.dequeueEvent("q");
      await ctx.scheduleTimer(1);
      held.cancel();
      return [await ctx.dequeueEvent("q"), await ctx.dequeueEvent("q")];
    };

    expect(outputOf(await play(code, [], [queued("q", "m1"), queued("q", "m2"), fired(3)]))).toEqual(["m1", "m2"]);
    expect(outputOf(await play(code, [], [queued("q", "m1")], [fired(3)], [queued("q", "m2")]))).toEqual(["m1", "m2"]);
    expect(outputOf(await play(code, [queued("q", "m1"), queued("q", "m2")], [fired(5)]))).toEqual(["m1", "m2"]);
  });

  test("with an unseen message hands it to the wait behind it, which listens", async () => {
    const code: Code = async (ctx) => {
      const held = ctx.dequeueEvent("q");
      const listening = ctx.dequeueEvent("q").then((value) => ctx.scheduleActivity("got", value));
      await ctx.scheduleTimer(1);
      held.cancel();
      await ctx.scheduleTimer(2);
      return listening;
    };
    const outcome = await play(code, [], [queued("q", "m1"), fired(4)], [fired(7)], [completed(8, "done")]);

    expect(outputOf(outcome)).toBe("done");
    expect(outcome.history?.slice(4, 9)).toEqual([
      "ExternalEventPersistent(5)",
      "TimerFired(6<4)",
      "TimerCreated(7)",
      "ActivityScheduled(8)",
      "ExternalSubscribedPersistentCancelled(9<2)",
    ]);
  });

  test("after a later one was served keeps the others in order", async () => {
    const outcome = await play(
      async (ctx) => {
        const held = ctx.dequeueEvent("q");
        const served = await ctx.dequeueEvent("q");
        held.cancel();
        return [served, await ctx.dequeueEvent("q"), await ctx.dequeueEvent("q")];
      },
      [],
      [queued("q", 1), queued("q", 2), queued("q", 3)],
    );

    expect(outputOf(outcome)).toEqual([2, 1, 3]);
  });

  test("in the turn that made it takes nothing", async () => {
    const outcome = await play(
      async (ctx) => {
        ctx.dequeueEvent("q").cancel();
        return ctx.dequeueEvent("q");
      },
      [queued("q", "m1")],
    );

    expect(outputOf(outcome)).toBe("m1");
    expect(outcome.history).toEqual([
      "OrchestrationStarted(1)",
      "ExternalEventPersistent(2)",
      "ExternalSubscribedPersistent(3)",
      "ExternalSubscribedPersistent(4)",
      "ExternalSubscribedPersistentCancelled(5<3)",
      "OrchestrationCompleted(6)",
    ]);
  });

  test("by closing a branch gives back what the branch held", async () => {
    const outcome = await play(
      async (ctx) => {
        await ctx.race([
          async () => {
            const held = ctx.dequeueEvent("q");
            await ctx.waitForEvent("never");
            return held;
          },
          ctx.scheduleTimer(1),
        ]);
        return ctx.dequeueEvent("q");
      },
      [],
      [queued("q", "m1"), fired(2)],
    );

    expect(outputOf(outcome)).toBe("m1");
  });
});

test("all waits of one breath are bound before the first is served", async () => {
  const outcome = await play(
    async (ctx) => {
      const [first, held, third] = [ctx.dequeueEvent("q"), ctx.dequeueEvent("q"), ctx.dequeueEvent("q").then(String)];
      await first;
      held.cancel();
      const seen = [await third, await ctx.dequeueEvent("q")];
      await ctx.scheduleTimer(1);
      return seen;
    },
    [queued("q", 1), queued("q", 2), queued("q", 3)],
    [fired(9)],
  );

  expect(outputOf(outcome)).toEqual(["3", 2]);
});

describe("held waits that are listened to in one breath", () => {
  test("are served by schedule id, whoever listens first", async () => {
    const order = [5, 2, 8, 0, 7, 1, 6, 3, 4];
    const outcome = await play(
      async (ctx) => {
        const waits = order.map(() => ctx.dequeueEvent<number>("q"));
        await ctx.scheduleTimer(1);
        const seen: number[] = [];
        await Promise.all(order.map((at) => waits[at]!.then((value) => seen.push(value))));
        await ctx.scheduleTimer(1);
        return seen;
      },
      [],
      [...order.keys()].map((n) => queued("q", n)),
      [fired(11)],
      [fired(22)],
    );

    expect(outputOf(outcome)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
  });

  test("and dropped in the same breath are served nothing, and still count as given up", async () => {
    const outcome = await play(
      async (ctx) => {
        const held = ctx.dequeueEvent("q");
        await ctx.scheduleTimer(1);
        const said = held.catch((error: Error) => error.name);
        held.cancel();
        await ctx.scheduleTimer(1);
        return [await said, await ctx.dequeueEvent("q")];
      },
      [],
      [queued("q", "m1"), fired(3)],
      [fired(6)],
    );

    expect(outputOf(outcome)).toEqual(["TaskCancelledError", "m1"]);
  });
});

describe("a wait that nobody awaits", () => {
  test("holds its message unseen until somebody does", async () => {
    const code: Code = async (ctx) => {
      const held = ctx.dequeueEvent("q");
      const next = await ctx.dequeueEvent("q");
      return [next, await held];
    };

    expect(outputOf(await play(code, [], [queued("q", 1)], [queued("q", 2)]))).toEqual([2, 1]);
  });

  test("is handed its message after the drain in which somebody listens, between two answers of a batch", async () => {
    const outcome = await play(
      async (ctx) => {
        const log: unknown[] = [];
        const held = ctx.dequeueEvent("q");
        const later = ctx.scheduleActivity("B").then((value) => log.push(value));
        log.push(await ctx.scheduleActivity("A"));
        log.push(await held);
        await later;
        return log;
      },
      [],
      [queued("q", "m"), completed(4, "a"), completed(3, "b")],
    );

    expect(outputOf(outcome)).toEqual(["a", "m", "b"]);
  });
});

describe("a loser of Promise.race", () => {
  const code: Code = async (ctx) => {
    await Promise.race([ctx.dequeueEvent("q"), ctx.scheduleTimer(1)]);
    return ctx.dequeueEvent("q");
  };

  test("still takes the next message: it was never cancelled", async () => {
    expect(outputOf(await play(code, [], [fired(3)], [queued("q", "swallowed")], [queued("q", "m2")]))).toBe("m2");
    expect(outputOf(await play(code, [], [fired(3), queued("q", "swallowed")], [queued("q", "m2")]))).toBe("m2");
  });
});

test("a message that does not fit its schema fails its wait, and is gone", async () => {
  const numbers = {
    kind: "event" as const,
    name: "q",
    schema: {
      "~standard": {
        version: 1 as const,
        vendor: "test",
        validate: (value: unknown) => (typeof value === "number" ? { value } : { issues: [{ message: "no number" }] }),
      },
    },
  };
  const outcome = await play(
    async (ctx) => [
      await ctx.dequeueEvent(numbers).catch((error: Error) => error.message),
      await ctx.dequeueEvent(numbers),
    ],
    [queued("q", "text"), queued("q", 2)],
  );

  expect(outputOf(outcome)).toEqual([expect.stringContaining("no number"), 2]);
});

test("a failure between two messages does not disturb their order", async () => {
  const outcome = await play(
    async (ctx) => {
      const first = await ctx.dequeueEvent("q");
      await ctx.scheduleActivity("A").catch(() => {});
      throw new Error(`${first} ${await ctx.dequeueEvent("q")}`);
    },
    [queued("q", 1), queued("q", 2)],
    [activityFailed(5, "no")],
  );

  expect(failureOf(outcome)).toMatchObject({ message: "1 2" });
});
