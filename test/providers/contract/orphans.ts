import { describe, expect, test } from "vitest";
import type { OrchestratorItem } from "../../../src/history/work-item.js";
import { cancel, continueAsNew, done, queued, raised, start, timer } from "./builders.js";
import type { OpenProvider } from "./open-provider.js";
import { begin, create, fetchTurn, takeTurn } from "./steps.js";

const EARLY: readonly OrchestratorItem[] = [cancel("a"), raised("a"), done("a", 1), timer("a", 2, 0)];

export function describeOrphans(open: OpenProvider): void {
  describe("a message that runs ahead of its instance's start", () => {
    test.each(EARLY)("waits for it, unseen and uncounted ($type)", async (message) => {
      const { provider, clock } = await open();
      await provider.enqueueForOrchestrator(message);
      for (let i = 0; i < 3; i += 1) expect(await fetchTurn(provider)).toBeNull();
      await clock.advance(60_000);
      expect(await fetchTurn(provider)).toBeNull();
      await provider.enqueueForOrchestrator(start("a"));

      expect(await takeTurn(provider)).toMatchObject({
        item: { instance: "a", messages: [message, start("a")] },
        attemptCount: 1,
      });
    });

    test("does not keep others waiting", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForOrchestrator(cancel("missing"));
      await clock.advance(1);
      await provider.enqueueForOrchestrator(start("b"));
      expect((await takeTurn(provider)).item.instance).toBe("b");
    });

    test("waits for a start that is delayed", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForOrchestrator(start("a"), { delayMs: 1_000 });
      await provider.enqueueForOrchestrator(cancel("a"));
      expect(await fetchTurn(provider)).toBeNull();
      await clock.advance(1_000);

      expect((await takeTurn(provider)).item.messages).toEqual([start("a"), cancel("a")]);
    });
  });

  describe("a queue message without an instance", () => {
    test("is dropped when its turn comes, and does not wait for a later start", async () => {
      const { provider } = await open();
      await provider.enqueueForOrchestrator(queued("a", "inbox", "1"));
      await provider.enqueueForOrchestrator(queued("a", "inbox", "2"));
      expect(await fetchTurn(provider)).toBeNull();
      expect(await fetchTurn(provider)).toBeNull();
      await provider.enqueueForOrchestrator(start("a"));

      expect((await takeTurn(provider)).item.messages).toEqual([start("a")]);
    });

    test("does not keep others waiting while it is dropped", async () => {
      const { provider, clock } = await open();
      for (let i = 0; i < 3; i += 1) await provider.enqueueForOrchestrator(queued(`missing-${i}`));
      await clock.advance(1);
      await provider.enqueueForOrchestrator(start("b"));

      expect((await takeTurn(provider)).item.instance).toBe("b");
    });

    test("is kept when its start is there", async () => {
      const { provider } = await open();
      await provider.enqueueForOrchestrator(queued("a"));
      await provider.enqueueForOrchestrator(start("a"));
      expect((await takeTurn(provider)).item.messages).toEqual([queued("a"), start("a")]);
    });

    test("is kept when its start is queued but not visible", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      await provider.abandonOrchestrationItem((await takeTurn(provider)).lockToken, { delayMs: 1_000 });
      await provider.enqueueForOrchestrator(queued("a"));
      expect(await fetchTurn(provider)).toBeNull();
      await clock.advance(1_000);

      expect((await takeTurn(provider)).item.messages).toEqual([start("a"), queued("a")]);
    });

    test("is kept beside a message that waits for the start", async () => {
      const { provider } = await open();
      await provider.enqueueForOrchestrator(queued("a"));
      await provider.enqueueForOrchestrator(raised("a"));
      expect(await fetchTurn(provider)).toBeNull();
      await provider.enqueueForOrchestrator(start("a"));

      expect((await takeTurn(provider)).item.messages).toEqual([queued("a"), raised("a"), start("a")]);
    });
  });

  describe("a queue message of an instance that has run", () => {
    test("is delivered when the store knows the instance", async () => {
      const { provider } = await open();
      await create(provider, "a");
      await provider.enqueueForOrchestrator(queued("a", "ConfigUpdate", "v3"));
      expect((await takeTurn(provider)).item.messages).toEqual([queued("a", "ConfigUpdate", "v3")]);
    });

    test("is kept behind its next start, while that is held back", async () => {
      const { provider, clock } = await open();
      await begin(provider, "a", { orchestratorItems: [continueAsNew("a")], metadata: { status: "ContinuedAsNew" } });
      await provider.abandonOrchestrationItem((await takeTurn(provider)).lockToken, { delayMs: 2_000 });
      await provider.enqueueForOrchestrator(queued("a"));
      expect(await fetchTurn(provider)).toBeNull();
      await clock.advance(2_000);

      expect((await takeTurn(provider)).item.messages).toEqual([continueAsNew("a"), queued("a")]);
    });
  });
}
