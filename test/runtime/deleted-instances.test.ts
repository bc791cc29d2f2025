// A new instance under the id of a deleted one is a new life: nothing of the old one reaches it.

import { describe, expect, test } from "vitest";
import { activity, orchestration } from "../../src/define.js";
import { TestWorld } from "../../src/testing/test-world.js";

describe("a new instance under the id of a deleted one", () => {
  test("is not failed by code of the old one that awaits something foreign", async () => {
    await using world = await TestWorld.open();
    let finish: () => void = () => {};
    const foreign = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const either = orchestration("Either", async (ctx, isBad: boolean) => {
      const event = ctx.waitForEvent<string>("go");
      return isBad ? Promise.race([event, foreign]) : event;
    });
    await world.start({ orchestrations: [either] });
    const lives = async (input: boolean) => {
      await world.client.start(either, { instanceId: "e", input });
      await world.clock.advance(10);
    };
    await lives(true);
    await world.client.deleteInstance("e", { force: true });
    await lives(false);
    finish();
    await world.clock.advance(10);
    await world.client.raiseEvent("e", "go", "on");

    expect(await world.ending("e")).toEqual({ status: "Completed", output: '"on"' });
  });

  test("finds no message of the old one when that ends foreign code after its deletion", async () => {
    await using world = await TestWorld.open();
    let finish: () => void = () => {};
    const foreign = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const bad = orchestration("Bad", async (ctx) => Promise.race([ctx.waitForEvent("go"), foreign]));
    await world.start({ orchestrations: [bad] });
    await world.client.start(bad, { instanceId: "b" });
    await world.clock.advance(10);
    await world.client.deleteInstance("b", { force: true });
    finish();
    await world.clock.advance(10);

    expect(await world.client.getQueueDepths()).toMatchObject({ orchestratorQueue: 0 });
  });

  test("has all the time that work without a handler gets, whatever became of the old one", async () => {
    await using world = await TestWorld.open();
    const known = activity("Known", async () => {});
    const calls = orchestration("Calls", async (ctx) => ctx.scheduleActivity("Missing"));
    await world.start({ orchestrations: [calls], activities: [known], maxAttempts: 3 });
    const timeToFail = async () => {
      const begun = world.clock.now();
      await world.client.start(calls, { instanceId: "c" });
      expect(await world.ending("c")).toMatchObject({ status: "Failed" });
      return world.clock.now() - begun;
    };
    const first = await timeToFail();
    await world.client.deleteInstance("c");

    expect(first).toBeGreaterThan(1_000);
    expect(await timeToFail()).toBe(first);
  });
});

test("gauges are as of the last time that they were refreshed", async () => {
  await using world = await TestWorld.open();
  const waits = orchestration("Waits", async (ctx) => ctx.waitForEvent("go"));
  const { runtime } = await world.start({ orchestrations: [waits] });
  for (const instanceId of ["a", "b", "c"]) await world.client.start(waits, { instanceId });
  await world.clock.advance(10);
  await world.client.deleteInstance("a", { force: true });
  await world.client.start(waits, { instanceId: "later", delay: "1h" });
  expect(runtime.metrics.snapshot()).toMatchObject({ activeOrchestrations: 3, orchestratorQueueDepth: 0 });

  await runtime.refreshGauges();
  expect(runtime.metrics.snapshot()).toMatchObject({
    activeOrchestrations: 2,
    orchestratorQueueDepth: 1,
    workerQueueDepth: 0,
  });
});
