import { describe, expect, test } from "vitest";
import { activity } from "../../src/define.js";
import { ProviderError } from "../../src/errors.js";
import type { Provider } from "../../src/provider/provider.js";
import { act } from "../../src/provider-tests/builders.js";
import { SessionKeeper, SessionTracker } from "../../src/runtime/sessions.js";
import { Bench, Gate, replacing, type WorkerSetup } from "./worker-bench.js";

/** Who ran what, in order. */
interface Run {
  readonly worker: string;
  readonly session: string | null;
  readonly id: number;
  readonly end: () => void;
}

async function openBench() {
  const bench = new Bench();
  await bench.createInstance("order-1");
  const runs: Run[] = [];
  const use = activity("Use", async (ctx) => {
    const gate = new Gate();
    runs.push({ worker: ctx.workerId, session: ctx.sessionId, id: ctx.activityId, end: () => gate.open() });
    await gate.opened;
  });
  const startWorker = (setup: WorkerSetup) => bench.startWorker({ activities: [use], ...setup });
  const schedule = async (...items: readonly (readonly [id: number, session: string | null])[]) => {
    for (const [id, sessionId] of items) {
      const session = sessionId === null ? {} : { sessionId };
      await bench.provider.enqueueForWorker(act("order-1", id, { name: "Use", ...session }));
    }
    await bench.settle();
  };
  const end = async (id: number) => {
    runs.find((run) => run.id === id)?.end();
    await bench.settle();
  };
  const begun = () => runs.map((run) => run.id);
  return { bench, runs, startWorker, schedule, end, begun };
}

/** How often a method was called. */
function counting(provider: Provider, method: "renewSessionLock" | "cleanupOrphanedSessions") {
  const calls = { count: 0 };
  const counted = replacing(provider, {
    [method]: (...args: never[]) => {
      calls.count += 1;
      return (provider[method] as (...args: never[]) => Promise<number>).apply(provider, args);
    },
  });
  return { counted, calls };
}

describe("a session", () => {
  test("stays with the slot that took it, one activity after the other", async () => {
    const { runs, startWorker, schedule, end, begun } = await openBench();
    startWorker({ options: { workerConcurrency: 4 } });
    await schedule([2, "s"], [3, "s"], [4, "s"]);
    expect(begun()).toEqual([2]);
    await end(2);
    await end(3);

    expect(begun()).toEqual([2, 3, 4]);
    expect(new Set(runs.map((run) => run.worker)).size).toBe(1);
  });

  test("is served by all slots of a named node at once", async () => {
    const { startWorker, schedule, begun } = await openBench();
    startWorker({ options: { workerConcurrency: 4, workerNodeId: "node-a" } });
    await schedule([2, "s"], [3, "s"], [4, "s"]);

    expect(begun()).toEqual([2, 3, 4]);
  });

  test("stays with its worker while it is used now and then, and others do not touch it", async () => {
    const { bench, runs, startWorker, schedule, end } = await openBench();
    startWorker({ name: "one", options: { workerConcurrency: 1 } });
    await schedule([2, "s"]);
    await end(2);
    startWorker({ name: "two", options: { workerConcurrency: 4 } });
    for (const id of [3, 4, 5]) {
      await bench.clock.advance(4 * 60_000);
      await schedule([id, "s"]);
      await end(id);
    }

    expect(runs.map((run) => run.worker)).toEqual(Array(4).fill("work-0-one"));
  });

  test("is kept by a long activity that uses it", async () => {
    const { bench, runs, startWorker, schedule, end } = await openBench();
    startWorker({ name: "one", options: { workerConcurrency: 1 } });
    await schedule([2, "s"]);
    startWorker({ name: "two" });
    await bench.clock.advance(20 * 60_000);
    await schedule([3, "s"]);
    expect(runs).toHaveLength(1);
    await end(2);

    expect(runs.map((run) => run.worker)).toEqual(["work-0-one", "work-0-one"]);
  });

  test("that nobody uses is let go", async () => {
    const { bench, runs, startWorker, schedule, end } = await openBench();
    const one = startWorker({ name: "one", options: { workerConcurrency: 1 } });
    await schedule([2, "s"]);
    await end(2);
    await bench.clock.advance(5 * 60_000 + 60_000);
    one.dispatcher.stopFetching();
    startWorker({ name: "two", options: { workerConcurrency: 1 } });
    await schedule([3, "s"]);

    expect(runs[1]?.worker).toBe("work-0-two");
  });

  test("goes to another worker when its owner is gone and the lease is over", async () => {
    const { bench, runs, startWorker, schedule, end } = await openBench();
    const one = startWorker({ name: "one", options: { workerConcurrency: 1 } });
    await schedule([2, "s"]);
    await end(2);
    await one.dispatcher.abort();
    startWorker({ name: "two", options: { workerConcurrency: 1 } });
    await schedule([3, "s"]);
    expect(runs).toHaveLength(1);
    await bench.clock.advance(30_000);

    expect(runs[1]?.worker).toBe("work-0-two");
  });

  test("is taken up at once by a restarted node of the same name", async () => {
    const { runs, startWorker, schedule, end } = await openBench();
    const options = { workerConcurrency: 1, workerNodeId: "node-a" };
    const before = startWorker({ options });
    await schedule([2, "s"]);
    await end(2);
    await before.dispatcher.abort();
    startWorker({ options });
    await schedule([3, "s"]);

    expect(runs).toHaveLength(2);
  });

  test("of an activity that was cancelled and does not listen makes room after the grace period", async () => {
    const { bench, startWorker, schedule, begun } = await openBench();
    const options = { workerConcurrency: 2, maxSessionsPerRuntime: 1 };
    const worker = startWorker({ options });
    await schedule([2, "a"], [3, "b"]);
    expect(begun()).toEqual([2]);
    worker.dispatcher.cancelLocal([{ instance: "order-1", executionId: 1, id: 2 }]);
    await bench.clock.advance(10_000);

    expect(begun()).toEqual([2, 3]);
  });
});

describe("the limit of sessions", () => {
  test("holds a further session back until one comes to rest", async () => {
    const { startWorker, schedule, end, begun } = await openBench();
    startWorker({ options: { workerConcurrency: 4, maxSessionsPerRuntime: 1 } });
    await schedule([2, "a"]);
    await schedule([3, "b"]);
    expect(begun()).toEqual([2]);
    await end(2);

    expect(begun()).toEqual([2, 3]);
  });

  test("counts a session once, however many of its activities run", async () => {
    const { startWorker, schedule, begun } = await openBench();
    startWorker({ options: { workerConcurrency: 4, maxSessionsPerRuntime: 2, workerNodeId: "node-a" } });
    await schedule([2, "a"], [3, "a"], [4, "b"]);

    expect(begun()).toEqual([2, 3, 4]);
  });

  test("does not hold back work without a session", async () => {
    const { startWorker, schedule, begun } = await openBench();
    startWorker({ options: { workerConcurrency: 4, maxSessionsPerRuntime: 1 } });
    await schedule([2, "a"], [3, "b"], [4, null], [5, null]);

    expect(begun().sort()).toEqual([2, 4, 5]);
  });

  test("leaves further sessions to workers that have room", async () => {
    const { runs, startWorker, schedule } = await openBench();
    startWorker({ name: "full", options: { workerConcurrency: 4, maxSessionsPerRuntime: 1 } });
    await schedule([2, "a"]);
    startWorker({ name: "free", options: { workerConcurrency: 4 } });
    await schedule([3, "b"], [4, "c"]);

    expect(runs.map((run) => run.worker.split("-")[2])).toEqual(["full", "free", "free"]);
  });

  test("that has room again is noticed by slots that began to wait while it had none", async () => {
    const { startWorker, schedule, end, begun } = await openBench();
    startWorker({ options: { workerConcurrency: 3, maxSessionsPerRuntime: 1 } });
    await schedule([2, "a"]);
    await end(2);
    await schedule([3, null]);
    await schedule([4, null]);
    await schedule([5, "b"]);

    expect(begun()).toEqual([2, 3, 4, 5]);
  });

  test("of nothing takes no session at all", async () => {
    const { startWorker, schedule, begun } = await openBench();
    startWorker({ options: { maxSessionsPerRuntime: 0 } });
    await schedule([2, "a"], [3, null]);

    expect(begun()).toEqual([3]);
  });

  test("that a race breaks sends the item back for 100 ms, uncounted", async () => {
    const { bench, runs, schedule, startWorker } = await openBench();
    const deaf = replacing(bench.provider, {
      fetchWorkItem: ({ signal: _ignored, ...options }) => bench.provider.fetchWorkItem(options),
    });
    const attempts: number[] = [];
    const use = activity("Use", (ctx) => {
      attempts.push(ctx.attempt);
      return ctx.sessionId === "a" ? new Promise<void>(() => {}) : undefined;
    });
    const options = { workerConcurrency: 2, maxSessionsPerRuntime: 1, longPollTimeoutMs: 1_000 };
    const one = startWorker({ activities: [use], provider: deaf, options });
    await bench.settle();
    await schedule([2, "a"], [3, "b"]);
    await bench.clock.advance(5_000);
    expect(attempts).toEqual([1]);
    void one.dispatcher.abort();
    await bench.clock.advance(40_000);
    startWorker({ name: "two", options: { workerConcurrency: 2 } });
    await bench.settle();

    expect(runs.map((run) => run.id).sort()).toEqual([2, 3]);
  });
});

describe("room for sessions that appears again", () => {
  test("is noticed by the slot that owns the session, whichever it is", async () => {
    const { bench, startWorker, schedule, end, begun } = await openBench();
    startWorker({ options: { workerConcurrency: 3, maxSessionsPerRuntime: 1 } });
    await schedule([1, "a"], [2, "b"]);
    await bench.clock.advance(200);
    await end(1); // Its slot owns session a, and waits without sessions as soon as b takes the only room.
    await bench.clock.advance(200);
    expect(begun()).toEqual([1, 2]);
    await end(2);
    await schedule([3, "a"]);

    expect(begun()).toEqual([1, 2, 3]);
  });
});

describe("a session tracker", () => {
  test("counts activities by session", () => {
    const tracker = new SessionTracker(2);
    expect(tracker.enter("a")).toBe(true);
    expect(tracker.enter("a")).toBe(true);
    expect(tracker.enter("b")).toBe(true);
    expect(tracker.isFull).toBe(true);
    expect(tracker.enter("c")).toBe(false);
    expect(tracker.enter("b")).toBe(true);
    tracker.leave("a");
    expect(tracker.isFull).toBe(true);
    tracker.leave("a");
    expect(tracker.isFull).toBe(false);
    expect(tracker.enter("c")).toBe(true);
  });
});

describe("a session keeper", () => {
  test("is silent while there is nothing to renew", async () => {
    const { bench, startWorker, schedule, end } = await openBench();
    const { counted, calls } = counting(bench.provider, "renewSessionLock");
    startWorker({ provider: counted });
    await bench.clock.advance(20 * 60_000);
    expect(calls.count).toBe(1);

    await schedule([2, "s"]);
    await end(2);
    await bench.clock.advance(60_000);
    expect(calls.count).toBeGreaterThan(3);
    await bench.clock.advance(20 * 60_000);
    const untilIdle = calls.count;
    await bench.clock.advance(20 * 60_000);
    expect(calls.count).toBe(untilIdle);
  });

  test("tries again a second after the store has failed", async () => {
    const { bench, runs, startWorker, schedule, end } = await openBench();
    const begunAt = bench.clock.now();
    const callsAt: number[] = [];
    const flaky = replacing(bench.provider, {
      renewSessionLock: async (owners, options) => {
        callsAt.push(bench.clock.now() - begunAt);
        if (callsAt.length % 2 === 1) throw new ProviderError("transient", "renewSessionLock", "busy");
        return bench.provider.renewSessionLock(owners, options);
      },
    });
    const one = startWorker({ name: "one", provider: flaky, options: { workerConcurrency: 1 } });
    await schedule([2, "s"]);
    await end(2);
    startWorker({ name: "two" });
    await bench.clock.advance(4 * 60_000);
    await schedule([3, "s"]);

    expect(callsAt.slice(0, 4)).toEqual([15_000, 16_000, 31_000, 32_000]);
    expect(runs[1]?.worker).toBe("work-0-one");
    expect(one.factsOf("loop-failed")[0]).toMatchObject({ loop: "sessions", retryInMs: 1_000 });
  });

  test("keeps a session that was claimed while the store said that there was none", async () => {
    const { bench } = await openBench();
    const answers = [new Gate<number>(), new Gate<number>()];
    let calls = 0;
    const slow = replacing(bench.provider, {
      renewSessionLock: () => {
        calls += 1;
        return answers[calls - 1]!.opened;
      },
    });
    const keeper = new SessionKeeper(bench.services({ provider: slow }), ["node-a"]);
    keeper.start();
    await bench.clock.advance(15_000);
    keeper.claimed();
    answers[0]!.open(0);
    await bench.clock.advance(15_000);
    answers[1]!.open(0);
    await keeper.stop();

    expect(calls).toBe(2);
  });

  test("sweeps sessions that nobody owns, every five minutes, whatever the store says", async () => {
    const { bench, startWorker } = await openBench();
    let sweeps = 0;
    const failing = replacing(bench.provider, {
      cleanupOrphanedSessions: async () => {
        sweeps += 1;
        throw new ProviderError("transient", "cleanupOrphanedSessions", "busy");
      },
    });
    startWorker({ provider: failing, options: { workerConcurrency: 1 } });
    await bench.clock.advance(26 * 60_000);

    expect(sweeps).toBe(5);
  });

  test("awaits the call that is under way when it stops, and makes no other", async () => {
    const { bench } = await openBench();
    const answer = new Gate<number>();
    let calls = 0;
    const slow = replacing(bench.provider, {
      renewSessionLock: () => {
        calls += 1;
        return answer.opened;
      },
    });
    const keeper = new SessionKeeper(bench.services({ provider: slow }), ["node-a"]);
    keeper.start();
    await bench.clock.advance(15_000);
    let isStopped = false;
    const stopped = keeper.stop().then(() => {
      isStopped = true;
    });
    await bench.settle();
    expect(isStopped).toBe(false);
    answer.open(1);
    await stopped;
    await bench.clock.advance(60 * 60_000);

    expect(calls).toBe(1);
    expect(bench.clock.pendingTimers).toBe(0);
  });
});
