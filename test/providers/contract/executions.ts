import { describe, expect, test } from "vitest";
import { completed, continueAsNew, event, NAMED, scheduled, start, started, turn } from "./builders.js";
import type { OpenProvider } from "./open-provider.js";
import { begin, commitNext, create, fetchTurn, runTurn, takeTurn } from "./steps.js";

export function describeExecutions(open: OpenProvider): void {
  describe("a new instance", () => {
    test("is fetched with what its start says, and without history", async () => {
      const { provider } = await open();
      await provider.enqueueForOrchestrator(start("a"));

      expect((await takeTurn(provider)).item).toEqual({
        instance: "a",
        orchestrationName: "TestOrch",
        version: "1.0.0",
        executionId: 1,
        history: [],
        isWarm: false,
        historyError: null,
        messages: [start("a")],
        kvSnapshot: new Map(),
      });
    });

    test("whose start names no version has an unknown one, until its first turn names it", async () => {
      const { provider } = await open();
      await provider.enqueueForOrchestrator(start("a", { version: null }));
      const { item, lockToken } = await takeTurn(provider);
      expect(item.version).toBe("unknown");
      const metadata = { ...NAMED, orchestrationVersion: "3.0.0" };
      await provider.ackOrchestrationItem(lockToken, turn({ events: [started("a")], metadata }));
      await provider.enqueueForOrchestrator(start("a", { version: "1.0.0" }));

      expect((await takeTurn(provider)).item).toMatchObject({ version: "3.0.0", executionId: 1, history: [{}] });
    });

    test("that continues another run by its start alone is fetched too", async () => {
      const { provider } = await open();
      await provider.enqueueForOrchestrator(continueAsNew("a"));
      expect((await takeTurn(provider)).item).toMatchObject({ orchestrationName: "TestOrch", executionId: 1 });
    });
  });

  describe("an instance whose turns never named it", () => {
    test("is known by the first event of its history", async () => {
      const { provider } = await open();
      await begin(provider, "a", { metadata: { orchestrationName: "OnlyAName" } });
      await provider.enqueueForOrchestrator(start("a", { orchestration: "Other", version: "2.0.0" }));

      const { item } = await takeTurn(provider);
      expect(item).toMatchObject({ orchestrationName: "TestOrch", version: "1.0.0", history: [started("a")] });
    });

    test("is fetched with its latest execution", async () => {
      const { provider } = await open();
      await begin(provider, "a");
      await runTurn(provider, "a", { executionId: 2, events: [started("a", { executionId: 2 })] });
      await provider.enqueueForOrchestrator(continueAsNew("a"));

      const { item } = await takeTurn(provider);
      expect(item).toMatchObject({ executionId: 2, history: [{ executionId: 2 }] });
    });
  });

  describe("an execution", () => {
    test("has a history of its own; read gives that of the latest", async () => {
      const { provider } = await open();
      const first = [started("a"), scheduled("a", 2), completed("a", 3)];
      const second = [started("a", { executionId: 2 }), completed("a", 2)];
      await begin(provider, "a", { events: first });
      await provider.enqueueForOrchestrator(start("a", { executionId: 2 }));
      await commitNext(provider, "a", { executionId: 2, events: second });

      expect(await provider.readWithExecution("a", 1)).toEqual(first);
      expect(await provider.readWithExecution("a", 2)).toEqual(second);
      expect(await provider.read("a")).toEqual(second);
      expect(await provider.readWithExecution("a", 3)).toEqual([]);
    });

    test("is current because it was committed, not because a message speaks of it", async () => {
      const { provider } = await open();
      await create(provider, "a");
      await runTurn(provider, "a", { executionId: 2, events: [started("a")], metadata: NAMED });
      await provider.enqueueForOrchestrator(start("a", { executionId: 3 }));

      expect((await takeTurn(provider)).item.executionId).toBe(2);
    });

    test("is never followed by an earlier one", async () => {
      const { provider } = await open();
      await create(provider, "a");
      await runTurn(provider, "a", { executionId: 2, events: [started("a")], metadata: NAMED });
      await runTurn(provider, "a", { executionId: 1, events: [completed("a", 9)], metadata: NAMED });
      await provider.enqueueForOrchestrator(continueAsNew("a"));

      expect((await takeTurn(provider)).item).toMatchObject({ executionId: 2, history: [started("a")] });
    });

    test("keeps its history when many follow", async () => {
      const { provider } = await open();
      for (const executionId of [1, 2, 3]) {
        await provider.enqueueForOrchestrator(start("a", { executionId }));
        await commitNext(provider, "a", { executionId, events: [scheduled("a", 1, `Activity-${executionId}`)] });
      }

      for (const executionId of [1, 2, 3]) {
        const [only] = await provider.readWithExecution("a", executionId);
        expect(only).toMatchObject({ name: `Activity-${executionId}` });
      }
      expect(await provider.read("a")).toMatchObject([{ name: "Activity-3" }]);
    });
  });

  describe("history", () => {
    test("of an unknown instance is empty", async () => {
      const { provider } = await open();
      expect(await provider.read("unknown")).toEqual([]);
      expect(await provider.readWithExecution("unknown", 1)).toEqual([]);
    });

    test("comes back as it was written, by reading and by fetching", async () => {
      const { provider } = await open();
      const events = [
        started("a", { duroxideVersion: "0.1.7", timestampMs: 123 }),
        event("a", 2, { type: "ActivityScheduled", name: "A", input: "漢字 🚀 \u2028", sessionId: "s", tag: "gpu" }),
        event("a", 3, { type: "ActivityCompleted", result: "" }, { sourceEventId: 2 }),
        event("a", 4, { type: "KeyValueSet", key: "k", value: "v", lastUpdatedAtMs: 5 }),
      ];
      await create(provider, "a", { events });
      await provider.enqueueForOrchestrator(continueAsNew("a"));

      expect(await provider.read("a")).toEqual(events);
      expect((await takeTurn(provider)).item.history).toEqual(events);
    });

    test("belongs to the locked instance and the turn's execution, whatever its events say of themselves", async () => {
      const { provider } = await open();
      const foreign = started("somebody-else", { executionId: 7 });
      await create(provider, "a", { events: [foreign] });

      expect(await provider.readWithExecution("a", 1)).toEqual([foreign]);
      expect(await provider.read("somebody-else")).toEqual([]);
    });

    test("is ascending by event id, and ids may have gaps", async () => {
      const { provider } = await open();
      await create(provider, "a");
      await runTurn(provider, "a", { events: [scheduled("a", 99_999)] });
      await runTurn(provider, "a", { events: [scheduled("a", 7), scheduled("a", 3)] });

      expect((await provider.read("a")).map(({ eventId }) => eventId)).toEqual([1, 3, 7, 99_999]);
    });

    test("that was handed out does not change under its reader", async () => {
      const { provider } = await open();
      await create(provider, "a");
      const before = await provider.read("a");
      await runTurn(provider, "a", { events: [scheduled("a", 2)] });

      expect(before).toEqual([started("a")]);
    });

    test("holds an event of three megabytes", async () => {
      const { provider } = await open();
      const large = event("a", 2, { type: "ActivityCompleted", result: "x".repeat(3 * 1024 * 1024) });
      await create(provider, "a", { events: [started("a"), large] });

      expect((await provider.read("a"))[1]).toEqual(large);
    });
  });

  describe("an append", () => {
    test("adds to the execution's history", async () => {
      const { provider } = await open();
      await create(provider, "a");
      await provider.appendWithExecution("a", 1, [scheduled("a", 2), completed("a", 3)]);

      expect((await provider.read("a")).map(({ eventId }) => eventId)).toEqual([1, 2, 3]);
      expect(await fetchTurn(provider)).toBeNull();
    });

    test("writes all of its events or none", async () => {
      const { provider } = await open();
      await create(provider, "a");
      const duplicate = provider.appendWithExecution("a", 1, [scheduled("a", 2), scheduled("a", 1)]);
      await expect(duplicate).rejects.toMatchObject({ kind: "duplicate-event" });
      const zero = provider.appendWithExecution("a", 1, [scheduled("a", 2), scheduled("a", 0)]);
      await expect(zero).rejects.toMatchObject({ kind: "invalid" });

      expect(await provider.read("a")).toEqual([started("a")]);
    });

    test("of an event id that another one appends at the same time is refused for one of them", async () => {
      const { provider } = await open();
      await create(provider, "a");
      const outcomes = await Promise.allSettled([
        provider.appendWithExecution("a", 1, [scheduled("a", 2)]),
        provider.appendWithExecution("a", 1, [scheduled("a", 2)]),
      ]);

      expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
      expect(await provider.read("a")).toHaveLength(2);
    });
  });
}
