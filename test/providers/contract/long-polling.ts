import { describe, expect, test } from "vitest";
import type { FetchWorkOptions, Provider } from "../../../src/provider/provider.js";
import { act, done, NAMED, raised, semver, start, started, supports, timer, turn } from "./builders.js";
import type { OpenProvider } from "./open-provider.js";
import { create, fetchTurn, fetchWork, runTurn, takeTurn, takeWork } from "./steps.js";

const POLL = { pollTimeoutMs: 30_000 };

/** A fetch that nobody waits for; undefined until it is over. */
class Waiting<T> {
  value: T | undefined;
  constructor(fetch: Promise<T>) {
    void fetch.then((value) => {
      this.value = value;
    });
  }
}

const waitForTurn = (provider: Provider, options = {}) => new Waiting(fetchTurn(provider, { ...POLL, ...options }));
const waitForWork = (provider: Provider, options: Partial<FetchWorkOptions> = {}) =>
  new Waiting(fetchWork(provider, { ...POLL, ...options }));

export function describeLongPolling(open: OpenProvider): void {
  describe("a long poll for an orchestration item", () => {
    test("waits its whole time for nothing, and no longer", async () => {
      const { provider, clock } = await open();
      const waiting = waitForTurn(provider, { pollTimeoutMs: 500 });
      await clock.advance(499);
      expect(waiting.value).toBeUndefined();

      await clock.advance(1);
      expect(waiting.value).toBeNull();
    });

    test("answers at once when there is work, or when it may not wait", async () => {
      const { provider, clock } = await open();
      const startedAt = clock.now();
      expect(await fetchTurn(provider, { pollTimeoutMs: 0 })).toBeNull();
      await provider.enqueueForOrchestrator(start("a"));
      expect(await fetchTurn(provider, POLL)).not.toBeNull();

      expect(clock.now()).toBe(startedAt);
    });

    test("ends as soon as a message arrives", async () => {
      const { provider, clock } = await open();
      const waiting = waitForTurn(provider);
      await clock.advance(10_000);
      expect(waiting.value).toBeUndefined();
      await provider.enqueueForOrchestrator(start("a"));
      await clock.advance(0);

      expect(waiting.value?.item.instance).toBe("a");
    });

    test("ends when a delayed message becomes visible", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForOrchestrator(start("early"), { delayMs: 1_000 });
      const waiting = [waitForTurn(provider), waitForTurn(provider)];
      await provider.enqueueForOrchestrator(start("late"), { delayMs: 2_000 });
      await clock.advance(999);
      expect(waiting.map(({ value }) => value)).toEqual([undefined, undefined]);

      await clock.advance(1);
      expect(waiting.flatMap(({ value }) => value?.item.instance ?? [])).toEqual(["early"]);
      await clock.advance(1_000);
      expect(waiting.flatMap(({ value }) => value?.item.instance ?? []).sort()).toEqual(["early", "late"]);
    });

    test("ends when a timer fires that a turn sets meanwhile", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      const { lockToken } = await takeTurn(provider);
      const waiting = waitForTurn(provider);
      await clock.advance(100);
      const fireAtMs = clock.now() + 5_000;
      const orchestratorItems = [timer("a", 2, fireAtMs)];
      await provider.ackOrchestrationItem(lockToken, turn({ events: [started("a")], orchestratorItems }));
      await clock.advance(4_999);
      expect(waiting.value).toBeUndefined();

      await clock.advance(1);
      expect(waiting.value?.item.messages).toEqual(orchestratorItems);
    });

    test("ends when a lock expires that was taken before it began", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      await takeTurn(provider, { lockTimeoutMs: 5_000 });
      const waiting = waitForTurn(provider);
      await clock.advance(4_999);
      expect(waiting.value).toBeUndefined();

      await clock.advance(1);
      expect(waiting.value?.item.instance).toBe("a");
    });

    test("ends when a lock expires that was taken while it waits", async () => {
      const { provider, clock } = await open();
      const waiting = [
        waitForTurn(provider, { lockTimeoutMs: 5_000 }),
        waitForTurn(provider, { lockTimeoutMs: 5_000 }),
      ];
      await clock.advance(1_000);
      await provider.enqueueForOrchestrator(start("a"));
      await clock.advance(0);
      expect(waiting.filter(({ value }) => value !== undefined)).toHaveLength(1);

      await clock.advance(5_000);
      expect(waiting.map(({ value }) => value?.attemptCount).sort()).toEqual([1, 2]);
    });

    test("goes on when a lock is renewed that it waits for", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      const { lockToken } = await takeTurn(provider, { lockTimeoutMs: 5_000 });
      const waiting = waitForTurn(provider);
      await clock.advance(4_000);
      await provider.renewOrchestrationItemLock(lockToken, 5_000);
      await clock.advance(4_999);
      expect(waiting.value).toBeUndefined();

      await clock.advance(1);
      expect(waiting.value?.item.instance).toBe("a");
    });

    test("ends at the second of two times, when the first has brought nothing", async () => {
      const { provider, clock } = await open();
      for (const instance of ["a", "b"]) await provider.enqueueForOrchestrator(start(instance));
      const a = await takeTurn(provider, { lockTimeoutMs: 1_000 });
      await takeTurn(provider, { lockTimeoutMs: 2_000 });
      const waiting = waitForTurn(provider);
      await clock.advance(500);
      await provider.ackOrchestrationItem(a.lockToken, turn());
      await clock.advance(1_499);
      expect(waiting.value).toBeUndefined();

      await clock.advance(1);
      expect(waiting.value?.item.instance).toBe("b");
    });

    test("ends when an ack releases an instance that has got messages meanwhile", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      const { lockToken } = await takeTurn(provider);
      const waiting = waitForTurn(provider);
      await provider.enqueueForOrchestrator(raised("a"));
      await clock.advance(0);
      expect(waiting.value).toBeUndefined();
      await provider.ackOrchestrationItem(lockToken, turn({ events: [started("a")] }));
      await clock.advance(0);

      expect(waiting.value?.item.messages).toEqual([raised("a")]);
    });

    test("ends when an item is abandoned, after its delay", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      await provider.enqueueForOrchestrator(start("b"));
      const [a, b] = [await takeTurn(provider), await takeTurn(provider)];
      const waiting = [waitForTurn(provider), waitForTurn(provider)];
      await clock.advance(0);
      await provider.abandonOrchestrationItem(a.lockToken);
      await provider.abandonOrchestrationItem(b.lockToken, { delayMs: 200 });
      await clock.advance(199);
      expect(waiting.flatMap(({ value }) => value?.item.instance ?? [])).toEqual(["a"]);

      await clock.advance(1);
      expect(waiting.flatMap(({ value }) => value?.item.instance ?? []).sort()).toEqual(["a", "b"]);
    });

    test("ends when an activity is acked", async () => {
      const { provider, clock } = await open();
      await create(provider, "a", { workerItems: [act("a", 2)] });
      const waiting = waitForTurn(provider);
      await clock.advance(0);
      await provider.ackWorkItem((await takeWork(provider)).lockToken, done("a", 2));
      await clock.advance(0);

      expect(waiting.value?.item.messages).toEqual([done("a", 2)]);
    });

    test("ends for as many as there are instances with news", async () => {
      const { provider, clock } = await open();
      await create(provider, "a");
      await provider.enqueueForOrchestrator(raised("a"));
      const { lockToken } = await takeTurn(provider);
      const waiting = Array.from({ length: 4 }, () => waitForTurn(provider));
      await clock.advance(0);
      const orchestratorItems = [start("b"), raised("b"), start("c"), raised("a")];
      await provider.ackOrchestrationItem(lockToken, turn({ orchestratorItems }));
      await clock.advance(0);

      expect(waiting.flatMap(({ value }) => value?.item.instance ?? []).sort()).toEqual(["a", "b", "c"]);
    });

    test("is not kept from its work by others that cannot take it", async () => {
      const { provider, clock } = await open();
      await create(provider, "a", { metadata: { ...NAMED, pinnedVersion: semver("2.0.0") } });
      const old = waitForTurn(provider, { capability: supports("1.0.0..1.9.9") });
      const current = waitForTurn(provider, { capability: supports("1.0.0..2.9.9") });
      await clock.advance(0);
      await provider.enqueueForOrchestrator(raised("a"));
      await clock.advance(0);

      expect(current.value?.item.instance).toBe("a");
      expect(old.value).toBeUndefined();
    });

    test("ends without work when its caller gives up", async () => {
      const { provider, clock } = await open();
      const caller = new AbortController();
      const waiting = waitForTurn(provider, { signal: caller.signal });
      await clock.advance(100);
      caller.abort();
      await clock.advance(0);
      expect(waiting.value).toBeNull();

      await provider.enqueueForOrchestrator(start("a"));
      expect(await takeTurn(provider)).toMatchObject({ attemptCount: 1 });
    });

    test("leaves its work to the next in line when its caller gives up at the moment of the wake", async () => {
      const { provider, clock } = await open();
      const caller = new AbortController();
      const first = waitForTurn(provider, { signal: caller.signal });
      await clock.advance(0);
      const second = waitForTurn(provider);
      await clock.advance(0);
      const enqueued = provider.enqueueForOrchestrator(start("a"));
      caller.abort();
      await enqueued;
      await clock.advance(0);

      expect(first.value).toBeNull();
      expect(second.value?.item.instance).toBe("a");
    });

    test("ends without work when the provider is closed, and leaves no timer behind", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForOrchestrator(start("a"), { delayMs: 60_000 });
      const waiting = [waitForTurn(provider), waitForWork(provider)];
      await clock.advance(100);
      await provider[Symbol.asyncDispose]();
      await clock.advance(0);

      expect(waiting.map(({ value }) => value)).toEqual([null, null]);
      expect(clock.pendingTimers).toBe(0);
    });
  });

  describe("a long poll for a work item", () => {
    test("waits its whole time for nothing, and no longer", async () => {
      const { provider, clock } = await open();
      const waiting = waitForWork(provider, { pollTimeoutMs: 500 });
      await clock.advance(499);
      expect(waiting.value).toBeUndefined();

      await clock.advance(1);
      expect(waiting.value).toBeNull();
    });

    test("ends as soon as work is enqueued", async () => {
      const { provider, clock } = await open();
      const waiting = waitForWork(provider);
      await clock.advance(10_000);
      await provider.enqueueForWorker(act("a", 1));
      await clock.advance(0);

      expect(waiting.value?.item.id).toBe(1);
    });

    test("ends for as many as a turn has scheduled activities", async () => {
      const { provider, clock } = await open();
      await create(provider, "a");
      const waiting = Array.from({ length: 3 }, () => waitForWork(provider));
      await clock.advance(0);
      await runTurn(provider, "a", { workerItems: [act("a", 2), act("a", 3)] });
      await clock.advance(0);

      expect(waiting.flatMap(({ value }) => value?.item.id ?? []).sort()).toEqual([2, 3]);
    });

    test("is not kept from its work by others that cannot take it", async () => {
      const { provider, clock } = await open();
      const plain = waitForWork(provider);
      await clock.advance(0);
      const gpu = waitForWork(provider, { tagFilter: { kind: "tags", tags: ["gpu"] } });
      const owner = waitForWork(provider, { session: { ownerId: "A", lockTimeoutMs: 30_000 } });
      await clock.advance(0);
      await provider.enqueueForWorker(act("a", 1, { tag: "gpu" }));
      await provider.enqueueForWorker(act("a", 2, { sessionId: "s" }));
      await clock.advance(0);

      expect([plain.value, gpu.value?.item.id, owner.value?.item.id]).toEqual([undefined, 1, 2]);
    });

    test("ends when a lock expires that was taken while it waits", async () => {
      const { provider, clock } = await open();
      const waiting = [
        waitForWork(provider, { lockTimeoutMs: 5_000 }),
        waitForWork(provider, { lockTimeoutMs: 5_000 }),
      ];
      await clock.advance(1_000);
      await provider.enqueueForWorker(act("a", 1));
      await clock.advance(4_999);
      expect(waiting.filter(({ value }) => value !== undefined)).toHaveLength(1);

      await clock.advance(1);
      expect(waiting.map(({ value }) => value?.attemptCount).sort()).toEqual([1, 2]);
    });

    test("ends when an item is abandoned, after its delay", async () => {
      const { provider, clock } = await open();
      for (const id of [1, 2]) await provider.enqueueForWorker(act("a", id));
      const [first, second] = [await takeWork(provider), await takeWork(provider)];
      const waiting = [waitForWork(provider), waitForWork(provider)];
      await clock.advance(0);
      await provider.abandonWorkItem(first.lockToken, { delayMs: 200 });
      await provider.abandonWorkItem(second.lockToken);
      await clock.advance(199);
      expect(waiting.flatMap(({ value }) => value?.item.id ?? [])).toEqual([2]);

      await clock.advance(1);
      expect(waiting.flatMap(({ value }) => value?.item.id ?? []).sort()).toEqual([1, 2]);
    });

    test("ends at the second of two times, when the first has brought nothing", async () => {
      const { provider, clock } = await open();
      for (const id of [1, 2]) await provider.enqueueForWorker(act("a", id));
      const first = await takeWork(provider, { lockTimeoutMs: 1_000 });
      await takeWork(provider, { lockTimeoutMs: 2_000 });
      const waiting = waitForWork(provider);
      await clock.advance(500);
      await provider.ackWorkItem(first.lockToken, null);
      await clock.advance(1_499);
      expect(waiting.value).toBeUndefined();

      await clock.advance(1);
      expect(waiting.value?.item.id).toBe(2);
    });

    test("ends when a session becomes free that was renewed meanwhile", async () => {
      const { provider, clock } = await open();
      for (const id of [1, 2]) await provider.enqueueForWorker(act("a", id, { sessionId: "s" }));
      await takeWork(provider, { session: { ownerId: "A", lockTimeoutMs: 1_000 } });
      const waiting = waitForWork(provider, { session: { ownerId: "B", lockTimeoutMs: 1_000 } });
      await clock.advance(500);
      await provider.renewSessionLock(["A"], { extendForMs: 2_000, idleTimeoutMs: 300_000 });
      await clock.advance(1_999);
      expect(waiting.value).toBeUndefined();

      await clock.advance(1);
      expect(waiting.value?.item.id).toBe(2);
    });

    test("ends when a session becomes free", async () => {
      const { provider, clock } = await open();
      for (const id of [1, 2]) await provider.enqueueForWorker(act("a", id, { sessionId: "s" }));
      await takeWork(provider, { session: { ownerId: "A", lockTimeoutMs: 1_000 } });
      const waiting = waitForWork(provider, { session: { ownerId: "B", lockTimeoutMs: 1_000 } });
      await clock.advance(999);
      expect(waiting.value).toBeUndefined();

      await clock.advance(1);
      expect(waiting.value?.item.id).toBe(2);
    });

    test("ends without work when its caller gives up", async () => {
      const { provider, clock } = await open();
      const caller = new AbortController();
      const waiting = waitForWork(provider, { signal: caller.signal });
      await clock.advance(100);
      caller.abort();
      await clock.advance(0);

      expect(waiting.value).toBeNull();
    });
  });

  describe("whoever watches an instance", () => {
    test("hears of its commits until it stops watching", async ({ skip }) => {
      const { provider, clock } = await open();
      if (provider.wake === null) return skip("the provider has no wake source");
      let calls = 0;
      const stop = provider.wake.watchInstance("a", () => {
        calls += 1;
      });
      await create(provider, "a");
      await clock.advance(0);
      expect(calls).toBeGreaterThan(0);

      stop();
      const heard = calls;
      await runTurn(provider, "a");
      await clock.advance(0);
      expect(calls).toBe(heard);
    });

    test("finds the new state when it looks", async ({ skip }) => {
      const { provider, clock } = await open();
      const { wake } = provider;
      if (wake === null) return skip("the provider has no wake source");
      await create(provider, "a");
      const outputs: Array<Promise<string | null | undefined>> = [];
      wake.watchInstance("a", () => {
        outputs.push(provider.getInstanceStatus("a").then((status) => status?.output));
      });
      await runTurn(provider, "a", { metadata: { status: "Completed", output: "done" } });
      await clock.advance(0);

      expect((await Promise.all(outputs)).at(-1)).toBe("done");
    });
  });
}
