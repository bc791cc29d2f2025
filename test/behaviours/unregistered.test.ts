// What nobody here can run is left for others, ever longer, and failed only when nobody has come. R§5.5, Z2.14.

import { describe, expect, test } from "vitest";
import { activity, orchestration } from "../../src/define.js";
import { type LogRecord, logTo } from "../../src/runtime/log.js";
import { unregisteredDelayMs } from "../../src/runtime/unregistered-backoff.js";
import { eventsOf } from "./events-of.js";
import { onEveryStore } from "./stores.js";

describe("the time for which work is left to others", () => {
  test.each([
    ["a second to a minute", { baseMs: 1_000, maxMs: 60_000 }, [1, 2, 4, 8, 16, 32, 60, 60].map((s) => 1_000 * s)],
    ["100 to 500 ms", { baseMs: 100, maxMs: 500 }, [100, 200, 400, 500, 500, 500]],
  ])("doubles each time: %s", (_range, backoff, delays) => {
    expect(delays.map((_, times) => unregisteredDelayMs(backoff, times + 1))).toEqual(delays);
  });
});

onEveryStore((store) => {
  const known = orchestration({ name: "Known", version: "1.0.0" }, async () => "known");
  const impatient = { maxAttempts: 3, unregisteredBackoff: { baseMs: 10, maxMs: 50 } };
  const tooOften = { category: "poison", attemptCount: 4, maxAttempts: 3 };

  describe("an orchestration that nobody here knows", () => {
    test.each([
      ["by its name", "Unknown", {}, "'Unknown' (latest version)"],
      ["in its version", "Known", { version: "9.9.9" }, "'Known' version 9.9.9"],
    ])("%s is failed as poison in the end, and its history says so", async (_how, name, version, missing) => {
      await using world = await store.world();
      await world.start({ orchestrations: [known], ...impatient });
      await world.client.start(name, { instanceId: "u", ...version });

      const details = { ...tooOften, message: expect.stringContaining(`${missing} is not registered here`) };
      expect(await world.settle(world.client.waitForOrchestration("u"))).toMatchObject({ status: "Failed", details });
      expect(await world.history("u")).toMatchObject([
        { type: "OrchestrationStarted", name },
        { type: "OrchestrationFailed", details },
      ]);
      expect(world.factsOf("turn-abandoned").map(({ why, delayMs }) => [why, delayMs])).toEqual([
        ["unregistered", 10],
        ["unregistered", 20],
        ["unregistered", 40],
      ]);
    });

    test("in the version to continue as is failed as poison, and the execution before stays as it was", async () => {
      await using world = await store.world();
      const leaps = orchestration({ name: "Leaps", version: "1.0.0" }, async (ctx) =>
        ctx.continueAsNew(null, { version: "3.0.0" }),
      );
      await world.start({ orchestrations: [leaps], ...impatient });
      await world.client.start(leaps, { instanceId: "l" });

      expect(await world.settle(world.client.waitForOrchestration("l"))).toMatchObject({
        status: "Failed",
        details: { ...tooOften, message: expect.stringContaining("'Leaps' version 3.0.0 is not registered here") },
      });
      expect(await world.eventTypes("l", 1)).toEqual(["OrchestrationStarted", "OrchestrationContinuedAsNew"]);
      expect(await world.history("l", 2)).toMatchObject([
        { type: "OrchestrationStarted", version: "3.0.0" },
        { type: "OrchestrationFailed", details: tooOften },
      ]);
    });

    test("is left alone for as long as the backoff says", async () => {
      await using world = await store.world();
      await world.start({ orchestrations: [known], unregisteredBackoff: { baseMs: 100, maxMs: 500 } });
      await world.client.start("Unknown", { instanceId: "u" });
      await world.advance(100 + 200 + 400 + 500);

      expect(world.factsOf("turn-abandoned").map(({ delayMs }) => delayMs)).toEqual([100, 200, 400, 500, 500]);
      expect(await world.client.getStatus("u")).toMatchObject({ status: "Pending" });
    });
  });

  describe("an activity that nobody here knows", () => {
    test("fails its orchestration as poison in the end, whatever that catches", async () => {
      await using world = await store.world();
      const other = activity("Other", () => "not asked for");
      const calls = orchestration("Calls", async (ctx) => ctx.scheduleActivity("Missing", 7).catch(() => "caught"));
      await world.start({ orchestrations: [calls], activities: [other], ...impatient });
      await world.client.start(calls, { instanceId: "c" });

      const details = { ...tooOften, messageType: { type: "Activity", activityName: "Missing", activityId: 2 } };
      expect(await world.settle(world.client.waitForOrchestration("c"))).toMatchObject({ status: "Failed", details });
      expect(eventsOf(await world.history("c"), "ActivityFailed")).toMatchObject([{ sourceEventId: 2, details }]);
      expect(world.factsOf("activity-unregistered").map(({ delayMs }) => delayMs)).toEqual([10, 20, 40]);
    });

    test("is told once for each name when it is scheduled, and what to do", async () => {
      await using world = await store.world();
      const records: LogRecord[] = [];
      const log = logTo((record) => void records.push(record), { level: "warn" });
      const forgets = orchestration("Forgets", async (ctx) => {
        await ctx.utcNow();
        await ctx.readKv("other", "key");
        await ctx.race([ctx.scheduleActivity("Charge"), ctx.scheduleActivity("Charge"), ctx.scheduleTimer("1s")]);
      });
      await world.start({ orchestrations: [forgets], observers: [log] });
      await world.run(forgets, { instanceId: "a" });
      await world.run(forgets, { instanceId: "b" });

      expect(world.factsOf("unregistered-activity-scheduled")).toMatchObject([
        { ref: { instanceId: "a", orchestrationName: "Forgets" }, activityName: "Charge" },
      ]);
      expect(records).toMatchObject([
        {
          level: "warn",
          message:
            "activity 'Charge' of orchestration 'Forgets' is not registered with this runtime: register it here, " +
            "or run a worker elsewhere that has it (workerConcurrency: 0 silences this)",
          fields: { instance_id: "a", activity_name: "Charge" },
        },
      ]);
    });

    test.each([
      ["takes no activities", { workerConcurrency: 0 }],
      ["serves no such tag", { tagFilter: { kind: "tags", tags: ["cpu"] } }],
    ] as const)("is not told by a runtime that %s", async (_which, options) => {
      await using world = await store.world();
      const calls = orchestration("Calls", async (ctx) => {
        await ctx.race([ctx.scheduleActivity("Render", 1, { tag: "gpu" }), ctx.scheduleTimer("1s")]);
      });
      await world.start({ orchestrations: [calls], ...options });
      await world.run(calls, { instanceId: "c" });

      expect(world.factsOf("unregistered-activity-scheduled")).toEqual([]);
    });
  });
});
