// Between any two steps a process may die, and any message may come twice: every outcome is recorded once. R§2.7, R§5.2.

import { describe, expect, test } from "vitest";
import { activity, orchestration } from "../../src/define.js";
import type { TimerFired } from "../../src/history/work-item.js";
import { FailingProvider } from "../../src/testing/failing-provider.js";
import { mockActivity } from "../../src/testing/mock-activity.js";
import type { CrashPoint } from "../../src/testing/mortality.js";
import { eventsOf } from "./events-of.js";
import { onEveryStore } from "./stores.js";

onEveryStore((store) => {
  describe("an event that arrives twice", () => {
    const waits = orchestration("Waits", async (ctx) => ctx.waitForEvent<string>("Evt"));

    test.each([
      ["as it was", ["ok", "ok"]],
      ["with other data", ["ok", "other"]],
    ])("%s, for one wait: both are recorded, and the first is what the wait gets", async (_how, both) => {
      await using world = await store.world();
      const runtime = await world.start({ orchestrations: [waits] });
      const handle = await world.client.start(waits, { instanceId: "w" });
      await world.rest();
      await runtime.shutdown();
      for (const data of both) await world.client.raiseEvent("w", "Evt", data);
      await runtime.restart();

      expect(await world.settle(handle.result())).toBe("ok");
      expect(eventsOf(await world.history("w"), "ExternalEvent").map(({ data }) => data)).toEqual(
        both.map((data) => JSON.stringify(data)),
      );
    });

    test("and meets a crash before its turn is committed is recorded as often as it came, and no more", async () => {
      await using world = await store.world();
      const runtime = await world.start({ orchestrations: [waits] });
      const handle = await world.client.start(waits, { instanceId: "w" });
      await world.rest();
      const crashed = runtime.crashAt("before-turn-commit");
      for (let times = 0; times < 2; times += 1) {
        await world.provider.enqueueForOrchestrator({
          type: "ExternalRaised",
          instance: "w",
          name: "Evt",
          data: '"ok"',
        });
      }
      await world.settle(crashed);
      expect(eventsOf(await world.history("w"), "ExternalEvent")).toEqual([]);
      await runtime.restart();

      expect(await world.settle(handle.result())).toBe("ok");
      await world.advance("1m");
      expect(await world.eventTypes("w")).toEqual([
        "OrchestrationStarted",
        "ExternalSubscribed",
        "ExternalEvent",
        "ExternalEvent",
        "OrchestrationCompleted",
      ]);
    });
  });

  describe("a timer that fires twice", () => {
    const sleeps = orchestration("Sleeps", async (ctx) => {
      await ctx.scheduleTimer("1h");
      return "t";
    });
    /** Sleeps, and is still there when the timer fires once more. */
    const sleepsAndWaits = orchestration("SleepsAndWaits", async (ctx) => {
      await ctx.scheduleTimer("1h");
      return ctx.waitForEvent<string>("go");
    });
    const fired = (fireAtMs: number): TimerFired => {
      return { type: "TimerFired", instance: "s", executionId: 1, id: 2, fireAtMs };
    };

    test("at once is recorded once", async () => {
      await using world = await store.world();
      await world.start({ orchestrations: [sleeps] });
      const fireAtMs = world.clock.now() + 3_600_000;
      const handle = await world.client.start(sleeps, { instanceId: "s" });
      await world.rest();
      for (let times = 0; times < 2; times += 1) await world.provider.enqueueForOrchestrator(fired(fireAtMs));

      expect(await world.settle(handle.result())).toBe("t");
      expect(world.clock.now()).toBe(fireAtMs);
      expect(await world.eventTypes("s")).toEqual([
        "OrchestrationStarted",
        "TimerCreated",
        "TimerFired",
        "OrchestrationCompleted",
      ]);
    });

    test.each<CrashPoint>(["before-turn-commit", "after-turn-commit"])(
      "because of a crash %s is recorded once",
      async (point) => {
        await using world = await store.world();
        const runtime = await world.start({ orchestrations: [sleepsAndWaits] });
        const fireAtMs = world.clock.now() + 3_600_000;
        const handle = await world.client.start(sleepsAndWaits, { instanceId: "s" });
        await world.rest();
        await world.settle(runtime.crashAt(point));
        await world.provider.enqueueForOrchestrator(fired(fireAtMs));
        await runtime.restart();
        await world.advance("1m");

        expect(eventsOf(await world.history("s"), "TimerFired")).toMatchObject([{ sourceEventId: 2, fireAtMs }]);
        expect(world.factsOf("messages-dropped")).toMatchObject([{ instanceId: "s", count: 1 }]);
        await world.client.raiseEvent("s", "go", "on");
        expect(await world.settle(handle.result())).toBe("on");
      },
    );
  });

  const work = activity<string, string>("Work");

  describe("activities in parallel", () => {
    const three = orchestration("Three", async (ctx) =>
      ctx.all(["a", "b", "c"].map((name) => ctx.scheduleActivity(work, name))),
    );

    test.each<[CrashPoint, number]>([
      ["after-turn-commit", 3],
      ["before-activity-commit", 6],
    ])("all end once, though the process dies %s and nothing of theirs is recorded", async (point, runs) => {
      await using world = await store.world();
      const worked = mockActivity(work, (_ctx, name) => `done ${name}`);
      const runtime = await world.start({ orchestrations: [three], activities: [worked] });
      const crashed = runtime.crashAt(point);
      const handle = await world.client.start(three, { instanceId: "t" });
      await world.settle(crashed);
      expect(await world.eventTypes("t")).toEqual([
        "OrchestrationStarted",
        "ActivityScheduled",
        "ActivityScheduled",
        "ActivityScheduled",
      ]);
      await runtime.restart();

      expect(await world.settle(handle.result())).toEqual(["done a", "done b", "done c"]);
      const history = await world.history("t");
      expect(eventsOf(history, "ActivityScheduled")).toHaveLength(3);
      const answered = eventsOf(history, "ActivityCompleted").map(({ sourceEventId }) => sourceEventId);
      expect(answered.sort()).toEqual([2, 3, 4]);
      expect(worked.calls.length).toBe(runs);
    });
  });

  describe("an activity whose end the store refuses to confirm", () => {
    const one = orchestration("One", async (ctx) => ctx.scheduleActivity(work, "x"));

    test.each([
      ["although it has it: it does not run again", true, 1],
      ["because it does not have it: it runs again at once", false, 2],
    ])("%s, and its orchestration does not wait for the lock", async (_why, isDoneFirst, runs) => {
      await using world = await store.world();
      const provider = new FailingProvider(world.provider);
      provider.setAckThenFail(isDoneFirst);
      provider.failNextAckWorkItem();
      const worked = mockActivity(work, () => "done");
      const lock = { workerLockTimeoutMs: 30_000 };
      await world.start({ provider, orchestrations: [one], activities: [worked], ...lock });
      const startMs = world.clock.now();

      expect(await world.run(one, { instanceId: "o" })).toBe("done");
      expect(world.clock.now() - startMs).toBeLessThan(5_000);
      await world.advance("1m");
      expect(worked.calls.length).toBe(runs);
      expect(await world.eventTypes("o")).toEqual([
        "OrchestrationStarted",
        "ActivityScheduled",
        "ActivityCompleted",
        "OrchestrationCompleted",
      ]);
    });
  });
});
