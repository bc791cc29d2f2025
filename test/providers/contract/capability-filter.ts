import { describe, expect, test } from "vitest";
import type { Provider } from "../../../src/provider/provider.js";
import { continueAsNew, NAMED, raised, semver, start, started, supports, turn } from "./builders.js";
import type { OpenProvider } from "./open-provider.js";
import { commitNext, create, fetchTurn, runTurn, takeTurn } from "./steps.js";

/** Instances that run, pinned to these versions, with a message each. */
async function seed(provider: Provider, versions: Readonly<Record<string, string>>): Promise<void> {
  for (const [instance, version] of Object.entries(versions)) {
    await create(provider, instance, {
      events: [started(instance, { duroxideVersion: version })],
      metadata: { ...NAMED, pinnedVersion: semver(version) },
    });
  }
  for (const instance of Object.keys(versions)) await provider.enqueueForOrchestrator(raised(instance));
}

export function describeCapabilityFilter(open: OpenProvider): void {
  describe("a capability filter", () => {
    test("takes instances within its range, both ends included", async () => {
      for (const version of ["1.0.0", "1.2.3", "1.9.99"]) {
        const { provider } = await open();
        await seed(provider, { a: version });
        expect(await fetchTurn(provider, { capability: supports("1.0.0..1.9.99") })).not.toBeNull();
      }
    });

    test("leaves the others, unlocked and uncounted", async () => {
      for (const version of ["0.9.9", "2.0.0", "10.0.0"]) {
        const { provider } = await open();
        await seed(provider, { a: version });
        expect(await fetchTurn(provider, { capability: supports("1.0.0..1.9.99") })).toBeNull();

        expect(await takeTurn(provider, { capability: supports("0.0.0..99.0.0") })).toMatchObject({
          item: { instance: "a" },
          attemptCount: 1,
        });
      }
    });

    test("compares versions as numbers, part by part", async () => {
      const { provider } = await open();
      await seed(provider, { a: "1.10.0" });
      expect(await fetchTurn(provider, { capability: supports("1.2.0..1.9.999") })).toBeNull();
      expect(await fetchTurn(provider, { capability: supports("1.9.500..1.10.0") })).not.toBeNull();
    });

    test("finds a compatible instance behind an incompatible one", async () => {
      const { provider } = await open();
      await seed(provider, { v1: "1.0.0", v2: "2.0.0" });
      const second = await takeTurn(provider, { capability: supports("2.0.0..2.9.9") });
      expect(second.item.instance).toBe("v2");
      expect((await takeTurn(provider, { capability: supports("1.0.0..1.9.9") })).item.instance).toBe("v1");
    });

    test("takes an instance once, like any fetch", async () => {
      const { provider } = await open();
      await seed(provider, { a: "1.0.0" });
      await takeTurn(provider, { capability: supports("1.0.0..1.9.9") });
      expect(await fetchTurn(provider, { capability: supports("1.0.0..1.9.9") })).toBeNull();
    });

    test("takes new instances, and those without a version", async () => {
      const { provider } = await open();
      const capability = supports("99.0.0..99.9.9");
      await provider.enqueueForOrchestrator(start("new"));
      const fresh = await takeTurn(provider, { capability });
      await provider.ackOrchestrationItem(fresh.lockToken, turn({ events: [started("new")], metadata: NAMED }));
      await provider.enqueueForOrchestrator(raised("new"));

      expect((await takeTurn(provider, { capability })).item.instance).toBe("new");
    });

    test("without a range takes nothing, and does not wait for it", async () => {
      const { provider } = await open();
      await seed(provider, { a: "1.0.0" });
      await provider.enqueueForOrchestrator(start("new"));
      expect(await fetchTurn(provider, { capability: supports(), pollTimeoutMs: 60_000 })).toBeNull();
    });

    test("counts only its first range", async () => {
      const { provider } = await open();
      await seed(provider, { v1: "1.0.0", v3: "3.0.0" });
      const capability = supports("1.0.0..1.5.0", "3.0.0..3.5.0");
      expect((await takeTurn(provider, { capability })).item.instance).toBe("v1");
      expect(await fetchTurn(provider, { capability })).toBeNull();
    });
  });

  describe("a pinned version", () => {
    test("stays until a turn says otherwise", async () => {
      const { provider } = await open();
      await seed(provider, { a: "1.0.0" });
      await commitNext(provider, "a", { metadata: NAMED });
      await provider.enqueueForOrchestrator(raised("a"));

      expect(await fetchTurn(provider, { capability: supports("2.0.0..2.9.9") })).toBeNull();
      expect(await fetchTurn(provider, { capability: supports("1.0.0..1.9.9") })).not.toBeNull();
    });

    test("is overwritten when a turn says so", async () => {
      const { provider } = await open();
      await seed(provider, { a: "1.0.0" });
      await commitNext(provider, "a", { metadata: { pinnedVersion: semver("2.0.0") } });
      await provider.enqueueForOrchestrator(raised("a"));

      expect(await fetchTurn(provider, { capability: supports("1.0.0..1.0.0") })).toBeNull();
      expect(await fetchTurn(provider, { capability: supports("2.0.0..2.0.0") })).not.toBeNull();
    });

    test("may come with a later turn that has no events", async () => {
      const { provider } = await open();
      await create(provider, "a");
      await runTurn(provider, "a", { metadata: { pinnedVersion: semver("1.2.3") } });
      await provider.enqueueForOrchestrator(raised("a"));

      expect(await fetchTurn(provider, { capability: supports("2.0.0..2.9.9") })).toBeNull();
      expect(await fetchTurn(provider, { capability: supports("1.0.0..1.9.9") })).not.toBeNull();
    });

    test("belongs to its execution: the next one has its own", async () => {
      const { provider } = await open();
      await seed(provider, { a: "1.0.0" });
      await commitNext(provider, "a", {
        orchestratorItems: [continueAsNew("a")],
        metadata: { status: "ContinuedAsNew" },
      });
      const pinned = { ...NAMED, pinnedVersion: semver("2.0.0") };
      await commitNext(provider, "a", { executionId: 2, events: [started("a")], metadata: pinned });
      await provider.enqueueForOrchestrator(raised("a"));

      expect(await fetchTurn(provider, { capability: supports("1.0.0..1.9.9") })).toBeNull();
      expect(await fetchTurn(provider, { capability: supports("2.0.0..2.9.9") })).not.toBeNull();
    });
  });
}
