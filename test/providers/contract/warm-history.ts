import { describe, expect, test } from "vitest";
import type { OrchestrationItem, Provider, WarmMark } from "../../../src/provider/provider.js";
import { kvSet, raised, scheduled, started, turn } from "./builders.js";
import type { OpenProvider } from "./open-provider.js";
import { continueExecution, create, runTurn, takeTurn } from "./steps.js";

async function fetchWarm(provider: Provider, instance: string, mark: WarmMark): Promise<OrchestrationItem> {
  await provider.enqueueForOrchestrator(raised(instance));
  return (await takeTurn(provider, { warm: new Map([[instance, mark]]) })).item;
}

export function describeWarmHistory(open: OpenProvider): void {
  describe("a fetch that knows a part of the history", () => {
    test("gets the last event that it knows, and no other when there is no other", async () => {
      const { provider } = await open();
      await create(provider, "a", { events: [started("a"), scheduled("a", 2), scheduled("a", 3)] });

      const item = await fetchWarm(provider, "a", { executionId: 1, lastEventId: 3 });
      expect(item).toMatchObject({ isWarm: true, executionId: 1, messages: [raised("a")] });
      expect(item.history).toEqual([scheduled("a", 3)]);
    });

    test("gets what others have added since", async () => {
      const { provider } = await open();
      await create(provider, "a", { events: [started("a"), scheduled("a", 2)] });
      await runTurn(provider, "a", { events: [scheduled("a", 5), scheduled("a", 9)] });

      const item = await fetchWarm(provider, "a", { executionId: 1, lastEventId: 2 });
      expect(item.isWarm).toBe(true);
      expect(item.history.map(({ eventId }) => eventId)).toEqual([2, 5, 9]);
    });

    test("gets no key values: it has them", async () => {
      const { provider } = await open();
      await create(provider, "a", { events: [started("a"), kvSet("a", 2, "k", "v")] });
      await continueExecution(provider, "a", 2);

      const item = await fetchWarm(provider, "a", { executionId: 2, lastEventId: 1 });
      expect(item.isWarm).toBe(true);
      expect(item.kvSnapshot.size).toBe(0);
    });

    test("gets everything when it remembers an event that the history does not have", async () => {
      const { provider } = await open();
      await create(provider, "a", { events: [started("a"), scheduled("a", 2)] });

      const item = await fetchWarm(provider, "a", { executionId: 1, lastEventId: 3 });
      expect(item.isWarm).toBe(false);
      expect(item.history).toEqual([started("a"), scheduled("a", 2)]);
    });

    test("gets everything when it remembers another execution", async () => {
      const { provider } = await open();
      await create(provider, "a", { events: [started("a"), kvSet("a", 2, "k", "v")] });
      await continueExecution(provider, "a", 2);
      await runTurn(provider, "a", { executionId: 2, events: [scheduled("a", 2)] });

      const item = await fetchWarm(provider, "a", { executionId: 1, lastEventId: 2 });
      expect(item).toMatchObject({ isWarm: false, executionId: 2 });
      expect(item.history).toHaveLength(2);
      expect(item.kvSnapshot.get("k")?.value).toBe("v");
    });

    test("gets everything of an instance that it does not speak of", async () => {
      const { provider } = await open();
      await create(provider, "a");
      await provider.enqueueForOrchestrator(raised("a"));
      const warm = new Map([["b", { executionId: 1, lastEventId: 1 }]]);

      const { item } = await takeTurn(provider, { warm });
      expect(item).toMatchObject({ isWarm: false, history: [started("a")] });
    });

    test("commits like any other", async () => {
      const { provider } = await open();
      await create(provider, "a");
      await provider.enqueueForOrchestrator(raised("a"));
      const { item, lockToken } = await takeTurn(provider, {
        warm: new Map([["a", { executionId: 1, lastEventId: 1 }]]),
      });
      expect(item.isWarm).toBe(true);
      await provider.ackOrchestrationItem(lockToken, turn({ events: [scheduled("a", 2)] }));

      expect(await provider.read("a")).toEqual([started("a"), scheduled("a", 2)]);
    });
  });
}
