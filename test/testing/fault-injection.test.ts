// The wrappers do what they say to whoever calls them, and the runtime does what it promises in the face of them.

import { describe, expect, test } from "vitest";
import { activity, orchestration } from "../../src/define.js";
import { InvalidInputError, InvalidOptionsError, ProviderError } from "../../src/errors.js";
import type { Provider, TurnCommit } from "../../src/provider/provider.js";
import { act, done, raised, start, supports, turn } from "../../src/provider-tests/builders.js";
import { create, fetchTurn, fetchWork, runTurn, takeTurn, takeWork } from "../../src/provider-tests/steps.js";
import { MemoryProvider } from "../../src/providers/memory/index.js";
import {
  ControlledProvider,
  createExecution,
  FailingProvider,
  FilterBypassProvider,
  PoisonInjectingProvider,
  seedHistoryTurn,
  seedInstanceWithPinnedVersion,
  VirtualClock,
  versionedEvent,
  waitForHistory,
} from "../../src/testing/index.js";
import { TestWorld } from "../../src/testing/test-world.js";

let runs = 0;
const double = activity("Double", async (_ctx, n: number) => {
  runs += 1;
  return 2 * n;
});
const doubled = orchestration("Doubled", async (ctx, n: number) => ctx.scheduleActivity(double, n));
const onSignal = orchestration("OnSignal", async (ctx) => ctx.waitForEvent<string>("signal"));

const registered = { orchestrations: [doubled, onSignal], activities: [double] };

const WRAPPERS = [PoisonInjectingProvider, FilterBypassProvider, FailingProvider, ControlledProvider];

/** Refuses every turn. */
class RefusingProvider extends FailingProvider {
  override ackOrchestrationItem(lockToken: string, commit: TurnCommit): Promise<void> {
    this.failNextAckOrchestrationItem();
    return super.ackOrchestrationItem(lockToken, commit);
  }
}

function opened() {
  const clock = new VirtualClock();
  return { clock, store: new MemoryProvider({ clock }) };
}

async function kindOf(failing: Promise<unknown>): Promise<string> {
  const error: unknown = await failing.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ProviderError);
  return (error as ProviderError).kind;
}

describe("every wrapper", () => {
  test.each(WRAPPERS)(
    "%o is its provider in name, version and management, wakes as it does, and closes it",
    async (Wrapper) => {
      const { store } = opened();
      const provider = new Wrapper(store);
      expect([provider.name, provider.version]).toEqual([store.name, store.version]);
      expect(provider.admin).toBe(store.admin);
      let wakes = 0;
      provider.wake?.watchInstance("a", () => {
        wakes += 1;
      });
      await store.enqueueForOrchestrator(start("a"));
      expect(wakes).toBe(1);

      const waiting = provider.fetchWorkItem({ lockTimeoutMs: 1_000, pollTimeoutMs: 5_000 });
      await provider[Symbol.asyncDispose]();
      expect(await waiting).toBeNull();
    },
  );

  test.each(WRAPPERS)("%o refuses what is no provider", (Wrapper) => {
    const unopened = Promise.resolve(opened().store) as unknown as Provider;
    expect(() => new Wrapper(unopened)).toThrow(InvalidOptionsError);
    expect(() => new Wrapper(unopened)).toThrow(
      new RegExp(`^new ${Wrapper.name}: the provider is a promise: await it`),
    );
  });
});

describe("a PoisonInjectingProvider", () => {
  async function withWork(items: number) {
    const { clock, store } = opened();
    for (let n = 1; n <= items; n += 1) {
      await store.enqueueForOrchestrator(start(`order-${n}`));
      await store.enqueueForWorker(act(`order-${n}`, 2));
    }
    return { clock, store, provider: new PoisonInjectingProvider(store) };
  }
  const turnCount = async (provider: Provider) => (await takeTurn(provider)).attemptCount;
  const workCount = async (provider: Provider) => (await takeWork(provider)).attemptCount;

  test("reports an attempt count once, and what the store says from then on", async () => {
    const { provider } = await withWork(2);
    provider.injectOrchestrationPoison(99);
    provider.injectActivityPoison(77);
    expect([await turnCount(provider), await turnCount(provider)]).toEqual([99, 1]);
    expect([await workCount(provider), await workCount(provider)]).toEqual([77, 1]);
  });

  test("reports it every time when it is persistent, until the injections are cleared", async () => {
    const { provider } = await withWork(3);
    provider.injectOrchestrationPoisonPersistent(99);
    provider.injectActivityPoisonPersistent(77);
    expect([await turnCount(provider), await turnCount(provider)]).toEqual([99, 99]);
    expect([await workCount(provider), await workCount(provider)]).toEqual([77, 77]);
    provider.clearInjections();
    expect([await turnCount(provider), await workCount(provider)]).toEqual([1, 1]);
  });

  test("lets as many items pass first as it is told", async () => {
    const { provider } = await withWork(4);
    provider.injectOrchestrationPoisonAfterSkip(2, 99);
    const counts = [await turnCount(provider), await turnCount(provider), await turnCount(provider)];
    expect([...counts, await turnCount(provider)]).toEqual([1, 1, 99, 1]);
  });

  test("uses up nothing for a fetch that brings nothing, or fails", async () => {
    const { store } = opened();
    const failing = new FailingProvider(store);
    const provider = new PoisonInjectingProvider(failing);
    provider.injectOrchestrationPoisonAfterSkip(1, 99);
    provider.injectActivityPoison(77);

    expect([await fetchTurn(provider), await fetchWork(provider)]).toEqual([null, null]);
    failing.failNextFetchOrchestrationItem();
    failing.failNextFetchWorkItem();
    await expect(fetchTurn(provider)).rejects.toThrow();
    await expect(fetchWork(provider)).rejects.toThrow();
    for (const id of ["a", "b"]) await store.enqueueForOrchestrator(start(id));
    await store.enqueueForWorker(act("a", 2));
    expect([await turnCount(provider), await turnCount(provider), await workCount(provider)]).toEqual([1, 99, 77]);
  });

  test("changes only what is reported: the store counts on as ever", async () => {
    const { store, provider } = await withWork(1);
    provider.injectOrchestrationPoison(99);
    const { lockToken } = await takeTurn(provider);
    await provider.abandonOrchestrationItem(lockToken);
    expect((await takeTurn(store)).attemptCount).toBe(2);
  });

  test("takes 0 for none, and refuses what is no count", async () => {
    const { provider } = await withWork(1);
    provider.injectOrchestrationPoisonPersistent(99);
    provider.injectOrchestrationPoisonPersistent(0);
    expect(await turnCount(provider)).toBe(1);
    expect(() => provider.injectActivityPoison(-1)).toThrow(InvalidOptionsError);
    expect(() => provider.injectOrchestrationPoisonAfterSkip(0.5, 9)).toThrow(/the number to skip must be an integer/);
  });

  test("makes a runtime fail an instance as poison, without running it", async () => {
    await using world = await TestWorld.open();
    const provider = new PoisonInjectingProvider(world.provider);
    provider.injectOrchestrationPoison(11);
    await world.start({ provider, ...registered });
    await world.client.start(onSignal, { instanceId: "order-1" });

    expect(await world.settle(world.client.waitForOrchestration("order-1"))).toMatchObject({
      status: "Failed",
      details: {
        category: "poison",
        attemptCount: 11,
        maxAttempts: 10,
        messageType: { type: "Orchestration", instance: "order-1", executionId: 1 },
      },
    });
    expect(await world.eventTypes("order-1")).toEqual(["OrchestrationStarted", "OrchestrationFailed"]);
    expect(world.factsOf("orchestration-poisoned")).toHaveLength(1);
  });

  test("makes a runtime fail an instance that is under way, at the turn that it is told to", async () => {
    await using world = await TestWorld.open();
    const provider = new PoisonInjectingProvider(world.provider);
    provider.injectOrchestrationPoisonAfterSkip(1, 12);
    await world.start({ provider, ...registered });
    await world.client.start(doubled, { instanceId: "order-1", input: 4 });

    const ended = await world.settle(world.client.waitForOrchestration("order-1"));
    expect(ended).toMatchObject({ status: "Failed", details: { category: "poison", attemptCount: 12 } });
    expect((await world.eventTypes("order-1")).slice(0, 2)).toEqual(["OrchestrationStarted", "ActivityScheduled"]);
  });

  test("makes a runtime fail an activity as poison, and its orchestration hears of it", async () => {
    await using world = await TestWorld.open();
    const provider = new PoisonInjectingProvider(world.provider);
    provider.injectActivityPoisonPersistent(50);
    await world.start({ provider, ...registered });
    const runsBefore = runs;
    await world.client.start(doubled, { instanceId: "order-1", input: 4 });

    const ended = await world.settle(world.client.waitForOrchestration("order-1"));
    expect(ended).toMatchObject({
      status: "Failed",
      error: expect.stringMatching(/poison: activity Double#2 exceeded 50 attempts \(max 10\)/),
    });
    const failure = (await world.history("order-1")).find(({ type }) => type === "ActivityFailed");
    expect(failure).toMatchObject({
      details: {
        category: "poison",
        attemptCount: 50,
        maxAttempts: 10,
        messageType: { type: "Activity", activityName: "Double", activityId: 2, instance: "order-1", executionId: 1 },
      },
    });
    expect(runs).toBe(runsBefore);
  });
});

describe("a FilterBypassProvider", () => {
  test("hands out what the filter would keep back", async () => {
    const { store } = opened();
    await seedInstanceWithPinnedVersion(store, "order-1", "99.0.0");
    await store.enqueueForOrchestrator(raised("order-1"));
    const capability = supports("0.0.0..1.0.0");

    expect(await fetchTurn(store, { capability })).toBeNull();
    expect(await fetchTurn(new FilterBypassProvider(store), { capability })).toMatchObject({
      item: { instance: "order-1" },
    });
  });

  test("meets a runtime that gives such work back: counted, a second later, until nobody is left to hope for", async () => {
    await using world = await TestWorld.open();
    const provider = new FilterBypassProvider(world.provider);
    const execution = { orchestration: "OnSignal" };
    await seedInstanceWithPinnedVersion(provider, "from-the-future", "99.0.0", execution);
    await world.client.raiseEvent("from-the-future", "signal", "too early");
    const startedAt = world.clock.now();
    await world.start({ provider, ...registered, orchestrationConcurrency: 1 });
    await world.clock.advance(500);
    await world.client.start(doubled, { instanceId: "order-1", input: 4 });
    expect(await world.ending("order-1")).toEqual({ status: "Completed", output: "8" });

    const ended = await world.settle(world.client.waitForOrchestration("from-the-future"));
    const abandoned = world.factsOf("turn-abandoned");
    expect(abandoned.map(({ why, attempt, delayMs }) => [why, attempt, delayMs])).toEqual(
      Array.from({ length: 10 }, (_, times) => ["incompatible-version", times + 1, 1_000]),
    );
    expect(ended).toMatchObject({
      status: "Failed",
      details: { category: "configuration", kind: "Nondeterminism" },
      error: expect.stringMatching(/pinned to engine 99\.0\.0, but this runtime replays 0\.0\.0 to \d+\.\d+\.\d+/),
    });
    expect(world.clock.now() - startedAt).toBeGreaterThanOrEqual(10_000);
  });
});

describe("a FailingProvider", () => {
  test("fails the next fetch with an error that passes, and takes nothing from the store", async () => {
    const { store } = opened();
    const provider = new FailingProvider(store);
    await store.enqueueForOrchestrator(start("order-1"));
    await store.enqueueForWorker(act("order-1", 2));
    provider.failNextFetchOrchestrationItem();
    provider.failNextFetchWorkItem();

    await expect(fetchTurn(provider)).rejects.toMatchObject({
      kind: "transient",
      retryable: true,
      message: expect.stringContaining("simulated transient infrastructure failure"),
    });
    expect(await kindOf(fetchWork(provider))).toBe("transient");
    expect(await takeTurn(provider)).toMatchObject({ item: { instance: "order-1" }, attemptCount: 1 });
    expect((await takeWork(provider)).attemptCount).toBe(1);
  });

  test("fails the next ack for good, and changes nothing in the store", async () => {
    const { store } = opened();
    const provider = new FailingProvider(store);
    await create(store, "order-1", { workerItems: [act("order-1", 2)] });
    await store.enqueueForOrchestrator(raised("order-1"));
    const [locked, work] = [await takeTurn(provider), await takeWork(provider)];
    provider.failNextAckOrchestrationItem();
    provider.failNextAckWorkItem();

    await expect(provider.ackOrchestrationItem(locked.lockToken, turn())).rejects.toThrow(
      /: simulated infrastructure failure$/,
    );
    expect(await kindOf(provider.ackWorkItem(work.lockToken, done("order-1", 2)))).toBe("invalid");
    await provider.ackOrchestrationItem(locked.lockToken, turn());
    await provider.ackWorkItem(work.lockToken, done("order-1", 2));
    expect((await takeTurn(store)).item.messages).toEqual([done("order-1", 2)]);
  });

  test("lets a turn through that fails its orchestration, where that is allowed, and is disarmed by it", async () => {
    const { store } = opened();
    const provider = new FailingProvider(store);
    await create(store, "order-1");
    await store.enqueueForOrchestrator(raised("order-1"));
    const { lockToken } = await takeTurn(provider);
    provider.setAllowFailureCommits(true);
    provider.failNextAckOrchestrationItem();
    const details = { category: "infrastructure", operation: "ack", message: "no", retryable: false } as const;
    const envelope = { eventId: 2, sourceEventId: null, instanceId: "order-1", executionId: 1, timestampMs: 0 };
    const failed = { ...envelope, type: "OrchestrationFailed", details, duroxideVersion: "0.1.30" } as const;
    await provider.ackOrchestrationItem(lockToken, turn({ events: [failed], metadata: { status: "Failed" } }));

    expect(await store.getInstanceStatus("order-1")).toMatchObject({ status: "Failed" });
    await runTurn(provider, "order-1");
  });

  test("can do the ack of a work item and lose only the reply", async () => {
    const { store } = opened();
    const provider = new FailingProvider(store);
    await create(store, "order-1", { workerItems: [act("order-1", 2)] });
    const { lockToken } = await takeWork(provider);
    provider.setAckThenFail(true);
    provider.failNextAckWorkItem();

    expect(await kindOf(provider.ackWorkItem(lockToken, done("order-1", 2)))).toBe("invalid");
    expect(await kindOf(provider.ackWorkItem(lockToken, done("order-1", 2)))).toBe("lock-lost");
    expect((await takeTurn(store)).item.messages).toEqual([done("order-1", 2)]);
  });

  test("that fails fetches does not stop a runtime, which is soon back for more", async () => {
    await using world = await TestWorld.open();
    const provider = new FailingProvider(world.provider);
    provider.failNextFetchOrchestrationItem();
    provider.failNextFetchWorkItem();
    await world.start({ provider, ...registered, orchestrationConcurrency: 1, workerConcurrency: 1 });
    await world.client.start(doubled, { instanceId: "order-1", input: 4 });

    expect(await world.ending("order-1")).toEqual({ status: "Completed", output: "8" });
    expect(world.factsOf("loop-failed").map(({ retryInMs }) => retryInMs)).toEqual([200, 200]);
  });

  test("that refuses a turn fails no instance: it is given back, and taken again", async () => {
    await using world = await TestWorld.open();
    const provider = new FailingProvider(world.provider);
    provider.failNextAckOrchestrationItem();
    await world.start({ provider, ...registered });
    await world.client.start(doubled, { instanceId: "order-1", input: 4 });

    expect(await world.ending("order-1")).toEqual({ status: "Completed", output: "8" });
    expect(world.factsOf("turn-abandoned")).toMatchObject([
      { instanceId: "order-1", why: "store-failed", attempt: 1, message: expect.stringMatching(/simulated infra/) },
    ]);
  });

  test("that refuses every turn but one that fails makes the instance poison in the end", async () => {
    await using world = await TestWorld.open();
    const provider = new RefusingProvider(world.provider);
    provider.setAllowFailureCommits(true);
    await world.start({ provider, ...registered });
    await world.client.start(doubled, { instanceId: "order-1", input: 4 });

    const ended = await world.settle(world.client.waitForOrchestration("order-1"));
    expect(ended).toMatchObject({ status: "Failed", details: { category: "poison", attemptCount: 11 } });
    expect(world.factsOf("turn-abandoned").map(({ why }) => why)).toEqual(Array(10).fill("store-failed"));
    expect(await world.eventTypes("order-1")).toEqual(["OrchestrationStarted", "OrchestrationFailed"]);
  });

  test("that loses the reply of an activity's ack: its result is recorded once, and it is not run again", async () => {
    await using world = await TestWorld.open();
    const provider = new FailingProvider(world.provider);
    provider.setAckThenFail(true);
    provider.failNextAckWorkItem();
    await world.start({ provider, ...registered });
    const runsBefore = runs;
    await world.client.start(doubled, { instanceId: "order-1", input: 4 });

    expect(await world.ending("order-1")).toEqual({ status: "Completed", output: "8" });
    await world.clock.advance(60_000);
    expect(runs - runsBefore).toBe(1);
    expect((await world.eventTypes("order-1")).filter((type) => type === "ActivityCompleted")).toHaveLength(1);
    expect(world.factsOf("loop-failed")).toMatchObject([{ error: { message: expect.stringMatching(/ackWorkItem/) } }]);
  });
});

describe("a ControlledProvider", () => {
  test("holds a call where it is told to, before and after the store has done it", async () => {
    const { clock, store } = opened();
    const provider = new ControlledProvider(store, { clock });
    const entering = provider.hold("enqueueForOrchestrator", "entering");
    const committing = provider.hold("enqueueForOrchestrator", "committing");
    const returning = provider.hold("enqueueForOrchestrator", "returning");
    let isBack = false;
    const enqueued = provider.enqueueForOrchestrator(start("order-1")).finally(() => {
      isBack = true;
    });

    await entering.reached;
    expect([entering.held, await store.getInstanceStatus("order-1")]).toEqual([1, null]);
    entering.release();
    await committing.reached;
    expect(await store.getInstanceStatus("order-1")).toMatchObject({ status: "Pending" });
    committing.release();
    await returning.reached;
    await clock.advance(1_000);
    expect([isBack, provider.inFlight("enqueueForOrchestrator")]).toEqual([false, 1]);
    returning.release();
    expect(await enqueued).toBe("enqueued");
    expect([provider.inFlight("enqueueForOrchestrator"), returning.held]).toEqual([0, 0]);
    expect(provider.calls("enqueueForOrchestrator")).toBe(1);
  });

  test("holds every call until the gate is released, and none after", async () => {
    const { clock, store } = opened();
    const provider = new ControlledProvider(store, { clock });
    const gate = provider.hold("read", "entering");
    const reads = [provider.read("a"), provider.read("b")];
    await gate.reached;
    expect(gate.held).toBe(2);
    provider.releaseAll();
    expect(await Promise.all(reads)).toEqual([[], []]);
    expect(await provider.read("c")).toEqual([]);
  });

  test("fails calls before the store hears of them, as often as it is told", async () => {
    const { clock, store } = opened();
    const provider = new ControlledProvider(store, { clock });
    provider.failBefore("enqueueForOrchestrator");
    provider.failBefore("enqueueForOrchestrator", new Error("mine"));

    expect(await kindOf(provider.enqueueForOrchestrator(start("order-1")))).toBe("transient");
    await expect(provider.enqueueForOrchestrator(start("order-1"))).rejects.toThrow("mine");
    expect(await store.getInstanceStatus("order-1")).toBeNull();
    expect(await provider.enqueueForOrchestrator(start("order-1"))).toBe("enqueued");
  });

  test("loses replies: what failed was done", async () => {
    const { clock, store } = opened();
    const provider = new ControlledProvider(store, { clock });
    provider.failAfter("enqueueForOrchestrator");
    await expect(provider.enqueueForOrchestrator(start("order-1"))).rejects.toThrow(/simulated failure: the reply/);
    expect(await store.getInstanceStatus("order-1")).toMatchObject({ status: "Pending" });
  });

  test("keeps the reply to be lost for a call that the store does, and passes the store's own errors on", async () => {
    const { clock, store } = opened();
    const provider = new ControlledProvider(store, { clock });
    const committing = provider.hold("ackWorkItem", "committing");
    provider.failAfter("ackWorkItem", new Error("lost"));
    expect(await kindOf(provider.ackWorkItem("unknown", null))).toBe("lock-lost");
    committing.release();

    await store.enqueueForWorker(act("order-1", 2));
    const { lockToken } = await takeWork(store);
    await expect(provider.ackWorkItem(lockToken, null)).rejects.toThrow("lost");
    expect(await fetchWork(store)).toBeNull();
  });

  test("honours or ignores how long a fetch may wait, and measures the windows", async () => {
    const { clock, store } = opened();
    const provider = new ControlledProvider(store, { clock });
    const wait = { lockTimeoutMs: 1_000, pollTimeoutMs: 5_000 };
    const patient = provider.fetchWorkItem(wait);
    expect(provider.openFetchWindows).toBe(1);
    await clock.advance(5_000);
    expect(await patient).toBeNull();

    provider.setPolling("ignore");
    expect(await provider.fetchOrchestrationItem(wait)).toBeNull();
    await store.enqueueForWorker(act("order-1", 2));
    expect(await provider.fetchWorkItem(wait)).not.toBeNull();
    provider.failBefore("fetchWorkItem");
    await expect(provider.fetchWorkItem(wait)).rejects.toThrow();

    expect(provider.openFetchWindows).toBe(0);
    expect(provider.fetchWindows).toEqual([
      { operation: "fetchWorkItem", pollTimeoutMs: 5_000, durationMs: 5_000, outcome: "nothing" },
      { operation: "fetchOrchestrationItem", pollTimeoutMs: 5_000, durationMs: 0, outcome: "nothing" },
      { operation: "fetchWorkItem", pollTimeoutMs: 5_000, durationMs: 0, outcome: "found" },
      { operation: "fetchWorkItem", pollTimeoutMs: 5_000, durationMs: 0, outcome: "failed" },
    ]);
  });

  test("refuses names that do not exist, to the compiler and at run time", () => {
    const provider = new ControlledProvider(opened().store);
    // @ts-expect-error: no such operation.
    expect(() => provider.hold("ackOrchestration", "entering")).toThrow(InvalidOptionsError);
    // @ts-expect-error: an operation of its own would be no operation of a provider.
    expect(() => provider.failBefore("hold")).toThrow(/no operation 'hold'\. The operations are: enqueueForOrch/);
    // @ts-expect-error: no such point.
    expect(() => provider.hold("read", "leaving")).toThrow(InvalidOptionsError);
    // @ts-expect-error: no such polling.
    expect(() => provider.setPolling("sometimes")).toThrow(InvalidOptionsError);
    // @ts-expect-error: no such option.
    expect(() => new ControlledProvider(opened().store, { pollng: "ignore" })).toThrow(/Did you mean 'polling'/);
  });

  test("shows that a shutdown ends long polls, without waiting for them", async () => {
    await using world = await TestWorld.open();
    const provider = new ControlledProvider(world.provider, { clock: world.clock });
    const slots = { orchestrationConcurrency: 2, workerConcurrency: 2 };
    const { runtime } = await world.start({ provider, ...registered, ...slots });
    await world.clock.advance(1_000);
    expect(provider.openFetchWindows).toBe(4);

    const stoppedAt = world.clock.now();
    expect(await runtime.shutdown()).toBe("drained");
    expect([provider.openFetchWindows, world.clock.now() - stoppedAt]).toEqual([0, 0]);
    expect(provider.fetchWindows.map(({ outcome, durationMs }) => [outcome, durationMs])).toEqual(
      Array(4).fill(["nothing", 1_000]),
    );
  });

  test("shows that a runtime polls at its own pace where the store does not wait", async () => {
    await using world = await TestWorld.open();
    const provider = new ControlledProvider(world.provider, { polling: "ignore", clock: world.clock });
    await world.start({ provider, ...registered, orchestrationConcurrency: 1, workerConcurrency: 1 });
    await world.clock.advance(1_000);
    expect(provider.calls("fetchOrchestrationItem")).toBe(11);
    await world.client.start(doubled, { instanceId: "order-1", input: 4 });
    expect(await world.ending("order-1")).toEqual({ status: "Completed", output: "8" });
  });

  test.each(["entering", "committing"] as const)(
    "shows that an ack whose caller stopped waiting while %s is done whole",
    async (point) => {
      await using world = await TestWorld.open();
      const provider = new ControlledProvider(world.provider, { clock: world.clock });
      const ack = provider.hold("ackOrchestrationItem", point);
      const { runtime } = await world.start({ provider, ...registered, workerConcurrency: 0 });
      await world.client.start(doubled, { instanceId: "order-1", input: 4 });
      await world.settle(ack.reached);

      expect(await world.settle(runtime.shutdown({ graceMs: 0 }))).toBe("forced");
      const isDone = point === "committing";
      expect(await world.eventTypes("order-1")).toEqual(isDone ? ["OrchestrationStarted", "ActivityScheduled"] : []);
      expect(await world.provider.getInstanceStatus("order-1")).toMatchObject({
        status: isDone ? "Running" : "Pending",
      });
      expect((await fetchWork(world.provider)) !== null).toBe(isDone);
      ack.release();
      await world.clock.advance(60_000);

      await world.start(registered);
      expect(await world.ending("order-1")).toEqual({ status: "Completed", output: "8" });
      expect((await world.eventTypes("order-1")).filter((type) => type === "ActivityScheduled")).toHaveLength(1);
    },
  );

  test("shows that a turn whose reply was lost is not taken twice", async () => {
    await using world = await TestWorld.open();
    const provider = new ControlledProvider(world.provider, { clock: world.clock });
    provider.failAfter("ackOrchestrationItem");
    await world.start({ provider, ...registered });
    await world.client.start(doubled, { instanceId: "order-1", input: 4 });

    expect(await world.ending("order-1")).toEqual({ status: "Completed", output: "8" });
    expect((await world.eventTypes("order-1")).filter((type) => type === "ActivityScheduled")).toHaveLength(1);
    await world.clock.advance(1_000);
    expect(world.factsOf("turn-lock-lost")).toMatchObject([{ instanceId: "order-1" }]);
  });
});

describe("the seeds", () => {
  test("begin one execution after the other, and leave no message behind", async () => {
    const { store } = opened();
    const execution = { orchestration: "Checkout", version: "2.0.0", input: "12" };
    expect(await createExecution(store, "order-1", execution)).toBe(1);
    expect(await createExecution(store, "order-1", execution)).toBe(2);
    expect(await fetchTurn(store)).toBeNull();
    expect(await store.getInstanceStatus("order-1")).toMatchObject({
      status: "Running",
      executionId: 2,
      orchestrationName: "Checkout",
      orchestrationVersion: "2.0.0",
    });
    expect(await store.read("order-1")).toMatchObject([
      { eventId: 1, executionId: 2, type: "OrchestrationStarted", name: "Checkout", input: "12" },
    ]);
  });

  test("commit turns of the current execution, numbered on, and give back what was in their way", async () => {
    const { store } = opened();
    await createExecution(store, "order-1");
    await store.enqueueForOrchestrator(start("other"));
    const scheduled = await seedHistoryTurn(
      store,
      "order-1",
      [
        { type: "ActivityScheduled", name: "Charge", input: "12" },
        { type: "CustomStatusUpdated", status: "paying" },
      ],
      { workerItems: [act("order-1", 2)] },
    );
    await seedHistoryTurn(store, "order-1", [{ type: "ActivityCompleted", result: "paid", sourceEventId: 2 }]);

    expect(scheduled.map(({ eventId }) => eventId)).toEqual([2, 3]);
    expect((await store.read("order-1")).slice(1)).toMatchObject([
      ...scheduled,
      { eventId: 4, sourceEventId: 2, type: "ActivityCompleted" },
    ]);
    expect((await takeWork(store)).item).toEqual(act("order-1", 2));
    expect(await takeTurn(store)).toMatchObject({ item: { instance: "other" }, attemptCount: 1 });
    await expect(seedHistoryTurn(store, "nobody", [])).rejects.toThrow(InvalidInputError);
  });

  test("pin an instance to the version of an engine", async () => {
    const { store } = opened();
    await seedInstanceWithPinnedVersion(store, "order-1", "3.2.1");
    const [started] = await store.read("order-1");
    expect(started?.duroxideVersion).toBe("3.2.1");
    expect(versionedEvent(started!, "4.0.0")).toEqual({ ...started, duroxideVersion: "4.0.0" });
    await store.enqueueForOrchestrator(raised("order-1"));
    expect(await fetchTurn(store, { capability: supports("1.0.0..3.2.0") })).toBeNull();
    expect(await fetchTurn(store, { capability: supports("1.0.0..3.2.1") })).not.toBeNull();
    await expect(seedInstanceWithPinnedVersion(store, "order-2", "newest")).rejects.toThrow(InvalidInputError);
  });

  test("wait for a history, and are woken by the store where it can", async () => {
    await using world = await TestWorld.open();
    await world.start(registered);
    const wanted = waitForHistory(world.provider, "order-1", (history) => history.length === 2, { clock: world.clock });
    await world.client.start(onSignal, { instanceId: "order-1" });
    expect((await world.settle(wanted)).map(({ type }) => type)).toEqual([
      "OrchestrationStarted",
      "ExternalSubscribed",
    ]);

    const never = waitForHistory(world.provider, "order-1", () => false, { clock: world.clock, timeoutMs: 3_000 });
    await expect(world.settle(never)).rejects.toMatchObject({ code: "DUROXIDE_TIMEOUT" });
    const misspelled = { timeout: 1 } as object;
    await expect(waitForHistory(world.provider, "order-1", () => true, misspelled)).rejects.toThrow(/'timeoutMs'/);
  });
});
