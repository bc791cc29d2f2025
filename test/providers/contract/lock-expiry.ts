import { describe, expect, test } from "vitest";
import { act, done, raised, scheduled, start, started, turn } from "./builders.js";
import type { OpenProvider } from "./open-provider.js";
import { create, fetchTurn, fetchWork, takeTurn, takeWork } from "./steps.js";

export function describeLockExpiry(open: OpenProvider): void {
  describe("an expired instance lock", () => {
    test("is live until its very last millisecond", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      await takeTurn(provider, { lockTimeoutMs: 1_000 });

      await clock.advance(999);
      expect(await fetchTurn(provider)).toBeNull();
      await clock.advance(1);
      expect(await fetchTurn(provider)).not.toBeNull();
    });

    test("lets another dispatcher take the instance, and refuses the first one's ack", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      const late = await takeTurn(provider, { lockTimeoutMs: 1_000 });
      await clock.advance(1_000);
      const taken = await takeTurn(provider);
      expect(taken.lockToken).not.toBe(late.lockToken);

      const commit = turn({ events: [started("a")] });
      await expect(provider.ackOrchestrationItem(late.lockToken, commit)).rejects.toMatchObject({ kind: "lock-lost" });
      expect(await provider.read("a")).toEqual([]);
      await provider.ackOrchestrationItem(taken.lockToken, commit);
      expect(await provider.read("a")).toEqual([started("a")]);
    });

    test("refuses the ack although nobody has taken the instance", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      const { lockToken } = await takeTurn(provider, { lockTimeoutMs: 1_000 });
      await clock.advance(1_000);

      const ack = provider.ackOrchestrationItem(lockToken, turn({ events: [started("a")] }));
      await expect(ack).rejects.toMatchObject({ kind: "lock-lost" });
      expect((await takeTurn(provider)).item.messages).toEqual([start("a")]);
    });

    test("cannot be renewed", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      const { lockToken } = await takeTurn(provider, { lockTimeoutMs: 1_000 });
      await clock.advance(1_000);

      await expect(provider.renewOrchestrationItemLock(lockToken, 1_000)).rejects.toMatchObject({ kind: "lock-lost" });
    });

    test("can still be abandoned while nobody has taken the instance", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      const { lockToken } = await takeTurn(provider, { lockTimeoutMs: 1_000 });
      await clock.advance(1_000);
      await provider.abandonOrchestrationItem(lockToken, { delayMs: 500 });

      expect(await fetchTurn(provider)).toBeNull();
      await clock.advance(500);
      expect(await fetchTurn(provider)).not.toBeNull();
    });

    test("cannot be abandoned any more when the instance is taken: the new owner is undisturbed", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      const late = await takeTurn(provider, { lockTimeoutMs: 1_000 });
      await clock.advance(1_000);
      const owner = await takeTurn(provider);
      await provider.abandonOrchestrationItem(late.lockToken, { ignoreAttempt: true });

      expect(await fetchTurn(provider)).toBeNull();
      await provider.ackOrchestrationItem(owner.lockToken, turn({ events: [started("a")] }));
    });
  });

  describe("a renewed instance lock", () => {
    test("lives for the extension, counted from the renewal, to the millisecond", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      const { lockToken } = await takeTurn(provider, { lockTimeoutMs: 1_000 });
      await clock.advance(600);
      await provider.renewOrchestrationItemLock(lockToken, 1_250);

      await clock.advance(1_249);
      expect(await fetchTurn(provider)).toBeNull();
      await provider.renewOrchestrationItemLock(lockToken, 10);
      await clock.advance(10);
      expect(await fetchTurn(provider)).not.toBeNull();
    });

    test("needs a token that is known", async () => {
      const { provider } = await open();
      const renewal = provider.renewOrchestrationItemLock("unknown", 1_000);
      await expect(renewal).rejects.toMatchObject({ kind: "lock-lost" });
    });
  });

  describe("an abandoned instance", () => {
    test("can be fetched at once, with a new token", async () => {
      const { provider } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      const first = await takeTurn(provider);
      await provider.abandonOrchestrationItem(first.lockToken);

      const second = await takeTurn(provider);
      expect(second.item.messages).toEqual([start("a")]);
      expect(second.lockToken).not.toBe(first.lockToken);
      await expect(provider.ackOrchestrationItem(first.lockToken, turn())).rejects.toMatchObject({ kind: "lock-lost" });
    });

    test("can be abandoned twice: the second time changes nothing", async () => {
      const { provider } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      const { lockToken } = await takeTurn(provider);
      await provider.abandonOrchestrationItem(lockToken);
      await provider.abandonOrchestrationItem(lockToken, { delayMs: 60_000 });

      expect(await fetchTurn(provider)).not.toBeNull();
    });

    test("with a delay is invisible for that long", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      await provider.abandonOrchestrationItem((await takeTurn(provider)).lockToken, { delayMs: 500 });

      await clock.advance(499);
      expect(await fetchTurn(provider)).toBeNull();
      await clock.advance(1);
      expect((await takeTurn(provider)).item.messages).toEqual([start("a")]);
    });

    test("with a delay keeps later messages behind its own", async () => {
      const { provider, clock } = await open();
      await create(provider, "a");
      await provider.enqueueForOrchestrator(done("a", 1));
      await clock.advance(1);
      const { lockToken } = await takeTurn(provider);
      await provider.enqueueForOrchestrator(done("a", 2));
      await provider.abandonOrchestrationItem(lockToken, { delayMs: 500 });
      await provider.enqueueForOrchestrator(done("a", 3));

      await clock.advance(499);
      expect(await fetchTurn(provider)).toBeNull();
      await clock.advance(1);
      expect((await takeTurn(provider)).item.messages).toEqual([done("a", 1), done("a", 2), done("a", 3)]);
    });

    test("with a delay belongs to nobody: its token is void, and waiting fetches are woken at the end", async () => {
      const { provider, clock } = await open();
      await create(provider, "a");
      await provider.enqueueForOrchestrator(done("a", 1));
      const { lockToken } = await takeTurn(provider);
      await provider.abandonOrchestrationItem(lockToken, { delayMs: 500, ignoreAttempt: true });

      await expect(provider.renewOrchestrationItemLock(lockToken, 1_000)).rejects.toMatchObject({ kind: "lock-lost" });
      const woken = clock.run(fetchTurn(provider, { pollTimeoutMs: 10_000 }));
      expect(await woken).toMatchObject({ attemptCount: 1, item: { instance: "a" } });
    });
  });

  describe("a work item's lock", () => {
    test("ends after its timeout, and the item can be fetched again", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForWorker(act("a", 1));
      const first = await takeWork(provider, { lockTimeoutMs: 1_000 });
      await clock.advance(999);
      expect(await fetchWork(provider)).toBeNull();

      await clock.advance(1);
      const second = await takeWork(provider);
      expect(second.item).toEqual(act("a", 1));
      expect(second.lockToken).not.toBe(first.lockToken);
    });

    test("refuses the ack when it has expired, although nobody has taken the item", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForWorker(act("a", 1));
      const { lockToken } = await takeWork(provider, { lockTimeoutMs: 1_000 });
      await clock.advance(1_000);

      await expect(provider.ackWorkItem(lockToken, done("a", 1))).rejects.toMatchObject({ kind: "lock-lost" });
      expect((await takeWork(provider)).item.id).toBe(1);
    });

    test("refuses the first worker's ack when a second one holds the item", async () => {
      const { provider, clock } = await open();
      await create(provider, "a");
      await provider.enqueueForWorker(act("a", 1));
      const late = await takeWork(provider, { lockTimeoutMs: 1_000 });
      await clock.advance(1_000);
      const owner = await takeWork(provider);

      await expect(provider.ackWorkItem(late.lockToken, done("a", 1))).rejects.toMatchObject({ kind: "lock-lost" });
      expect(await fetchTurn(provider)).toBeNull();
      await provider.ackWorkItem(owner.lockToken, done("a", 1));
      expect((await takeTurn(provider)).item.messages).toEqual([done("a", 1)]);
    });

    test("lives on when it is renewed in time, counted from the renewal", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForWorker(act("a", 1));
      const { lockToken } = await takeWork(provider, { lockTimeoutMs: 1_000 });
      await clock.advance(600);
      await provider.renewWorkItemLock(lockToken, 1_000);

      await clock.advance(999);
      expect(await fetchWork(provider)).toBeNull();
      await clock.advance(1);
      expect(await fetchWork(provider)).not.toBeNull();
    });

    test("cannot be renewed when it is unknown, expired or acked", async () => {
      const { provider, clock } = await open();
      const lost = { kind: "lock-lost", retryable: false };
      await expect(provider.renewWorkItemLock("unknown", 1_000)).rejects.toMatchObject(lost);

      await provider.enqueueForWorker(act("a", 1));
      const expired = await takeWork(provider, { lockTimeoutMs: 1_000 });
      await clock.advance(1_000);
      await expect(provider.renewWorkItemLock(expired.lockToken, 1_000)).rejects.toMatchObject(lost);

      const acked = await takeWork(provider);
      await provider.ackWorkItem(acked.lockToken, done("a", 1));
      await expect(provider.renewWorkItemLock(acked.lockToken, 1_000)).rejects.toMatchObject(lost);
    });
  });

  describe("a turn that outlives its lock", () => {
    test("leaves nothing behind while the second owner is in the middle of its own", async () => {
      const { provider, clock } = await open();
      await create(provider, "a");
      await provider.enqueueForOrchestrator(raised("a"));
      const late = await takeTurn(provider, { lockTimeoutMs: 1_000 });
      await clock.advance(1_000);
      const owner = await takeTurn(provider);
      const commit = turn({ events: [scheduled("a", 2)], workerItems: [act("a", 2)] });

      await expect(provider.ackOrchestrationItem(late.lockToken, commit)).rejects.toMatchObject({ kind: "lock-lost" });
      await provider.ackOrchestrationItem(owner.lockToken, commit);
      expect(await provider.read("a")).toHaveLength(2);
      await takeWork(provider);
      expect(await fetchWork(provider)).toBeNull();
    });
  });
}
