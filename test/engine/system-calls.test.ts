// Time, randomness and other instances' values: recorded, so that every replay sees the same. R§3.13.

import { describe, expect, test } from "vitest";
import {
  activityDone,
  type Code,
  completed,
  DoubtedDriver,
  Driver,
  fired,
  historyOf,
  NOW,
  outputOf,
  queued,
  runTurn,
  started,
  summary,
} from "./drive.js";

const GUID = "00000000-0000-4000-8000-000000000000";

describe("utcNow and newGuid", () => {
  test("are answered within the turn, schedule and answer recorded", async () => {
    const outcome = await new DoubtedDriver({
      code: async (ctx) => [await ctx.utcNow(), await ctx.newGuid()],
    }).turn();

    expect(outputOf(outcome)).toEqual([NOW + 1, GUID]);
    expect(summary(outcome.events)).toEqual([
      "OrchestrationStarted(1)",
      "ActivityScheduled(2)",
      "ActivityCompleted(3<2)",
      "ActivityScheduled(4)",
      "ActivityCompleted(5<4)",
      "OrchestrationCompleted(6)",
    ]);
    expect(outcome.events[1]).toMatchObject({ name: "__duroxide_syscall:utc_now_ms", input: "" });
    expect(outcome.events[2]).toMatchObject({ result: String(NOW + 1) });
    expect(outcome.activities).toEqual([]);
  });

  test("give what history recorded", async () => {
    const outcome = await runTurn({
      code: async (ctx) => [await ctx.utcNow(), await ctx.newGuid()],
      history: historyOf(
        started,
        { type: "ActivityScheduled", name: "__duroxide_syscall:utc_now_ms", input: "" },
        [{ type: "ActivityCompleted", result: "1234" }, 2],
        { type: "ActivityScheduled", name: "__duroxide_syscall:new_guid", input: "" },
        [{ type: "ActivityCompleted", result: "recorded-guid" }, 4],
      ),
    });

    expect(outputOf(outcome)).toEqual([1234, "recorded-guid"]);
  });

  test("asked for together are answered one after the other, and what follows is bound in between", async () => {
    const outcome = await new DoubtedDriver({
      code: async (ctx) => {
        const step = async (name: string) => {
          await ctx.utcNow();
          await ctx.scheduleActivity(name);
        };
        await Promise.all([step("A"), step("B")]);
      },
    }).turn();

    expect(summary(outcome.events)).toEqual([
      "OrchestrationStarted(1)",
      "ActivityScheduled(2)",
      "ActivityScheduled(3)",
      "ActivityCompleted(4<2)",
      "ActivityScheduled(5)",
      "ActivityCompleted(6<3)",
      "ActivityScheduled(7)",
    ]);
    expect(outcome.activities.map(({ name }) => name)).toEqual(["A", "B"]);
  });

  test("mixed with buffered messages replay in the same order", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        const log: unknown[] = [];
        await Promise.all([
          ctx.newGuid().then(() => log.push("guid")),
          ctx.dequeueEvent("q").then(async (value) => log.push(value, await ctx.dequeueEvent("q"))),
          ctx.utcNow().then(async () => log.push("now", await ctx.dequeueEvent("q"))),
        ]);
        return log;
      },
    });
    const outcome = await driver.turn(queued("q", 1), queued("q", 2), queued("q", 3));

    expect(outputOf(outcome)).toEqual([1, 2, "guid", "now", 3]);
  });

  test("win or lose races like everything else", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        const first = await ctx.race([ctx.scheduleActivity("A"), ctx.utcNow(), ctx.newGuid()]);
        await ctx.scheduleTimer(1);
        return first.index;
      },
    });
    const outcome = await driver.turn();

    expect(summary(outcome.events)).toEqual([
      "OrchestrationStarted(1)",
      "ActivityScheduled(2)",
      "ActivityScheduled(3)",
      "ActivityScheduled(4)",
      "ActivityCompleted(5<3)",
      "TimerCreated(6)",
      "ActivityCancelRequested(7<2)",
      "ActivityCancelRequested(8<4)",
    ]);
    expect(outcome.activities).toEqual([]);
    expect(outputOf(await driver.turn(fired(6)))).toBe(1);
  });

  test("are answered even if nobody awaits them yet", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        const now = ctx.utcNow();
        await ctx.scheduleTimer(1);
        return now;
      },
    });
    await driver.turn();

    expect(outputOf(await driver.turn(fired(3)))).toBe(NOW + 1);
  });

  test("without end do not make a turn without end: the rest is left to the runtime", async () => {
    const driver = new Driver({
      code: async (ctx) => {
        for (;;) await ctx.newGuid();
      },
    });
    const outcome = await driver.turn();

    expect(outcome.result.kind).toBe("waiting");
    expect(outcome.activities).toEqual([{ id: 2_002, name: "__duroxide_syscall:new_guid", input: "" }]);
    expect((await driver.turn(completed(2_002, "x"))).events).toHaveLength(2_002);
  });

  test("that the runtime answers are replayed like any activity", async () => {
    const code: Code = async (ctx) => {
      for (let n = 0; n < 1_001; n += 1) await ctx.newGuid();
      return "done";
    };
    const driver = new Driver({ code });
    await driver.turn();
    const history = [...driver.history];
    const messages = [completed(2_002, "x")];

    expect(outputOf(await driver.turn(...messages))).toBe("done");
    expect(outputOf(await runTurn({ code, history, messages }))).toBe("done");
  });
});

describe("readKv", () => {
  const code: Code = async (ctx) => ctx.readKv("other-instance", "key");

  test("is left to the runtime, since it reads the store", async () => {
    const outcome = await new DoubtedDriver({ code }).turn();

    expect(outcome.activities).toEqual([
      {
        id: 2,
        name: "__duroxide_syscall:get_kv_value",
        input: '{"instance_id":"other-instance","key":"key"}',
      },
    ]);
  });

  test("gives the value, or null where there is none", async () => {
    const answers: unknown[] = [];
    for (const result of ['"{\\"n\\":1}"', "null", '"plain"']) {
      const driver = new DoubtedDriver({ code });
      await driver.turn();
      const message = { ...completed(2, null), result } as ReturnType<typeof completed>;
      answers.push(outputOf(await driver.turn(message)));
    }

    expect(answers).toEqual([{ n: 1 }, null, "plain"]);
  });
});

test("a system call of an older history is answered by whoever it waits for", async () => {
  const outcome = await runTurn({
    code: async (ctx) => ctx.utcNow(),
    history: historyOf(started, { type: "ActivityScheduled", name: "__duroxide_syscall:utc_now_ms", input: "" }),
  });
  const answered = await runTurn({
    code: async (ctx) => ctx.utcNow(),
    history: historyOf(started, { type: "ActivityScheduled", name: "__duroxide_syscall:utc_now_ms", input: "" }, [
      activityDone(5),
      2,
    ]),
  });

  expect(outcome).toMatchObject({ result: { kind: "waiting" }, events: [] });
  expect(outputOf(answered)).toBe(5);
});
