import { describe, expect, test } from "vitest";
import { CORRUPT_HISTORY_EVENT_ID } from "../../../src/history/event.js";
import { event, NAMED, raised, semver, supports, turn } from "./builders.js";
import type { OpenProvider, TestProvider } from "./open-provider.js";
import { create, fetchTurn, takeTurn } from "./steps.js";

const NOT_POSSIBLE = "this store keeps no text that could be corrupt";

/** An instance with a message, whose history cannot be decoded. False: the store cannot come to that. */
async function seedCorrupt(opened: TestProvider): Promise<boolean> {
  if (opened.corruptHistory === undefined) return false;
  await create(opened.provider, "a", { metadata: { ...NAMED, pinnedVersion: semver("1.0.0") } });
  await opened.provider.enqueueForOrchestrator(raised("a"));
  await opened.corruptHistory("a");
  return true;
}

export function describeCorruptHistory(open: OpenProvider): void {
  describe("a history that cannot be decoded", () => {
    test("is an error to whoever reads it, not an empty history", async ({ skip }) => {
      const opened = await open();
      if (!(await seedCorrupt(opened))) return skip(NOT_POSSIBLE);

      const corrupt = { kind: "corrupt", retryable: false };
      await expect(opened.provider.read("a")).rejects.toMatchObject(corrupt);
      await expect(opened.provider.readWithExecution("a", 1)).rejects.toMatchObject(corrupt);
    });

    test("is fetched as such, locked and counted", async ({ skip }) => {
      const opened = await open();
      if (!(await seedCorrupt(opened))) return skip(NOT_POSSIBLE);
      const { provider } = opened;

      for (let attempt = 1; attempt <= 5; attempt += 1) {
        const locked = await takeTurn(provider);
        expect(locked).toMatchObject({ item: { instance: "a", history: [] }, attemptCount: attempt });
        expect(locked.item.historyError).toEqual(expect.any(String));
        expect(locked.item.kvSnapshot.size).toBe(0);
        expect(await fetchTurn(provider)).toBeNull();
        await provider.abandonOrchestrationItem(locked.lockToken);
      }
    });

    test("is not looked at by a dispatcher that cannot replay it", async ({ skip }) => {
      const opened = await open();
      if (!(await seedCorrupt(opened))) return skip(NOT_POSSIBLE);

      expect(await fetchTurn(opened.provider, { capability: supports("2.0.0..2.9.9") })).toBeNull();
      expect((await takeTurn(opened.provider)).attemptCount).toBe(1);
    });

    test("can be ended with a failure, which leaves the rest of it alone", async ({ skip }) => {
      const opened = await open();
      if (!(await seedCorrupt(opened))) return skip(NOT_POSSIBLE);
      const { provider } = opened;
      const { lockToken } = await takeTurn(provider);
      const failure = event("a", CORRUPT_HISTORY_EVENT_ID, {
        type: "OrchestrationFailed",
        details: { category: "infrastructure", operation: "read", message: "corrupt", retryable: false },
      });
      const metadata = { ...NAMED, status: "Failed", output: "history deserialization failed" } as const;
      await provider.ackOrchestrationItem(lockToken, turn({ events: [failure], metadata }));

      expect(await provider.getInstanceStatus("a")).toMatchObject({ status: "Failed", output: metadata.output });
      await expect(provider.read("a")).rejects.toMatchObject({ kind: "corrupt" });
      expect(await fetchTurn(provider)).toBeNull();
    });

    test("is as bad for a fetch that asks only for the end of it", async ({ skip }) => {
      const opened = await open();
      if (!(await seedCorrupt(opened))) return skip(NOT_POSSIBLE);
      const warm = new Map([["a", { executionId: 1, lastEventId: 1 }]]);

      const { item } = await takeTurn(opened.provider, { warm });
      expect(item.historyError).toEqual(expect.any(String));
      expect(item.history).toEqual([]);
    });
  });
}
