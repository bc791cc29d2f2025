// Code that does not fit its history, and messages that fit nothing. R§2.7, R§3.7.

import { describe, expect, test } from "vitest";
import { sleep } from "../../src/clock.js";
import { activity, orchestration } from "../../src/define.js";
import type { OrchestratorItem } from "../../src/history/work-item.js";
import { type LogRecord, logTo } from "../../src/runtime/log.js";
import { onEveryStore } from "./stores.js";

const a1 = activity("A1", () => "from A1");
const b1 = activity("B1", () => "from B1");

onEveryStore((store) => {
  describe("an instance whose code was changed while it ran", () => {
    const before = orchestration("Job", async (ctx) => ctx.scheduleActivity(a1, undefined));
    const after = orchestration("Job", async (ctx) => ctx.scheduleActivity(b1, undefined));

    test("fails as soon as the new code asks for something else, and says what and where", async () => {
      await using world = await store.world();
      const runtime = await world.start({ orchestrations: [before], activities: [a1, b1], workerConcurrency: 0 });
      await world.client.start(before, { instanceId: "j" });
      await world.rest();
      await runtime.shutdown();
      await runtime.restart({ orchestrations: [after], workerConcurrency: 1 });

      const ended = await world.settle(world.client.waitForOrchestration("j"));
      expect(ended).toMatchObject({
        status: "Failed",
        details: { category: "configuration", kind: "Nondeterminism" },
        error: expect.stringMatching(/^nondeterministic: schedule mismatch: event 2: .*"B1".* vs .*"A1"/),
      });
      expect(world.factsOf("activity-started").map(({ ref }) => ref.activityName)).toEqual(["A1"]);
      expect(await world.eventTypes("j")).toEqual([
        "OrchestrationStarted",
        "ActivityScheduled",
        "ActivityCompleted",
        "OrchestrationFailed",
      ]);
    });

    test("goes on where the new code differs only after what history records", async () => {
      await using world = await store.world();
      const longer = orchestration("Job", async (ctx) => [
        await ctx.scheduleActivity(a1, undefined),
        await ctx.scheduleActivity(b1, undefined),
      ]);
      const runtime = await world.start({ orchestrations: [before], activities: [a1, b1], workerConcurrency: 0 });
      await world.client.start(before, { instanceId: "j" });
      await world.rest();
      await runtime.shutdown();
      await runtime.restart({ orchestrations: [longer], workerConcurrency: 1 });

      expect(await world.ending("j")).toEqual({ status: "Completed", output: '["from A1","from B1"]' });
    });
  });

  describe("an answer to something that nobody has asked for", () => {
    const waits = orchestration("Waits", async (ctx) => ctx.waitForEvent<string>("go"));
    const to = { instance: "w", executionId: 1 };
    const parent = { parentInstance: "w", parentExecutionId: 1 };

    test.each<[string, OrchestratorItem, string]>([
      [
        "of an activity",
        { type: "ActivityCompleted", ...to, id: 999, result: '"bogus"' },
        "ActivityCompleted for event 999",
      ],
      [
        "of an activity, for the event that started the instance",
        { type: "ActivityCompleted", ...to, id: 1, result: "1" },
        "ActivityCompleted for event 1",
      ],
      ["of a timer", { type: "TimerFired", ...to, id: 123, fireAtMs: 0 }, "TimerFired for event 123"],
      [
        "of a sub-orchestration",
        { type: "SubOrchCompleted", ...parent, parentId: 77, result: "null" },
        "SubOrchCompleted for event 77",
      ],
    ])("is dropped and reported, and the instance goes on: %s", async (_what, message, first) => {
      await using world = await store.world();
      const errors: LogRecord[] = [];
      const log = logTo((record) => void errors.push(record), { level: "error" });
      const runtime = await world.start({ orchestrations: [waits], observers: [log] });
      const handle = await world.client.start(waits, { instanceId: "w" });
      await world.rest();
      await world.provider.enqueueForOrchestrator(message);
      await world.rest();

      expect(world.factsOf("messages-dropped")).toMatchObject([
        { instanceId: "w", why: "no-matching-schedule", count: 1, first },
      ]);
      expect(errors).toMatchObject([
        { message: "messages dropped (no-matching-schedule)", fields: { instance_id: "w", count: 1, first } },
      ]);
      expect(runtime.metrics.snapshot().messagesDropped).toBe(1);
      expect(await world.eventTypes("w")).toEqual(["OrchestrationStarted", "ExternalSubscribed"]);
      await handle.raiseEvent("go", "on");
      expect(await world.settle(handle.result())).toBe("on");
    });
  });

  describe("an answer of another execution than the only one", () => {
    test("leaves the real one its place", async () => {
      await using world = await store.world();
      const slow = activity("Slow", async () => {
        await sleep(world.clock, 1_000);
        return "activity result";
      });
      const calls = orchestration("Calls", async (ctx) => ctx.scheduleActivity(slow));
      await world.start({ orchestrations: [calls], activities: [slow] });
      const handle = await world.client.start(calls, { instanceId: "c" });
      await world.advance(500);
      const item = { instance: "c", executionId: 999, id: 2, result: '"forged"' };
      await world.provider.enqueueForOrchestrator({ type: "ActivityCompleted", ...item });

      expect(await world.settle(handle.result())).toBe("activity result");
      expect(world.factsOf("messages-dropped")).toMatchObject([{ instanceId: "c", why: "other-execution", count: 1 }]);
      expect(await world.eventTypes("c")).toEqual([
        "OrchestrationStarted",
        "ActivityScheduled",
        "ActivityCompleted",
        "OrchestrationCompleted",
      ]);
    });
  });
});
