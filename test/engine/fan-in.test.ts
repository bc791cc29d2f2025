// Many at once: every answer counts, none is looked at twice, and cost stays linear. R§3.12.

import { describe, expect, test } from "vitest";
import type { OrchestrationContext } from "../../src/engine/orchestration-context.js";
import { type Code, completed, Driver, outputOf, queued, runTurn } from "./drive.js";

const sum = (numbers: readonly number[]) => numbers.reduce((total, n) => total + n, 0);
const fanOut = (ctx: OrchestrationContext, count: number) =>
  Array.from({ length: count }, (_, n) => ctx.scheduleActivity<number>("A", n));

describe.each([31, 1_024, 10_000])("a fan-in of %d", (count) => {
  const joins: readonly [string, Code][] = [
    ["Promise.all", async (ctx) => sum(await Promise.all(fanOut(ctx, count)))],
    ["ctx.all", async (ctx) => sum(await ctx.all(fanOut(ctx, count)))],
    [
      "ctx.all of branch functions",
      async (ctx) =>
        sum(await ctx.all(Array.from({ length: count }, (_, n) => async () => ctx.scheduleActivity<number>("A", n)))),
    ],
  ];
  const answers = Array.from({ length: count }, (_, n) => completed(n + 2, n));
  const expected = (count * (count - 1)) / 2;

  test.each(joins)(
    "by %s ends with the last answer, in one batch backwards or in two, live and replayed",
    async (_, code) => {
      const driver = new Driver({ code });
      expect((await driver.turn()).activities).toHaveLength(count);
      const half = Math.floor(count / 2);
      expect((await driver.turn(...answers.slice(half).reverse())).result.kind).toBe("waiting");
      const history = [...driver.history];

      expect(outputOf(await driver.turn(...answers.slice(0, half)))).toBe(expected);
      expect(outputOf(await runTurn({ code, history, messages: answers.slice(0, half) }))).toBe(expected);
    },
  );
});

test("ten thousand messages, buffered or awaited all at once, are each handed out once", async () => {
  const code: Code = async (ctx) =>
    sum(await Promise.all(Array.from({ length: 10_000 }, () => ctx.dequeueEvent<number>("q"))));
  const messages = Array.from({ length: 10_000 }, (_, n) => queued("q", n));
  const driver = new Driver({ code });
  await driver.turn();

  expect(outputOf(await driver.turn(...messages))).toBe(49_995_000);
  expect(outputOf(await runTurn({ code, messages }))).toBe(49_995_000);
});

test("a race of ten thousand drops all but one", async () => {
  const driver = new Driver({ code: async (ctx) => (await ctx.race(fanOut(ctx, 10_000))).index });
  await driver.turn();
  const outcome = await driver.turn(completed(5_001, 1));

  expect(outputOf(outcome)).toBe(4_999);
  expect(outcome.cancelledActivities).toHaveLength(9_999);
});

test("a sequence of ten thousand steps replays", async () => {
  const code: Code = async (ctx) => {
    let total = 0;
    for (let n = 0; n < 5_000; n += 1) total += await ctx.dequeueEvent<number>("q");
    for (let n = 0; n < 500; n += 1) await ctx.newGuid();
    await ctx.waitForEvent("never");
    return total;
  };
  const driver = new Driver({ code });
  await driver.turn(...Array.from({ length: 5_000 }, (_, n) => queued("q", n)));

  expect(driver.history.length).toBe(11_002);
  expect(await runTurn({ code, history: driver.history })).toMatchObject({ result: { kind: "waiting" }, events: [] });
});
