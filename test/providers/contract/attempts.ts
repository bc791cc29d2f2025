import { describe, expect, test } from "vitest";
import { act, done, start, turn } from "./builders.js";
import type { OpenProvider } from "./open-provider.js";
import { create, takeTurn, takeWork } from "./steps.js";

export function describeAttempts(open: OpenProvider): void {
  describe("the attempt count of an orchestration item", () => {
    test("is one at the first fetch, and grows with every fetch", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      for (const attempt of [1, 2, 3]) {
        const { attemptCount, lockToken } = await takeTurn(provider);
        expect(attemptCount).toBe(attempt);
        await provider.abandonOrchestrationItem(lockToken);
      }
      await takeTurn(provider, { lockTimeoutMs: 1_000 });
      await clock.advance(1_000);
      expect((await takeTurn(provider)).attemptCount).toBe(5);
    });

    test("does not count a fetch whose abandon asks for that", async () => {
      const { provider } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      await provider.abandonOrchestrationItem((await takeTurn(provider)).lockToken);
      const second = await takeTurn(provider);
      expect(second.attemptCount).toBe(2);
      await provider.abandonOrchestrationItem(second.lockToken, { ignoreAttempt: true });

      expect((await takeTurn(provider)).attemptCount).toBe(2);
    });

    test("is the highest of the batch", async () => {
      const { provider } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      await provider.abandonOrchestrationItem((await takeTurn(provider)).lockToken);
      const second = await takeTurn(provider);
      await provider.enqueueForOrchestrator(done("a", 1));
      await provider.abandonOrchestrationItem(second.lockToken);

      const third = await takeTurn(provider);
      expect(third.item.messages).toHaveLength(2);
      expect(third.attemptCount).toBe(3);
    });

    test("leaves messages alone that arrived after the fetch", async () => {
      const { provider } = await open();
      await create(provider, "a");
      await provider.enqueueForOrchestrator(done("a", 1));
      const first = await takeTurn(provider);
      await provider.enqueueForOrchestrator(done("a", 2));
      await provider.ackOrchestrationItem(first.lockToken, turn());

      expect((await takeTurn(provider)).attemptCount).toBe(1);
    });
  });

  describe("the attempt count of a work item", () => {
    test("is its own, and one at the first fetch", async () => {
      const { provider } = await open();
      await provider.enqueueForWorker(act("a", 1));
      await provider.enqueueForWorker(act("a", 2));

      expect(await takeWork(provider)).toMatchObject({ item: { id: 1 }, attemptCount: 1 });
      expect(await takeWork(provider)).toMatchObject({ item: { id: 2 }, attemptCount: 1 });
    });

    test("grows when a lock expires", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForWorker(act("a", 1));
      await takeWork(provider, { lockTimeoutMs: 1_000 });
      await clock.advance(1_000);

      expect((await takeWork(provider)).attemptCount).toBe(2);
    });

    test("does not count a fetch whose abandon asks for that", async () => {
      const { provider } = await open();
      await provider.enqueueForWorker(act("a", 1));
      await provider.abandonWorkItem((await takeWork(provider)).lockToken);
      const second = await takeWork(provider);
      expect(second.attemptCount).toBe(2);
      await provider.abandonWorkItem(second.lockToken, { ignoreAttempt: true });

      expect((await takeWork(provider)).attemptCount).toBe(2);
    });

    test("never falls below zero", async () => {
      const { provider } = await open();
      await provider.enqueueForWorker(act("a", 1));
      for (let i = 0; i < 3; i += 1) {
        const { attemptCount, lockToken } = await takeWork(provider);
        expect(attemptCount).toBe(1);
        await provider.abandonWorkItem(lockToken, { ignoreAttempt: true });
        await provider.abandonWorkItem(lockToken, { ignoreAttempt: true });
      }
    });
  });
}
