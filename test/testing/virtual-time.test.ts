// Time passes when all is at rest, as far as anybody waits for it, and never in vain for ever.

import { describe, expect, onTestFinished, test, vi } from "vitest";
import { sleep } from "../../src/clock.js";
import { activity, orchestration } from "../../src/define.js";
import { InvalidInputError, TimeoutError } from "../../src/errors.js";
import { mockActivity } from "../../src/testing/mock-activity.js";
import { TestWorld } from "../../src/testing/test-world.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";

const DAY_MS = 86_400_000;

const charge = activity("Charge", async () => "paid");
const checkout = orchestration("Checkout", async (ctx) => ctx.scheduleActivity(charge));
const oneDay = orchestration("OneDay", async (ctx) => ctx.scheduleTimer("1d"));
const waits = orchestration("Waits", async (ctx) => ctx.waitForEvent<string>("go"));
const hangs = mockActivity(charge, () => new Promise<string>(() => {}));
const never = new Promise<never>(() => {});

async function opened(): Promise<TestWorld> {
  const world = await TestWorld.open({ patienceMs: 0 });
  onTestFinished(() => world[Symbol.asyncDispose]());
  return world;
}

describe("a virtual clock", () => {
  test("fires in the order of times and of setting, whatever the delay is", async () => {
    const clock = new VirtualClock();
    const fired: string[] = [];
    const note = (what: string) => () => void fired.push(what);
    clock.setTimer(2, note("later"));
    clock.setTimer(Number.NaN, note("at once"));
    clock.setTimer(Number.POSITIVE_INFINITY, note("never"));
    clock.setTimer(2, note("last"));
    await clock.advance(10);

    expect(fired).toEqual(["at once", "later", "last"]);
  });

  test("refuses to advance by what is no duration, and stays where it is", async () => {
    const clock = new VirtualClock(1_000);
    for (const wrong of [Number.NaN, -1, undefined]) {
      await expect(clock.advance(wrong as number)).rejects.toThrow(InvalidInputError);
    }
    expect(clock.now()).toBe(1_000);
  });

  test("lets everything come to rest before the next timer, also when several move it", async () => {
    const clock = new VirtualClock(0);
    const ends: number[] = [];
    const work = async (startsIn: number): Promise<void> => {
      await sleep(clock, startsIn);
      for (let round = 0; round < 8; round += 1) await new Promise((resolve) => setImmediate(resolve));
      ends.push(clock.now());
    };
    await Promise.all([1, 2, 3, 4].map((startsIn) => clock.run(work(startsIn))));

    expect(ends).toEqual([1, 2, 3, 4]);
  });

  test("says so when there is no timer that could settle a promise", async () => {
    await expect(new VirtualClock().run(never)).rejects.toThrow("still pending after 0 timers");
  });

  test("tells the test when a callback throws, and goes on with the others", async () => {
    const clock = new VirtualClock();
    const fired: string[] = [];
    clock.setTimer(1, () => {
      throw new Error("broken");
    });
    clock.setTimer(2, () => fired.push("second"));

    await expect(clock.advance(5)).rejects.toThrow("broken");
    await clock.advance(5);
    expect(fired).toEqual(["second"]);
  });
});

describe("a world", () => {
  test("reaches a timer of days although an activity hangs and renews its lock all the time", async () => {
    const patient = orchestration("Patient", async (ctx) => {
      const first = await ctx.race({ paid: ctx.scheduleActivity(charge), late: ctx.scheduleTimer("2d") });
      return first.winner;
    });
    const world = await opened();
    await world.start({ orchestrations: [patient], activities: [hangs], workerConcurrency: 1 });

    expect(await world.run(patient)).toBe("late");
  });

  test("reaches the end of an activity that takes days of virtual time", async () => {
    const world = await opened();
    const slow = mockActivity(charge, () => sleep(world.clock, 2 * DAY_MS).then(() => "paid"));
    await world.start({ orchestrations: [checkout], activities: [slow], workerConcurrency: 1 });

    expect(await world.run(checkout)).toBe("paid");
  });

  test("says what is wrong when a timer is out of reach because something polls all the time", async () => {
    const world = await opened();
    await world.start({ orchestrations: [oneDay], activities: [charge], longPollTimeoutMs: 1, minPollIntervalMs: 1 });

    await expect(world.run(oneDay)).rejects.toThrow("something polls or renews all the time");
  }, 120_000); // A million timers: seconds for a computer that does nothing else.

  test("takes no virtual time for a thousand turns", async () => {
    const world = await opened();
    await world.start({ orchestrations: [checkout], activities: [charge] });
    const begin = world.clock.now();
    const handles = [];
    for (let order = 0; order < 1_000; order += 1) handles.push(await world.client.start(checkout));
    await world.settle(Promise.all(handles.map((handle) => handle.result())));

    expect(world.clock.now()).toBe(begin);
  });

  test("tells that a point was never reached, and does not leave the range of exact times", async () => {
    const world = await opened();
    const runtime = await world.start({ orchestrations: [waits] });
    const [first, never] = [runtime.crashAt("before-turn"), runtime.crashAt("before-turn", { instanceId: "nobody" })];
    await world.client.start(waits, { instanceId: "w" });
    await world.settle(first);

    await expect(world.settle(never)).rejects.toThrow("No runtime is running in this world");
    await runtime.restart();
    await expect(world.settle(never)).rejects.toThrow("'w' waits for event 'go'");
    expect(Number.isSafeInteger(world.clock.now())).toBe(true);
    await world.client.raiseEvent("w", "go", "late");
    expect(await world.ending("w")).toMatchObject({ status: "Completed" });
  });

  test("tells that nobody has the activity that is waited for", async () => {
    const world = await opened();
    await world.start({ orchestrations: [checkout] });

    await expect(world.run(checkout)).rejects.toThrow("activity 'Charge' (which no runtime has registered)");
  });

  test("lives in the fake timers of a test framework", async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    await using world = await TestWorld.open();
    const slow = mockActivity(charge, () => sleep(world.clock, 1_000).then(() => "paid"));
    await world.start({ orchestrations: [checkout, oneDay], activities: [slow] });

    await world.run(oneDay);
    expect(await world.run(checkout)).toBe("paid");
  });

  test("that has ended tells so whoever still waits in it", async () => {
    const world = await opened();
    await world.start({ orchestrations: [waits] });
    const waiting = expect(world.run(waits)).rejects.toThrow(TimeoutError);
    await world[Symbol.asyncDispose]();

    await waiting;
  });
});
