// Work that was fetched too often is failed without being run again, and whoever waits for it is told why. R§2.3, R§5.5.

import { describe, expect, test } from "vitest";
import { activity, orchestration } from "../../src/define.js";
import { displayMessage, type ErrorDetails, isRetryable } from "../../src/history/error-details.js";
import { mockActivity } from "../../src/testing/mock-activity.js";
import type { CrashPoint } from "../../src/testing/mortality.js";
import { PoisonInjectingProvider } from "../../src/testing/poison-injecting-provider.js";
import { eventsOf } from "./events-of.js";
import { onEveryStore } from "./stores.js";

describe("a poison failure", () => {
  const attempts = { category: "poison", attemptCount: 11, maxAttempts: 10, message: '{"some":"JSON"}' } as const;
  const where = { instance: "order-1", executionId: 1 };

  test.each<[of: string, text: string, details: ErrorDetails]>([
    [
      "orchestration",
      "poison: orchestration order-1 exceeded 11 attempts (max 10)",
      { ...attempts, messageType: { type: "Orchestration", ...where } },
    ],
    [
      "activity",
      "poison: activity Charge#5 exceeded 11 attempts (max 10)",
      { ...attempts, messageType: { type: "Activity", ...where, activityName: "Charge", activityId: 5 } },
    ],
  ])("of an %s says what was tried and how often, and is not worth another try", (_of, text, details) => {
    expect(displayMessage(details)).toBe(text);
    expect(isRetryable(details)).toBe(false);
  });
});

onEveryStore((store) => {
  const testActivity = activity<number, string>("TestActivity");
  const onTestActivity = orchestration("OnTestActivity", async (ctx, n: number) =>
    ctx.scheduleActivity(testActivity, n).catch(() => "caught"),
  );

  describe("an orchestration that was fetched too often", () => {
    test("fails, its code not run, and the failure holds what it was to do", async () => {
      await using world = await store.world();
      const provider = new PoisonInjectingProvider(world.provider);
      provider.injectOrchestrationPoison(11);
      let runs = 0;
      const counts = orchestration("Counts", async () => {
        runs += 1;
      });
      await world.start({ provider, orchestrations: [counts] });
      await world.client.start(counts, { instanceId: "c" });

      expect(await world.settle(world.client.waitForOrchestration("c"))).toMatchObject({
        status: "Failed",
        details: {
          category: "poison",
          attemptCount: 11,
          maxAttempts: 10,
          messageType: { type: "Orchestration", instance: "c", executionId: 1 },
          message: expect.stringMatching(/^\[\{"StartOrchestration":\{"instance":"c","orchestration":"Counts"/),
        },
      });
      expect(runs).toBe(0);
      expect(world.factsOf("orchestration-poisoned")).toHaveLength(1);
    });

    test("fails at its own limit where one is set", async () => {
      await using world = await store.world();
      const provider = new PoisonInjectingProvider(world.provider);
      const quick = orchestration("Quick", async () => "done");
      await world.start({ provider, orchestrations: [quick], maxAttempts: 3 });

      provider.injectOrchestrationPoison(3);
      expect(await world.run(quick, { instanceId: "at the limit" })).toBe("done");
      provider.injectOrchestrationPoison(4);
      await world.client.start(quick, { instanceId: "above it" });
      expect(await world.settle(world.client.waitForOrchestration("above it"))).toMatchObject({
        status: "Failed",
        details: { category: "poison", attemptCount: 4, maxAttempts: 3 },
      });
    });

    test("exists in its failure, even where it had never begun", async () => {
      await using world = await store.world();
      const provider = new PoisonInjectingProvider(world.provider);
      provider.injectOrchestrationPoison(11);
      const neverRuns = orchestration({ name: "NeverRuns", version: "1.2.0" }, async (_ctx, _input: string) => {
        throw new Error("must not run");
      });
      await world.start({ provider, orchestrations: [neverRuns] });
      await world.client.start(neverRuns, { instanceId: "n", input: "for nothing" });
      await world.ending("n");

      expect(await world.client.getInstanceInfo("n")).toMatchObject({
        orchestrationName: "NeverRuns",
        orchestrationVersion: "1.2.0",
        status: "Failed",
        output: "poison: orchestration n exceeded 11 attempts (max 10)",
      });
      expect(await world.history("n")).toMatchObject([
        { type: "OrchestrationStarted", name: "NeverRuns", version: "1.2.0", input: '"for nothing"' },
        { type: "OrchestrationFailed", details: { category: "poison" } },
      ]);
    });

    test("as a sub-orchestration fails its parent with its own failure, whatever the parent catches", async () => {
      await using world = await store.world();
      const provider = new PoisonInjectingProvider(world.provider);
      provider.injectOrchestrationPoisonAfterSkip(1, 11); // The parent's first turn, then the child's.
      const child = orchestration("Child", async () => "fine");
      const parent = orchestration("Parent", async (ctx) => ctx.scheduleSubOrchestration(child).catch(() => "caught"));
      await world.start({ provider, orchestrations: [parent, child] });
      await world.client.start(parent, { instanceId: "p" });

      const ofChild = {
        category: "poison",
        attemptCount: 11,
        maxAttempts: 10,
        messageType: { type: "Orchestration", instance: "p::sub::2", executionId: 1 },
      };
      expect(await world.settle(world.client.waitForOrchestration("p"))).toMatchObject({
        status: "Failed",
        details: ofChild,
      });
      expect(eventsOf(await world.history("p"), "SubOrchestrationFailed")).toMatchObject([
        { sourceEventId: 2, details: ofChild },
      ]);
      expect(await world.client.getStatus("p::sub::2")).toMatchObject({ status: "Failed", details: ofChild });
    });
  });

  describe("an activity that was fetched too often", () => {
    test("fails its orchestration, unrun, whatever that catches", async () => {
      await using world = await store.world();
      const provider = new PoisonInjectingProvider(world.provider);
      provider.injectActivityPoison(11);
      const mocked = mockActivity(testActivity, () => "done");
      await world.start({ provider, orchestrations: [onTestActivity], activities: [mocked] });
      await world.client.start(onTestActivity, { instanceId: "t", input: 7 });

      expect(await world.settle(world.client.waitForOrchestration("t"))).toMatchObject({
        status: "Failed",
        details: {
          category: "poison",
          attemptCount: 11,
          maxAttempts: 10,
          messageType: {
            type: "Activity",
            instance: "t",
            executionId: 1,
            activityName: "TestActivity",
            activityId: 2,
          },
          message: expect.stringMatching(/^\{"ActivityExecute":\{"instance":"t"/),
        },
      });
      expect(mocked.calls).toEqual([]);
      expect(world.factsOf("activity-poisoned")).toMatchObject([{ ref: { activityName: "TestActivity" } }]);
    });

    test("is the end of a sequence: nothing after it is begun", async () => {
      await using world = await store.world();
      const provider = new PoisonInjectingProvider(world.provider);
      const mocked = mockActivity(testActivity, (_ctx, n) => {
        if (n === 1) provider.injectActivityPoisonPersistent(6);
        return `done ${n}`;
      });
      const sequence = orchestration("Sequence", async (ctx) => {
        for (const n of [1, 2, 3]) await ctx.scheduleActivity(testActivity, n);
      });
      await world.start({ provider, orchestrations: [sequence], activities: [mocked], maxAttempts: 5 });
      await world.client.start(sequence, { instanceId: "s" });

      expect(await world.settle(world.client.waitForOrchestration("s"))).toMatchObject({
        status: "Failed",
        details: { category: "poison", attemptCount: 6, maxAttempts: 5, messageType: { activityId: 4 } },
      });
      expect(mocked.calls.map(({ input }) => input)).toEqual([1]);
      expect(await world.eventTypes("s")).toEqual([
        "OrchestrationStarted",
        "ActivityScheduled",
        "ActivityCompleted",
        "ActivityScheduled",
        "ActivityFailed",
        "OrchestrationFailed",
      ]);
    });
  });

  describe("work that kills whoever does it", () => {
    test.each<[work: string, CrashPoint, activityAttempts: readonly number[], messageType: object]>([
      ["a turn", "before-turn-commit", [], { type: "Orchestration", instance: "t", executionId: 1 }],
      ["an activity", "before-activity-commit", [1, 2, 3], { type: "Activity", activityName: "TestActivity" }],
    ])("is given up after its last attempt: %s", async (_work, point, activityAttempts, messageType) => {
      await using world = await store.world();
      const mocked = mockActivity(testActivity, () => "done");
      const runtime = await world.start({
        orchestrations: [onTestActivity],
        activities: [mocked],
        maxAttempts: 3,
      });
      let crashed = runtime.crashAt(point); // Before there is work: a real store may hand it over at once.
      await world.client.start(onTestActivity, { instanceId: "t", input: 7 });
      for (let attempt = 1; attempt <= 3; attempt += 1) {
        await world.settle(crashed);
        await runtime.restart();
        if (attempt < 3) crashed = runtime.crashAt(point); // The dead one's lock still holds.
      }

      expect(await world.settle(world.client.waitForOrchestration("t"))).toMatchObject({
        status: "Failed",
        details: { category: "poison", attemptCount: 4, maxAttempts: 3, messageType },
      });
      expect(mocked.calls.map(({ attempt }) => attempt)).toEqual(activityAttempts);
    });
  });
});
