// Activities that share a session share a worker. R§4.4, R§6.7. Who owns a session, and for how long: session-owners.test.ts.

import { describe, expect, test } from "vitest";
import { sleep } from "../../src/clock.js";
import { activity, orchestration } from "../../src/define.js";
import type { ActivityContext } from "../../src/runtime/activity-context.js";
import { eventsOf } from "./events-of.js";
import { onEveryStore } from "./stores.js";

interface Run {
  readonly text: string;
  readonly session: string | null;
  readonly worker: string;
}

/** An activity that repeats what it is told, and remembers where. */
function recordedEcho() {
  const runs: Run[] = [];
  const echo = activity("Echo", ({ sessionId, workerId }: ActivityContext, text: string) => {
    runs.push({ text, session: sessionId, worker: workerId });
    return text;
  });
  return { echo, runs };
}

onEveryStore((store) => {
  describe("an activity on a session", () => {
    test.each([
      ["a slot", null, "ctx-test-session"],
      ["a named node", "k8s-pod-name", "my-session"],
    ])(
      "knows its session, which %s owns; one without knows that it has none",
      async (_owner, workerNodeId, sessionId) => {
        await using world = await store.world();
        const whichSession = activity("WhichSession", (ctx) => ctx.sessionId);
        const asks = orchestration("Asks", async (ctx) => [
          await ctx.scheduleActivity(whichSession, undefined, { sessionId }),
          await ctx.scheduleActivity(whichSession),
        ]);
        await world.start({ orchestrations: [asks], activities: [whichSession], workerNodeId });

        expect(await world.run(asks, { instanceId: "a" })).toEqual([sessionId, null]);
        const [on, off] = eventsOf(await world.history("a"), "ActivityScheduled");
        expect(on).toMatchObject({ sessionId });
        expect(off).not.toHaveProperty("sessionId");
      },
    );

    test("gets typed input and gives a typed result, as any other", async () => {
      await using world = await store.world();
      const double = activity("Double", (_ctx, { value }: { value: number }) => ({ result: 2 * value }));
      const doubles = orchestration("Doubles", async (ctx) => {
        const { result } = await ctx.scheduleActivity(double, { value: 21 }, { sessionId: "typed-sess" });
        return result;
      });
      await world.start({ orchestrations: [doubles], activities: [double] });

      await world.client.start(doubles, { instanceId: "d" });
      expect(await world.ending("d")).toEqual({ status: "Completed", output: "42" });
    });

    test("follows and is followed by others without one", async () => {
      await using world = await store.world();
      const { echo, runs } = recordedEcho();
      const mixes = orchestration("Mixes", async (ctx) => [
        await ctx.scheduleActivity(echo, "regular"),
        await ctx.scheduleActivity(echo, "on session", { sessionId: "s" }),
        await ctx.scheduleActivity(echo, "regular again"),
      ]);
      await world.start({ orchestrations: [mixes], activities: [echo] });

      expect(await world.run(mixes)).toEqual(["regular", "on session", "regular again"]);
      expect(runs.map(({ session }) => session)).toEqual([null, "s", null]);
    });

    test("returns to the worker of its session after another session was used", async () => {
      await using world = await store.world();
      const { echo, runs } = recordedEcho();
      const alternates = orchestration("Alternates", async (ctx) => {
        const a = await ctx.scheduleActivity(echo, "a", { sessionId: "A" });
        const b = await ctx.scheduleActivity(echo, "b", { sessionId: "B" });
        const c = await ctx.scheduleActivity(echo, "c", { sessionId: "A" });
        return [a, b, c].join("|");
      });
      await world.start({ orchestrations: [alternates], activities: [echo], workerConcurrency: 8 });
      await world.start({ orchestrationConcurrency: 0, activities: [echo], workerConcurrency: 8 });

      expect(await world.run(alternates)).toBe("a|b|c");
      expect(runs.map(({ session }) => session)).toEqual(["A", "B", "A"]);
      expect(runs[2]?.worker).toBe(runs[0]?.worker);
    });

    test.each([
      ["the slots of a named node", { workerNodeId: "node-a", workerConcurrency: 4 }],
      ["a single slot without a name", { workerConcurrency: 1 }],
    ])("after the other is served by %s", async (_whom, options) => {
      await using world = await store.world();
      const { echo, runs } = recordedEcho();
      const steps = orchestration("Steps", async (ctx) => {
        const results: string[] = [];
        for (const step of ["one", "two", "three"]) {
          results.push(await ctx.scheduleActivity(echo, step, { sessionId: "s" }));
        }
        return results;
      });
      await world.start({ orchestrations: [steps], activities: [echo], ...options });

      expect(await world.run(steps)).toEqual(["one", "two", "three"]);
      expect(runs.map(({ text, session }) => [text, session])).toEqual([
        ["one", "s"],
        ["two", "s"],
        ["three", "s"],
      ]);
    });
  });

  describe("activities in parallel", () => {
    const answersIn = (delays: Readonly<Record<string, number>>) =>
      Object.entries(delays).map(([name, ms]) => ({ name, ms }));

    test("on two sessions and on none give their results in the order of the calls", async () => {
      await using world = await store.world();
      const slow = activity("Slow", async (_ctx, { name, ms }: { name: string; ms: number }) => {
        await sleep(world.clock, ms);
        return name;
      });
      const fansOut = orchestration("FansOut", async (ctx) => {
        const [a, b, regular] = answersIn({ a: 300, b: 200, regular: 100 });
        return ctx.all([
          ctx.scheduleActivity(slow, a!, { sessionId: "A" }),
          ctx.scheduleActivity(slow, regular!),
          ctx.scheduleActivity(slow, b!, { sessionId: "B" }),
        ]);
      });
      await world.start({ orchestrations: [fansOut], activities: [slow] });
      const startMs = world.clock.now();

      expect(await world.run(fansOut)).toEqual(["a", "regular", "b"]);
      expect(world.clock.now() - startMs).toBe(300);
    });

    test("two on each of two sessions and two on none give six results in the order of the calls", async () => {
      await using world = await store.world();
      const runs: Run[] = [];
      const slow = activity("Slow", async (ctx, { name, ms }: { name: string; ms: number }) => {
        runs.push({ text: name, session: ctx.sessionId, worker: ctx.workerId });
        await sleep(world.clock, ms);
        return name;
      });
      const fansOut = orchestration("FansOut", async (ctx) => {
        const [a1, a2, b1, b2, r1, r2] = answersIn({ a1: 60, a2: 10, b1: 50, b2: 20, r1: 40, r2: 30 });
        return ctx.all([
          ctx.scheduleActivity(slow, a1!, { sessionId: "A" }),
          ctx.scheduleActivity(slow, b1!, { sessionId: "B" }),
          ctx.scheduleActivity(slow, r1!),
          ctx.scheduleActivity(slow, a2!, { sessionId: "A" }),
          ctx.scheduleActivity(slow, b2!, { sessionId: "B" }),
          ctx.scheduleActivity(slow, r2!),
        ]);
      });
      await world.start({ orchestrations: [fansOut], activities: [slow] });

      expect(await world.run(fansOut)).toEqual(["a1", "b1", "r1", "a2", "b2", "r2"]);
      for (const session of ["A", "B"]) {
        const workers = runs.filter((run) => run.session === session).map(({ worker }) => worker);
        expect(workers).toHaveLength(2);
        expect(new Set(workers).size).toBe(1);
      }
    });
  });

  describe("a session", () => {
    test("outlives continue-as-new: its worker stays the same", async () => {
      await using world = await store.world();
      const { echo, runs } = recordedEcho();
      const loops = orchestration("Loops", async (ctx, round: number): Promise<string> => {
        const tracked = await ctx.scheduleActivity(echo, `iter-${round}`, { sessionId: "long-lived" });
        return round === 0 ? ctx.continueAsNew(1) : `tracked:${tracked}`;
      });
      await world.start({ orchestrations: [loops], activities: [echo] });
      await world.start({ orchestrationConcurrency: 0, activities: [echo] });

      expect(await world.run(loops, { instanceId: "l", input: 0 })).toBe("tracked:iter-1");
      expect(runs.map(({ text, session }) => [text, session])).toEqual([
        ["iter-0", "long-lived"],
        ["iter-1", "long-lived"],
      ]);
      expect(runs[1]?.worker).toBe(runs[0]?.worker);
      expect(eventsOf(await world.history("l", 2), "ActivityScheduled")).toMatchObject([{ sessionId: "long-lived" }]);
    });

    test("outlives the upgrade to another version of the orchestration", async () => {
      await using world = await store.world();
      const { echo, runs } = recordedEcho();
      const v1 = orchestration({ name: "Job", version: "1.0.0" }, async (ctx) => {
        const result = await ctx.scheduleActivity(echo, "done:from-v1", { sessionId: "s" });
        return ctx.continueAsNew(result, { version: "2.0.0" });
      });
      const v2 = orchestration({ name: "Job", version: "2.0.0" }, async (ctx, before: string) => {
        return `${before}+${await ctx.scheduleActivity(echo, "done:from-v2", { sessionId: "s" })}`;
      });
      await world.start({ orchestrations: [v1, v2], activities: [echo] });

      await world.client.start("Job", { instanceId: "j", version: "1.0.0" });
      expect(await world.ending("j")).toEqual({ status: "Completed", output: '"done:from-v1+done:from-v2"' });
      expect(runs).toHaveLength(2);
      expect(runs[1]?.worker).toBe(runs[0]?.worker);
    });

    test("is shared by the instances that name it", async () => {
      await using world = await store.world();
      const { echo, runs } = recordedEcho();
      const uses = orchestration("Uses", async (ctx, who: string) =>
        ctx.scheduleActivity(echo, who, { sessionId: "shared" }),
      );
      await world.start({ orchestrations: [uses], activities: [echo] });

      for (const who of ["first", "second", "third"]) expect(await world.run(uses, { input: who })).toBe(who);
      expect(new Set(runs.map(({ worker }) => worker)).size).toBe(1);
    });
  });
});
