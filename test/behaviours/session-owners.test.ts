// Who owns a session, how many of its activities run at once, and how many sessions a worker takes on. R§6.7.

import { describe, expect, test } from "vitest";
import { sleep } from "../../src/clock.js";
import { activity, orchestration } from "../../src/define.js";
import { InvalidOptionsError } from "../../src/errors.js";
import type { TestWorld } from "../../src/testing/test-world.js";
import { onEveryStore } from "./stores.js";

interface Work {
  readonly name: string;
  readonly ms: number;
  readonly session?: string;
}

/** What has run in a world: who began and ended when, in order, and how many ran at once. */
class Logbook {
  readonly entries: string[] = [];
  readonly begun: { readonly name: string; readonly session: string | null; readonly node: string }[] = [];
  peak = 0;
  #inFlight = 0;

  async run(world: TestWorld, { name, ms }: Work, session: string | null, node: string): Promise<string> {
    this.#inFlight += 1;
    this.peak = Math.max(this.peak, this.#inFlight);
    this.begun.push({ name, session, node });
    this.entries.push(`${name} begins`);
    await sleep(world.clock, ms);
    this.entries.push(`${name} ends`);
    this.#inFlight -= 1;
    return name;
  }
}

/** An activity that takes its time. `node`: who runs it. */
function workOn(world: TestWorld, logbook: Logbook, node = "the only one") {
  return activity("Work", (ctx, work: Work) => logbook.run(world, work, ctx.sessionId, node));
}

/** Does all of it at once. */
const doesAll = orchestration("DoesAll", async (ctx, all: readonly Work[]) =>
  ctx.all(
    all.map((work) => {
      const options = work.session === undefined ? {} : { sessionId: work.session };
      return ctx.scheduleActivity<string>("Work", work, options);
    }),
  ),
);

onEveryStore((store) => {
  describe("a session", () => {
    const two: readonly Work[] = [
      { name: "long", ms: 500, session: "s" },
      { name: "short", ms: 200, session: "s" },
    ];

    test.each([
      ["a named node is served by all its slots at once", "node-a", 2, 500],
      ["a slot is served by it alone, one after the other", null, 1, 700],
    ])("that belongs to %s", async (_whom, workerNodeId, peak, takesMs) => {
      await using world = await store.world();
      const logbook = new Logbook();
      const activities = [workOn(world, logbook)];
      await world.start({ orchestrations: [doesAll], activities, workerConcurrency: 2, workerNodeId });
      const startMs = world.clock.now();

      expect(await world.run(doesAll, { input: two })).toEqual(["long", "short"]);
      expect(logbook.peak).toBe(peak);
      expect(logbook.begun).toHaveLength(2);
      expect(world.clock.now() - startMs).toBe(takesMs);
    });

    test("runs beside others of the same node", async () => {
      await using world = await store.world();
      const logbook = new Logbook();
      const activities = [workOn(world, logbook)];
      await world.start({ orchestrations: [doesAll], activities, workerConcurrency: 4, workerNodeId: "node-a" });
      const input = ["A", "B", "C"].map((session) => ({ name: `on ${session}`, ms: 100, session }));

      expect(await world.run(doesAll, { input })).toEqual(["on A", "on B", "on C"]);
      expect(logbook.begun.map(({ session }) => session)).toEqual(["A", "B", "C"]);
      expect(logbook.peak).toBe(3);
    });

    test("stays with one of two nodes, over continue-as-new, and no activity runs twice", async () => {
      await using world = await store.world();
      const logbook = new Logbook();
      const rounds = orchestration("Rounds", async (ctx, before: readonly string[]): Promise<readonly string[]> => {
        const work = (name: string, session?: string) =>
          ctx.scheduleActivity<string>(
            "Work",
            { name, ms: 50 },
            session === undefined ? undefined : { sessionId: session },
          );
        if (before.length > 0) return [...before, ...(await ctx.all([work("a2", "A"), work("b2", "B")]))];
        const first = await ctx.all([work("a1", "A"), work("b1", "B"), work("c1", "C"), work("plain")]);
        return ctx.continueAsNew(first);
      });
      for (const node of ["node-A", "node-B"]) {
        const activities = [workOn(world, logbook, node)];
        await world.start({ orchestrations: [rounds], activities, workerConcurrency: 2, workerNodeId: node });
      }

      expect(await world.run(rounds, { input: [] })).toEqual(["a1", "b1", "c1", "plain", "a2", "b2"]);
      const onSessions = logbook.begun.filter(({ session }) => session !== null);
      expect(onSessions).toHaveLength(5);
      for (const session of ["A", "B", "C"]) {
        const nodes = onSessions.filter((run) => run.session === session).map(({ node }) => node);
        expect(new Set(nodes).size).toBe(1);
      }
    });

    test("goes to another node when its own has died and its lease is over", async () => {
      await using world = await store.world();
      const logbook = new Logbook();
      const [one, other] = ["node-A", "node-B"].map((node) => workOn(world, logbook, node));
      const dying = await world.start({ orchestrations: [doesAll], activities: [one!], workerNodeId: "node-A" });
      await world.run(doesAll, { input: [{ name: "first", ms: 50, session: "s" }] });
      const startMs = world.clock.now();
      dying.kill();
      await world.start({ orchestrations: [doesAll], activities: [other!], workerNodeId: "node-B" });

      expect(await world.run(doesAll, { input: [{ name: "second", ms: 50, session: "s" }] })).toEqual(["second"]);
      expect(logbook.begun.map(({ node }) => node)).toEqual(["node-A", "node-B"]);
      expect(world.clock.now() - startMs).toBeGreaterThan(29_000);
      expect(world.clock.now() - startMs).toBeLessThanOrEqual(30_050);
    });
  });

  describe("the limit of sessions", () => {
    const onTwo: readonly Work[] = [
      { name: "first", ms: 200, session: "A" },
      { name: "second", ms: 200, session: "B" },
    ];

    test("lets one session in at a time where it is one", async () => {
      await using world = await store.world();
      const logbook = new Logbook();
      const activities = [workOn(world, logbook)];
      const options = { workerConcurrency: 2, maxSessionsPerRuntime: 1 };
      await world.start({ orchestrations: [doesAll], activities, ...options });

      expect(await world.run(doesAll, { input: onTwo })).toEqual(["first", "second"]);
      expect(logbook.peak).toBe(1);
      expect(logbook.begun).toHaveLength(2);
    });

    test.each([
      ["at once on a named node", "node-a", 2],
      ["one after the other on a slot", null, 1],
    ])("counts a session once, whose activities run %s", async (_how, workerNodeId, peak) => {
      await using world = await store.world();
      const logbook = new Logbook();
      const activities = [workOn(world, logbook)];
      const options = { workerConcurrency: 2, maxSessionsPerRuntime: 1, workerNodeId };
      await world.start({ orchestrations: [doesAll], activities, ...options });
      const input = ["one", "two"].map((name) => ({ name, ms: 200, session: "same" }));

      expect(await world.run(doesAll, { input })).toEqual(["one", "two"]);
      expect(logbook.peak).toBe(peak);
    });

    test("holds the next session back while the first is in use, and not a moment longer", async () => {
      await using world = await store.world();
      const logbook = new Logbook();
      const activities = [workOn(world, logbook)];
      const options = { workerConcurrency: 2, maxSessionsPerRuntime: 1 };
      await world.start({ orchestrations: [doesAll], activities, ...options });
      const input = onTwo.map((work) => ({ ...work, ms: 1_000 }));
      const handle = await world.client.start(doesAll, { input });

      await world.advance(500);
      expect(logbook.entries).toEqual(["first begins"]);
      const heldUntilMs = world.clock.now() + 500;
      await world.settle(handle.result());
      expect(logbook.entries).toEqual(["first begins", "first ends", "second begins", "second ends"]);
      expect(world.clock.now() - heldUntilMs).toBeLessThanOrEqual(1_100);
    });

    test("leaves to a node with room what one without cannot take", async () => {
      await using world = await store.world();
      const logbook = new Logbook();
      for (const [node, maxSessionsPerRuntime] of [
        ["narrow", 1],
        ["wide", 10],
      ] as const) {
        const activities = [workOn(world, logbook, node)];
        const options = { workerConcurrency: 4, workerNodeId: node, maxSessionsPerRuntime };
        await world.start({ orchestrations: [doesAll], activities, ...options });
      }
      const startMs = world.clock.now();
      const input = ["A", "B", "C"].map((session) => ({ name: `on ${session}`, ms: 800, session }));

      expect(await world.run(doesAll, { input })).toEqual(["on A", "on B", "on C"]);
      expect(logbook.begun).toHaveLength(3);
      expect(logbook.begun.filter(({ node }) => node === "narrow").length).toBeLessThanOrEqual(1);
      expect(world.clock.now() - startMs).toBeLessThanOrEqual(900);
    });
  });

  describe("the idle timeout of sessions", () => {
    test("must be longer than an activity goes without renewing its lock", async () => {
      await using world = await store.world();
      const lock = { workerLockTimeoutMs: 30_000, workerLockRenewalBufferMs: 5_000 };
      const tooShort = world.start({ ...lock, sessionIdleTimeoutMs: 25_000 });

      await expect(tooShort).rejects.toBeInstanceOf(InvalidOptionsError);
      await expect(tooShort).rejects.toThrow(/'sessionIdleTimeoutMs' \(25000\) must exceed .*\(25000\)/);
      const longEnough = await world.start({ ...lock, sessionIdleTimeoutMs: 25_001 });
      expect(longEnough.isRunning).toBe(true);
    });
  });
});
