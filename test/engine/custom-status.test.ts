// The text by which an orchestration tells how far it is. R§4.11.

import { describe, expect, test } from "vitest";
import { completed, DoubtedDriver, outputOf, runTurn, summary } from "./drive.js";

describe("the custom status", () => {
  test("is seen at once, and every call is recorded", async () => {
    const outcome = await new DoubtedDriver({
      code: async (ctx) => {
        const seen = [ctx.customStatus];
        ctx.setCustomStatus("one");
        ctx.setCustomStatus("one");
        seen.push(ctx.customStatus);
        ctx.resetCustomStatus();
        return [...seen, ctx.customStatus];
      },
    }).turn();

    expect(outputOf(outcome)).toEqual([null, "one", null]);
    expect(outcome.events.slice(1, 4)).toMatchObject([
      { type: "CustomStatusUpdated", status: "one" },
      { type: "CustomStatusUpdated", status: "one" },
      { type: "CustomStatusUpdated", status: null },
    ]);
  });

  test("of earlier turns is still there", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        ctx.setCustomStatus("half way");
        await ctx.scheduleActivity("A");
        return ctx.customStatus;
      },
    });

    expect(summary((await driver.turn()).events)).toEqual([
      "OrchestrationStarted(1)",
      "CustomStatusUpdated(2)",
      "ActivityScheduled(3)",
    ]);
    expect(outputOf(await driver.turn(completed(3, 1)))).toBe("half way");
  });

  test("of the previous execution is there at the start", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        const before = ctx.customStatus;
        await ctx.scheduleActivity("A");
        return [before, ctx.customStatus];
      },
      customStatus: "inherited",
    });
    await driver.turn();

    expect(outputOf(await driver.turn(completed(2, 1)))).toEqual(["inherited", "inherited"]);
  });

  test("may be the empty text", async () => {
    const outcome = await runTurn({
      code: async (ctx) => {
        ctx.setCustomStatus("");
        return ctx.customStatus;
      },
    });

    expect(outputOf(outcome)).toBe("");
  });
});
