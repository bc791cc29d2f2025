import { describe, expect, test } from "vitest";
import type { ActivityExecute, OrchestratorItem } from "../../../src/history/work-item.js";
import { act, done, raised, start } from "./builders.js";
import type { OpenProvider } from "./open-provider.js";
import { begin, create, fetchTurn, fetchWork, takeTurn, takeWork } from "./steps.js";

export function describeWorkerQueue(open: OpenProvider): void {
  describe("work items", () => {
    test("are fetched one at a time, in order", async () => {
      const { provider } = await open();
      for (const id of [0, 1, 2, 3, 4]) await provider.enqueueForWorker(act("a", id));
      for (const id of [0, 1, 2, 3, 4]) expect((await takeWork(provider)).item.id).toBe(id);

      expect(await fetchWork(provider)).toBeNull();
    });

    test("go to one of many concurrent fetches each", async () => {
      const { provider } = await open();
      for (const id of [1, 2, 3]) await provider.enqueueForWorker(act("a", id));
      const fetched = await Promise.all(Array.from({ length: 10 }, () => fetchWork(provider)));

      expect(fetched.flatMap((locked) => locked?.item.id ?? []).sort()).toEqual([1, 2, 3]);
    });

    test("come back as they were written", async () => {
      const { provider } = await open();
      const item = act("a", 1, {
        input: '" \\ \n \u0000 漢字 🚀',
        executionId: 3,
        tag: "gpu",
        orchestrationName: "TestOrch",
        orchestrationVersion: "1.2.3",
      });
      await provider.enqueueForWorker(item);

      expect((await takeWork(provider, { tagFilter: { kind: "any" } })).item).toEqual(item);
    });

    test("need no instance: they are fetched and acked without one", async () => {
      const { provider } = await open();
      await provider.enqueueForWorker(act("nobody", 1));
      const { executionState, lockToken } = await takeWork(provider);

      expect(executionState).toBe("running");
      expect(await provider.renewWorkItemLock(lockToken, 30_000)).toBe("running");
      await provider.ackWorkItem(lockToken, done("nobody", 1));
    });

    test("are the only thing that the worker queue takes", async () => {
      const { provider } = await open();
      const misrouted = provider.enqueueForWorker(start("a") as unknown as ActivityExecute);
      await expect(misrouted).rejects.toMatchObject({ kind: "invalid", retryable: false });
      expect(await fetchWork(provider)).toBeNull();
    });
  });

  describe("the ack of a work item", () => {
    test("removes the item and queues its completion, in one", async () => {
      const { provider } = await open();
      await begin(provider, "a");
      await provider.enqueueForWorker(act("a", 1));
      expect(await fetchTurn(provider)).toBeNull();
      await provider.ackWorkItem((await takeWork(provider)).lockToken, done("a", 1));

      expect(await fetchWork(provider)).toBeNull();
      expect((await takeTurn(provider)).item).toMatchObject({ instance: "a", messages: [done("a", 1)] });
    });

    test("without a completion only removes the item", async () => {
      const { provider } = await open();
      await create(provider, "a");
      await provider.enqueueForWorker(act("a", 1));
      await provider.ackWorkItem((await takeWork(provider)).lockToken, null);

      expect(await fetchWork(provider)).toBeNull();
      expect(await fetchTurn(provider)).toBeNull();
    });

    test("happens once", async () => {
      const { provider } = await open();
      await create(provider, "a");
      await provider.enqueueForWorker(act("a", 1));
      const { lockToken } = await takeWork(provider);
      await provider.ackWorkItem(lockToken, done("a", 1));

      await expect(provider.ackWorkItem(lockToken, done("a", 1))).rejects.toMatchObject({
        kind: "lock-lost",
        retryable: false,
      });
      expect((await takeTurn(provider)).item.messages).toHaveLength(1);
    });

    test("with something that is no completion is refused, and the item stays with its worker", async () => {
      const { provider } = await open();
      await create(provider, "a");
      await provider.enqueueForWorker(act("a", 1));
      const { lockToken } = await takeWork(provider);
      const misuses: OrchestratorItem[] = [raised("a"), act("a", 1) as unknown as OrchestratorItem];
      for (const misuse of misuses) {
        await expect(provider.ackWorkItem(lockToken, misuse)).rejects.toMatchObject({ kind: "invalid" });
      }

      expect(await fetchTurn(provider)).toBeNull();
      expect(await fetchWork(provider)).toBeNull();
      await provider.ackWorkItem(lockToken, done("a", 1));
    });

    test("with an unknown token says so", async () => {
      const { provider } = await open();
      await expect(provider.ackWorkItem("unknown", null)).rejects.toMatchObject({ kind: "lock-lost" });
      await expect(provider.ackWorkItem("unknown", null)).rejects.toThrow("Invalid lock token");
    });
  });

  describe("an abandoned work item", () => {
    test("can be fetched at once, with a new token", async () => {
      const { provider } = await open();
      await provider.enqueueForWorker(act("a", 1));
      const first = await takeWork(provider);
      await provider.abandonWorkItem(first.lockToken);
      const second = await takeWork(provider);

      expect(second.lockToken).not.toBe(first.lockToken);
      await expect(provider.ackWorkItem(first.lockToken, null)).rejects.toMatchObject({ kind: "lock-lost" });
      await provider.ackWorkItem(second.lockToken, null);
    });

    test("with a delay is invisible for that long, and does not keep later ones waiting", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForWorker(act("a", 1));
      await provider.enqueueForWorker(act("a", 2));
      await provider.abandonWorkItem((await takeWork(provider)).lockToken, { delayMs: 500 });
      expect((await takeWork(provider)).item.id).toBe(2);
      await clock.advance(499);
      expect(await fetchWork(provider)).toBeNull();

      await clock.advance(1);
      expect((await takeWork(provider)).item.id).toBe(1);
    });

    test("keeps its place before later ones", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForWorker(act("a", 1));
      await clock.advance(5);
      await provider.enqueueForWorker(act("a", 2));
      await provider.abandonWorkItem((await takeWork(provider)).lockToken);

      expect((await takeWork(provider)).item.id).toBe(1);
    });

    test("may be abandoned late or twice: an unknown token succeeds silently", async () => {
      const { provider, clock } = await open();
      await provider.abandonWorkItem("unknown", { delayMs: 10 });
      await provider.enqueueForWorker(act("a", 1));
      const first = await takeWork(provider, { lockTimeoutMs: 1_000 });
      await clock.advance(1_000);
      await provider.abandonWorkItem(first.lockToken, { delayMs: 500 });
      expect(await fetchWork(provider)).toBeNull();
      await clock.advance(500);
      const second = await takeWork(provider);
      await provider.abandonWorkItem(first.lockToken);

      expect(await fetchWork(provider)).toBeNull();
      await provider.ackWorkItem(second.lockToken, null);
    });
  });
}
