import { describe, expect, test } from "vitest";
import { encodeEvent } from "../../../src/history/codec.js";
import type { ExecutionStatus } from "../../../src/provider/provider.js";
import { completed, kvCleared, kvSet, NAMED, raised, scheduled, start, started } from "./builders.js";
import type { OpenProvider } from "./open-provider.js";
import { commitNext, continueExecution, create, runTurn } from "./steps.js";

export function describeStatusAndStats(open: OpenProvider): void {
  describe("the status of an instance", () => {
    test("is null where nobody has started it", async () => {
      const { provider } = await open();
      await provider.enqueueForOrchestrator(raised("a"));
      expect(await provider.getInstanceStatus("a")).toBeNull();
      expect(await provider.getInstanceStatus("unknown")).toBeNull();
    });

    test("is pending while its start is queued, delayed or being worked on", async () => {
      const { provider } = await open();
      await provider.enqueueForOrchestrator(start("a", { version: null }));
      await provider.enqueueForOrchestrator(start("b"), { delayMs: 60_000 });

      expect(await provider.getInstanceStatus("a")).toEqual({
        status: "Pending",
        orchestrationName: "TestOrch",
        orchestrationVersion: "unknown",
        executionId: 1,
        output: null,
        customStatus: null,
        customStatusVersion: 0,
      });
      expect(await provider.getInstanceStatus("b")).toMatchObject({ status: "Pending", orchestrationVersion: "1.0.0" });
    });

    test("is running after its first turn", async () => {
      const { provider } = await open();
      await create(provider, "a");
      expect(await provider.getInstanceStatus("a")).toMatchObject({
        status: "Running",
        orchestrationName: "TestOrch",
        orchestrationVersion: "1.0.0",
        executionId: 1,
        output: null,
      });
    });

    test.each<ExecutionStatus>(["Completed", "Failed", "ContinuedAsNew"])("is %s, with its output", async (status) => {
      const { provider } = await open();
      await create(provider, "a");
      await runTurn(provider, "a", { events: [completed("a", 2)], metadata: { status, output: "the output" } });

      expect(await provider.getInstanceStatus("a")).toMatchObject({ status, output: "the output" });
    });

    test("is not changed by a turn that says nothing of it", async () => {
      const { provider } = await open();
      await create(provider, "a", { metadata: { ...NAMED, status: "Completed", output: "done" } });
      await runTurn(provider, "a", { metadata: NAMED });

      expect(await provider.getInstanceStatus("a")).toMatchObject({ status: "Completed", output: "done" });
    });

    test("is that of the current execution, under its name and version", async () => {
      const { provider } = await open();
      await create(provider, "a");
      await runTurn(provider, "a", { metadata: { ...NAMED, status: "ContinuedAsNew", output: "next input" } });
      const metadata = { orchestrationName: "TestOrch", orchestrationVersion: "2.0.0" };
      await provider.enqueueForOrchestrator(raised("a"));
      await commitNext(provider, "a", { executionId: 2, events: [started("a")], metadata });

      expect(await provider.getInstanceStatus("a")).toMatchObject({
        status: "Running",
        executionId: 2,
        output: null,
        orchestrationVersion: "2.0.0",
      });
    });
  });

  describe("the statistics of an instance", () => {
    test("are null where the store does not know it", async () => {
      const { provider } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      expect(await provider.getInstanceStats("a")).toBeNull();
      expect(await provider.getInstanceStats("unknown")).toBeNull();
    });

    test("count the events of the current execution and the bytes of their text", async () => {
      const { provider } = await open();
      const events = [started("a"), scheduled("a", 2, "日本語 🚀")];
      await create(provider, "a", { events });

      expect(await provider.getInstanceStats("a")).toEqual({
        historyEventCount: 2,
        historySizeBytes: Buffer.byteLength(events.map(encodeEvent).join("")),
        queuePendingCount: 0,
        kvUserKeyCount: 0,
        kvTotalValueBytes: 0,
      });
      await continueExecution(provider, "a", 2);
      expect(await provider.getInstanceStats("a")).toMatchObject({ historyEventCount: 1 });
    });

    test("count the queue messages that the execution was given to begin with", async () => {
      const { provider } = await open();
      const carryForwardEvents = [["q", "1"] as const, ["q", "2"] as const, ["r", "3"] as const];
      await create(provider, "a", { events: [started("a", { carryForwardEvents })] });

      expect(await provider.getInstanceStats("a")).toMatchObject({ queuePendingCount: 3, kvUserKeyCount: 0 });
    });

    test("count keys and bytes as a reader sees them", async () => {
      const { provider } = await open();
      await create(provider, "a");
      await runTurn(provider, "a", { events: [kvSet("a", 100, "k1", "aaa"), kvSet("a", 101, "k2", "é")] });
      expect(await provider.getInstanceStats("a")).toMatchObject({ kvUserKeyCount: 2, kvTotalValueBytes: 5 });
      await continueExecution(provider, "a", 2);
      await runTurn(provider, "a", { executionId: 2, events: [kvSet("a", 200, "k1", "zzzzz")] });
      expect(await provider.getInstanceStats("a")).toMatchObject({ kvUserKeyCount: 2, kvTotalValueBytes: 7 });
      await runTurn(provider, "a", { executionId: 2, events: [kvCleared("a", 201, "k2")] });

      expect(await provider.getInstanceStats("a")).toMatchObject({ kvUserKeyCount: 1, kvTotalValueBytes: 5 });
    });
  });
}
