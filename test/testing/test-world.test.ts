import { describe, expect, test } from "vitest";
import { activity, orchestration } from "../../src/define.js";
import { mockActivity } from "../../src/testing/mock-activity.js";
import { CRASH_POINTS } from "../../src/testing/mortality.js";
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
  describe("a world", () => {
    test("lets days pass in no time", async () => {
      await using world = await store.world();
      await world.start({ orchestrations: [checkout], activities: [mockActivity(charge, () => "paid")] });
      const begin = world.clock.now();

      expect(await world.run(checkout, { input: 3 })).toBe("paid after 3 days");
      expect(world.clock.now() - begin).toBe(3 * 86_400_000);
    });

    test("lets years pass in no time", async () => {
      await using world = await store.world();
      await world.start({ orchestrations: [checkout], activities: [mockActivity(charge, () => "paid")] });

      expect(await world.run(checkout, { input: 3_650 })).toBe("paid after 3650 days");
    });

    test("says what is waited for, when nothing will ever happen", async () => {
      await using world = await store.world();
      await world.start({ orchestrations: [waits] });

      await expect(world.run(waits, { instanceId: "w" })).rejects.toThrow("Running: 'w' waits for event 'go'.");
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
