import { describe, expect, test } from "vitest";
import type { OrchestratorItem } from "../../../src/history/work-item.js";
import { act, done, event, NAMED, raised, scheduled, start, started, timer, turn } from "./builders.js";
import type { OpenProvider } from "./open-provider.js";
import { begin, create, fetchTurn, fetchWork, takeTurn, takeWork } from "./steps.js";

export function describeAtomicTurns(open: OpenProvider): void {
  describe("a committed turn", () => {
    test("writes history, activities and messages in one", async () => {
      const { provider } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      const { lockToken } = await takeTurn(provider);
      const fireAtMs = 1_234_567_890;

      await provider.ackOrchestrationItem(
        lockToken,
        turn({
          events: [
            started("a"),
            scheduled("a", 2),
            scheduled("a", 3),
            scheduled("a", 4),
            event("a", 5, { type: "TimerCreated", fireAtMs }),
          ],
          workerItems: [act("a", 2), act("a", 3), act("a", 4)],
          orchestratorItems: [timer("a", 5, fireAtMs), raised("a")],
        }),
      );

      expect((await provider.read("a")).map(({ eventId }) => eventId)).toEqual([1, 2, 3, 4, 5]);
      for (const id of [2, 3, 4]) expect((await takeWork(provider)).item.id).toBe(id);
      expect(await fetchWork(provider)).toBeNull();
      expect((await takeTurn(provider)).item.messages).toEqual([timer("a", 5, fireAtMs), raised("a")]);
    });

    test("may be empty: it consumes its messages", async () => {
      const { provider } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      await provider.ackOrchestrationItem((await takeTurn(provider)).lockToken, turn());

      expect(await fetchTurn(provider)).toBeNull();
      expect(await provider.read("a")).toEqual([]);
    });

    test("is the only one of two commits with the same lock", async () => {
      const { provider } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      const { lockToken } = await takeTurn(provider);
      const commit = turn({ events: [started("a")] });

      const outcomes = await Promise.allSettled([
        provider.ackOrchestrationItem(lockToken, commit),
        provider.ackOrchestrationItem(lockToken, commit),
      ]);

      expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
      await expect(provider.ackOrchestrationItem(lockToken, commit)).rejects.toMatchObject({ kind: "lock-lost" });
      expect(await provider.read("a")).toHaveLength(1);
    });

    test("reaches the child that it starts at once", async () => {
      const { provider } = await open();
      const child = start("p::child", { orchestration: "Child", version: null, parentInstance: "p", parentId: 2 });
      await create(provider, "p", { orchestratorItems: [child] });

      const { item } = await takeTurn(provider);
      expect(item).toMatchObject({ instance: "p::child", orchestrationName: "Child", messages: [child] });
    });

    test("reaches the parent that a child's completion names", async () => {
      const { provider } = await open();
      await create(provider, "p");
      const completion: OrchestratorItem = {
        type: "SubOrchCompleted",
        parentInstance: "p",
        parentExecutionId: 1,
        parentId: 2,
        result: "ok",
      };
      await create(provider, "child", { orchestratorItems: [completion] });

      expect((await takeTurn(provider)).item).toMatchObject({ instance: "p", messages: [completion] });
    });
  });

  describe("a refused turn", () => {
    test("with an event id in use changes nothing and keeps its lock", async () => {
      const { provider } = await open();
      await create(provider, "a");
      await provider.enqueueForOrchestrator(raised("a"));
      const { lockToken } = await takeTurn(provider);

      const refused = turn({
        events: [scheduled("a", 2), scheduled("a", 1)],
        workerItems: [act("a", 2)],
        orchestratorItems: [raised("b"), start("b")],
        metadata: { ...NAMED, orchestrationVersion: "9.9.9", status: "Failed", output: "no" },
      });
      await expect(provider.ackOrchestrationItem(lockToken, refused)).rejects.toMatchObject({
        kind: "duplicate-event",
        retryable: false,
      });

      expect(await provider.read("a")).toEqual([started("a")]);
      expect(await fetchWork(provider)).toBeNull();
      expect(await fetchTurn(provider)).toBeNull();
      expect(await provider.getInstanceStatus("a")).toMatchObject({ status: "Running", orchestrationVersion: "1.0.0" });
      await provider.ackOrchestrationItem(lockToken, turn({ events: [scheduled("a", 2)] }));
      expect(await provider.read("a")).toHaveLength(2);
    });

    test("with the same event id twice in itself changes nothing", async () => {
      const { provider } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      const { lockToken } = await takeTurn(provider);

      await expect(
        provider.ackOrchestrationItem(lockToken, turn({ events: [started("a"), scheduled("a", 1)] })),
      ).rejects.toMatchObject({ kind: "duplicate-event" });
      expect(await provider.read("a")).toEqual([]);
    });

    test.each([0, -1, 1.5])("with event id %d changes nothing and keeps its lock", async (eventId) => {
      const { provider } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      const { lockToken } = await takeTurn(provider);

      const refused = turn({ events: [started("a"), scheduled("a", eventId)] });
      await expect(provider.ackOrchestrationItem(lockToken, refused)).rejects.toMatchObject({ kind: "invalid" });
      expect(await provider.read("a")).toEqual([]);
      await provider.ackOrchestrationItem(lockToken, turn({ events: [started("a")] }));
    });

    test("that puts an activity into the orchestrator queue changes nothing", async () => {
      const { provider } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      const { lockToken } = await takeTurn(provider);

      const misrouted = act("a", 2) as unknown as OrchestratorItem;
      const refused = turn({ events: [started("a")], orchestratorItems: [raised("a"), misrouted] });
      await expect(provider.ackOrchestrationItem(lockToken, refused)).rejects.toMatchObject({ kind: "invalid" });
      expect(await provider.read("a")).toEqual([]);
      expect(await fetchTurn(provider)).toBeNull();
    });

    test("with an unknown lock says so", async () => {
      const { provider } = await open();
      const refused = provider.ackOrchestrationItem("no-such-token", turn());
      await expect(refused).rejects.toMatchObject({ kind: "lock-lost", retryable: false });
      await expect(provider.ackOrchestrationItem("no-such-token", turn())).rejects.toThrow("Invalid lock token");
    });

    test("leaves its messages to the next fetch", async () => {
      const { provider, clock } = await open();
      await begin(provider, "a");
      await provider.enqueueForOrchestrator(done("a", 2));
      const { lockToken } = await takeTurn(provider, { lockTimeoutMs: 1_000 });
      const refused = turn({ events: [scheduled("a", 1)] });
      await expect(provider.ackOrchestrationItem(lockToken, refused)).rejects.toThrow();

      await clock.advance(1_000);
      expect((await takeTurn(provider)).item.messages).toEqual([done("a", 2)]);
    });
  });
}
