// Activities that only some workers take, by their tag. R§4.5, R§6.8.

import { describe, expect, test } from "vitest";
import { activity, orchestration } from "../../src/define.js";
import { ActivityCancelledError } from "../../src/errors.js";
import type { Event, EventType } from "../../src/history/event.js";
import type { TagFilter } from "../../src/provider/provider.js";
import { mockActivity } from "../../src/testing/mock-activity.js";
import { onEveryStore } from "./stores.js";

const GPU_ONLY: TagFilter = { kind: "tags", tags: ["gpu"] };
const DEFAULT_AND_GPU: TagFilter = { kind: "default-and", tags: ["gpu"] };

const compute = activity<string, string>("Compute");

/** A worker's own implementation, which says where it ran. */
function computedOn(worker: string) {
  return mockActivity(compute, (_ctx, what) => `${what} on ${worker}`);
}

function eventsOf<T extends EventType>(history: readonly Event[], type: T): Extract<Event, { type: T }>[] {
  return history.filter((event): event is Extract<Event, { type: T }> => event.type === type);
}

onEveryStore((store) => {
  describe("an activity with a tag", () => {
    test("runs on a worker for the tag, which leaves untagged ones alone", async () => {
      await using world = await store.world();
      const both = orchestration("Both", async (ctx) => {
        const tagged = await ctx.scheduleActivity(compute, "tagged", { tag: "gpu" });
        const untagged = await ctx.race({
          done: ctx.scheduleActivity(compute, "untagged"),
          timeout: ctx.scheduleTimer("500ms"),
        });
        return [tagged, untagged.winner];
      });
      const computed = computedOn("gpu");
      await world.start({ orchestrations: [both], activities: [computed], tagFilter: GPU_ONLY });

      expect(await world.run(both, { instanceId: "b" })).toEqual(["tagged on gpu", "timeout"]);
      expect(computed.calls.map(({ input }) => input)).toEqual(["tagged"]);
      const scheduled = eventsOf(await world.history("b"), "ActivityScheduled");
      expect(scheduled).toMatchObject([{ input: '"tagged"', tag: "gpu" }, { input: '"untagged"' }]);
      expect(scheduled[1]).not.toHaveProperty("tag");
    });

    test("waits where no worker takes it, and a timer can go on without it", async () => {
      await using world = await store.world();
      const impatient = orchestration("Impatient", async (ctx) => {
        const { winner } = await ctx.race({
          computed: ctx.scheduleActivity(compute, "render", { tag: "gpu" }),
          "no gpu worker": ctx.scheduleTimer("500ms"),
        });
        return winner;
      });
      const computed = computedOn("default");
      await world.start({ orchestrations: [impatient], activities: [computed] });
      const startMs = world.clock.now();

      expect(await world.run(impatient, { instanceId: "i" })).toBe("no gpu worker");
      expect(world.clock.now()).toBe(startMs + 500);
      expect(computed.calls).toEqual([]);
      expect(await world.eventTypes("i")).toEqual([
        "OrchestrationStarted",
        "ActivityScheduled",
        "TimerCreated",
        "TimerFired",
        "ActivityCancelRequested",
        "OrchestrationCompleted",
      ]);
      expect(await world.provider.admin?.getQueueDepths()).toMatchObject({ workerQueue: 0 });
    });

    test("that loses a race is cancelled while it runs", async () => {
      await using world = await store.world();
      const aborts: unknown[] = [];
      const endless = activity(
        "Endless",
        ({ signal }) =>
          new Promise<void>((_resolve, reject) => {
            signal.addEventListener("abort", () => {
              aborts.push(signal.reason);
              reject(signal.reason);
            });
          }),
      );
      const limited = orchestration("Limited", async (ctx) => {
        const first = await ctx.race({
          done: ctx.scheduleActivity(endless, undefined, { tag: "gpu" }),
          timeout: ctx.scheduleTimer("200ms"),
        });
        return first.winner;
      });
      await world.start({ orchestrations: [limited], activities: [endless], tagFilter: DEFAULT_AND_GPU });

      expect(await world.run(limited, { instanceId: "l" })).toBe("timeout");
      await world.rest();
      expect(world.factsOf("activity-started")).toMatchObject([{ ref: { activityName: "Endless", tag: "gpu" } }]);
      expect(aborts).toEqual([expect.any(ActivityCancelledError)]);
      expect(eventsOf(await world.history("l"), "ActivityCancelRequested")).toMatchObject([
        { sourceEventId: 2, reason: "dropped_future" },
      ]);
      expect(await world.eventTypes("l")).not.toContain("ActivityCompleted");
    });

    test("keeps to its workers after continue-as-new", async () => {
      await using world = await store.world();
      const twice = orchestration("Twice", async (ctx, round: number): Promise<string> => {
        const result = await ctx.scheduleActivity(compute, `round ${round}`, { tag: "gpu" });
        return round === 1 ? ctx.continueAsNew(2) : result;
      });
      const [onDefault, onGpu] = [computedOn("default"), computedOn("gpu")];
      await world.start({ orchestrations: [twice], activities: [onDefault] });
      await world.start({ orchestrationConcurrency: 0, activities: [onGpu], tagFilter: GPU_ONLY });

      expect(await world.run(twice, { instanceId: "t", input: 1 })).toBe("round 2 on gpu");
      expect(onGpu.calls.map(({ input }) => input)).toEqual(["round 1", "round 2"]);
      expect(onDefault.calls).toEqual([]);
      expect(eventsOf(await world.history("t", 2), "ActivityScheduled")).toMatchObject([{ tag: "gpu" }]);
    });

    test("and one without go to different workers, and never to the other's", async () => {
      await using world = await store.world();
      const split = orchestration("Split", async (ctx) =>
        ctx.all([ctx.scheduleActivity(compute, "encode"), ctx.scheduleActivity(compute, "render", { tag: "gpu" })]),
      );
      const [onDefault, onGpu] = [computedOn("default"), computedOn("gpu")];
      await world.start({ orchestrations: [split], activities: [onDefault] });
      await world.start({ orchestrationConcurrency: 0, activities: [onGpu], tagFilter: GPU_ONLY });

      expect(await world.run(split)).toEqual(["encode on default", "render on gpu"]);
      expect(onDefault.calls.map(({ input }) => input)).toEqual(["encode"]);
      expect(onGpu.calls.map(({ input }) => input)).toEqual(["render"]);
    });
  });

  describe("the tag", () => {
    const echoTag = activity("EchoTag", ({ tag }) => tag);

    test("is told to the activity, and null where there is none", async () => {
      await using world = await store.world();
      const asks = orchestration("Asks", async (ctx) => [
        await ctx.scheduleActivity(echoTag, undefined, { tag: "gpu" }),
        await ctx.scheduleActivity(echoTag),
      ]);
      await world.start({ orchestrations: [asks], activities: [echoTag], tagFilter: DEFAULT_AND_GPU });

      expect(await world.run(asks)).toEqual(["gpu", null]);
    });

    test("may be 256 bytes long", async () => {
      await using world = await store.world();
      const tag = "ü".repeat(128);
      const longest = orchestration("Longest", async (ctx) => ctx.scheduleActivity(echoTag, undefined, { tag }));
      await world.start({ orchestrations: [longest], activities: [echoTag], tagFilter: { kind: "any" } });

      expect(await world.run(longest, { instanceId: "l" })).toBe(tag);
      expect(eventsOf(await world.history("l"), "ActivityScheduled")).toMatchObject([{ tag }]);
    });

    test("that is longer fails the orchestration, and is never stored", async () => {
      await using world = await store.world();
      const tag = `${"ü".repeat(128)}!`;
      const tooLong = orchestration("TooLong", async (ctx) => ctx.scheduleActivity(echoTag, undefined, { tag }));
      await world.start({ orchestrations: [tooLong], activities: [echoTag], tagFilter: { kind: "any" } });

      await world.client.start(tooLong, { instanceId: "l" });
      expect(await world.ending("l")).toEqual({
        status: "Failed",
        output: "Activity 'EchoTag' tag size (257 bytes) exceeds limit (256 bytes)",
      });
      expect(await world.eventTypes("l")).toEqual(["OrchestrationStarted", "OrchestrationFailed"]);
      expect(world.factsOf("activity-started")).toEqual([]);
      await world.assertDeterministic();
    });
  });
});
