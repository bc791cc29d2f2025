// Time and randomness as code sees them: recorded once, the same ever after. R§3.13.

import { describe, expect, test } from "vitest";
import { activity, orchestration } from "../../src/define.js";
import { mockActivity } from "../../src/testing/mock-activity.js";
import { eventsOf } from "./events-of.js";
import { onEveryStore } from "./stores.js";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

const processed = activity("Process", (_ctx, value: string | number) => `processed:${value}`);
const quick = activity("Quick", () => "task_done");
/** Never ends by itself. */
const hang = activity(
  "Hang",
  ({ signal }) =>
    new Promise<string>((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
);

onEveryStore((store) => {
  describe("utcNow and newGuid", () => {
    test("need no activity to be registered, and no worker", async () => {
      await using world = await store.world();
      const both = orchestration("Both", async (ctx) => `n=${await ctx.utcNow()},g=${await ctx.newGuid()}`);
      await world.start({ orchestrations: [both], workerConcurrency: 0 });
      const startMs = world.clock.now();

      const [, now, guid] = /^n=(\d+),g=(.{36})$/.exec(await world.run(both)) ?? [];
      expect(Number(now)).toBe(startMs);
      expect(guid).toMatch(UUID);
    });

    test("give another guid with each call, and the time as it passes", async () => {
      await using world = await store.world();
      const asks = orchestration("Asks", async (ctx) => {
        const [guid, begin] = [await ctx.newGuid(), await ctx.utcNow()];
        await ctx.scheduleTimer(100);
        return { guids: [guid, await ctx.newGuid()], times: [begin, await ctx.utcNow()] };
      });
      await world.start({ orchestrations: [asks] });
      const startMs = world.clock.now();

      const { guids, times } = await world.run(asks);
      expect(times).toEqual([startMs, startMs + 100]);
      expect(guids).toEqual([expect.stringMatching(UUID), expect.stringMatching(UUID)]);
      expect(guids[0]).not.toBe(guids[1]);
    });

    test("stand in the history, schedule and answer, as the text that code was given", async () => {
      await using world = await store.world();
      const both = orchestration("Both", async (ctx) => ({ guid: await ctx.newGuid(), now: await ctx.utcNow() }));
      await world.start({ orchestrations: [both] });

      const { guid, now } = await world.run(both, { instanceId: "b" });
      expect(await world.history("b")).toMatchObject([
        { type: "OrchestrationStarted" },
        { type: "ActivityScheduled", name: "__duroxide_syscall:new_guid", input: "" },
        { type: "ActivityCompleted", sourceEventId: 2, result: guid },
        { type: "ActivityScheduled", name: "__duroxide_syscall:utc_now_ms", input: "" },
        { type: "ActivityCompleted", sourceEventId: 4, result: String(now) },
        { type: "OrchestrationCompleted" },
      ]);
    });

    test("stay what they were after a restart, while an instance runs and when it has ended", async () => {
      await using world = await store.world();
      const seen: unknown[] = [];
      const asks = orchestration("Asks", async (ctx) => {
        const answers = { guids: [await ctx.newGuid(), await ctx.newGuid()], now: await ctx.utcNow() };
        seen.push(answers);
        await ctx.waitForEvent("go");
        return answers;
      });
      const runtime = await world.start({ orchestrations: [asks] });
      const handle = await world.client.start(asks, { instanceId: "a" });
      await world.advance("1h");
      await runtime.restart();
      await handle.raiseEvent("go");

      const output = await world.settle(handle.result());
      expect(seen).toEqual([output, output]);
      expect(output.guids[0]).not.toBe(output.guids[1]);
      await runtime.shutdown();
      await runtime.restart();
      await world.advance("1h");
      expect(await world.client.getStatus("a")).toMatchObject({ status: "Completed", output });
      expect(await world.settle(handle.result())).toEqual(output);
    });

    test.each(["utcNow", "newGuid"] as const)("may be the input of an activity, turns later: %s", async (call) => {
      await using world = await store.world();
      const later = orchestration("Later", async (ctx) => {
        const value = await ctx[call]();
        await ctx.waitForEvent("continue");
        return [value, await ctx.scheduleActivity(processed, value)];
      });
      // Without warm instances every turn runs the code from its beginning.
      await world.start({ orchestrations: [later], activities: [processed], warmCacheBytes: 0 });
      const handle = await world.client.start(later, { instanceId: "l" });
      await world.advance(200);
      await handle.raiseEvent("continue");

      const [value, result] = await world.settle(handle.result());
      expect(result).toBe(`processed:${value}`);
      expect(world.factsOf("turn-committed").map(({ isWarm }) => isWarm)).toEqual([false, false, false]);
      expect(eventsOf(await world.history("l"), "ActivityScheduled").at(-1)?.input).toBe(JSON.stringify(value));
    });

    test("go together with activities and races, in code that is replayed at every turn", async () => {
      await using world = await store.world();
      const composed = orchestration("Composed", async (ctx) => {
        const guid = await ctx.newGuid();
        const begin = await ctx.utcNow();
        const awaited = await ctx.scheduleActivity(processed, guid);
        const first = await ctx.race([ctx.scheduleActivity(hang), ctx.scheduleActivity(quick)]);
        await ctx.scheduleTimer(100);
        return { guid, awaited, winner: first.index, result: first.value, took: (await ctx.utcNow()) - begin };
      });
      await world.start({ orchestrations: [composed], activities: [processed, quick, hang], warmCacheBytes: 0 });

      const output = await world.run(composed);
      expect(output).toEqual({
        guid: expect.stringMatching(UUID),
        awaited: `processed:${output.guid}`,
        winner: 1,
        result: "task_done",
        took: 100,
      });
    });

    test("work where there is one slot for everything", async () => {
      await using world = await store.world();
      const rounds = orchestration("Rounds", async (ctx) => {
        const guids = new Set<string>();
        const times: number[] = [];
        for (let round = 0; round < 3; round += 1) {
          guids.add(await ctx.newGuid());
          times.push(await ctx.utcNow());
          await ctx.scheduleActivity(quick);
          await ctx.scheduleTimer(10);
        }
        return { distinct: guids.size, times };
      });
      await world.start({
        orchestrations: [rounds],
        activities: [quick],
        orchestrationConcurrency: 1,
        workerConcurrency: 1,
      });
      const startMs = world.clock.now();

      expect(await world.run(rounds)).toEqual({ distinct: 3, times: [startMs, startMs + 10, startMs + 20] });
    });

    test("do not keep an instance from being cancelled", async () => {
      await using world = await store.world();
      const waits = orchestration("Waits", async (ctx) => {
        await ctx.utcNow();
        await ctx.waitForEvent("never");
      });
      await world.start({ orchestrations: [waits] });
      const handle = await world.client.start(waits, { instanceId: "w" });
      await world.rest();
      await handle.cancel("enough");

      expect(await world.settle(world.client.waitForOrchestration("w"))).toMatchObject({
        status: "Failed",
        error: "canceled: enough",
        details: { category: "application", kind: { type: "Cancelled", reason: "enough" } },
      });
    });

    test("are the same to code, and need no worker, where one turn asks for very many", async () => {
      await using world = await store.world();
      const many = orchestration("Many", async (ctx) => {
        const guids: string[] = [];
        for (let count = 0; count < 1_001; count += 1) guids.push(await ctx.newGuid());
        return { guids, now: await ctx.utcNow() };
      });
      await world.start({ orchestrations: [many] });
      const startMs = world.clock.now();

      const { guids, now } = await world.run(many);
      expect(world.factsOf("turn-committed").length).toBe(2);
      expect(guids.filter((guid) => !UUID.test(guid))).toEqual([]);
      expect(new Set(guids).size).toBe(1_001);
      expect(now).toBe(startMs);
    });
  });

  describe("a time or guid", () => {
    test("that races an activity is there first, and the activity never runs", async () => {
      await using world = await store.world();
      const slow = mockActivity<void, string>("Slow", () => "too late");
      const races = orchestration("Races", async (ctx) => {
        const { index } = await ctx.race([ctx.scheduleActivity(slow), ctx.utcNow()]);
        await ctx.scheduleTimer(10);
        return index;
      });
      await world.start({ orchestrations: [races], activities: [slow] });

      expect(await world.run(races, { instanceId: "r" })).toBe(1);
      expect(slow.calls).toEqual([]);
      expect(eventsOf(await world.history("r"), "ActivityCancelRequested")).toMatchObject([{ sourceEventId: 2 }]);
    });
  });
});
