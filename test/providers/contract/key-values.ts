import { describe, expect, test } from "vitest";
import type { ExecutionStatus, KvEntry, Provider } from "../../../src/provider/provider.js";
import { completed, kvAllCleared, kvCleared, kvSet, NAMED, raised, turn } from "./builders.js";
import type { OpenProvider } from "./open-provider.js";
import { continueExecution, create, runTurn, takeTurn } from "./steps.js";

/** What a fetch hands to the replay of the current execution. */
async function snapshot(provider: Provider, instance: string): Promise<Record<string, KvEntry>> {
  await provider.enqueueForOrchestrator(raised(instance));
  const { item, lockToken } = await takeTurn(provider);
  await provider.ackOrchestrationItem(lockToken, turn({ executionId: item.executionId }));
  return Object.fromEntries(item.kvSnapshot);
}

async function all(provider: Provider, instance: string): Promise<Record<string, string>> {
  return Object.fromEntries(await provider.getKvAllValues(instance));
}

const entry = (value: string, lastUpdatedAtMs = 0): KvEntry => ({ value, lastUpdatedAtMs });

export function describeKeyValues(open: OpenProvider): void {
  describe("a key", () => {
    test("reads as the last value that a committed turn gave it", async () => {
      const { provider } = await open();
      await create(provider, "a");
      await runTurn(provider, "a", { events: [kvSet("a", 100, "k", "old")] });
      expect(await provider.getKvValue("a", "k")).toBe("old");
      await runTurn(provider, "a", { events: [kvSet("a", 101, "k", "newer"), kvSet("a", 102, "k", "newest")] });

      expect(await provider.getKvValue("a", "k")).toBe("newest");
      expect(await all(provider, "a")).toEqual({ k: "newest" });
    });

    test("that nobody has set is null, also of an unknown instance", async () => {
      const { provider } = await open();
      await create(provider, "a");
      expect(await provider.getKvValue("a", "k")).toBeNull();
      expect(await provider.getKvValue("unknown", "k")).toBeNull();
      expect(await all(provider, "unknown")).toEqual({});
    });

    test("may be empty, which is a value", async () => {
      const { provider } = await open();
      await create(provider, "a");
      await runTurn(provider, "a", { events: [kvSet("a", 100, "blank", "")] });

      expect(await provider.getKvValue("a", "blank")).toBe("");
      expect(await all(provider, "a")).toEqual({ blank: "" });
    });

    test("can be cleared, set or not", async () => {
      const { provider } = await open();
      await create(provider, "a");
      await runTurn(provider, "a", { events: [kvSet("a", 100, "k", "x"), kvSet("a", 101, "other", "y")] });
      await runTurn(provider, "a", { events: [kvCleared("a", 102, "k"), kvCleared("a", 103, "never set")] });

      expect(await provider.getKvValue("a", "k")).toBeNull();
      expect(await all(provider, "a")).toEqual({ other: "y" });
    });

    test("is cleared with all others, and what the same turn sets later stays", async () => {
      const { provider } = await open();
      await create(provider, "a");
      await runTurn(provider, "a", { events: [kvSet("a", 100, "x", "1"), kvSet("a", 101, "y", "2")] });
      const events = [kvSet("a", 102, "z", "lost"), kvAllCleared("a", 103), kvSet("a", 104, "x", "fresh")];
      await runTurn(provider, "a", { events });

      expect(await all(provider, "a")).toEqual({ x: "fresh" });
    });

    test("belongs to its instance", async () => {
      const { provider } = await open();
      for (const instance of ["a", "b"]) {
        await create(provider, instance);
        await runTurn(provider, instance, { events: [kvSet(instance, 100, "k", `of ${instance}`)] });
      }
      await runTurn(provider, "a", { events: [kvAllCleared("a", 101)] });

      expect(await provider.getKvValue("a", "k")).toBeNull();
      expect(await provider.getKvValue("b", "k")).toBe("of b");
    });

    test("may be any text; case and trailing space count", async () => {
      const { provider } = await open();
      await create(provider, "a");
      const keys = ["with space", "日本語", "dots.and/slashes", "🚀", "Case", "case", "case ", "__proto__", "%_'\""];
      await runTurn(provider, "a", {
        events: keys.map((key, index) => kvSet("a", 100 + index, key, `value of ${key}`)),
      });

      for (const key of keys) expect(await provider.getKvValue("a", key)).toBe(`value of ${key}`);
      expect((await provider.getKvAllValues("a")).size).toBe(keys.length);
    });

    test("is one of 150 with 64 KiB each", async () => {
      const { provider } = await open();
      await create(provider, "a");
      const value = "x".repeat(64 * 1024);
      const events = Array.from({ length: 150 }, (_, index) => kvSet("a", 100 + index, `key-${index}`, value));
      await runTurn(provider, "a", { events });
      await continueExecution(provider, "a", 2);

      expect(Object.values(await snapshot(provider, "a"))).toEqual(Array.from({ length: 150 }, () => entry(value)));
    });

    test("is not written by a turn that is refused", async () => {
      const { provider } = await open();
      await create(provider, "a");
      const refused = runTurn(provider, "a", { events: [kvSet("a", 100, "k", "v"), kvSet("a", 1, "k", "w")] });
      await expect(refused).rejects.toMatchObject({ kind: "duplicate-event" });

      expect(await provider.getKvValue("a", "k")).toBeNull();
    });
  });

  describe("the snapshot of a fetch", () => {
    test("has nothing of the running execution, whose replay writes it again", async () => {
      const { provider } = await open();
      await create(provider, "a");
      await runTurn(provider, "a", { events: [kvSet("a", 100, "counter", "1")] });

      expect(await snapshot(provider, "a")).toEqual({});
      expect(await provider.getKvValue("a", "counter")).toBe("1");
    });

    test.each<ExecutionStatus>(["Completed", "Failed", "ContinuedAsNew"])(
      "has what was written up to and with the turn that is %s",
      async (status) => {
        const { provider } = await open();
        await create(provider, "a");
        await runTurn(provider, "a", { events: [kvSet("a", 100, "x", "10", 7), kvSet("a", 101, "y", "20")] });
        const events = [kvSet("a", 102, "y", "21", 8), kvSet("a", 103, "z", "30", 9), completed("a", 104)];
        await runTurn(provider, "a", { events, metadata: { ...NAMED, status } });

        expect(await snapshot(provider, "a")).toEqual({ x: entry("10", 7), y: entry("21", 8), z: entry("30", 9) });
        expect(await all(provider, "a")).toEqual({ x: "10", y: "21", z: "30" });
      },
    );

    test("has not what a turn wrote that says it is still running", async () => {
      const { provider } = await open();
      await create(provider, "a");
      await runTurn(provider, "a", { events: [kvSet("a", 100, "x", "1")], metadata: { ...NAMED, status: "Running" } });

      expect(await snapshot(provider, "a")).toEqual({});
    });

    test("has not what was cleared", async () => {
      const { provider } = await open();
      await create(provider, "a");
      await runTurn(provider, "a", { events: [kvSet("a", 100, "keep", "yes"), kvSet("a", 101, "remove", "bye")] });
      await runTurn(provider, "a", { events: [kvCleared("a", 102, "remove")] });
      await continueExecution(provider, "a", 2);

      expect(await snapshot(provider, "a")).toEqual({ keep: entry("yes") });
    });

    test("stays the same through all turns of an execution", async () => {
      const { provider } = await open();
      await create(provider, "a");
      await runTurn(provider, "a", { events: [kvSet("a", 100, "k", "first"), kvSet("a", 101, "gone", "x")] });
      await continueExecution(provider, "a", 2);
      const events = [kvSet("a", 200, "k", "second"), kvCleared("a", 201, "gone"), kvSet("a", 202, "new", "n")];
      await runTurn(provider, "a", { executionId: 2, events });

      expect(await snapshot(provider, "a")).toEqual({ k: entry("first"), gone: entry("x") });
      expect(await all(provider, "a")).toEqual({ k: "second", new: "n" });
    });

    test("is empty when everything was cleared before the execution ended", async () => {
      const { provider } = await open();
      await create(provider, "a");
      await runTurn(provider, "a", { events: [kvSet("a", 100, "x", "1"), kvSet("a", 101, "y", "2")] });
      await continueExecution(provider, "a", 2);
      await runTurn(provider, "a", { executionId: 2, events: [kvAllCleared("a", 200)] });
      expect(await all(provider, "a")).toEqual({});
      expect(await snapshot(provider, "a")).toEqual({ x: entry("1"), y: entry("2") });
      await continueExecution(provider, "a", 3);

      expect(await snapshot(provider, "a")).toEqual({});
    });
  });

  describe("a key over several executions", () => {
    test("is read through: the running execution's change wins, what it left alone stays", async () => {
      const { provider } = await open();
      await create(provider, "a");
      const first = [kvSet("a", 100, "color", "red"), kvSet("a", 101, "size", "large"), kvSet("a", 102, "temp", "x")];
      await runTurn(provider, "a", { events: first });
      await continueExecution(provider, "a", 2);
      const second = [
        kvSet("a", 200, "color", "blue"),
        kvSet("a", 201, "shape", "circle"),
        kvCleared("a", 202, "temp"),
      ];
      await runTurn(provider, "a", { executionId: 2, events: second });

      expect(await all(provider, "a")).toEqual({ color: "blue", size: "large", shape: "circle" });
      expect(await provider.getKvValue("a", "temp")).toBeNull();
    });

    test("can go and come back", async () => {
      const { provider } = await open();
      await create(provider, "a");
      await runTurn(provider, "a", { events: [kvSet("a", 100, "cycle", "one")] });
      await continueExecution(provider, "a", 2);
      await runTurn(provider, "a", { executionId: 2, events: [kvCleared("a", 200, "cycle")] });
      await continueExecution(provider, "a", 3);
      expect(await provider.getKvValue("a", "cycle")).toBeNull();
      await runTurn(provider, "a", { executionId: 3, events: [kvSet("a", 300, "cycle", "three")] });

      expect(await provider.getKvValue("a", "cycle")).toBe("three");
      expect(await snapshot(provider, "a")).toEqual({});
    });
  });
}
