import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { activity, orchestration } from "../../src/define.js";
import { mockActivity } from "../../src/testing/mock-activity.js";
import { CRASH_POINTS } from "../../src/testing/mortality.js";
import { TestWorld } from "../../src/testing/test-world.js";
import { onEveryStore } from "../behaviours/stores.js";

const charge = activity("Charge", async (): Promise<string> => {
  throw new Error("no test charges a real card");
});
const checkout = orchestration("Checkout", async (ctx, days: number) => {
  const receipt = await ctx.scheduleActivity(charge);
  await ctx.scheduleTimer(`${days}d`);
  return `${receipt} after ${days} days`;
});
const waits = orchestration("Waits", async (ctx) => ctx.waitForEvent<string>("go"));

onEveryStore((store) => {
  /** What takes thousands of looks at the store is about the clock, and takes long where each goes through a socket. */
  const testOfPatience = test.skipIf(store.name === "postgres");

  describe("a world", () => {
    test("lets days pass in no time", async () => {
      await using world = await store.world();
      await world.start({ orchestrations: [checkout], activities: [mockActivity(charge, () => "paid")] });
      const begin = world.clock.now();

      expect(await world.run(checkout, { input: 3 })).toBe("paid after 3 days");
      expect(world.clock.now() - begin).toBe(3 * 86_400_000);
    });

    testOfPatience("lets years pass in no time", async () => {
      await using world = await store.world();
      await world.start({ orchestrations: [checkout], activities: [mockActivity(charge, () => "paid")] });

      expect(await world.run(checkout, { input: 3_650 })).toBe("paid after 3650 days");
    });

    testOfPatience("says what is waited for, when nothing will ever happen", async () => {
      await using world = await store.world();
      await world.start({ orchestrations: [waits] });

      await expect(world.run(waits, { instanceId: "w" })).rejects.toThrow("Running: 'w' waits for event 'go'.");
    });

    testOfPatience("names what waits for its first turn, and whether anybody could take it", async () => {
      await using world = await store.world();
      await world.start({ orchestrations: [] });
      await expect(world.run(waits, { instanceId: "i" })).rejects.toThrow(
        /settles it\. 'i' is pending: no runtime here has orchestration 'Waits'\.$/,
      );

      await world.start({ orchestrations: [waits], orchestrationConcurrency: 0 });
      await world.client.start(waits, { instanceId: "j", version: "2.0.0" });
      await expect(world.settle(new Promise(() => {}))).rejects.toThrow(
        /'i' is pending: orchestration 'Waits' is registered, but .* 'j' is pending: no runtime here has orchestration 'Waits' 2\.0\.0\.$/,
      );
    });

    testOfPatience("tells a crash point that was not reached", async () => {
      await using world = await store.world();
      const charged = mockActivity(charge, () => "paid");
      const runtime = await world.start({ orchestrations: [checkout], activities: [charged] });
      const misspelled = runtime.crashAt("before-activity-commit", { activity: "Chrge" });
      const tooMany = runtime.crashAt("before-activity", { activity: "Charge", instanceId: "o", nth: 3 });
      await world.client.start(checkout, { instanceId: "o", input: 1 });

      await expect(world.settle(misspelled)).rejects.toThrow(
        "The crash point 'before-activity-commit' (activity 'Chrge', which this runtime does not have) was not reached. No instance is running.",
      );
      await expect(world.settle(tooMany)).rejects.toThrow(
        "The crash point 'before-activity' (activity 'Charge'; instance 'o'; nth: 3) was not reached.",
      );
      await runtime.restart();
      await expect(world.settle(tooMany)).rejects.toThrow(
        "was not reached, and no longer can be: its runtime has died",
      );
    });

    test.each(CRASH_POINTS)(
      "survives a crash %s: the activity runs again only where its outcome was lost",
      async (point) => {
        await using world = await store.world();
        const charged = mockActivity(charge, () => "paid");
        const runtime = await world.start({ orchestrations: [checkout], activities: [charged] });
        const crashed = runtime.crashAt(point);
        const handle = await world.client.start(checkout, { instanceId: "o", input: 1 });

        await world.settle(crashed);
        expect(runtime.isRunning).toBe(false);
        await runtime.restart();

        expect(await world.settle(handle.result())).toBe("paid after 1 days");
        expect(charged.calls.length).toBe(point === "before-activity-commit" ? 2 : 1);
        expect(new Set(charged.calls.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
        expect(await world.eventTypes("o")).toEqual([
          "OrchestrationStarted",
          "ActivityScheduled",
          "ActivityCompleted",
          "TimerCreated",
          "TimerFired",
          "OrchestrationCompleted",
        ]);
      },
    );
  });
});

describe("virtual time", () => {
  test("waits for an activity that asks a real server", async () => {
    const server = createServer((_request, response) => void setImmediate(() => response.end("paid")));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const asks = activity("Ask", async () => (await fetch(url)).text());
    const patient = orchestration("Patient", async (ctx) => {
      const first = await ctx.race({ answer: ctx.scheduleActivity(asks), late: ctx.scheduleTimer("1s") });
      return first.winner;
    });
    await using world = await TestWorld.open({ patienceMs: 10_000 });
    await world.start({ orchestrations: [patient], activities: [asks] });

    expect(await world.run(patient)).toBe("answer");
  });

  test("goes on without an activity that hangs", async () => {
    const hangs = activity("Hang", () => new Promise<string>(() => {}));
    const impatient = orchestration("Impatient", async (ctx) => {
      const first = await ctx.race({ answer: ctx.scheduleActivity(hangs), late: ctx.scheduleTimer("1h") });
      return first.winner;
    });
    await using world = await TestWorld.open();
    await world.start({ orchestrations: [impatient], activities: [hangs] });

    expect(await world.run(impatient)).toBe("late");
  });

  test("tells that the world has ended before what it was to settle", async () => {
    const settle = async (): Promise<void> => {
      await using world = await TestWorld.open();
      return world.settle(new Promise<void>(() => {})); // No await: the world ends first.
    };
    await expect(settle()).rejects.toThrow("This world has ended: await the promise before it does.");
  });

  test("tells that nobody is there who could do the work", async () => {
    await using world = await TestWorld.open();
    await expect(world.run(waits)).rejects.toThrow("No runtime is running in this world: start one.");
  });
});
