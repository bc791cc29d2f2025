import { describe, expect, test } from "vitest";
import type { ExecutionStatus } from "../../../src/provider/provider.js";
import { act, completed, continueAsNew, done, NAMED, scheduled, start, started } from "./builders.js";
import type { OpenProvider } from "./open-provider.js";
import { begin, commitNext, create, fetchTurn, fetchWork, runTurn, takeWork } from "./steps.js";

const ENDINGS: readonly ExecutionStatus[] = ["Completed", "Failed", "ContinuedAsNew"];

export function describeCancellation(open: OpenProvider): void {
  describe("a cancelled activity", () => {
    test("is gone from the worker queue", async () => {
      const { provider } = await open();
      await create(provider, "a", { workerItems: [act("a", 1), act("a", 2), act("a", 3)] });
      await provider.abandonWorkItem((await takeWork(provider)).lockToken);
      await runTurn(provider, "a", {
        cancelledActivities: [1, 2].map((id) => ({ instance: "a", executionId: 1, id })),
      });

      expect((await takeWork(provider)).item.id).toBe(3);
      expect(await fetchWork(provider)).toBeNull();
    });

    test("is taken away from the worker that runs it: neither renewal nor ack succeeds", async () => {
      const { provider } = await open();
      await create(provider, "a", { workerItems: [act("a", 1)] });
      const { lockToken } = await takeWork(provider);
      await runTurn(provider, "a", { cancelledActivities: [{ instance: "a", executionId: 1, id: 1 }] });

      const lost = { kind: "lock-lost", retryable: false };
      await expect(provider.renewWorkItemLock(lockToken, 30_000)).rejects.toMatchObject(lost);
      await expect(provider.ackWorkItem(lockToken, done("a", 1))).rejects.toMatchObject(lost);
      await provider.abandonWorkItem(lockToken);
      expect(await fetchWork(provider)).toBeNull();
      expect(await fetchTurn(provider)).toBeNull();
    });

    test("that the same turn schedules never reaches a worker", async () => {
      const { provider } = await open();
      await create(provider, "a", {
        workerItems: [act("a", 2), act("a", 3)],
        cancelledActivities: [{ instance: "a", executionId: 1, id: 2 }],
      });

      expect((await takeWork(provider)).item.id).toBe(3);
      expect(await fetchWork(provider)).toBeNull();
    });

    test("may be unknown", async () => {
      const { provider } = await open();
      await create(provider, "a", { cancelledActivities: [{ instance: "a", executionId: 1, id: 999 }] });
      expect(await provider.read("a")).toEqual([started("a")]);
    });

    test("takes none of the same id along: not of another execution, not of another instance", async () => {
      const { provider } = await open();
      await create(provider, "a", { workerItems: [act("a", 1), act("a", 1, { executionId: 2 }), act("b", 1)] });
      await runTurn(provider, "a", { cancelledActivities: [{ instance: "a", executionId: 1, id: 1 }] });

      expect((await takeWork(provider)).item).toEqual(act("a", 1, { executionId: 2 }));
      expect((await takeWork(provider)).item).toEqual(act("b", 1));
      expect(await fetchWork(provider)).toBeNull();
    });

    test("may be one of very many", async () => {
      const { provider } = await open();
      const ids = Array.from({ length: 1_500 }, (_, index) => index + 2);
      await create(provider, "a", { workerItems: ids.map((id) => act("a", id)) });
      await runTurn(provider, "a", { cancelledActivities: ids.map((id) => ({ instance: "a", executionId: 1, id })) });

      expect(await fetchWork(provider)).toBeNull();
    });

    test("stays where it is when the turn that cancels it is refused", async () => {
      const { provider } = await open();
      await create(provider, "a", { workerItems: [act("a", 2)] });
      const cancelledActivities = [{ instance: "a", executionId: 1, id: 2 }];
      const refused = runTurn(provider, "a", { events: [scheduled("a", 1)], cancelledActivities });
      await expect(refused).rejects.toMatchObject({ kind: "duplicate-event" });

      expect((await takeWork(provider)).item.id).toBe(2);
    });
  });

  describe("the execution state of a work item", () => {
    test("is running while its execution runs", async () => {
      const { provider } = await open();
      await create(provider, "a", { workerItems: [act("a", 1)], metadata: { ...NAMED, status: "Running" } });
      const { executionState, lockToken } = await takeWork(provider);

      expect(executionState).toBe("running");
      expect(await provider.renewWorkItemLock(lockToken, 30_000)).toBe("running");
    });

    test.each(ENDINGS)(
      "is terminated when its execution is %s; it is fetched and acked all the same",
      async (status) => {
        const { provider } = await open();
        await create(provider, "a", { workerItems: [act("a", 1)], metadata: { ...NAMED, status, output: "out" } });
        const { executionState, lockToken } = await takeWork(provider);

        expect(executionState).toBe("terminated");
        await provider.ackWorkItem(lockToken, done("a", 1));
      },
    );

    test.each(ENDINGS)("turns terminated for the worker that renews when its execution becomes %s", async (status) => {
      const { provider } = await open();
      await create(provider, "a", { workerItems: [act("a", 1)] });
      const { lockToken } = await takeWork(provider);
      expect(await provider.renewWorkItemLock(lockToken, 30_000)).toBe("running");
      await runTurn(provider, "a", { metadata: { status } });

      expect(await provider.renewWorkItemLock(lockToken, 30_000)).toBe("terminated");
    });

    test("is terminated when the instance is in another execution", async () => {
      const { provider } = await open();
      await create(provider, "a");
      await provider.enqueueForOrchestrator(continueAsNew("a"));
      await commitNext(provider, "a", { executionId: 2, events: [started("a")], metadata: NAMED });
      await provider.enqueueForWorker(act("a", 1));
      await provider.enqueueForWorker(act("a", 1, { executionId: 2 }));

      expect((await takeWork(provider)).executionState).toBe("terminated");
      expect((await takeWork(provider)).executionState).toBe("running");
    });

    test("is running where the store does not know the instance", async () => {
      const { provider } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      await provider.enqueueForWorker(act("a", 1));
      expect((await takeWork(provider)).executionState).toBe("running");
    });

    test("is running where no turn has named the instance, even when it is completed", async () => {
      const { provider } = await open();
      await begin(provider, "a", { workerItems: [act("a", 1)], metadata: { orchestrationName: "TestOrch" } });
      const { lockToken } = await takeWork(provider);
      await runTurn(provider, "a", { events: [completed("a", 2)], metadata: { status: "Completed", output: "done" } });

      expect(await provider.renewWorkItemLock(lockToken, 30_000)).toBe("running");
    });
  });
}
