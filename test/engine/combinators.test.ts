// ctx.all and ctx.race, and the native combinators over durable tasks. Catalogue A9; R§3.12, R§3.15, R§3.16 scopes.

import { describe, expect, test } from "vitest";
import type { DurableTask } from "../../src/engine/durable-task.js";
import type { OrchestrationContext } from "../../src/engine/orchestration-context.js";
import {
  activityDone,
  activityFailed,
  type Code,
  completed,
  DoubtedDriver,
  failureOf,
  fired,
  historyOf,
  outputOf,
  raised,
  runTurn,
  scheduled,
  started,
  summary,
  timerCreated,
  timerFired,
} from "./drive.js";

const abc = (ctx: OrchestrationContext) => ["A", "B", "C"].map((name) => ctx.scheduleActivity<string>(name));

/** Starts the code and hands it each batch in a turn of its own; answers the last turn. */
async function drive(code: Code, ...batches: Parameters<DoubtedDriver["turn"]>[]) {
  const driver = new DoubtedDriver({ code });
  let outcome = await driver.turn();
  for (const batch of batches) outcome = await driver.turn(...batch);
  return outcome;
}

describe("all", () => {
  test("starts everything at once and gives the results in the order of the arguments", async () => {
    const driver = new DoubtedDriver({ code: async (ctx) => ctx.all(abc(ctx)) });

    const first = await driver.turn();
    expect(first.result).toEqual({ kind: "waiting" });
    expect(first.activities).toHaveLength(3);
    expect((await driver.turn(completed(4, "c"))).events).toHaveLength(1);
    expect((await driver.turn(completed(2, "a"))).events).toHaveLength(1);
    expect(outputOf(await driver.turn(completed(3, "b")))).toEqual(["a", "b", "c"]);
  });

  test("gives the results by name", async () => {
    const outcome = await drive(
      async (ctx) => ctx.all({ b: ctx.scheduleActivity("B"), a: async () => "now", n: () => 7 }),
      [completed(2, "b")],
    );

    expect(outputOf(outcome)).toEqual({ b: "b", a: "now", n: 7 });
  });

  test("fails with the first failure and drops the rest, before code goes on", async () => {
    const outcome = await drive(
      async (ctx) => {
        await ctx.all(abc(ctx)).catch(() => {});
        await ctx.scheduleActivity("D");
      },
      [completed(2, "a"), activityFailed(3, "no")],
    );

    expect(summary(outcome.events)).toEqual([
      "ActivityCompleted(5<2)",
      "ActivityFailed(6<3)",
      "ActivityScheduled(7)",
      "ActivityCancelRequested(8<4)",
    ]);
    expect(outcome.cancelledActivities).toEqual([4]);
  });

  test("of nothing is there at once", async () => {
    const outcome = await drive(async (ctx) => [await ctx.all([]), await ctx.all({})]);

    expect(outputOf(outcome)).toEqual([[], {}]);
  });

  test("of answers that history has gives them in the order of the arguments, whatever theirs is", async () => {
    const code: Code = async (ctx) => ctx.all([ctx.scheduleActivity("A"), ctx.scheduleActivity("B")]);
    const [a, b] = [[activityDone("a"), 2] as const, [activityDone("b"), 3] as const];
    for (const answers of [
      [a, b],
      [b, a],
    ]) {
      const outcome = await runTurn({ code, history: historyOf(started, scheduled("A"), scheduled("B"), ...answers) });

      expect(outputOf(outcome)).toEqual(["a", "b"]);
      expect(summary(outcome.events)).toEqual(["OrchestrationCompleted(6)"]);
    }
  });

  test("keeps waiting while one of two is open", async () => {
    const outcome = await runTurn({
      code: async (ctx) => ctx.all([ctx.scheduleActivity("A"), ctx.scheduleActivity("B")]),
      history: historyOf(started, scheduled("A"), scheduled("B"), [activityDone("a"), 2]),
    });

    expect(outcome).toMatchObject({ result: { kind: "waiting" }, events: [] });
  });

  test("takes one task in several places", async () => {
    const outcome = await drive(
      async (ctx) => {
        const task = ctx.scheduleActivity("A");
        return ctx.all([task, task, ctx.all([task])]);
      },
      [completed(2, "a")],
    );

    expect(outputOf(outcome)).toEqual(["a", "a", ["a"]]);
  });
});

describe("race", () => {
  const activityOrTimer: Code = async (ctx) => {
    const first = await ctx.race({ done: ctx.scheduleActivity("A"), late: ctx.scheduleTimer(1) });
    return first.winner;
  };

  test("is won by whoever comes first in history", async () => {
    const common = [started, scheduled("A"), timerCreated] as const;
    const byTimer = await runTurn({ code: activityOrTimer, history: historyOf(...common, [timerFired, 3]) });
    const byActivity = await runTurn({ code: activityOrTimer, history: historyOf(...common, [activityDone(1), 2]) });
    const open = await runTurn({ code: activityOrTimer, history: historyOf(...common) });

    expect(outputOf(byTimer)).toBe("late");
    expect(outputOf(byActivity)).toBe("done");
    expect(open).toMatchObject({ result: { kind: "waiting" }, events: [] });
  });

  test.each([
    [[fired(3), completed(2, "a")], "late"],
    [[completed(2, "a"), fired(3)], "done"],
  ])("of answers in one batch is decided by their order there", async (batch, winner) => {
    expect(outputOf(await drive(activityOrTimer, batch))).toBe(winner);
  });

  test("of n takes the first and drops all others", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        const first = await ctx.race(Array.from({ length: 7 }, (_, n) => ctx.scheduleActivity(`A${n}`)));
        await ctx.scheduleTimer(1);
        return first;
      },
    });
    await driver.turn();
    const outcome = await driver.turn(completed(5, "x"));

    expect(outcome.cancelledActivities).toEqual([2, 3, 4, 6, 7, 8]);
    expect(outputOf(await driver.turn(fired(10)))).toEqual({ index: 3, value: "x" });
  });

  test("between what is done already is won by the first argument", async () => {
    const outcome = await drive(
      async (ctx) => {
        const [a, b] = [ctx.scheduleActivity("A"), ctx.scheduleActivity("B")];
        await ctx.scheduleTimer(1);
        return [(await ctx.race([b, a])).value, (await ctx.race([a, b])).index];
      },
      [completed(2, "a"), completed(3, "b"), fired(4)],
    );

    expect(outputOf(outcome)).toEqual(["b", 0]);
  });

  test("is lost by failing first: the failure is the race's", async () => {
    const outcome = await drive(async (ctx) => ctx.race(abc(ctx)), [activityFailed(3, "no")]);

    expect(failureOf(outcome)).toMatchObject({ message: "no" });
    expect(outcome.cancelledActivities).toEqual([2, 4]);
  });

  test("drops the loser before the winner's code goes on", async () => {
    const outcome = await drive(
      async (ctx) => {
        const loser = ctx.scheduleActivity("A");
        await ctx.race([loser, ctx.scheduleTimer(1)]);
        return loser.catch((error: Error) => error.name);
      },
      [fired(3), completed(2, "too late")],
    );

    expect(outputOf(outcome)).toBe("TaskCancelledError");
  });

  test("refuses to run without branches", async () => {
    expect(failureOf(await drive(async (ctx) => ctx.race([])))).toMatchObject({
      message: expect.stringContaining("ctx.race: at least one branch"),
    });
  });
});

describe("branch functions", () => {
  test("start at the call, in the order of the arguments", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) =>
        ctx.all([
          async () => ctx.scheduleActivity("A"),
          ctx.scheduleActivity("passed in, made first"),
          () => ctx.scheduleActivity("B"),
        ]),
    });
    const outcome = await driver.turn();

    expect(outcome.activities.map(({ name }) => name)).toEqual(["passed in, made first", "A", "B"]);
  });

  test("that lose have everything dropped that they have open, nested ones too", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        const helper = async (name: string) => {
          await ctx.scheduleActivity(`${name}-1`);
          await ctx.scheduleActivity(`${name}-2`);
        };
        const first = await ctx.race({
          slow: async () => {
            await ctx.all([() => helper("x"), helper("y"), ctx.scheduleSubOrchestration("C")]);
          },
          late: ctx.scheduleTimer(1),
        });
        await ctx.scheduleTimer(2);
        return first.winner;
      },
    });
    await driver.turn();
    await driver.turn(completed(5, 1));
    const outcome = await driver.turn(fired(2));

    expect(summary(outcome.events)).toEqual([
      "TimerFired(8<2)",
      "TimerCreated(9)",
      "ActivityCancelRequested(10<3)",
      "ActivityCancelRequested(11<7)",
      "SubOrchestrationCancelRequested(12<4)",
    ]);
    expect(outcome.cancelledChildren).toHaveLength(1);
    expect(outputOf(await driver.turn(fired(9)))).toBe("late");
  });

  test("that are done have dropped what they left open", async () => {
    const outcome = await drive(async (ctx) => {
      const value = await ctx.all([
        async () => {
          ctx.scheduleActivity("forgotten");
          return "done";
        },
      ]);
      await ctx.scheduleTimer(1);
      return value;
    });

    expect(summary(outcome.events)).toEqual([
      "OrchestrationStarted(1)",
      "ActivityScheduled(2)",
      "TimerCreated(3)",
      "ActivityCancelRequested(4<2)",
    ]);
    expect(outcome).toMatchObject({ activities: [], cancelledActivities: [2] });
  });

  test("that return a plain value have dropped what they left open, even as losers", async () => {
    const outcome = await drive(
      async (ctx) => {
        const done = ctx.scheduleActivity("A");
        await done;
        await ctx.race([
          done,
          () => {
            ctx.scheduleActivity("forgotten");
          },
        ]);
        await ctx.scheduleTimer(1);
      },
      [completed(2, "a")],
    );

    expect(outcome.cancelledActivities).toEqual([4]);
  });

  test("that throw at once fail their group, and the others have started all the same", async () => {
    const outcome = await drive(async (ctx) =>
      ctx.all([
        () => {
          throw new Error("at once");
        },
        () => ctx.scheduleActivity("B"),
      ]),
    );

    expect(failureOf(outcome)).toMatchObject({ message: "at once" });
    expect(summary(outcome.events)).toEqual([
      "OrchestrationStarted(1)",
      "ActivityScheduled(2)",
      "ActivityCancelRequested(3<2)",
      "OrchestrationFailed(4)",
    ]);
  });

  test("keep their scope over any number of awaits", async () => {
    const outcome = await drive(
      async (ctx) => {
        await ctx.race([
          async () => {
            for (let n = 0; n < 5; n += 1) await ctx.utcNow();
            await Promise.resolve();
            await Promise.all([ctx.scheduleActivity("deep"), ctx.waitForEvent("E").then(() => 1)]);
          },
          ctx.waitForEvent("stop"),
        ]);
        await ctx.scheduleTimer(1);
      },
      [raised("stop", 1)],
    );

    expect(outcome.cancelledActivities).toHaveLength(1);
    expect(outcome.events.map(({ type }) => type)).toEqual([
      "ExternalEvent",
      "TimerCreated",
      "ActivityCancelRequested",
      "ExternalSubscribedCancelled",
    ]);
  });

  test("do not own what they were only given", async () => {
    const outcome = await drive(
      async (ctx) => {
        const shared = ctx.scheduleActivity<string>("shared");
        await ctx.race([async () => shared, ctx.waitForEvent("stop")]);
        return shared;
      },
      [raised("stop", 1)],
      [completed(2, "still there")],
    );

    expect(outputOf(outcome)).toBe("still there");
  });
});

describe("code in a cancelled branch", () => {
  /** A branch that does not give up: it goes on after its cancellation. */
  const stubborn = (afterwards: (ctx: OrchestrationContext) => unknown): Code => {
    return async (ctx) => {
      let said = "nothing";
      await ctx.race([
        async () => {
          try {
            await ctx.scheduleActivity("A");
          } catch {
            said = await Promise.resolve(afterwards(ctx)).then(
              () => "allowed",
              (error: Error) => error.name,
            );
          }
        },
        ctx.waitForEvent("stop"),
      ]);
      await ctx.scheduleTimer(1);
      return said;
    };
  };

  test.each<[string, (ctx: OrchestrationContext) => unknown]>([
    ["scheduleActivity", (ctx) => ctx.scheduleActivity("B")],
    ["a retried activity", (ctx) => ctx.scheduleActivity("B", 1, { retry: { maxAttempts: 2 } })],
    ["scheduleTimer", (ctx) => ctx.scheduleTimer(1)],
    ["waitForEvent", (ctx) => ctx.waitForEvent("E")],
    ["dequeueEvent", (ctx) => ctx.dequeueEvent("q")],
    ["scheduleSubOrchestration", (ctx) => ctx.scheduleSubOrchestration("C")],
    ["continueAsNew", (ctx) => ctx.continueAsNew(1)],
    ["utcNow", (ctx) => ctx.utcNow()],
    ["all of a branch function", (ctx) => ctx.all([() => ctx.scheduleActivity("B")])],
    ["race of a branch function", (ctx) => ctx.race([async () => ctx.scheduleActivity("B")])],
    ["all of nothing", (ctx) => ctx.all([])],
  ])("is refused %s", async (_, afterwards) => {
    const driver = new DoubtedDriver({ code: stubborn(afterwards) });
    await driver.turn();
    const outcome = await driver.turn(raised("stop", 1));

    expect(summary(outcome.events)).toEqual(["ExternalEvent(4)", "TimerCreated(5)", "ActivityCancelRequested(6<3)"]);
    expect(outputOf(await driver.turn(fired(5)))).toBe("TaskCancelledError");
  });

  test("decides nothing: no status, no write, no detached start", async () => {
    const outcome = await drive(
      stubborn((ctx) => {
        ctx.setCustomStatus("ghost");
        ctx.kv.set("ghost", 1);
        ctx.kv.clear();
        ctx.startOrchestration("D", { instanceId: "ghost" });
        return ctx.kv.has("ghost") || ctx.customStatus !== null ? Promise.reject(new Error("seen")) : null;
      }),
      [raised("stop", 1)],
      [fired(5)],
    );

    expect(outputOf(outcome)).toBe("allowed");
    expect(outcome.detached).toEqual([]);
  });
});

describe("a group", () => {
  test("is decided at the delivery, before any reaction of code runs", async () => {
    const outcome = await drive(
      async (ctx) => {
        const task = ctx.scheduleActivity("A");
        const reaction = task.then(() => group.cancel());
        const group = ctx.race([task, ctx.scheduleActivity("B")]);
        await reaction;
        return (await group).index;
      },
      [completed(2, "a")],
    );

    expect(outputOf(outcome)).toBe(0);
    expect(outcome.cancelledActivities).toEqual([3]);
  });

  test("that a cancelled branch made is dropped with it, and with it what it was given", async () => {
    const outcome = await drive(
      async (ctx) => {
        const given = ctx.scheduleActivity("given");
        await ctx.race([async () => ctx.all([given]), ctx.waitForEvent("stop")]);
        return given.catch((error: Error) => error.name);
      },
      [raised("stop", 1)],
    );

    expect(outputOf(outcome)).toBe("TaskCancelledError");
    expect(outcome.cancelledActivities).toEqual([2]);
  });

  test("that is decided at once lets its other branches fail quietly", async () => {
    const outcome = await drive(
      async (ctx) => {
        const done = ctx.scheduleActivity("A");
        await done;
        const first = await ctx.race([
          done,
          async () => ctx.scheduleActivity("B"),
          async () => {
            throw new Error("nobody's concern");
          },
        ]);
        await ctx.scheduleTimer(1);
        return first.index;
      },
      [completed(2, "a")],
      [fired(5)],
    );

    expect(outputOf(outcome)).toBe(0);
  });

  test("whose scope closes while it starts lets the remaining branches do nothing", async () => {
    const outcome = await drive(
      async (ctx) => {
        const outer: DurableTask<unknown> = ctx.all([
          async () => {
            await ctx.scheduleActivity("A");
            const inner = ctx.all([() => outer.cancel(), () => ctx.scheduleActivity("too late")]);
            return inner.catch(() => {});
          },
        ]);
        await outer.catch(() => {});
        await ctx.scheduleTimer(1);
      },
      [completed(2, "a")],
    );

    expect(summary(outcome.events)).toEqual(["ActivityCompleted(3<2)", "TimerCreated(4)"]);
  });
});

describe("groups in groups", () => {
  test("race of all: the timer drops every member of the slower group", async () => {
    const outcome = await drive(
      async (ctx) => {
        const first = await ctx.race({ both: ctx.all(abc(ctx)), late: ctx.scheduleTimer(1) });
        await ctx.scheduleTimer(2);
        return first.winner;
      },
      [completed(3, "b"), fired(5)],
    );

    expect(outcome.cancelledActivities).toEqual([2, 4]);
  });

  test("all of races: each drops its own loser when it is decided", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        const limited = (name: string) => ctx.race([ctx.scheduleActivity(name), ctx.scheduleTimer(1)]);
        const results = await ctx.all([limited("A"), limited("B")]);
        return results.map(({ index }) => index);
      },
    });
    await driver.turn();
    expect(await driver.turn(fired(3))).toMatchObject({ cancelledActivities: [2], cancelledTimers: [] });
    const outcome = await driver.turn(completed(4, 1));

    expect(outcome.cancelledTimers).toEqual([5]);
    expect(outputOf(outcome)).toEqual([1, 0]);
  });

  test("a group that is cancelled drops its members, and whoever awaits it is told", async () => {
    const outcome = await drive(
      async (ctx) => {
        const group = ctx.all([ctx.scheduleActivity("A"), async () => ctx.scheduleActivity("B")]);
        await ctx.scheduleTimer(1);
        group.cancel();
        group.cancel();
        return group.catch((error: Error) => error.name);
      },
      [fired(4)],
    );

    expect(outputOf(outcome)).toBe("TaskCancelledError");
    expect(outcome.cancelledActivities).toEqual([2, 3]);
  });
});

describe("native combinators", () => {
  test("Promise.all joins", async () => {
    const outcome = await drive(
      async (ctx) => Promise.all(abc(ctx)),
      [completed(3, "b")],
      [completed(4, "c"), completed(2, "a")],
    );

    expect(outputOf(outcome)).toEqual(["a", "b", "c"]);
  });

  test("Promise.all fails with the first failure; what is open is dropped when the function ends", async () => {
    const outcome = await drive(async (ctx) => Promise.all(abc(ctx)), [completed(2, "a"), activityFailed(4, "no")]);

    expect(failureOf(outcome)).toMatchObject({ message: "no" });
    expect(outcome.cancelledActivities).toEqual([3]);
  });

  test.each([
    [[fired(3), completed(2, "a")], "timer"],
    [[completed(2, "a"), fired(3)], "activity"],
  ])("Promise.race follows history and cancels nothing", async (batch, winner) => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        const activity = ctx.scheduleActivity("A").then(() => "activity");
        const first = await Promise.race([activity, ctx.scheduleTimer(1).then(() => "timer")]);
        await ctx.waitForEvent("go on");
        return first;
      },
    });
    await driver.turn();
    const outcome = await driver.turn(batch[0]!);

    expect(outcome).toMatchObject({ cancelledActivities: [], cancelledTimers: [] });
    expect(outputOf(await driver.turn(batch[1]!, raised("go on", 1)))).toBe(winner);
  });

  test("Promise.any skips failures, and fails when all do", async () => {
    const any: Code = async (ctx) => Promise.any(abc(ctx));
    const all: Code = async (ctx) => Promise.any(abc(ctx)).catch((error: AggregateError) => error.errors.map(String));

    expect(outputOf(await drive(any, [activityFailed(2, "no"), completed(4, "c")]))).toBe("c");
    expect(
      outputOf(
        await drive(
          all,
          [2, 3, 4].map((id) => activityFailed(id, `no ${id}`)),
        ),
      ),
    ).toEqual(["ActivityFailedError: no 2", "ActivityFailedError: no 3", "ActivityFailedError: no 4"]);
  });

  test("Promise.allSettled tells of each", async () => {
    const outcome = await drive(
      async (ctx) => (await Promise.allSettled(abc(ctx))).map(({ status }) => status),
      [completed(4, "c"), activityFailed(2, "no")],
      [completed(3, "b")],
    );

    expect(outputOf(outcome)).toEqual(["rejected", "fulfilled", "fulfilled"]);
  });

  test("for await, then chains, catch and finally replay like everything else", async () => {
    const outcome = await drive(
      async (ctx) => {
        const seen: unknown[] = [];
        for await (const value of abc(ctx)) seen.push(value);
        const task = ctx.scheduleActivity("D").finally(() => seen.push("finally"));
        await task.then((value) => ctx.scheduleActivity("E", value)).catch((error: Error) => seen.push(error.message));
        await ctx.scheduleTimer(1).finally(() => ctx.scheduleTimer(2));
        return seen;
      },
      [completed(3, "b"), completed(2, "a")],
      [completed(4, "c")],
      [completed(8, "d")],
      [activityFailed(10, "e failed")],
      [fired(12)],
      [fired(14)],
    );

    expect(outputOf(outcome)).toEqual(["a", "b", "c", "finally", "e failed"]);
  });
});

test("a join of one success and one failure lets the code decide", async () => {
  const outcome = await drive(
    async (ctx) => {
      const results = await Promise.allSettled([ctx.scheduleActivity("A"), ctx.scheduleActivity("B")]);
      const told = results.map((one) => (one.status === "fulfilled" ? one.value : one.reason.message));
      if (results.some(({ status }) => status === "rejected")) throw new Error(`one failed: ${told.join(", ")}`);
    },
    [completed(2, "a"), activityFailed(3, "b failed")],
  );

  expect(failureOf(outcome)).toMatchObject({ message: "one failed: a, b failed" });
  expect(summary(outcome.events)).toEqual(["ActivityCompleted(4<2)", "ActivityFailed(5<3)", "OrchestrationFailed(6)"]);
});
