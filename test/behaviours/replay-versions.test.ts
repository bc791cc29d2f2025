// Every execution is pinned to the engine that began it, and only runtimes that replay that version take it. R§2.2, R§6.6.

import { describe, expect, test } from "vitest";
import { orchestration } from "../../src/define.js";
import { CORRUPT_HISTORY_EVENT_ID, ENGINE_VERSION } from "../../src/history/event.js";
import type { Provider } from "../../src/provider/provider.js";
import { supports } from "../../src/provider-tests/builders.js";
import { fetchTurn, takeTurn } from "../../src/provider-tests/steps.js";
import { type LogRecord, logTo } from "../../src/runtime/log.js";
import { FilterBypassProvider } from "../../src/testing/filter-bypass-provider.js";
import { createExecution, seedInstanceWithPinnedVersion } from "../../src/testing/seeds.js";
import { altered } from "../altered.js";
import { eventsOf } from "./events-of.js";
import { onEveryStore } from "./stores.js";

const waits = orchestration("Waits", async (ctx) => ctx.waitForEvent<string>("go"));
/** The code of whoever goes on with a seeded instance. */
const goesOn = orchestration("Begun", async () => "went on");

/** An instance that an engine of that version has begun, and a message for it, so that there is something to go on with. */
async function seedBegun(provider: Provider, instance: string, engineVersion: string): Promise<void> {
  await seedInstanceWithPinnedVersion(provider, instance, engineVersion, { orchestration: "Begun", input: "null" });
  await provider.enqueueForOrchestrator({ type: "ExternalRaised", instance, name: "go", data: "null" });
}

/** An engine older than this one, by so many patches. */
function patchesBefore(patches: number): string {
  const [major, minor, patch] = ENGINE_VERSION.split(".").map(Number);
  return `${major}.${minor}.${patch! - patches}`;
}

onEveryStore((store) => {
  describe("a new execution", () => {
    test("is pinned to the engine that begins it", async () => {
      await using world = await store.world();
      const runtime = await world.start({ orchestrations: [waits] });
      await world.client.start(waits, { instanceId: "w" });
      await world.rest();
      await runtime.shutdown();
      await world.client.raiseEvent("w", "go", "on");

      const [started] = eventsOf(await world.history("w"), "OrchestrationStarted");
      expect(started?.duroxideVersion).toBe(ENGINE_VERSION);
      const below = supports(`0.0.0..${patchesBefore(1)}`);
      expect(await fetchTurn(world.provider, { capability: below })).toBeNull();
      const exactly = supports(`${ENGINE_VERSION}..${ENGINE_VERSION}`);
      expect(await fetchTurn(world.provider, { capability: exactly })).toMatchObject({ item: { instance: "w" } });
    });

    test("of a sub-orchestration is pinned by itself", async () => {
      await using world = await store.world();
      const child = orchestration("Child", async () => "child-ok");
      const parent = orchestration("Parent", async (ctx) => ctx.scheduleSubOrchestration(child));
      await world.start({ orchestrations: [parent, child] });

      expect(await world.run(parent, { instanceId: "p" })).toBe("child-ok");
      for (const instance of ["p", "p::sub::2"]) {
        const [started] = await world.history(instance);
        expect(started).toMatchObject({ type: "OrchestrationStarted", duroxideVersion: ENGINE_VERSION });
      }
    });
  });

  describe("by default a runtime", () => {
    test("goes on with what it has begun itself", async () => {
      await using world = await store.world();
      const compatible = orchestration("Compatible", async (ctx) => {
        await ctx.scheduleTimer("1s");
        return "compatible-ok";
      });
      await world.start({ orchestrations: [compatible] });

      expect(await world.run(compatible)).toBe("compatible-ok");
      expect(world.factsOf("turn-abandoned")).toEqual([]);
    });

    test.each([
      ["the first engine", "0.0.0"],
      ["the engine before its own", patchesBefore(1)],
      ["an engine like its own", ENGINE_VERSION],
    ])("goes on with what %s has begun", async (_which, version) => {
      await using world = await store.world();
      await seedBegun(world.provider, "w", version);
      await world.start({ orchestrations: [goesOn] });

      expect(await world.ending("w")).toEqual({ status: "Completed", output: '"went on"' });
    });

    test("takes what is pinned to no engine: a queued start, and an execution without a version", async () => {
      await using world = await store.world();
      await createExecution(world.provider, "begun", { orchestration: "Begun", input: "null" });
      await world.client.raiseEvent("begun", "go");
      await world.client.start(goesOn, { instanceId: "queued" });
      await world.start({ orchestrations: [goesOn] });

      for (const instance of ["begun", "queued"]) {
        expect(await world.ending(instance)).toEqual({ status: "Completed", output: '"went on"' });
      }
    });

    test.each([
      ["500ms", {}],
      ["2s", {}],
      ["2s", { maxAttempts: 3 }],
      ["1d", { maxAttempts: 3 }],
    ] as const)("leaves alone what a later engine has begun, still after %s, with %o", async (after, options) => {
      await using world = await store.world();
      await seedBegun(world.provider, "future", "99.0.0");
      await world.start({ orchestrations: [goesOn], ...options });
      await world.client.start(goesOn, { instanceId: "present" });
      expect(await world.ending("present")).toMatchObject({ status: "Completed" });
      await world.advance(after);

      expect(await world.client.getStatus("future")).toMatchObject({ status: "Running" });
      expect(world.factsOf("turn-abandoned")).toEqual([]);
      expect(await takeTurn(world.provider)).toMatchObject({ item: { instance: "future" }, attemptCount: 1 });
    });
  });

  describe("the range of a runtime", () => {
    test("that is narrowed leaves alone what lies below it", async () => {
      await using world = await store.world();
      await seedBegun(world.provider, "older", patchesBefore(20));
      await seedBegun(world.provider, "old", patchesBefore(5));
      const supportedReplayVersions = { min: patchesBefore(10), max: patchesBefore(1) };
      await world.start({ orchestrations: [goesOn], supportedReplayVersions });

      expect(await world.ending("old")).toMatchObject({ status: "Completed" });
      await world.advance("1h");
      expect(await world.client.getStatus("older")).toMatchObject({ status: "Running" });
    });

    test("may overlap with another's: what lies in both is done once", async () => {
      await using world = await store.world();
      await seedBegun(world.provider, "w", patchesBefore(10));
      let runs = 0;
      const counted = orchestration("Begun", async () => {
        runs += 1;
        return "went on";
      });
      for (const supportedReplayVersions of [
        { min: patchesBefore(20), max: patchesBefore(5) },
        { min: patchesBefore(15), max: ENGINE_VERSION },
      ]) {
        await world.start({ orchestrations: [counted], supportedReplayVersions });
      }

      expect(await world.ending("w")).toEqual({ status: "Completed", output: '"went on"' });
      await world.advance("1m");
      expect(runs).toBe(1);
      expect(world.factsOf("orchestration-ended")).toHaveLength(1);
    });

    test("decides in a mixed cluster who does what, and all of it is done", async () => {
      await using world = await store.world();
      const [old, recent] = [patchesBefore(20), patchesBefore(5)];
      for (const instance of ["old-1", "old-2", "old-3"]) await seedBegun(world.provider, instance, old);
      for (const instance of ["recent-1", "recent-2"]) await seedBegun(world.provider, instance, recent);
      for (const [name, range] of [
        ["old", { min: patchesBefore(25), max: patchesBefore(15) }],
        ["recent", { min: patchesBefore(10), max: ENGINE_VERSION }],
      ] as const) {
        const byWhom = orchestration("Begun", async () => `by the ${name} one`);
        await world.start({ orchestrations: [byWhom], supportedReplayVersions: range });
      }

      for (const instance of ["old-1", "old-2", "old-3", "recent-1", "recent-2"]) {
        const output = `"by the ${instance.split("-")[0]} one"`;
        expect(await world.ending(instance)).toEqual({ status: "Completed", output });
      }
    });

    test("is looked at, not changed: a pinned version stays in its history", async () => {
      await using world = await store.world();
      const pinned = patchesBefore(26);
      await seedBegun(world.provider, "w", pinned);
      await world.start({ orchestrations: [goesOn], supportedReplayVersions: { min: "0.0.0", max: ENGINE_VERSION } });
      await world.ending("w");

      const history = await world.history("w");
      expect(history[0]).toMatchObject({ type: "OrchestrationStarted", duroxideVersion: pinned });
      expect(history.at(-1)).toMatchObject({ type: "OrchestrationCompleted", duroxideVersion: ENGINE_VERSION });
    });

    test("cannot reach above the runtime's own engine, not even to drain what is stuck", async () => {
      await using world = await store.world();
      const start = world.start({ supportedReplayVersions: { min: "0.0.0", max: "99.0.0" } });

      await expect(start).rejects.toThrow(/ends at 99\.0\.0, above this engine's own version/);
    });

    test("is told at the start, as information", async () => {
      await using world = await store.world();
      const records: LogRecord[] = [];
      const observers = [logTo((record) => records.push(record), { level: "info" })];
      await world.start({ observers });
      await world.start({ observers, supportedReplayVersions: { min: "0.1.2", max: "0.1.3" } });

      expect(records.map(({ level, fields }) => [level, fields.replay_versions])).toEqual([
        ["info", `0.0.0 to ${ENGINE_VERSION}`],
        ["info", "0.1.2 to 0.1.3"],
      ]);
      expect(records[0]?.message).toContain(`duroxide runtime (${ENGINE_VERSION}) starting`);
    });
  });

  describe("a store that hands out what was not asked for", () => {
    test("has it back from the runtime, with a warning that names the instance and both versions", async () => {
      await using world = await store.world();
      await seedBegun(world.provider, "future", "99.0.0");
      const records: LogRecord[] = [];
      const provider = new FilterBypassProvider(world.provider);
      const observers = [logTo((record) => records.push(record), { level: "warn" })];
      await world.start({ provider, orchestrations: [goesOn], observers });
      await world.advance("2s");

      expect(records[0]).toMatchObject({
        level: "warn",
        message: expect.stringMatching(/incompatible version: .* pinned to engine 99\.0\.0, .* replays 0\.0\.0 to /),
        fields: { instance_id: "future", delay_ms: 1_000 },
      });
      expect(await world.client.getStatus("future")).toMatchObject({ status: "Running" });
    });
  });

  describe("a history that nobody can read", () => {
    test("is left for others a few times, and then fails its instance as poison", async () => {
      await using world = await store.world({ hasBrokenHistories: true });
      await seedBegun(world.provider, "w", ENGINE_VERSION);
      const unreadable = altered(world.provider, {
        fetchOrchestrationItem: async ({ warm: _none, ...options }) => {
          const locked = await world.provider.fetchOrchestrationItem(options);
          if (locked === null) return null;
          return { ...locked, item: { ...locked.item, history: [], historyError: "unknown event type 'Quux'" } };
        },
      });
      const options = { maxAttempts: 3, orchestratorLockTimeoutMs: 500 };
      await world.start({ provider: unreadable, orchestrations: [goesOn], ...options });
      const startMs = world.clock.now();

      expect(await world.ending("w")).toEqual({
        status: "Failed",
        output: expect.stringContaining("history deserialization failed after 4 attempts (max 3): unknown event type"),
      });
      expect(world.clock.now() - startMs).toBeLessThanOrEqual(10_000);
      expect(await world.client.getInstanceInfo("w")).toMatchObject({ status: "Failed" });
      expect((await world.history("w")).at(-1)).toMatchObject({
        eventId: CORRUPT_HISTORY_EVENT_ID,
        type: "OrchestrationFailed",
        details: { category: "poison", messageType: { type: "FailedDeserialization", instance: "w" } },
      });
    });
  });

  describe("a result of the execution before", () => {
    test("is dropped by the next one, which goes on as if nothing had come", async () => {
      await using world = await store.world();
      const renewed = orchestration("Renewed", async (ctx, round: number): Promise<string> => {
        if (round === 1) return ctx.continueAsNew(2);
        const abandoned = ctx.scheduleActivity<string>("Elsewhere");
        const event = ctx.waitForEvent<string>("go");
        return (await ctx.race([abandoned, event])).value;
      });
      await world.start({ orchestrations: [renewed], workerConcurrency: 0 });
      const handle = await world.client.start(renewed, { instanceId: "r", input: 1 });
      await world.rest();
      await world.provider.enqueueForOrchestrator({
        type: "ActivityCompleted",
        instance: "r",
        executionId: 1,
        id: 2,
        result: '"late"',
      });
      await world.rest();
      expect(await world.eventTypes("r", 2)).not.toContain("ActivityCompleted");
      expect(world.factsOf("messages-dropped")).toMatchObject([{ instanceId: "r", count: 1 }]);
      await world.client.raiseEvent("r", "go", "event");

      expect(await world.settle(handle.result())).toBe("event");
      expect(await world.eventTypes("r", 1)).toEqual(["OrchestrationStarted", "OrchestrationContinuedAsNew"]);
    });
  });
});
