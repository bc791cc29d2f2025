// Children and their ids: made once, recorded, and then history's. Catalogue A12; R§4.8.

import { describe, expect, test } from "vitest";
import type { OrchestrationFailedError } from "../../src/errors.js";
import {
  childCompleted,
  childDone,
  childFailed,
  childScheduled,
  DoubtedDriver,
  fired,
  historyOf,
  INSTANCE,
  outputOf,
  runTurn,
  started,
  timerCreated,
} from "./drive.js";

describe("a child that nobody named", () => {
  test("gets an id of its event and its parent, recorded without the parent", async () => {
    const outcome = await new DoubtedDriver({ code: async (ctx) => ctx.scheduleSubOrchestration("C") }).turn();

    expect(outcome.events[1]).toMatchObject({ type: "SubOrchestrationScheduled", eventId: 2, instance: "sub::2" });
    expect(outcome.children).toMatchObject([{ id: 2, instance: `${INSTANCE}::sub::2` }]);
  });

  test("has an id that none of its siblings has, awaited or not", async () => {
    const outcome = await new DoubtedDriver({
      code: async (ctx) => {
        ctx.scheduleSubOrchestration("C", "same");
        ctx.scheduleSubOrchestration("C", "same");
        await ctx.scheduleTimer(1);
      },
    }).turn();

    expect(outcome.events.slice(1, 3)).toMatchObject([{ instance: "sub::2" }, { instance: "sub::3" }]);
    expect(outcome.children.map(({ instance }) => instance)).toEqual([`${INSTANCE}::sub::2`, `${INSTANCE}::sub::3`]);
  });

  test("keeps the id that history gave it, whatever this version would give", async () => {
    const result = await runTurn({
      code: async (ctx) => ctx.scheduleSubOrchestration("C"),
      history: historyOf(started, childScheduled("C", "sub::77"), [childDone("child-result"), 2]),
    });
    const dropped = await runTurn({
      code: async (ctx) => ctx.race([ctx.scheduleSubOrchestration("C"), ctx.scheduleTimer(1)]),
      history: historyOf(started, childScheduled("C", "sub::77"), timerCreated),
      messages: [fired(3)],
    });
    const failed = await runTurn({
      code: async (ctx) =>
        ctx.scheduleSubOrchestration("C").catch((error: OrchestrationFailedError) => error.instanceId),
      history: historyOf(started, childScheduled("C", "sub::77")),
      messages: [childFailed(2, "no luck")],
    });

    expect(outputOf(result)).toBe("child-result");
    expect(outputOf(failed)).toBe(`${INSTANCE}::sub::77`);
    expect(dropped.cancelledChildren).toMatchObject([{ instance: `${INSTANCE}::sub::77` }]);
  });
});

describe("a child with an id of its own", () => {
  test("is recorded, started and answered under it, to the letter", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => ctx.scheduleSubOrchestration("C", null, { instanceId: "my-custom-instance" }),
    });
    const outcome = await driver.turn();

    expect(outcome.events[1]).toMatchObject({ instance: "my-custom-instance" });
    expect(outcome.children).toMatchObject([{ id: 2, instance: "my-custom-instance" }]);
    expect(outputOf(await driver.turn(childCompleted(2, "child-result")))).toBe("child-result");
  });
});
