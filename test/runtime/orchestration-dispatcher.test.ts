import { describe, expect, test } from "vitest";
import { activity, orchestration } from "../../src/define.js";
import { ProviderError } from "../../src/errors.js";
import { encodeEvent } from "../../src/history/codec.js";
import { CORRUPT_HISTORY_EVENT_ID } from "../../src/history/event.js";
import type { OrchestratorItem } from "../../src/history/work-item.js";
import type { FetchOrchestrationOptions, LockedOrchestrationItem, Provider } from "../../src/provider/provider.js";
import { TestWorld } from "../../src/testing/test-world.js";
import { altered } from "../altered.js";
import { history, started } from "./events.js";

const hang = activity(
  "Hang",
  (ctx) => new Promise<void>((resolve) => ctx.signal.addEventListener("abort", () => resolve())),
);
const waits = orchestration("Waits", async (ctx) => ctx.waitForEvent<string>("go"));
const busy = orchestration("Busy", async (ctx) => {
  const open = ctx.scheduleActivity(hang);
  const child = ctx.scheduleSubOrchestration(waits);
  return [await open, await child];
});

/** Changes what fetches answer. */
function fetching(
  provider: Provider,
  change: (locked: LockedOrchestrationItem) => LockedOrchestrationItem,
  options: Partial<FetchOrchestrationOptions> = {},
): Provider {
  return altered(provider, {
    fetchOrchestrationItem: async (given) => {
      const locked = await provider.fetchOrchestrationItem({ ...given, ...options });
      return locked === null ? null : change(locked);
    },
  });
}

/** Claims that work for this instance has been fetched too often, once it brings a message of that kind. */
function worn(provider: Provider, instance: string, type: OrchestratorItem["type"]): Provider {
  return fetching(provider, (locked) => {
    const isWorn = locked.item.instance === instance && locked.item.messages.some((message) => message.type === type);
    return isWorn ? { ...locked, attemptCount: 11 } : locked;
  });
}

describe("work that was fetched too often", () => {
  test("fails the orchestration without running it", async () => {
    await using world = await TestWorld.open();
    const never = orchestration("Never", async () => {
      throw new Error("must not run");
    });
    await world.start({ provider: worn(world.provider, "n", "StartOrchestration"), orchestrations: [never] });
    await world.client.start(never, { instanceId: "n" });
    const ended = await world.settle(world.client.waitForOrchestration("n"));

    expect(ended).toMatchObject({
      status: "Failed",
      details: {
        category: "poison",
        attemptCount: 11,
        maxAttempts: 10,
        messageType: { type: "Orchestration", instance: "n", executionId: 1 },
        message: expect.stringContaining('[{"StartOrchestration":'),
      },
    });
    expect((await world.history("n"))[0]).toMatchObject({ name: "Never", version: "1.0.0", input: "null" });
    expect(world.factsOf("orchestration-poisoned")).toHaveLength(1);
    expect(world.factsOf("orchestration-ended")).toMatchObject([{ ending: "failed" }]);
  });

  test("gives up what is in flight, and tells the parent", async () => {
    await using world = await TestWorld.open();
    const parent = orchestration("Parent", async (ctx) => ctx.scheduleSubOrchestration(busy));
    await world.start({
      provider: worn(world.provider, "p::sub::2", "ExternalRaised"),
      orchestrations: [parent, busy, waits],
      activities: [hang],
    });
    await world.client.start(parent, { instanceId: "p" });
    await world.clock.advance(10);
    await world.client.raiseEvent("p::sub::2", "anything");

    expect((await world.ending("p")).output).toBe("poison: orchestration p::sub::2 exceeded 11 attempts (max 10)");
    expect((await world.eventTypes("p::sub::2")).slice(-2)).toEqual(["ActivityCancelRequested", "OrchestrationFailed"]);
    expect(world.factsOf("activity-ended")).toMatchObject([{ outcome: "cancelled" }]);
    expect(await world.ending("p::sub::2::sub::3")).toMatchObject({ status: "Failed" });
  });

  test("for an instance that has ended is consumed like any other", async () => {
    await using world = await TestWorld.open();
    await world.start({ provider: worn(world.provider, "w", "CancelInstance"), orchestrations: [waits] });
    await world.client.start(waits, { instanceId: "w" });
    await world.clock.advance(10);
    await world.client.raiseEvent("w", "go", "on");
    await world.ending("w");
    await world.client.cancel("w");
    await world.clock.advance(10);

    expect((await world.eventTypes("w")).filter((type) => type.startsWith("OrchestrationFailed"))).toEqual([]);
    expect(world.factsOf("orchestration-poisoned")).toEqual([]);
  });

  test("is not reported before the failure is committed", async () => {
    await using world = await TestWorld.open();
    let refusals = 3;
    const provider = altered(worn(world.provider, "w", "StartOrchestration"), {
      ackOrchestrationItem: async (token, turn) => {
        refusals -= 1;
        if (refusals >= 0) throw new ProviderError("invalid", "ack", "no");
        return world.provider.ackOrchestrationItem(token, turn);
      },
    });
    await world.start({ provider, orchestrations: [waits] });
    await world.client.start(waits, { instanceId: "w" });
    await world.ending("w");

    expect(world.factsOf("turn-abandoned").map(({ why }) => why)).toEqual(Array(3).fill("store-failed"));
    expect(world.factsOf("orchestration-poisoned")).toHaveLength(1);
  });
});

describe("messages for an instance that nobody has started", () => {
  test("are consumed without effect where a store hands them out", async () => {
    await using world = await TestWorld.open();
    const careless = fetching(world.provider, (locked) => {
      const messages: OrchestratorItem[] = [{ type: "CancelInstance", instance: locked.item.instance, reason: "x" }];
      return { ...locked, item: { ...locked.item, messages } };
    });
    await world.start({ provider: careless, orchestrations: [waits] });
    await world.client.start(waits, { instanceId: "w" });
    await world.clock.advance(10);

    expect(await world.history("w")).toEqual([]);
    expect(world.factsOf("messages-dropped")).toMatchObject([{ why: "instance-never-started", count: 1 }]);
  });
});

describe("a history that cannot be read", () => {
  const unreadable = (provider: Provider, instance: string): Provider =>
    fetching(
      provider,
      (locked) => {
        if (locked.item.instance !== instance || locked.item.history.length === 0) return locked;
        return { ...locked, item: { ...locked.item, history: [], historyError: "unknown event type 'Quux'" } };
      },
      { warm: undefined },
    );

  test("is left to newer processes for a while, and then fails the instance", async () => {
    await using world = await TestWorld.open();
    await world.start({ provider: unreadable(world.provider, "w"), orchestrations: [waits], maxAttempts: 2 });
    await world.client.start(waits, { instanceId: "w" });
    await world.clock.advance(10);
    await world.client.raiseEvent("w", "go", "on");

    expect(await world.ending("w")).toEqual({
      status: "Failed",
      output: expect.stringContaining("history deserialization failed after 3 attempts (max 2): unknown event type"),
    });
    expect(world.factsOf("turn-abandoned").map(({ why, delayMs }) => [why, delayMs])).toEqual([
      ["corrupt-history", 1_000],
      ["corrupt-history", 1_000],
    ]);
    const events = await world.history("w");
    expect(events.at(-1)).toMatchObject({ eventId: CORRUPT_HISTORY_EVENT_ID, instanceId: "w", executionId: 1 });
  });

  test("fails the instance once: what arrives later is consumed", async () => {
    await using world = await TestWorld.open();
    await world.start({ provider: unreadable(world.provider, "w"), orchestrations: [waits], maxAttempts: 1 });
    await world.client.start(waits, { instanceId: "w" });
    await world.clock.advance(10);
    await world.client.raiseEvent("w", "go", "on");
    await world.ending("w");
    await world.client.cancel("w");
    await world.clock.advance(10_000);

    expect(world.factsOf("messages-dropped")).toMatchObject([{ why: "instance-ended", count: 1 }]);
    expect(world.factsOf("orchestration-poisoned")).toHaveLength(1);
  });

  test("before a continuation fails the next execution", async () => {
    await using world = await TestWorld.open();
    const loops = orchestration("Loops", async (ctx) => ctx.continueAsNew());
    await world.start({ provider: unreadable(world.provider, "l"), orchestrations: [loops], maxAttempts: 1 });
    await world.client.start(loops, { instanceId: "l" });

    expect(await world.ending("l")).toMatchObject({ status: "Failed" });
    expect(await world.eventTypes("l", 2)).toEqual(["OrchestrationStarted", "OrchestrationFailed"]);
  });
});

describe("an execution pinned to an engine that this runtime does not know", () => {
  test("is left to others, and fails in the end with both versions named", async () => {
    await using world = await TestWorld.open();
    const [first] = history(started());
    await world.provider.appendWithExecution("o", 1, [{ ...first!, instanceId: "o", duroxideVersion: "99.0.0" }]);
    await world.client.raiseEvent("o", "go", "on");
    const blind = fetching(world.provider, (locked) => locked, { capability: undefined });
    await world.start({ provider: blind, orchestrations: [orchestration("Order", async () => 1)], maxAttempts: 2 });

    expect((await world.ending("o")).output).toMatch(
      /'Order' is pinned to engine 99\.0\.0.* replays 0\.0\.0 to 0\.1\.30/,
    );
    expect(world.factsOf("turn-abandoned").map(({ why, delayMs }) => [why, delayMs])).toEqual([
      ["incompatible-version", 1_000],
      ["incompatible-version", 1_000],
    ]);
  });
});

describe("a store in trouble", () => {
  const quick = orchestration("Quick", async () => "done");

  test("is asked again when an ack fails for a passing reason", async () => {
    await using world = await TestWorld.open();
    let failures = 5;
    const provider = altered(world.provider, {
      ackOrchestrationItem: async (token, turn) => {
        failures -= 1;
        if (failures >= 0) throw new ProviderError("transient", "ack", "busy");
        return world.provider.ackOrchestrationItem(token, turn);
      },
    });
    await world.start({ provider, orchestrations: [quick] });
    await world.client.start(quick, { instanceId: "q" });
    const before = world.clock.now();
    await world.ending("q");

    expect(world.clock.now() - before).toBe(10 + 20 + 40 + 80 + 160);
    expect(world.factsOf("turn-abandoned")).toEqual([]);
  });

  test("never fails an orchestration: what cannot be committed is given back and tried again", async () => {
    await using world = await TestWorld.open();
    let failures = 6;
    const provider = altered(world.provider, {
      ackOrchestrationItem: async (token, turn) => {
        failures -= 1;
        if (failures >= 0) throw new ProviderError("transient", "ack", "busy");
        return world.provider.ackOrchestrationItem(token, turn);
      },
    });
    await world.start({ provider, orchestrations: [quick] });
    await world.client.start(quick, { instanceId: "q" });

    expect(await world.ending("q")).toMatchObject({ status: "Completed" });
    expect(world.factsOf("turn-abandoned")).toMatchObject([{ why: "store-failed", attempt: 1, delayMs: 1_000 }]);
  });

  test("that commits but loses the answer is not asked to commit twice", async () => {
    await using world = await TestWorld.open();
    let isFirst = true;
    const provider = altered(world.provider, {
      ackOrchestrationItem: async (token, turn) => {
        await world.provider.ackOrchestrationItem(token, turn);
        const isLost = isFirst;
        isFirst = false;
        if (isLost) throw new ProviderError("transient", "ack", "connection reset");
      },
    });
    await world.start({ provider, orchestrations: [waits] });
    const handle = await world.client.start(waits, { instanceId: "w" });
    await world.clock.advance(100);
    expect(world.factsOf("turn-lock-lost")).toEqual([{ type: "turn-lock-lost", instanceId: "w" }]);
    await world.client.raiseEvent("w", "go", "on");

    expect(await world.settle(handle.result())).toBe("on");
    expect(world.factsOf("turn-committed").map(({ isWarm }) => isWarm)).toEqual([false]);
  });

  test("that is slow does not cost the lock", async () => {
    await using world = await TestWorld.open();
    const provider = altered(world.provider, {
      ackOrchestrationItem: async (token, turn) => {
        await new Promise<void>((resolve) => world.clock.setTimer(60_000, resolve));
        return world.provider.ackOrchestrationItem(token, turn);
      },
    });
    await world.start({ provider, orchestrations: [quick] });
    await world.client.start(quick, { instanceId: "q" });

    expect(await world.ending("q")).toMatchObject({ status: "Completed" });
    expect(world.factsOf("turn-lock-lost")).toEqual([]);
  });

  test("that fails to fetch or to take something back does not end the loops", async () => {
    await using world = await TestWorld.open();
    let failures = 4;
    const provider = altered(world.provider, {
      fetchOrchestrationItem: async (options) => {
        failures -= 1;
        if (failures >= 0) throw new ProviderError("transient", "fetch", "down");
        return world.provider.fetchOrchestrationItem(options);
      },
      abandonOrchestrationItem: async () => {
        throw new Error("down");
      },
    });
    await world.start({ provider, orchestrations: [waits], orchestrationConcurrency: 1 });
    await world.client.start(quick, { instanceId: "q" });
    await world.clock.advance(10_000);
    await world.start({ orchestrations: [quick] });

    expect(await world.ending("q")).toMatchObject({ status: "Completed" });
    expect(
      world
        .factsOf("loop-failed")
        .slice(0, 4)
        .map(({ retryInMs }) => retryInMs),
    ).toEqual([200, 400, 800, 1_600]);
  });
});

describe("an instance that is taken over while its turn is on the way", () => {
  test("belongs to whoever took it: the late commit changes nothing", async () => {
    await using world = await TestWorld.open();
    const gate: { open: () => void } = { open: () => {} };
    const opened = new Promise<void>((resolve) => {
      gate.open = resolve;
    });
    const late = altered(world.provider, {
      renewOrchestrationItemLock: async () => {
        throw new ProviderError("transient", "renew", "unreachable");
      },
      ackOrchestrationItem: async (token, turn) => {
        await opened;
        return world.provider.ackOrchestrationItem(token, turn);
      },
    });
    const first = orchestration("Who", async () => "first");
    const second = orchestration("Who", async () => "second");
    await world.start({ provider: late, orchestrations: [first], orchestrationConcurrency: 1 });
    await world.client.start(first, { instanceId: "w" });
    await world.clock.advance(10);
    await world.start({ orchestrations: [second] });
    expect((await world.ending("w")).output).toBe('"second"');
    gate.open();
    await world.clock.advance(10);

    expect((await world.ending("w")).output).toBe('"second"');
    expect(world.factsOf("turn-lock-lost")).toHaveLength(1);
  });
});

describe("an instance in memory", () => {
  const steps = activity("Step", (_ctx, n: number) => n * 2);
  const child = orchestration("Child", async (ctx, n: number): Promise<number> => {
    if (n > 3) return n;
    return ctx.continueAsNew(await ctx.scheduleActivity(steps, n));
  });
  const story = orchestration("Story", async (ctx) => {
    const doubled = await Promise.all([1, 2, 3].map((n) => ctx.scheduleActivity(steps, n)));
    const race = await ctx.race({ late: ctx.scheduleTimer("1h"), message: ctx.dequeueEvent<string>("inbox") });
    ctx.kv.set("race", race.winner);
    const grown = await ctx.scheduleSubOrchestration(child, 1);
    const time = await ctx.utcNow();
    ctx.setCustomStatus(`at ${time}`);
    const answer = await ctx.waitForEvent<string>("go");
    return { doubled, race: race.value, grown, answer, kept: ctx.kv.get("race") };
  });

  async function tell(world: TestWorld): Promise<string[]> {
    const handle = await world.client.start(story, { instanceId: "s" });
    await world.clock.advance(10);
    await world.client.enqueueEvent("s", "inbox", "hello");
    await world.clock.advance(10);
    await world.client.raiseEvent("s", "go", "done");
    await world.settle(handle.result());
    const told = await world.history("s");
    const scheduled = told.find((event) => event.type === "SubOrchestrationScheduled")!;
    const childInstance = `s::sub::${scheduled.eventId}`;
    const events = [...told];
    for (const executionId of [1, 2, 3]) events.push(...(await world.history(childInstance, executionId)));
    return events.map(encodeEvent);
  }

  test("writes the same history as one that is replayed every time", async () => {
    const histories: string[][] = [];
    for (const warmCacheBytes of [0, 1_000_000]) {
      await using world = await TestWorld.open();
      await world.start({
        orchestrations: [story, child],
        activities: [steps],
        warmCacheBytes,
        workerConcurrency: 1,
        orchestrationConcurrency: 1,
      });
      histories.push(await tell(world));
      const isWarm = world.factsOf("turn-committed").some((fact) => fact.isWarm);
      expect(isWarm).toBe(warmCacheBytes > 0);
    }

    expect(histories[0]).toEqual(histories[1]);
    expect(histories[0]).toHaveLength(19 + 2 * 4 + 2);
  });

  test("is used for a turn that is fetched before the ack of the last one has come back", async () => {
    await using world = await TestWorld.open();
    const counts = orchestration("Counts", async (ctx) => {
      for (let left = 5; left > 0; left -= 1) await ctx.dequeueEvent("inbox");
      return "done";
    });
    let sent = 0;
    const busy = altered(world.provider, {
      ackOrchestrationItem: async (lockToken, turn) => {
        sent += 1;
        if (sent <= 5) await world.client.enqueueEvent("c", "inbox", sent);
        return world.provider.ackOrchestrationItem(lockToken, turn);
      },
    });
    await world.start({ provider: busy, orchestrations: [counts] });
    const handle = await world.client.start(counts, { instanceId: "c" });

    expect(await world.settle(handle.result())).toBe("done");
    expect(world.factsOf("turn-committed").map((fact) => fact.isWarm)).toEqual([false, true, true, true, true, true]);
  });

  test("is not used where the provider does not say that it is up to date", async () => {
    await using world = await TestWorld.open();
    const forgetful = fetching(world.provider, (locked) => locked, { warm: undefined });
    await world.start({ provider: forgetful, orchestrations: [story, child], activities: [steps] });
    await tell(world);

    expect(world.factsOf("turn-committed").filter((fact) => fact.isWarm)).toEqual([]);
  });

  test("is forgotten where another runtime has gone on without it", async () => {
    await using world = await TestWorld.open();
    const counts = orchestration("Counts", async (ctx) => {
      const seen: string[] = [];
      for (let left = 4; left > 0; left -= 1) seen.push(await ctx.dequeueEvent<string>("inbox"));
      return seen;
    });
    let turn: "one" | "two" = "one";
    const sharing = (me: "one" | "two"): Provider =>
      altered(world.provider, {
        fetchOrchestrationItem: async (options) => {
          if (turn === me) return world.provider.fetchOrchestrationItem({ ...options, pollTimeoutMs: 0 });
          return null;
        },
      });
    await world.start({ provider: sharing("one"), orchestrations: [counts] });
    await world.start({ provider: sharing("two"), orchestrations: [counts] });
    const handle = await world.client.start(counts, { instanceId: "c" });
    for (const message of ["a", "b", "c", "d"]) {
      await world.clock.advance(1_000);
      await world.client.enqueueEvent("c", "inbox", message);
      await world.clock.advance(1_000);
      turn = turn === "one" ? "two" : "one";
    }

    expect(await world.settle(handle.result())).toEqual(["a", "b", "c", "d"]);
    expect(world.factsOf("turn-abandoned")).toEqual([]);
  });

  test("is forgotten where the instance was deleted and has begun again, elsewhere and in the same millisecond", async () => {
    await using world = await TestWorld.open();
    const echoes = orchestration("Echoes", async (ctx, input: string) => {
      await ctx.waitForEvent("first");
      await ctx.waitForEvent("second");
      return input;
    });
    let turn: "one" | "two" = "one";
    const sharing = (me: "one" | "two"): Provider =>
      altered(world.provider, {
        fetchOrchestrationItem: async (options) =>
          turn === me ? world.provider.fetchOrchestrationItem({ ...options, pollTimeoutMs: 0 }) : null,
      });
    await world.start({ provider: sharing("one"), orchestrations: [echoes], minPollIntervalMs: 1 });
    await world.start({ provider: sharing("two"), orchestrations: [echoes], minPollIntervalMs: 1 });
    const live = async (input: string) => {
      await world.client.start(echoes, { instanceId: "e", input });
      await world.clock.advance(5);
      await world.client.raiseEvent("e", "first");
      await world.clock.advance(5);
    };
    await live("old");
    await world.client.deleteInstance("e", { force: true });
    turn = "two";
    await live("new");
    turn = "one";
    await world.client.raiseEvent("e", "second");

    expect(await world.settle(world.client.getHandle("e").result())).toBe("new");
  });

  test("is not the one of a slot whose lock has lapsed, however late the answers of the store arrive", async () => {
    await using world = await TestWorld.open();
    const sums = orchestration("Sums", async (ctx) => {
      const seen: string[] = [];
      while (seen.length < 3) seen.push(await ctx.dequeueEvent<string>("inbox"));
      return seen;
    });
    const answers: Array<() => void> = [];
    const later = () => new Promise<void>((resolve) => void answers.push(resolve));
    let [lateFetches, lateAcks] = [0, 0];
    const remote = altered(world.provider, {
      async fetchOrchestrationItem(options) {
        const locked = await world.provider.fetchOrchestrationItem(options);
        if (locked === null || lateFetches === 0) return locked;
        lateFetches -= 1;
        await later();
        return locked;
      },
      async ackOrchestrationItem(lockToken, turn) {
        if (lateAcks > 0) {
          lateAcks -= 1;
          await later();
        }
        return world.provider.ackOrchestrationItem(lockToken, turn);
      },
    });
    const locks = { orchestratorLockTimeoutMs: 100, orchestratorLockRenewalBufferMs: 20 };
    await world.start({ provider: remote, orchestrations: [sums], orchestrationConcurrency: 4, ...locks });
    const handle = await world.client.start(sums, { instanceId: "s" });
    await world.clock.advance(30);

    lateFetches = 1;
    await world.client.enqueueEvent("s", "inbox", "first");
    await world.clock.advance(200); // The first slot's lock lapses while its answer is on its way; another does the turn.
    lateFetches = 1;
    await world.client.enqueueEvent("s", "inbox", "second");
    await world.clock.advance(20); // A third slot is told that its memory is up to date as of that turn.
    lateAcks = 1;
    answers[0]!();
    await world.clock.advance(20); // The first slot goes on, in vain, and leaves its execution in memory.
    answers[1]!();
    await world.clock.advance(20);
    answers[2]!();
    await world.client.enqueueEvent("s", "inbox", "third");

    expect(await world.settle(handle.result())).toEqual(["first", "second", "third"]);
    const ids = (await world.history("s")).map(({ eventId }) => eventId);
    expect(ids).toEqual(ids.map((_, index) => index + 1));
  });

  test("is read from its history where memory has dropped it between the fetch and the turn", async () => {
    await using world = await TestWorld.open();
    let isForged = false;
    const forged = fetching(world.provider, (locked) => {
      if (isForged || locked.item.history.length === 0) return locked;
      isForged = true;
      return { ...locked, item: { ...locked.item, history: [], warmAsOf: "forged" } };
    });
    await world.start({ provider: forged, orchestrations: [waits], warmCacheBytes: 0 });
    const handle = await world.client.start(waits, { instanceId: "w" });
    await world.clock.advance(10);
    await world.client.raiseEvent("w", "go", "on");

    expect(await world.settle(handle.result())).toBe("on");
    expect(world.factsOf("turn-abandoned")).toMatchObject([{ why: "stale-cache", attempt: 1, delayMs: 0 }]);
  });

  test("makes room for others", async () => {
    await using world = await TestWorld.open();
    await world.start({ orchestrations: [waits], warmCacheBytes: 12_000 });
    for (const instanceId of ["a", "b", "c"]) {
      await world.client.start(waits, { instanceId });
      await world.clock.advance(10);
    }
    for (const instanceId of ["a", "b", "c"]) await world.client.raiseEvent(instanceId, "go", "on");
    for (const instanceId of ["a", "b", "c"]) await world.ending(instanceId);

    expect(world.factsOf("turn-committed").filter(({ isWarm }) => isWarm)).toHaveLength(1);
  });
});

describe("shutting down", () => {
  test("interrupts the waits for work and leaves no timer behind", async () => {
    await using world = await TestWorld.open();
    const { runtime } = await world.start({ orchestrations: [waits] });
    await world.clock.advance(10);
    const before = world.clock.now();

    expect(await world.settle(runtime.shutdown())).toBe("drained");
    expect(world.clock.now()).toBe(before);
    expect(world.clock.pendingTimers).toBe(0);
    expect(world.factsOf("runtime-stopped")).toEqual([
      { type: "runtime-stopped", runtimeId: runtime.id, outcome: "drained" },
    ]);
  });

  test("ends as soon as the last activity does, its lock kept until then", async () => {
    await using world = await TestWorld.open();
    const slow = activity("Slow", async () => {
      await new Promise<void>((resolve) => world.clock.setTimer(90_000, resolve));
      return "slow";
    });
    const calls = orchestration("Calls", async (ctx) => ctx.scheduleActivity(slow));
    const { runtime } = await world.start({ orchestrations: [calls], activities: [slow] });
    await world.client.start(calls, { instanceId: "c" });
    await world.clock.advance(10);
    const before = world.clock.now();

    expect(await world.settle(runtime.shutdown({ graceMs: 3_600_000 }))).toBe("drained");
    expect(world.clock.now() - before).toBeLessThanOrEqual(90_000);
    expect(world.factsOf("activity-ended")).toMatchObject([{ outcome: "success" }]);
    await world.start({ orchestrations: [calls] });
    expect(await world.ending("c")).toEqual({ status: "Completed", output: '"slow"' });
  });

  test("gives back after the grace period what has not ended, for others to take at once", async () => {
    await using world = await TestWorld.open();
    const attempts: number[] = [];
    const stubborn = activity("Stubborn", (ctx) => {
      attempts.push(ctx.attempt);
      return attempts.length === 2 ? "second" : new Promise<string>(() => {});
    });
    const calls = orchestration("Calls", async (ctx) => ctx.scheduleActivity(stubborn));
    const { runtime } = await world.start({ orchestrations: [calls], activities: [stubborn] });
    await world.client.start(calls, { instanceId: "c" });
    await world.clock.advance(10);
    const before = world.clock.now();

    expect(await world.settle(runtime.shutdown({ graceMs: 500 }))).toBe("forced");
    expect(world.clock.now() - before).toBe(500);
    await world.start({ orchestrations: [calls], activities: [stubborn] });
    expect(await world.ending("c")).toEqual({ status: "Completed", output: '"second"' });
    expect(attempts).toEqual([1, 1]);
  });

  test("twice answers as once", async () => {
    await using world = await TestWorld.open();
    const { runtime } = await world.start();
    const [first, second] = [runtime.shutdown(), runtime.shutdown({ graceMs: 0 })];

    expect(await world.settle(Promise.all([first, second]))).toEqual(["drained", "drained"]);
    expect(world.factsOf("runtime-stopped")).toHaveLength(1);
  });

  test("gives back, uncounted, what a late fetch still brings", async () => {
    await using world = await TestWorld.open();
    const fetched: { arrive: () => void } = { arrive: () => {} };
    const arrived = new Promise<void>((resolve) => {
      fetched.arrive = resolve;
    });
    const late = altered(world.provider, {
      fetchOrchestrationItem: async (options) => {
        const locked = await world.provider.fetchOrchestrationItem({ ...options, pollTimeoutMs: 0 });
        if (locked !== null) await arrived;
        return locked;
      },
    });
    await world.client.start(waits, { instanceId: "w" });
    const { runtime } = await world.start({ provider: late, orchestrations: [waits], orchestrationConcurrency: 1 });
    const stopped = runtime.shutdown();
    fetched.arrive();

    expect(await world.settle(stopped)).toBe("drained");
    expect(world.factsOf("turn-abandoned")).toMatchObject([{ why: "shutdown", attempt: 1, delayMs: 0 }]);
    expect(await world.provider.fetchOrchestrationItem({ lockTimeoutMs: 1 })).toMatchObject({ attemptCount: 1 });
  });

  test("does not wait for a store that never answers", async () => {
    await using world = await TestWorld.open();
    const silent = altered(world.provider, { fetchOrchestrationItem: () => new Promise(() => {}) });
    const { runtime } = await world.start({ provider: silent, orchestrations: [waits] });

    expect(await world.settle(runtime.shutdown({ graceMs: 1_000 }))).toBe("forced");
  });
});

describe("many turns at once", () => {
  test("do not overlap, and let the event loop have its turn", async () => {
    await using world = await TestWorld.open();
    let loops = 0;
    let isOver = false;
    const count = (): void => {
      loops += 1;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    const loop = orchestration(
      "Loop",
      async (ctx, left: number): Promise<string> => (left === 0 ? "done" : ctx.continueAsNew(left - 1)),
    );
    await world.start({ orchestrations: [loop], orchestrationConcurrency: 8 });
    const ids = Array.from({ length: 8 }, (_, index) => `loop-${index}`);
    for (const instanceId of ids) await world.client.start(loop, { instanceId, input: 100 });
    await Promise.all(ids.map((id) => world.client.waitForOrchestration(id)));
    isOver = true;

    expect(loops).toBeGreaterThan(5);
  });
});
