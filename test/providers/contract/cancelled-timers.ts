import { describe, expect, test } from "vitest";
import { done, raised, scheduled, timer, turn } from "./builders.js";
import type { OpenProvider } from "./open-provider.js";
import { create, fetchTurn, runTurn, takeTurn } from "./steps.js";

const cancelled = (instance: string, id: number, executionId = 1) => ({ instance, executionId, id });

export function describeCancelledTimers(open: OpenProvider): void {
  describe("a cancelled timer", () => {
    test("never fires", async () => {
      const { provider, clock } = await open();
      const fireAtMs = clock.now() + 5_000;
      await create(provider, "a", { orchestratorItems: [timer("a", 2, fireAtMs), timer("a", 3, fireAtMs)] });
      await runTurn(provider, "a", { cancelledTimers: [cancelled("a", 2)] });
      await clock.advance(5_000);

      expect((await takeTurn(provider)).item.messages).toEqual([timer("a", 3, fireAtMs)]);
    });

    test("that the same turn sets never fires", async () => {
      const { provider, clock } = await open();
      await create(provider, "a", {
        orchestratorItems: [timer("a", 2, clock.now() + 5_000)],
        cancelledTimers: [cancelled("a", 2)],
      });
      await clock.advance(5_000);

      expect(await fetchTurn(provider)).toBeNull();
    });

    test("is gone even if it was due already, as long as no turn had it", async () => {
      const { provider, clock } = await open();
      await create(provider, "a", { orchestratorItems: [timer("a", 2, clock.now() + 5_000)] });
      await provider.enqueueForOrchestrator(raised("a"));
      const { lockToken } = await takeTurn(provider);
      await clock.advance(5_000);
      await provider.ackOrchestrationItem(lockToken, turn({ cancelledTimers: [cancelled("a", 2)] }));

      expect(await fetchTurn(provider)).toBeNull();
    });

    test("may have fired in the turn that cancels it, or may be unknown", async () => {
      const { provider, clock } = await open();
      await create(provider, "a", { orchestratorItems: [timer("a", 2, clock.now())] });
      const { item, lockToken } = await takeTurn(provider);
      expect(item.messages).toHaveLength(1);
      const cancelledTimers = [cancelled("a", 2), cancelled("a", 99), cancelled("unknown", 2)];
      await provider.ackOrchestrationItem(lockToken, turn({ cancelledTimers }));

      expect(await fetchTurn(provider)).toBeNull();
    });

    test("takes along no other message of that id, and no timer of another execution or instance", async () => {
      const { provider, clock } = await open();
      const fireAtMs = clock.now() + 5_000;
      await create(provider, "b");
      const others = [timer("a", 2, fireAtMs, { executionId: 2 }), timer("b", 2, fireAtMs)];
      await create(provider, "a", { orchestratorItems: [timer("a", 2, fireAtMs), ...others] });
      await provider.enqueueForOrchestrator(raised("a"));
      const { lockToken } = await takeTurn(provider);
      await provider.enqueueForOrchestrator(done("a", 2));
      await provider.ackOrchestrationItem(lockToken, turn({ cancelledTimers: [cancelled("a", 2)] }));
      await clock.advance(5_000);

      const messages = [...(await takeTurn(provider)).item.messages, ...(await takeTurn(provider)).item.messages];
      expect(messages).toEqual([done("a", 2), ...others]);
    });

    test("is set as before when the turn that cancels it is refused", async () => {
      const { provider, clock } = await open();
      await create(provider, "a", { orchestratorItems: [timer("a", 2, clock.now() + 5_000)] });
      const refused = runTurn(provider, "a", { events: [scheduled("a", 1)], cancelledTimers: [cancelled("a", 2)] });
      await expect(refused).rejects.toMatchObject({ kind: "duplicate-event" });
      await clock.advance(30_000);

      expect((await takeTurn(provider)).item.messages).toHaveLength(2);
    });

    test("may be one of very many", async () => {
      const { provider, clock } = await open();
      const ids = Array.from({ length: 1_500 }, (_, index) => index + 2);
      await create(provider, "a", { orchestratorItems: ids.map((id) => timer("a", id, clock.now() + id)) });
      await runTurn(provider, "a", { cancelledTimers: ids.slice(1).map((id) => cancelled("a", id)) });
      await clock.advance(5_000);

      expect((await takeTurn(provider)).item.messages).toHaveLength(1);
    });
  });
}
