// One process that takes one turn and runs one activity at a time: all there is must work, only more slowly. R§6.4.

import { describe, expect, test } from "vitest";
import { sleep } from "../../src/clock.js";
import { activity, orchestration } from "../../src/define.js";
import { ActivityCancelledError } from "../../src/errors.js";
import { altered } from "../altered.js";
import { onEveryStore } from "./stores.js";

const ONE_OF_EACH = { orchestrationConcurrency: 1, workerConcurrency: 1 };

onEveryStore((store) => {
  describe("a runtime with one slot of each kind", () => {
    test("runs an activity and gives its result to the orchestration", async () => {
      await using world = await store.world();
      const echo = activity("Echo", (_ctx, text: string) => `echo: ${text}`);
      const says = orchestration("Says", async (ctx, text: string) => ctx.scheduleActivity(echo, text));
      await world.start({ orchestrations: [says], activities: [echo], ...ONE_OF_EACH });

      expect(await world.run(says, { instanceId: "s", input: "hello" })).toBe("echo: hello");
      expect(await world.eventTypes("s")).toEqual([
        "OrchestrationStarted",
        "ActivityScheduled",
        "ActivityCompleted",
        "OrchestrationCompleted",
      ]);
    });

    test("runs activities one after the other", async () => {
      await using world = await store.world();
      const add = activity("Add", (_ctx, n: number) => n + 1);
      const thrice = orchestration("Thrice", async (ctx, from: number) => {
        let sum = from;
        for (let step = 0; step < 3; step += 1) sum = await ctx.scheduleActivity(add, sum);
        return sum;
      });
      await world.start({ orchestrations: [thrice], activities: [add], ...ONE_OF_EACH });

      expect(await world.run(thrice, { input: 0 })).toBe(3);
      expect(world.factsOf("activity-ended").map(({ outcome }) => outcome)).toEqual(Array(3).fill("success"));
    });

    test("waits for a timer, to the millisecond", async () => {
      await using world = await store.world();
      const waits = orchestration("Waits", async (ctx) => {
        await ctx.scheduleTimer("50ms");
        return "timer done";
      });
      await world.start({ orchestrations: [waits], ...ONE_OF_EACH });
      const startMs = world.clock.now();

      expect(await world.run(waits)).toBe("timer done");
      expect(world.clock.now() - startMs).toBe(50);
    });

    test("continues as new", async () => {
      await using world = await store.world();
      const counts = orchestration("Counts", async (ctx, n: number): Promise<string> => {
        return n < 3 ? ctx.continueAsNew(n + 1) : `done:${n}`;
      });
      await world.start({ orchestrations: [counts], ...ONE_OF_EACH });

      expect(await world.run(counts, { instanceId: "c", input: 0 })).toBe("done:3");
      expect(await world.client.listExecutions("c")).toEqual([1, 2, 3, 4]);
    });

    test("takes several instances in turn, and their activities one at a time", async () => {
      await using world = await store.world();
      const running = { now: 0, most: 0 };
      const process = activity("Process", async (_ctx, n: number) => {
        running.now += 1;
        running.most = Math.max(running.most, running.now);
        await sleep(world.clock, 1_000);
        running.now -= 1;
        return `processed:${n}`;
      });
      const one = orchestration("One", async (ctx, n: number) => ctx.scheduleActivity(process, n));
      await world.start({ orchestrations: [one], activities: [process], ...ONE_OF_EACH });
      const startMs = world.clock.now();
      const handles = await Promise.all([0, 1, 2].map((n) => world.client.start(one, { input: n })));

      expect(await world.settle(Promise.all(handles.map((handle) => handle.result())))).toEqual([
        "processed:0",
        "processed:1",
        "processed:2",
      ]);
      expect(running.most).toBe(1);
      expect(world.clock.now() - startMs).toBe(3_000);
    });

    test("keeps the lock of its one activity for as long as that runs", async () => {
      await using world = await store.world();
      const work = activity("Work", async (_ctx, data: string) => {
        await sleep(world.clock, 60_000);
        return `result:${data}`;
      });
      const works = orchestration("Works", async (ctx, data: string) => ctx.scheduleActivity(work, data));
      let renewals = 0;
      const provider = altered(world.provider, {
        renewWorkItemLock: (...args) => {
          renewals += 1;
          return world.provider.renewWorkItemLock(...args);
        },
      });
      const shortLock = { workerLockTimeoutMs: 2_000 };
      await world.start({ provider, orchestrations: [works], activities: [work], ...ONE_OF_EACH, ...shortLock });

      expect(await world.run(works, { input: "data" })).toBe("result:data");
      expect(world.factsOf("activity-started")).toHaveLength(1);
      expect(renewals).toBeGreaterThanOrEqual(30);
      expect(renewals).toBeLessThanOrEqual(60); // Thirty lives of the lock, however long the default buffer is.
    });

    test.each([
      ["here", { isElsewhere: false, withinMs: 0 }],
      ["elsewhere", { isElsewhere: true, withinMs: 1_000 }],
    ])("tells its running activity that it was cancelled %s, and is free again", async (_where, row) => {
      await using world = await store.world();
      const heard: { readonly reason: unknown; readonly atMs: number }[] = [];
      const endless = activity("Endless", (ctx) => {
        return new Promise<void>((_resolve, reject) => {
          ctx.signal.addEventListener("abort", () => {
            heard.push({ reason: ctx.signal.reason, atMs: world.clock.now() });
            reject(ctx.signal.reason);
          });
        });
      });
      const quick = activity("Quick", () => "quick");
      const orchestrations = [
        orchestration("Waits", async (ctx) => ctx.scheduleActivity(endless)),
        orchestration("Goes", async (ctx) => ctx.scheduleActivity(quick)),
      ];
      const worker = { orchestrations, activities: [endless, quick], ...ONE_OF_EACH, workerLockTimeoutMs: 2_000 };
      if (row.isElsewhere) await world.start({ orchestrations });
      await world.start({ ...worker, ...(row.isElsewhere ? { orchestrationConcurrency: 0 } : {}) });
      await world.client.start("Waits", { instanceId: "w" });
      await world.advance("10s");
      const cancelledMs = world.clock.now();
      await world.client.cancel("w", "no longer wanted");

      expect(await world.ending("w")).toEqual({ status: "Failed", output: "canceled: no longer wanted" });
      const goes = await world.client.start("Goes");
      expect(await world.settle(goes.result())).toBe("quick");
      expect(heard).toEqual([{ reason: expect.any(ActivityCancelledError), atMs: expect.any(Number) }]);
      expect(heard[0]!.atMs - cancelledMs).toBeLessThanOrEqual(row.withinMs);
      expect(await world.eventTypes("w")).not.toContain("ActivityCompleted");
    });
  });
});
