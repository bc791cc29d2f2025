import { describe, expect, test } from "vitest";
import type { OrchestratorItem } from "../../../src/history/work-item.js";
import { act, done, queued, raised, start, timer, turn } from "./builders.js";
import type { OpenProvider } from "./open-provider.js";
import { begin, create, fetchTurn, takeTurn } from "./steps.js";

export function describeQueueOrder(open: OpenProvider): void {
  describe("the messages of a batch", () => {
    test("come in the order in which they were enqueued", async () => {
      const { provider, clock } = await open();
      await create(provider, "a");
      const messages = [done("a", 3), queued("a"), raised("a"), done("a", 1)];
      for (const message of messages) {
        await provider.enqueueForOrchestrator(message);
        await clock.advance(1);
      }

      expect((await takeTurn(provider)).item.messages).toEqual(messages);
    });

    test("come in the order of the turn that sent them, within one millisecond", async () => {
      const { provider } = await open();
      const messages = Array.from({ length: 20 }, (_, id) => done("a", 20 - id));
      await create(provider, "a", { orchestratorItems: messages });

      expect((await takeTurn(provider)).item.messages).toEqual(messages);
    });

    test("have a timer at its fire time, not at its creation", async () => {
      const { provider, clock } = await open();
      const now = clock.now();
      await create(provider, "a", { orchestratorItems: [timer("a", 2, now + 3_000), timer("a", 3, now + 1_000)] });
      await clock.advance(2_000);
      await provider.enqueueForOrchestrator(done("a", 4));
      await clock.advance(2_000);

      const { item } = await takeTurn(provider);
      expect(item.messages).toEqual([timer("a", 3, now + 1_000), done("a", 4), timer("a", 2, now + 3_000)]);
    });

    test("keep their places when they are abandoned with a delay", async () => {
      const { provider, clock } = await open();
      await create(provider, "a");
      for (const id of [1, 2]) await provider.enqueueForOrchestrator(done("a", id));
      await clock.advance(1);
      await provider.abandonOrchestrationItem((await takeTurn(provider)).lockToken, { delayMs: 100 });
      await clock.advance(50);
      await provider.enqueueForOrchestrator(done("a", 3));
      await clock.advance(50);

      expect((await takeTurn(provider)).item.messages).toEqual([done("a", 1), done("a", 2), done("a", 3)]);
    });

    test("may be equal: nothing is deduplicated", async () => {
      const { provider } = await open();
      await create(provider, "a");
      for (let i = 0; i < 3; i += 1) await provider.enqueueForOrchestrator(done("a", 1));

      expect((await takeTurn(provider)).item.messages).toEqual([done("a", 1), done("a", 1), done("a", 1)]);
    });

    test("come back as they were written", async () => {
      const { provider } = await open();
      await create(provider, "a");
      const text = 'quote " backslash \\ newline \n zero \u0000 漢字 🚀 \u2028';
      const messages: OrchestratorItem[] = [
        raised("a", text, text),
        done("a", 1, { result: text }),
        {
          type: "ActivityFailed",
          instance: "a",
          executionId: 1,
          id: 2,
          details: { category: "application", kind: { type: "ActivityFailed" }, message: text, retryable: true },
        },
        start("a", { input: text, version: null, parentInstance: "p", parentId: 7 }),
      ];
      for (const message of messages) await provider.enqueueForOrchestrator(message);

      expect((await takeTurn(provider)).item.messages).toEqual(messages);
    });
  });

  describe("the next instance", () => {
    test("is the one whose oldest visible message is the oldest", async () => {
      const { provider, clock } = await open();
      for (const instance of ["a", "b", "c"]) {
        await provider.enqueueForOrchestrator(start(instance));
        await clock.advance(1);
      }
      await provider.enqueueForOrchestrator(raised("b"));

      for (const instance of ["a", "b", "c"]) expect((await takeTurn(provider)).item.instance).toBe(instance);
    });

    test("is not one that keeps writing to itself while others wait", async () => {
      const { provider, clock } = await open();
      await create(provider, "busy", { orchestratorItems: [raised("busy")] });
      await clock.advance(1);
      await provider.enqueueForOrchestrator(start("patient"));
      await clock.advance(1);
      const busy = await takeTurn(provider);
      await provider.ackOrchestrationItem(busy.lockToken, turn({ orchestratorItems: [raised("busy")] }));

      expect((await takeTurn(provider)).item.instance).toBe("patient");
    });

    test("is found behind instances that sleep", async () => {
      const { provider, clock } = await open();
      for (let i = 0; i < 5; i += 1) {
        const instance = `sleeper-${i}`;
        await create(provider, instance, { orchestratorItems: [timer(instance, 2, clock.now() + 60_000)] });
      }
      await provider.enqueueForOrchestrator(start("awake"));

      expect((await takeTurn(provider)).item.instance).toBe("awake");
      expect(await fetchTurn(provider)).toBeNull();
    });
  });

  describe("a delayed message", () => {
    test("is invisible until its time has come", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForOrchestrator(start("a"), { delayMs: 2_000 });
      await clock.advance(1_999);
      expect(await fetchTurn(provider)).toBeNull();

      await clock.advance(1);
      expect((await takeTurn(provider)).item.messages).toEqual([start("a")]);
    });

    test("does not keep visible ones of the same instance waiting", async () => {
      const { provider, clock } = await open();
      await create(provider, "a", { orchestratorItems: [timer("a", 2, clock.now() + 60_000)] });
      await provider.enqueueForOrchestrator(done("a", 3));
      const { item, lockToken } = await takeTurn(provider);
      expect(item.messages).toEqual([done("a", 3)]);
      await provider.ackOrchestrationItem(lockToken, turn());

      await clock.advance(60_000);
      expect((await takeTurn(provider)).item.messages).toEqual([timer("a", 2, clock.now())]);
    });
  });

  describe("a timer", () => {
    test("that a turn sets fires at its time, not before", async () => {
      const { provider, clock } = await open();
      const fireAtMs = clock.now() + 5_000;
      await begin(provider, "a", { orchestratorItems: [timer("a", 2, fireAtMs)] });
      await clock.advance(4_999);
      expect(await fetchTurn(provider)).toBeNull();

      await clock.advance(1);
      expect((await takeTurn(provider)).item.messages).toEqual([timer("a", 2, fireAtMs)]);
    });

    test("that is enqueued waits for both its fire time and its delay", async () => {
      const { provider, clock } = await open();
      await create(provider, "a");
      await provider.enqueueForOrchestrator(timer("a", 2, 0), { delayMs: 5_000 });
      await provider.enqueueForOrchestrator(timer("a", 3, clock.now() + 8_000), { delayMs: 1_000 });
      await clock.advance(4_999);
      expect(await fetchTurn(provider)).toBeNull();

      await clock.advance(1);
      const first = await takeTurn(provider);
      expect(first.item.messages).toEqual([timer("a", 2, 0)]);
      await provider.ackOrchestrationItem(first.lockToken, turn());
      await clock.advance(2_999);
      expect(await fetchTurn(provider)).toBeNull();
      await clock.advance(1);
      expect((await takeTurn(provider)).item.messages).toEqual([timer("a", 3, clock.now())]);
    });
  });

  describe("an activity", () => {
    test("is refused by the orchestrator queue", async () => {
      const { provider } = await open();
      const misrouted = provider.enqueueForOrchestrator(act("a", 1) as unknown as OrchestratorItem);
      await expect(misrouted).rejects.toMatchObject({ kind: "invalid", retryable: false });
      expect(await fetchTurn(provider)).toBeNull();
    });
  });
}
