// A runtime that is killed is dead: nothing of it happens any more, and nothing of it is left when the test is over.

import { describe, expect, onTestFinished, test } from "vitest";
import { activity, orchestration } from "../../src/define.js";
import { AbortedError, InvalidOptionsError, MisuseError, RegistrationError } from "../../src/errors.js";
import { mockActivity } from "../../src/testing/mock-activity.js";
import type { TestRuntime } from "../../src/testing/test-runtime.js";
import { TestWorld } from "../../src/testing/test-world.js";

const charge = activity("Charge", async () => "paid");
const checkout = orchestration("Checkout", async (ctx) => ctx.scheduleActivity(charge));
const oneDay = orchestration("OneDay", async (ctx) => ctx.scheduleTimer("1d"));
const waits = orchestration("Waits", async (ctx) => ctx.waitForEvent<string>("go"));
const hangs = mockActivity(charge, () => new Promise<string>(() => {}));

async function opened(): Promise<TestWorld> {
  const world = await TestWorld.open({ patienceMs: 0 });
  onTestFinished(() => world[Symbol.asyncDispose]());
  return world;
}

describe("a killed runtime", () => {
  test("answers no call of an activity that goes on, management included, and tells nobody of it", async () => {
    const world = await opened();
    let goOn = (): void => {};
    const lateEnough = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const outcomes: string[] = [];
    const meddles = mockActivity(charge, async (ctx) => {
      await lateEnough;
      const note = (what: string) => () => void outcomes.push(what);
      void ctx.client.raiseEvent("waiting", "go", "from the dead").then(note("raised"), note("refused"));
      void ctx.client.deleteInstance("ended").then(note("deleted"), note("refused"));
      void ctx.client.listAllInstances().then(note("listed"), note("refused"));
      ctx.signal.addEventListener("abort", note("signalled"));
      ctx.trace.info("still here");
      return new Promise<string>(() => {});
    });
    const told: string[] = [];
    const runtime = await world.start({
      orchestrations: [checkout, oneDay, waits],
      activities: [meddles],
      observers: [({ type }) => void told.push(type)],
    });
    await world.run(oneDay, { instanceId: "ended" });
    await world.client.start(waits, { instanceId: "waiting" });
    await world.client.start(checkout);
    await world.rest();

    runtime.kill();
    const before = { told: told.length, facts: world.facts.length };
    goOn();
    await world.advance("1d");

    expect(outcomes).toEqual([]);
    expect(world.clock.pendingTimers).toBe(0);
    expect(await world.client.getStatus("ended")).toMatchObject({ status: "Completed" });
    expect(await world.client.getStatus("waiting")).toMatchObject({ status: "Running" });
    await runtime[Symbol.asyncDispose]();
    expect(outcomes).toEqual(["refused", "refused", "refused", "signalled"]);
    expect({ told: told.length, facts: world.facts.length }).toEqual(before);
  });

  test("begins no activity any more, not even one that it has just fetched", async () => {
    const world = await opened();
    const charged = mockActivity(charge, () => "paid");
    const runtime: TestRuntime = await world.start({
      orchestrations: [checkout],
      activities: [charged],
      observers: [({ type }) => type === "turn-committed" && runtime.isRunning && runtime.kill()],
    });
    const handle = await world.client.start(checkout);
    await world.rest();

    expect(charged.calls).toEqual([]);
    await runtime.restart({ observers: [] });
    expect(await world.settle(handle.result())).toBe("paid");
  });

  test("is not waited for: its activities get no more patience", async () => {
    await using world = await TestWorld.open({ patienceMs: 3_600_000 });
    const runtime = await world.start({ orchestrations: [checkout], activities: [charge] });
    const crashed = runtime.crashAt("before-activity-commit");
    const handle = await world.client.start(checkout);
    await world.settle(crashed);
    await runtime.restart();

    expect(await world.settle(handle.result())).toBe("paid");
  });

  test("ends a shutdown in progress with an error, and the world with it", async () => {
    const world = await opened();
    const runtime = await world.start({ orchestrations: [checkout], activities: [hangs] });
    await world.client.start(checkout);
    await world.rest();
    const stopping = runtime.shutdown();
    runtime.kill();

    await expect(stopping).rejects.toThrow(AbortedError);
    await world[Symbol.asyncDispose]();
    expect(world.clock.pendingTimers).toBe(0);
  });

  test("lives on in its next life, whatever becomes of a shutdown of the former one", async () => {
    const world = await opened();
    const runtime = await world.start({ orchestrations: [checkout], activities: [hangs] });
    const handle = await world.client.start(checkout);
    await world.rest();
    const stopping = expect(runtime.shutdown()).rejects.toThrow("killed before it had stopped");
    await runtime.restart({ activities: [charge] });
    await stopping;

    expect(runtime.isRunning).toBe(true);
    expect(await world.settle(handle.result())).toBe("paid");
  });
});

describe("a restart", () => {
  test("that is refused leaves the former code in place", async () => {
    const world = await opened();
    const runtime = await world.start({ orchestrations: [checkout], activities: [charge] });

    await expect(runtime.restart({ activities: [charge, charge] })).rejects.toThrow(RegistrationError);
    await expect(runtime.restart({ activities: charge as never })).rejects.toThrow(InvalidOptionsError);
    expect(runtime.isRunning).toBe(false);
    await runtime.restart();
    expect(await world.run(checkout)).toBe("paid");
  });

  test("is refused once the world has ended, and so is a start", async () => {
    const world = await opened();
    const runtime = await world.start({ orchestrations: [checkout] });
    await world[Symbol.asyncDispose]();
    await world[Symbol.asyncDispose]();

    await expect(runtime.restart()).rejects.toThrow(MisuseError);
    await expect(world.start({ orchestrations: [checkout] })).rejects.toThrow("this world has ended");
  });
});

test("a point of a turn at which an activity is named is refused, because nothing would ever come to it", async () => {
  const world = await opened();
  const runtime = await world.start({ orchestrations: [checkout], activities: [charge] });

  expect(() => runtime.crashAt("before-turn", { activity: "Charge" })).toThrow(InvalidOptionsError);
});

test("the same test gives the same ids, also to what activities start", async () => {
  const starts = mockActivity(charge, async (ctx) => (await ctx.client.start(oneDay)).instanceId);
  const once = async (): Promise<readonly string[]> => {
    await using world = await TestWorld.open();
    await world.start({ orchestrations: [checkout, oneDay], activities: [starts] });
    await world.run(checkout);
    return await world.client.listAllInstances();
  };

  expect(await once()).toEqual(await once());
});

test("a mocked activity fails with whatever it is told to fail with", async () => {
  const world = await opened();
  const charged = mockActivity(charge, () => "paid");
  await world.start({ orchestrations: [checkout], activities: [charged] });
  charged.failNext(undefined as never);

  await expect(world.run(checkout)).rejects.toThrow("undefined");
  expect(await world.run(checkout)).toBe("paid");
});
