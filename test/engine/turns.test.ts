// What a turn is: user code and the engine, and nothing foreign in between. Architecture §6, rules 1 and 6; catalogue A15, A19.

import { afterEach, describe, expect, test, vi } from "vitest";
import {
  activityDone,
  type Code,
  completed,
  DoubtedDriver,
  Driver,
  expectNondeterminism,
  fired,
  historyOf,
  INSTANCE,
  outputOf,
  queued,
  runTurn,
  scheduled,
  started,
  summary,
} from "./drive.js";

const messages = (count: number) => Array.from({ length: count }, (_, n) => queued("q", n));
const takeAll =
  (count: number, atTheEnd: () => unknown): Code =>
  async (ctx) => {
    for (let n = 0; n < count; n += 1) await ctx.dequeueEvent("q");
    return atTheEnd();
  };

describe("the function", () => {
  const counted = (calls: string[]): Code => {
    return async (ctx) => {
      calls.push("called");
      return [await ctx.scheduleActivity("A"), await ctx.scheduleActivity("B")];
    };
  };

  test("is called once and goes on in memory, turn after turn", async () => {
    const calls: string[] = [];
    const driver = new Driver({ code: counted(calls) });
    await driver.turn();
    await driver.turn(completed(2, "a"));

    expect(outputOf(await driver.turn(completed(4, "b")))).toEqual(["a", "b"]);
    expect(calls).toHaveLength(1);
  });

  test("is called once by a replay, however much there is to replay", async () => {
    const calls: string[] = [];
    const history = historyOf(started, scheduled("A"), [activityDone("a"), 2], scheduled("B"), [activityDone("b"), 4]);

    expect(outputOf(await runTurn({ code: counted(calls), history }))).toEqual(["a", "b"]);
    expect(calls).toHaveLength(1);
  });
});

describe("the events of a turn", () => {
  const code: Code = async (ctx) => ctx.all([ctx.scheduleActivity("A"), ctx.scheduleActivity("B")]);
  const history = historyOf(started, scheduled("A"), scheduled("B"));

  test("are none where nothing new came, though all of history was replayed", async () => {
    const driver = new Driver({ code, history });
    expect(driver.execution).toMatchObject({ instance: INSTANCE, lastEvent: null });
    const outcome = await driver.turn();

    expect(outcome).toMatchObject({ result: { kind: "waiting" }, events: [], activities: [], cancelledActivities: [] });
    expect(driver.execution).toMatchObject({ eventCount: 3, lastEvent: { eventId: 3 } });
  });

  test("are its own, and follow those of history without a gap", async () => {
    const driver = new Driver({ code, history });
    const [first, again, last] = [
      await driver.turn(completed(2, 1)),
      await driver.turn(),
      await driver.turn(completed(3, 1)),
    ];

    expect([first, again, last].map(({ events }) => summary(events))).toEqual([
      ["ActivityCompleted(4<2)"],
      [],
      ["ActivityCompleted(5<3)", "OrchestrationCompleted(6)"],
    ]);
    expect(driver.history.slice(0, 3)).toEqual(history);
    expect(driver.history.map(({ eventId }) => eventId)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  test("are one for each answer, of however many in a batch", async () => {
    const outcome = await runTurn({ code, history, messages: [completed(2, "a"), completed(3, "b")] });

    expect(summary(outcome.events)).toEqual([
      "ActivityCompleted(4<2)",
      "ActivityCompleted(5<3)",
      "OrchestrationCompleted(6)",
    ]);
    expect(outputOf(outcome)).toEqual(["a", "b"]);
  });
});

describe("a turn", () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  test("lets no timer and no I/O in, however many steps it takes", async () => {
    let hasComeIn = false;
    setImmediate(() => {
      hasComeIn = true;
    });
    setTimeout(() => {
      hasComeIn = true;
    }, 0);

    expect(outputOf(await runTurn({ code: takeAll(900, () => hasComeIn), messages: messages(900) }))).toBe(false);
  });

  test("that is long lets the event loop have its turn, between two deliveries", async () => {
    let hasComeIn = false;
    setImmediate(() => {
      hasComeIn = true;
    });

    expect(outputOf(await runTurn({ code: takeAll(1_100, () => hasComeIn), messages: messages(1_100) }))).toBe(true);
  });

  test("that is long finds a foreign callback in such a pause", async () => {
    const outcome = await runTurn({
      code: async (ctx) => {
        setImmediate(() => void ctx.scheduleActivity("foreign"));
        for (;;) await ctx.dequeueEvent("q");
      },
      messages: messages(1_100),
    });

    expectNondeterminism(outcome, "not durable");
  });

  test("does not depend on globals that somebody has replaced", async () => {
    vi.useFakeTimers({ toFake: ["queueMicrotask", "setImmediate", "setTimeout", "Date"] });

    expect(outputOf(await runTurn({ code: takeAll(1_100, () => "done"), messages: messages(1_100) }))).toBe("done");
  });

  test("runs every reaction to one answer before the next is delivered, however deep", async () => {
    const log: string[] = [];
    const driver = new Driver({
      code: async (ctx) => {
        const deep = async (name: string) => {
          await ctx.scheduleActivity(name);
          for (let n = 0; n < 500; n += 1) await null;
          log.push(name);
        };
        await Promise.all(["A", "B", "C"].map(deep));
      },
    });
    await driver.turn();
    await driver.turn(completed(4, 1), completed(2, 1), completed(3, 1));

    expect(log).toEqual(["C", "A", "B"]);
  });

  test("of one execution knows nothing of the code of another", async () => {
    const drivers = ["one", "two"].map(
      (name) =>
        new DoubtedDriver({
          code: async (ctx) => {
            await ctx.race([async () => ctx.scheduleActivity(name), ctx.scheduleTimer(1)]);
            return name;
          },
        }),
    );
    for (const driver of drivers) await driver.turn();
    const outcomes = [await drivers[0]!.turn(fired(2)), await drivers[1]!.turn(completed(3, 1))];

    expect(outcomes.map(outputOf)).toEqual(["one", "two"]);
    expect(outcomes.map(({ cancelledActivities }) => cancelledActivities)).toEqual([[3], []]);
  });
});

test("an execution tells how much it holds", async () => {
  const driver = new Driver({ code: async (ctx) => ctx.scheduleActivity("A", "x".repeat(10_000)) });
  await driver.turn();
  const before = driver.execution.approximateBytes;
  await driver.turn(completed(2, "y".repeat(50_000)));

  expect(before).toBeGreaterThan(10_000);
  expect(driver.execution.approximateBytes - before).toBeGreaterThan(50_000);
});
