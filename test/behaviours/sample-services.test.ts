// Small programs that talk to the outside while they run, or that need workers of several kinds. R§4.5, R§4.8, R§4.11.

import { describe, expect, test } from "vitest";
import { activity, orchestration } from "../../src/define.js";
import type { OrchestrationContext } from "../../src/engine/orchestration-context.js";
import { mockActivity } from "../../src/testing/mock-activity.js";
import { waitForHistory } from "../../src/testing/seeds.js";
import { eventsOf } from "./events-of.js";
import { onEveryStore } from "./stores.js";

onEveryStore((store) => {
  describe("a service that reloads its configuration", () => {
    async function drain(ctx: OrchestrationContext, log: string[]): Promise<void> {
      for (;;) {
        const next = await ctx.race({
          update: ctx.dequeueEvent<string>("ConfigUpdate"),
          quiet: ctx.scheduleTimer("100ms"),
        });
        if (next.winner === "quiet") return;
        log.push(`applied:${next.value}`);
      }
    }

    test("applies every update once, in order, between the cycles of its work", async () => {
      await using world = await store.world();
      const work = mockActivity<string, string>("Work", (_ctx, cycle) => cycle);
      const service = orchestration("Service", async (ctx) => {
        const log: string[] = [];
        for (let cycle = 0; cycle < 3; cycle += 1) {
          await drain(ctx, log);
          log.push(await ctx.scheduleActivity(work, `cycle:${cycle}`));
        }
        return log;
      });
      await world.start({ orchestrations: [service], activities: [work] });
      const handle = await world.client.start(service, { instanceId: "s" });
      await handle.enqueueEvent("ConfigUpdate", "v1");
      await handle.enqueueEvent("ConfigUpdate", "v2");
      const isWorking = waitForHistory(
        world.provider,
        "s",
        (history) => eventsOf(history, "ActivityScheduled").some(({ input }) => input === '"cycle:0"'),
        { clock: world.clock },
      );
      await world.settle(isWorking);
      await handle.enqueueEvent("ConfigUpdate", "v3");

      expect(await world.settle(handle.result())).toEqual([
        "applied:v1",
        "applied:v2",
        "cycle:0",
        "applied:v3",
        "cycle:1",
        "cycle:2",
      ]);
      expect(eventsOf(await world.history("s"), "ExternalEventPersistent").map(({ data }) => data)).toEqual([
        '"v1"',
        '"v2"',
        '"v3"',
      ]);
    });
  });

  describe("a service that answers through its values", () => {
    interface Request {
      readonly opId: string;
      readonly command: string;
    }

    test("is asked by events and read by its client, even after its end", async () => {
      await using world = await store.world();
      const reverse = activity("Reverse", (_ctx, text: string) => [...text].toReversed().join(""));
      const server = orchestration("Server", async (ctx) => {
        ctx.kv.set("status", "ready");
        for (let served = 0; served < 3; served += 1) {
          const { opId, command } = await ctx.waitForEvent<Request>("request");
          ctx.kv.set("status", "processing");
          ctx.kv.set(`response:${opId}`, await ctx.scheduleActivity(reverse, command));
          ctx.kv.set("status", "ready");
        }
        ctx.kv.set("status", "shutdown");
        return "served 3 requests";
      });
      await world.start({ orchestrations: [server], activities: [reverse] });
      const handle = await world.client.start(server, { instanceId: "s" });
      expect(await world.settle(handle.waitForKv("status"))).toBe("ready");

      const answers: unknown[] = [];
      for (const [opId, command] of [
        ["op-1", "hello"],
        ["op-2", "world"],
        ["op-3", "rust"],
      ] as const) {
        await handle.raiseEvent<Request>("request", { opId, command });
        answers.push(await world.settle(handle.waitForKv(`response:${opId}`)));
      }

      expect(answers).toEqual(["olleh", "dlrow", "tsur"]);
      expect(await world.settle(handle.result())).toBe("served 3 requests");
      expect(await world.client.getKvAllValues("s")).toEqual(
        new Map([
          ["response:op-1", "olleh"],
          ["response:op-2", "dlrow"],
          ["response:op-3", "tsur"],
          ["status", "shutdown"],
        ]),
      );
    });

    test("is read by another orchestration, which looks until it finds what it needs", async () => {
      await using world = await store.world();
      const square = activity("Square", (_ctx, n: number) => n * n);
      const producer = orchestration("Producer", async (ctx, n: number) => {
        await ctx.scheduleTimer("250ms");
        const result = await ctx.scheduleActivity(square, n);
        ctx.kv.set("result", result);
        ctx.kv.set("status", "done");
        await ctx.waitForEvent("ack");
        return `produced:${result}`;
      });
      const consumer = orchestration("Consumer", async (ctx, from: string) => {
        while ((await ctx.readKv<string>(from, "status")) !== "done") await ctx.scheduleTimer("100ms");
        return `consumed:${await ctx.readKv<number>(from, "result")}`;
      });
      await world.start({ orchestrations: [producer, consumer], activities: [square] });
      const produced = await world.client.start(producer, { instanceId: "p", input: 7 });

      expect(await world.run(consumer, { instanceId: "c", input: "p" })).toBe("consumed:49");
      const answers = eventsOf(await world.history("c"), "ActivityCompleted").map(({ result }) => JSON.parse(result));
      expect(answers).toEqual([null, null, null, '"done"', "49"]);
      expect(await world.client.getStatus("p")).toMatchObject({ status: "Running" });
      await produced.raiseEvent("ack");
      expect(await world.settle(produced.result())).toBe("produced:49");
    });
  });

  describe("work for workers of several kinds", () => {
    test("is done step by step by one that takes all of them, and history says which", async () => {
      await using world = await store.world();
      const render = activity("Render", (_ctx, frame: string) => `rendered:${frame}`);
      const encode = activity("Encode", (_ctx, frame: string) => `encoded:${frame}`);
      const upload = activity("Upload", (_ctx, frame: string) => `uploaded:${frame}`);
      const pipeline = orchestration("Pipeline", async (ctx, frame: string) => {
        const rendered = await ctx.scheduleActivity(render, frame, { tag: "gpu" });
        const encoded = await ctx.scheduleActivity(encode, rendered, { tag: "cpu" });
        return ctx.scheduleActivity(upload, encoded);
      });
      const activities = [render, encode, upload];
      await world.start({
        orchestrations: [pipeline],
        activities,
        tagFilter: { kind: "default-and", tags: ["gpu", "cpu"] },
      });

      const output = await world.run(pipeline, { instanceId: "p", input: "frame42" });
      expect(output).toBe("uploaded:encoded:rendered:frame42");
      const scheduled = eventsOf(await world.history("p"), "ActivityScheduled");
      expect(scheduled.map(({ tag }) => tag)).toEqual(["gpu", "cpu", undefined]);
    });

    test("can fall back where nobody takes it in time", async () => {
      await using world = await store.world();
      const onGpu = mockActivity<string, string>("GpuInference", (_ctx, model) => `gpu:${model}`);
      const onCpu = mockActivity<string, string>("CpuFallback", (_ctx, model) => `cpu_fallback:${model}`);
      const inference = orchestration("Inference", async (ctx, model: string) => {
        const first = await ctx.race({
          gpu: ctx.scheduleActivity(onGpu, model, { tag: "gpu" }),
          timeout: ctx.scheduleTimer("500ms"),
        });
        return first.winner === "gpu" ? first.value : ctx.scheduleActivity(onCpu, model);
      });
      await world.start({ orchestrations: [inference], activities: [onGpu, onCpu] });
      const startMs = world.clock.now();

      expect(await world.run(inference, { input: "model-v3" })).toBe("cpu_fallback:model-v3");
      expect(world.clock.now()).toBe(startMs + 500);
      expect(onGpu.calls).toEqual([]);
    });

    test("is shared by two runtimes, each of which does what is its own", async () => {
      await using world = await store.world();
      const preProcess = activity("PreProcess", (_ctx, text: string) => `preprocessed:${text}`);
      const gpuTrain = activity("GpuTrain", (_ctx, text: string) => `trained:${text}`);
      const saveModel = activity("SaveModel", (_ctx, text: string) => `saved:${text}`);
      const training = orchestration("Training", async (ctx, dataset: string) => {
        const prepared = await ctx.scheduleActivity(preProcess, dataset);
        const trained = await ctx.scheduleActivity(gpuTrain, prepared, { tag: "gpu" });
        return ctx.scheduleActivity(saveModel, trained);
      });
      const code = { orchestrations: [training], activities: [preProcess, gpuTrain, saveModel] };
      const main = await world.start(code);
      const gpu = await world.start({
        ...code,
        orchestrationConcurrency: 0,
        tagFilter: { kind: "tags", tags: ["gpu"] },
      });

      const output = await world.run(training, { instanceId: "t", input: "dataset-v5" });
      expect(output).toBe("saved:trained:preprocessed:dataset-v5");
      const ran = world.factsOf("activity-started").map(({ ref }) => [ref.activityName, ref.workerId]);
      expect(ran).toEqual([
        ["PreProcess", expect.stringContaining(main.runtime.id)],
        ["GpuTrain", expect.stringContaining(gpu.runtime.id)],
        ["SaveModel", expect.stringContaining(main.runtime.id)],
      ]);
      const scheduled = eventsOf(await world.history("t"), "ActivityScheduled");
      expect(scheduled.map(({ tag }) => tag)).toEqual([undefined, "gpu", undefined]);
    });
  });
});
