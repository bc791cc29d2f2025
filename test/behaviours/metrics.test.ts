// What the metrics of a runtime say of what happened in it. R§8.3.

import { describe, expect, test } from "vitest";
import { sleep } from "../../src/clock.js";
import { activity, orchestration } from "../../src/define.js";
import { FailingProvider } from "../../src/testing/failing-provider.js";
import { mockActivity } from "../../src/testing/mock-activity.js";
import { PoisonInjectingProvider } from "../../src/testing/poison-injecting-provider.js";
import type { TestRuntime } from "../../src/testing/test-runtime.js";
import { onEveryStore } from "./stores.js";

const greet = activity("Greet", (_ctx, name: string) => `Hello, ${name}`);
const greeting = orchestration("Greeting", async (ctx, name: string) => ctx.scheduleActivity(greet, name));

const decline = activity("Decline", (): string => {
  throw new Error("declined");
});
const declining = orchestration("Declining", async (ctx) => ctx.scheduleActivity(decline));
const missing = orchestration("Missing", async (ctx) => ctx.scheduleActivity<string>("NotRegistered"));

/** So that what nobody can run is given up within a second. */
const IMPATIENT = { maxAttempts: 2, unregisteredBackoff: { baseMs: 10, maxMs: 10 } };

/** The samples of one metric, as Prometheus reads them. */
function samples({ metrics }: TestRuntime, name: string): string[] {
  const lines = metrics.toPrometheus().split("\n");
  return lines.filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
}

onEveryStore((store) => {
  describe("the metrics of a runtime", () => {
    test("name the orchestration, its version and who started it, and the activity", async () => {
      await using world = await store.world();
      const runtime = await world.start({ orchestrations: [greeting], activities: [greet] });
      await world.run(greeting, { input: "Ada" });

      const labels = 'orchestration_name="Greeting",version="1.0.0"';
      expect(samples(runtime, "duroxide_orchestration_starts_total")).toEqual([
        `duroxide_orchestration_starts_total{${labels},initiated_by="client"} 1`,
      ]);
      expect(samples(runtime, "duroxide_orchestration_completions_total")).toEqual([
        `duroxide_orchestration_completions_total{${labels},status="success",final_turn_count="1-5"} 1`,
      ]);
      expect(samples(runtime, "duroxide_activity_executions_total")).toEqual([
        'duroxide_activity_executions_total{activity_name="Greet",outcome="success",retry_attempt="0",tag="default"} 1',
      ]);
      expect(runtime.metrics.snapshot()).toMatchObject({
        orchestrationStarts: 1,
        orchestrationCompletions: 1,
        orchestrationFailures: 0,
        activitySuccess: 1,
      });
    });

    test("count each execution of a chain, and none of them twice", async () => {
      await using world = await store.world();
      const chain = orchestration("Chain", async (ctx, n: number): Promise<number> => {
        return n < 3 ? ctx.continueAsNew(n + 1) : n;
      });
      const runtime = await world.start({ orchestrations: [chain] });
      await world.run(chain, { input: 1 });

      expect(runtime.metrics.snapshot()).toMatchObject({
        orchestrationStarts: 3,
        orchestrationContinueAsNew: 2,
        orchestrationCompletions: 1,
        orchestrationFailures: 0,
        activeOrchestrations: 0,
      });
      expect(samples(runtime, "duroxide_orchestration_starts_total")).toEqual([
        'duroxide_orchestration_starts_total{orchestration_name="Chain",version="1.0.0",initiated_by="client"} 1',
        'duroxide_orchestration_starts_total{orchestration_name="Chain",version="1.0.0",initiated_by="continueAsNew"} 2',
      ]);
      expect(samples(runtime, "duroxide_orchestration_continue_as_new_total")).toEqual([
        'duroxide_orchestration_continue_as_new_total{orchestration_name="Chain"} 2',
      ]);
    });

    test("measure how long activities and orchestrations took, waits included", async () => {
      await using world = await store.world();
      const slow = activity("Slow", () => sleep(world.clock, 5_000));
      const fast = activity("Fast", () => "fast");
      const both = orchestration("Both", async (ctx) => {
        await ctx.scheduleActivity(slow);
        await ctx.scheduleTimer("1m");
        return ctx.scheduleActivity(fast);
      });
      const runtime = await world.start({ orchestrations: [both], activities: [slow, fast] });
      await world.run(both);

      expect(runtime.metrics.snapshot().activitySuccess).toBe(2);
      expect(samples(runtime, "duroxide_activity_duration_seconds_sum")).toEqual([
        'duroxide_activity_duration_seconds_sum{activity_name="Slow",outcome="success",tag="default"} 5',
        'duroxide_activity_duration_seconds_sum{activity_name="Fast",outcome="success",tag="default"} 0',
      ]);
      expect(samples(runtime, "duroxide_orchestration_duration_seconds_sum")).toEqual([
        'duroxide_orchestration_duration_seconds_sum{orchestration_name="Both",version="1.0.0",status="success"} 65',
      ]);
    });

    test("count every version by itself", async () => {
      await using world = await store.world();
      const versions = ["1.0.0", "1.1.0", "2.0.0"];
      const orchestrations = versions.map((version) => orchestration({ name: "Job", version }, async () => version));
      const runtime = await world.start({ orchestrations });
      for (const definition of orchestrations) await world.run(definition);

      expect(runtime.metrics.snapshot().orchestrationCompletions).toBe(3);
      expect(samples(runtime, "duroxide_orchestration_completions_total")).toEqual(
        versions.map(
          (version) =>
            `duroxide_orchestration_completions_total{orchestration_name="Job",version="${version}",status="success",final_turn_count="1-5"} 1`,
        ),
      );
    });

    test("count calls of children under both names, with the time that they took", async () => {
      await using world = await store.world();
      const work = activity("Work", async () => {
        await sleep(world.clock, 50);
        return "worked";
      });
      const child = orchestration("ChildOrch", async (ctx) => `child:${await ctx.scheduleActivity(work)}`);
      const parent = orchestration("ParentOrch", async (ctx) => [
        await ctx.scheduleSubOrchestration(child),
        await ctx.scheduleSubOrchestration(child),
      ]);
      const runtime = await world.start({ orchestrations: [parent, child], activities: [work] });

      expect(await world.run(parent)).toEqual(["child:worked", "child:worked"]);
      expect(runtime.metrics.snapshot()).toMatchObject({ orchestrationCompletions: 3, suborchestrationCalls: 2 });
      const labels = 'parent_orchestration="ParentOrch",child_orchestration="ChildOrch",outcome="success"';
      expect(samples(runtime, "duroxide_suborchestration_calls_total")).toEqual([
        `duroxide_suborchestration_calls_total{${labels}} 2`,
      ]);
      expect(samples(runtime, "duroxide_suborchestration_duration_seconds_sum")).toEqual([
        `duroxide_suborchestration_duration_seconds_sum{${labels}} 0.1`,
      ]);
    });
  });

  describe("failures", () => {
    test("of user code and of what nobody can run are counted apart, for orchestrations and for activities", async () => {
      await using world = await store.world();
      const runtime = await world.start({
        orchestrations: [declining, missing],
        activities: [decline],
        ...IMPATIENT,
      });
      for (const definition of [declining, missing]) {
        await world.client.start(definition, { instanceId: definition.name });
        await world.ending(definition.name);
      }

      expect(runtime.metrics.snapshot()).toMatchObject({
        orchestrationCompletions: 0,
        orchestrationFailures: 2,
        orchestrationApplicationErrors: 1,
        orchestrationPoison: 1,
        orchestrationInfrastructureErrors: 0,
        orchestrationConfigurationErrors: 0,
        activitySuccess: 0,
        activityApplicationErrors: 1,
        activityConfigurationErrors: 2,
        activityPoison: 1,
        activityInfrastructureErrors: 0,
      });
      expect(samples(runtime, "duroxide_orchestration_poison_total")).toEqual([
        "duroxide_orchestration_poison_total 1",
      ]);
      expect(samples(runtime, "duroxide_activity_poison_total")).toEqual(["duroxide_activity_poison_total 1"]);
      expect(samples(runtime, "duroxide_orchestration_failures_total")).toEqual([
        'duroxide_orchestration_failures_total{orchestration_name="Declining",version="1.0.0",error_type="app_error",error_category="OrchestrationFailed"} 1',
        'duroxide_orchestration_failures_total{orchestration_name="Missing",version="1.0.0",error_type="poison",error_category="Activity"} 1',
      ]);
    });

    test("of work that was fetched too often are poison, of an instance as of an activity", async () => {
      await using world = await store.world();
      const provider = new PoisonInjectingProvider(world.provider);
      const greeted = mockActivity(greet, () => "never");
      const runtime = await world.start({ provider, orchestrations: [greeting], activities: [greeted] });
      provider.injectOrchestrationPoison(11);
      await world.client.start(greeting, { instanceId: "instance", input: "Ada" });
      expect((await world.ending("instance")).status).toBe("Failed");
      expect(runtime.metrics.snapshot()).toMatchObject({ orchestrationPoison: 1, activityPoison: 0 });

      provider.injectActivityPoison(11);
      await world.client.start(greeting, { instanceId: "activity", input: "Ada" });
      expect((await world.ending("activity")).status).toBe("Failed");
      expect(runtime.metrics.snapshot()).toMatchObject({
        orchestrationFailures: 2,
        orchestrationPoison: 2,
        activityPoison: 1,
        activitySuccess: 0,
      });
      expect(greeted.calls).toEqual([]);
    });

    test("are told from what the store did: that fails nothing, and is counted as the store's", async () => {
      await using world = await store.world();
      const provider = new FailingProvider(world.provider);
      const runtime = await world.start({
        provider,
        orchestrations: [greeting, declining, missing],
        activities: [greet, decline],
        ...IMPATIENT,
      });

      provider.setAckThenFail(true);
      provider.failNextAckWorkItem();
      expect(await world.run(greeting, { instanceId: "reply lost", input: "Ada" })).toBe("Hello, Ada");
      expect(await world.run(greeting, { instanceId: "clean", input: "Bob" })).toBe("Hello, Bob");
      for (const definition of [declining, missing]) {
        await world.client.start(definition, { instanceId: definition.name });
        expect((await world.ending(definition.name)).status).toBe("Failed");
      }
      provider.failNextAckOrchestrationItem();
      expect(await world.run(greeting, { instanceId: "refused once", input: "Eve" })).toBe("Hello, Eve");

      expect(runtime.metrics.snapshot()).toMatchObject({
        orchestrationStarts: 5,
        orchestrationCompletions: 3,
        orchestrationFailures: 2,
        orchestrationApplicationErrors: 1,
        orchestrationInfrastructureErrors: 0,
        orchestrationPoison: 1,
        activitySuccess: 2,
        activityApplicationErrors: 1,
        activityConfigurationErrors: 2,
        activityPoison: 1,
        activityInfrastructureErrors: 1,
        providerErrors: 2,
      });
      expect(samples(runtime, "duroxide_provider_errors_total")).toEqual([
        'duroxide_provider_errors_total{operation="ack_work_item",error_type="invalid"} 1',
        'duroxide_provider_errors_total{operation="ack_orchestration_item",error_type="invalid"} 1',
      ]);
    });

    test("of changed code and of a worker that could not work have classes of their own", async () => {
      await using world = await store.world();
      const before = orchestration("Changes", async (ctx) => ctx.waitForEvent("go"));
      const after = orchestration("Changes", async (ctx) => ctx.scheduleTimer("1s"));
      const asks = orchestration("Asks", async (ctx) => ctx.scheduleActivity<string>("Elsewhere"));
      const runtime = await world.start({ orchestrations: [before, asks], workerConcurrency: 0 });
      await world.client.start("Changes", { instanceId: "c" });
      await world.rest();
      await runtime.restart({ orchestrations: [after, asks] });
      await world.client.raiseEvent("c", "go");
      expect((await world.ending("c")).output).toMatch(/^nondeterministic: /);

      await world.client.start(asks, { instanceId: "a" });
      await world.rest();
      const work = await world.provider.fetchWorkItem({ lockTimeoutMs: 1_000 });
      await world.provider.ackWorkItem(work?.lockToken ?? "none", {
        type: "ActivityFailed",
        instance: "a",
        executionId: 1,
        id: 2,
        details: { category: "infrastructure", operation: "disk", message: "full", retryable: false },
      });
      expect((await world.ending("a")).output).toBe("infrastructure:disk: full");

      expect(runtime.metrics.snapshot()).toMatchObject({
        orchestrationFailures: 2,
        orchestrationConfigurationErrors: 1,
        orchestrationInfrastructureErrors: 1,
        orchestrationApplicationErrors: 0,
        orchestrationPoison: 0,
      });
    });
  });

  describe("storage calls", () => {
    test("are counted and timed by operation", async () => {
      await using world = await store.world();
      const runtime = await world.start({ orchestrations: [greeting], activities: [greet] });
      await world.run(greeting, { input: "Ada" });

      const name = "duroxide_provider_operation_duration_seconds_count";
      expect(samples(runtime, name)).toEqual(
        expect.arrayContaining([
          `${name}{operation="ack_orchestration_item",status="success"} 2`,
          `${name}{operation="ack_work_item",status="success"} 1`,
        ]),
      );
      expect(runtime.metrics.snapshot()).toMatchObject({
        orchestrationDispatcherItemsFetched: 2,
        workerDispatcherItemsFetched: 1,
        providerErrors: 0,
      });
    });

    test("that fail are counted by kind, and the runtime goes on", async () => {
      await using world = await store.world();
      const provider = new FailingProvider(world.provider);
      provider.failNextFetchOrchestrationItem();
      const runtime = await world.start({ provider, orchestrations: [greeting], activities: [greet] });

      expect(await world.run(greeting, { input: "Ada" })).toBe("Hello, Ada");
      expect(runtime.metrics.snapshot().providerErrors).toBe(1);
      expect(samples(runtime, "duroxide_provider_errors_total")).toEqual([
        'duroxide_provider_errors_total{operation="fetch_orchestration_item",error_type="transient"} 1',
      ]);
    });
  });

  describe("the gauges", () => {
    const waits = orchestration("Waits", async (ctx) => ctx.scheduleTimer("30s"));
    const waitsForEvent = orchestration("WaitsForEvent", async (ctx) => ctx.waitForEvent("go"));

    test("are zero before anything was measured", async () => {
      await using world = await store.world();
      const runtime = await world.start({ orchestrations: [waits] });

      expect(runtime.metrics.snapshot()).toMatchObject({
        orchestratorQueueDepth: 0,
        workerQueueDepth: 0,
        activeOrchestrations: 0,
      });
    });

    test("show what is active, and nothing any more when it has ended", async () => {
      await using world = await store.world();
      const runtime = await world.start({ orchestrations: [waits] });
      const handles = await Promise.all(["a", "b", "c"].map((instanceId) => world.client.start(waits, { instanceId })));
      await world.advance("500ms");
      await runtime.runtime.refreshGauges();
      expect(runtime.metrics.snapshot()).toMatchObject({ activeOrchestrations: 3, workerQueueDepth: 0 });

      await world.settle(Promise.all(handles.map((handle) => handle.result())));
      await runtime.runtime.refreshGauges();
      expect(runtime.metrics.snapshot()).toMatchObject({ activeOrchestrations: 0, orchestratorQueueDepth: 0 });
    });

    test("follow starts and endings in this process without being measured, over continue-as-new as well", async () => {
      await using world = await store.world();
      const again = orchestration("Again", async (ctx, n: number): Promise<void> => {
        await ctx.waitForEvent("go");
        if (n > 0) return ctx.continueAsNew(n - 1);
      });
      const runtime = await world.start({ orchestrations: [again, waitsForEvent] });
      const active = () => runtime.metrics.snapshot().activeOrchestrations;
      for (const instanceId of ["a", "b"]) await world.client.start(waitsForEvent, { instanceId });
      await world.client.start(again, { instanceId: "c", input: 1 });
      await world.rest();
      expect(active()).toBe(3);

      for (const expected of [3, 2]) {
        await world.client.raiseEvent("c", "go");
        await world.rest();
        expect(active()).toBe(expected);
      }
      for (const instanceId of ["a", "b"]) await world.client.raiseEvent(instanceId, "go");
      await world.rest();
      expect(active()).toBe(0);
    });

    test("show what was queued before the runtime started, and what workers have yet to do", async () => {
      await using world = await store.world();
      const ids = ["1", "2", "3", "4", "5"];
      for (const instanceId of ids) await world.client.start(greeting, { instanceId, input: "Ada" });
      const watcher = await world.start({ orchestrationConcurrency: 0, workerConcurrency: 0 });
      const depths = async () => {
        await watcher.runtime.refreshGauges();
        const { orchestratorQueueDepth, workerQueueDepth } = watcher.metrics.snapshot();
        return [orchestratorQueueDepth, workerQueueDepth];
      };
      expect(await depths()).toEqual([5, 0]);

      await world.start({ orchestrations: [greeting], workerConcurrency: 0 });
      await world.rest();
      expect(await depths()).toEqual([0, 5]);

      await world.start({ activities: [greet], orchestrationConcurrency: 0 });
      for (const instanceId of ids) expect((await world.ending(instanceId)).output).toBe('"Hello, Ada"');
      expect(await depths()).toEqual([0, 0]);
    });

    test("are read from the store again after a restart", async () => {
      await using world = await store.world();
      const asks = orchestration("Asks", async (ctx) => ctx.scheduleActivity<string>("Elsewhere"));
      const runtime = await world.start({ orchestrations: [waitsForEvent, asks], workerConcurrency: 0 });
      await world.client.start(waitsForEvent, { instanceId: "w" });
      await world.client.start(asks, { instanceId: "a" });
      await world.rest();
      await runtime.restart();
      await runtime.runtime.refreshGauges();

      expect(runtime.metrics.snapshot()).toMatchObject({
        orchestrationStarts: 0,
        activeOrchestrations: 2,
        orchestratorQueueDepth: 0,
        workerQueueDepth: 1,
      });
    });
  });
});
