import { describe, expect, test } from "vitest";
import type { FetchWorkOptions, Provider } from "../../../src/provider/provider.js";
import { act, done } from "./builders.js";
import type { OpenProvider } from "./open-provider.js";
import { fetchWork, takeWork } from "./steps.js";

/** Fetches as a worker process; its session lock lasts `lockTimeoutMs`. */
function as(ownerId: string, lockTimeoutMs = 30_000): Partial<FetchWorkOptions> {
  return { session: { ownerId, lockTimeoutMs } };
}

const inSession = (sessionId: string, id: number) => act("a", id, { sessionId });

async function takeAndAck(provider: Provider, options: Partial<FetchWorkOptions>): Promise<number> {
  const { item, lockToken } = await takeWork(provider, options);
  await provider.ackWorkItem(lockToken, null);
  return item.id;
}

export function describeSessions(open: OpenProvider): void {
  describe("work of a session", () => {
    test("goes to whoever comes first, and then to nobody else", async () => {
      const { provider } = await open();
      await provider.enqueueForWorker(inSession("s", 1));
      await provider.enqueueForWorker(inSession("s", 2));
      const first = await takeWork(provider, as("A"));
      expect(first.item.sessionId).toBe("s");

      expect(await fetchWork(provider, as("B"))).toBeNull();
      await provider.ackWorkItem(first.lockToken, null);
      expect(await fetchWork(provider, as("B"))).toBeNull();
      expect((await takeWork(provider, as("A"))).item.id).toBe(2);
    });

    test("goes to any slot of the process that owns the session", async () => {
      const { provider } = await open();
      for (const id of [1, 2, 3]) await provider.enqueueForWorker(inSession("s", id));
      const ids = [];
      for (let slot = 0; slot < 3; slot += 1) ids.push((await takeWork(provider, as("process-1"))).item.id);

      expect(ids).toEqual([1, 2, 3]);
    });

    test("comes in order", async () => {
      const { provider } = await open();
      for (const id of [1, 2, 3]) await provider.enqueueForWorker(inSession("s", id));
      for (const id of [1, 2, 3]) expect(await takeAndAck(provider, as("A"))).toBe(id);
    });

    test("is not seen by fetches without a session", async () => {
      const { provider } = await open();
      await provider.enqueueForWorker(inSession("s", 1));
      await provider.enqueueForWorker(act("a", 2));
      expect(await takeAndAck(provider, {})).toBe(2);
      expect(await fetchWork(provider)).toBeNull();

      expect(await takeAndAck(provider, as("A"))).toBe(1);
    });

    test("does not keep back other work", async () => {
      const { provider } = await open();
      await provider.enqueueForWorker(inSession("s", 1));
      await takeAndAck(provider, as("A"));
      await provider.enqueueForWorker(inSession("s", 2));
      await provider.enqueueForWorker(act("a", 3));

      expect(await takeAndAck(provider, as("B"))).toBe(3);
      expect(await takeAndAck(provider, as("A"))).toBe(2);
    });

    test("of different sessions goes to different workers", async () => {
      const { provider } = await open();
      for (const [id, session] of ["s1", "s2"].entries()) await provider.enqueueForWorker(inSession(session, id + 1));
      expect(await takeAndAck(provider, as("A"))).toBe(1);
      expect(await takeAndAck(provider, as("B"))).toBe(2);
      await provider.enqueueForWorker(inSession("s2", 3));
      await provider.enqueueForWorker(inSession("s1", 4));

      expect(await takeAndAck(provider, as("A"))).toBe(4);
      expect(await takeAndAck(provider, as("B"))).toBe(3);
    });

    test("comes together with all other work, in order", async () => {
      const { provider } = await open();
      for (const id of [1, 2, 3]) await provider.enqueueForWorker(inSession(`s${id}`, id));
      await provider.enqueueForWorker(act("a", 4));
      for (const id of [1, 2, 3, 4]) expect(await takeAndAck(provider, as("A"))).toBe(id);

      expect(await fetchWork(provider, as("A"))).toBeNull();
    });

    test("belongs to a session that spans instances", async () => {
      const { provider } = await open();
      await provider.enqueueForWorker(act("a", 1, { sessionId: "s" }));
      await provider.enqueueForWorker(act("b", 2, { sessionId: "s" }));
      await takeWork(provider, as("A"));

      expect(await fetchWork(provider, as("B"))).toBeNull();
      expect((await takeWork(provider, as("A"))).item.instance).toBe("b");
    });

    test("that was abandoned goes back to the owner, and counts attempts like any other", async () => {
      const { provider } = await open();
      await provider.enqueueForWorker(inSession("s", 1));
      await provider.abandonWorkItem((await takeWork(provider, as("A"))).lockToken);
      expect(await fetchWork(provider, as("B"))).toBeNull();
      const second = await takeWork(provider, as("A"));
      expect(second.attemptCount).toBe(2);
      await provider.abandonWorkItem(second.lockToken, { ignoreAttempt: true });

      expect((await takeWork(provider, as("A"))).attemptCount).toBe(2);
    });
  });

  describe("a session's lock", () => {
    test("ends by itself, and the session is free for anybody", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForWorker(inSession("s", 1));
      await takeAndAck(provider, as("A", 50));
      await provider.enqueueForWorker(inSession("s", 2));
      await clock.advance(49);
      expect(await fetchWork(provider, as("B"))).toBeNull();

      await clock.advance(1);
      expect((await takeWork(provider, as("B"))).item.id).toBe(2);
      expect(await fetchWork(provider, as("A"))).toBeNull();
    });

    test("that has ended may be taken again by its last owner", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForWorker(inSession("s", 1));
      await takeAndAck(provider, as("A", 50));
      await clock.advance(100);
      await provider.enqueueForWorker(inSession("s", 2));

      expect(await takeAndAck(provider, as("A"))).toBe(2);
    });

    test("outlives the lock of a work item: only the owner can fetch that one again", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForWorker(inSession("s", 1));
      await takeWork(provider, { ...as("A"), lockTimeoutMs: 500 });
      await clock.advance(600);

      expect(await fetchWork(provider, as("B"))).toBeNull();
      expect(await takeWork(provider, as("A"))).toMatchObject({ item: { id: 1 }, attemptCount: 2 });
    });

    test("may end before that of a work item, whose ack succeeds all the same", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForWorker(inSession("s", 1));
      const { lockToken } = await takeWork(provider, as("A", 200));
      await clock.advance(300);

      await provider.ackWorkItem(lockToken, done("a", 1));
      expect(await fetchWork(provider, as("A"))).toBeNull();
    });

    test("that a second owner takes over brings the first one's abandoned work along", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForWorker(inSession("s", 1));
      const first = await takeWork(provider, as("A", 200));
      await clock.advance(300);
      await provider.enqueueForWorker(inSession("s", 2));
      expect(await takeAndAck(provider, as("B"))).toBe(2);
      await provider.abandonWorkItem(first.lockToken);

      expect(await fetchWork(provider, as("A"))).toBeNull();
      expect(await takeWork(provider, as("B"))).toMatchObject({ item: { id: 1 }, attemptCount: 2 });
    });

    test("that ends together with the item's lock frees the item for anybody", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForWorker(inSession("s", 1));
      await takeWork(provider, { ...as("A", 200), lockTimeoutMs: 200 });
      await clock.advance(200);

      expect(await takeWork(provider, as("B"))).toMatchObject({ item: { id: 1 }, attemptCount: 2 });
    });

    test("starts anew with every fetch of the session's work", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForWorker(inSession("s", 1));
      await takeAndAck(provider, as("A", 1_000));
      await clock.advance(600);
      await provider.enqueueForWorker(inSession("s", 2));
      await takeAndAck(provider, as("A", 1_000));
      await clock.advance(600);
      await provider.enqueueForWorker(inSession("s", 3));

      expect(await fetchWork(provider, as("B"))).toBeNull();
    });
  });

  describe("renewing sessions", () => {
    test("renews those of the owners, and tells how many", async () => {
      const { provider, clock } = await open();
      for (const id of [1, 2]) await provider.enqueueForWorker(inSession(`s${id}`, id));
      for (const owner of ["A", "B"]) await takeAndAck(provider, as(owner, 1_000));
      await clock.advance(600);
      expect(await provider.renewSessionLock(["A"], { extendForMs: 1_000, idleTimeoutMs: 300_000 })).toBe(1);
      expect(await provider.renewSessionLock(["A", "B"], { extendForMs: 1_000, idleTimeoutMs: 300_000 })).toBe(2);
      await clock.advance(999);
      await provider.enqueueForWorker(inSession("s1", 3));

      expect(await fetchWork(provider, as("C"))).toBeNull();
      expect(await takeAndAck(provider, as("A"))).toBe(3);
    });

    test("renews nothing for unknown owners or for none", async () => {
      const { provider } = await open();
      await provider.enqueueForWorker(inSession("s", 1));
      await takeAndAck(provider, as("A"));

      expect(await provider.renewSessionLock(["B"], { extendForMs: 1_000, idleTimeoutMs: 300_000 })).toBe(0);
      expect(await provider.renewSessionLock([], { extendForMs: 1_000, idleTimeoutMs: 300_000 })).toBe(0);
    });

    test("never revives one whose lock has ended", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForWorker(inSession("s", 1));
      await takeAndAck(provider, as("A", 50));
      await clock.advance(50);

      expect(await provider.renewSessionLock(["A"], { extendForMs: 30_000, idleTimeoutMs: 300_000 })).toBe(0);
      await provider.enqueueForWorker(inSession("s", 2));
      expect(await takeAndAck(provider, as("B"))).toBe(2);
    });

    test("leaves idle ones to expire", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForWorker(inSession("s", 1));
      await takeAndAck(provider, as("A"));
      expect(await provider.renewSessionLock(["A"], { extendForMs: 30_000, idleTimeoutMs: 0 })).toBe(0);
      await clock.advance(200);

      expect(await provider.renewSessionLock(["A"], { extendForMs: 30_000, idleTimeoutMs: 200 })).toBe(0);
      expect(await provider.renewSessionLock(["A"], { extendForMs: 30_000, idleTimeoutMs: 201 })).toBe(1);
    });

    test("does not count as idle one whose work was acked lately", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForWorker(inSession("s", 1));
      const { lockToken } = await takeWork(provider, as("A"));
      await clock.advance(250);
      await provider.ackWorkItem(lockToken, done("a", 1));

      expect(await provider.renewSessionLock(["A"], { extendForMs: 30_000, idleTimeoutMs: 200 })).toBe(1);
    });

    test("does not count as idle one whose work was renewed lately", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForWorker(inSession("s", 1));
      const { lockToken } = await takeWork(provider, as("A"));
      await clock.advance(250);
      await provider.renewWorkItemLock(lockToken, 30_000);

      expect(await provider.renewSessionLock(["A"], { extendForMs: 30_000, idleTimeoutMs: 200 })).toBe(1);
    });
  });

  describe("cleaning up sessions", () => {
    test("removes those with an expired lock and no work, and tells how many", async () => {
      const { provider, clock } = await open();
      for (const id of [1, 2]) await provider.enqueueForWorker(inSession(`s${id}`, id));
      for (const lockMs of [50, 50]) await takeAndAck(provider, as("A", lockMs));
      await clock.advance(50);

      expect(await provider.cleanupOrphanedSessions({ idleTimeoutMs: 300_000 })).toBe(2);
      expect(await provider.cleanupOrphanedSessions({ idleTimeoutMs: 300_000 })).toBe(0);
    });

    test("keeps those with work, even if it is locked or delayed", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForWorker(inSession("s", 1));
      await takeAndAck(provider, as("A", 50));
      await provider.enqueueForWorker(inSession("s", 2));
      await clock.advance(50);

      expect(await provider.cleanupOrphanedSessions({ idleTimeoutMs: 300_000 })).toBe(0);
    });

    test("keeps those with a live lock, however idle", async () => {
      const { provider } = await open();
      await provider.enqueueForWorker(inSession("s", 1));
      await takeAndAck(provider, as("A", 300_000));

      expect(await provider.cleanupOrphanedSessions({ idleTimeoutMs: 0 })).toBe(0);
    });

    test("does not hinder the session from coming back", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForWorker(inSession("s", 1));
      await takeAndAck(provider, as("A", 50));
      await clock.advance(50);
      await provider.cleanupOrphanedSessions({ idleTimeoutMs: 300_000 });
      await provider.enqueueForWorker(inSession("s", 2));

      expect((await takeWork(provider, as("B"))).item.id).toBe(2);
      await provider.enqueueForWorker(inSession("s", 3));
      expect(await fetchWork(provider, as("A"))).toBeNull();
    });
  });
}
