import { describe, expect, test } from "vitest";
import { NAMED, raised, start, started, turn } from "./builders.js";
import type { OpenProvider } from "./open-provider.js";
import { begin, create, fetchTurn, takeTurn } from "./steps.js";

const IF_ABSENT = { ifAbsent: true };

export function describeStartIfAbsent(open: OpenProvider): void {
  describe("a start if absent", () => {
    test("starts an instance that does not exist, once", async () => {
      const { provider } = await open();
      expect(await provider.enqueueForOrchestrator(start("a"), IF_ABSENT)).toBe("enqueued");
      expect(await provider.enqueueForOrchestrator(start("a", { input: "other" }), IF_ABSENT)).toBe("exists");
      expect(await provider.enqueueForOrchestrator(start("b"), IF_ABSENT)).toBe("enqueued");

      expect((await takeTurn(provider)).item.messages).toEqual([start("a")]);
    });

    test("has one winner among concurrent ones", async () => {
      const { provider } = await open();
      const outcomes = await Promise.all(
        Array.from({ length: 10 }, () => provider.enqueueForOrchestrator(start("a"), IF_ABSENT)),
      );

      expect(outcomes.filter((outcome) => outcome === "enqueued")).toHaveLength(1);
      expect((await takeTurn(provider)).item.messages).toHaveLength(1);
    });

    test("finds a start that is delayed", async () => {
      const { provider } = await open();
      await provider.enqueueForOrchestrator(start("a"), { delayMs: 60_000 });
      expect(await provider.enqueueForOrchestrator(start("a"), IF_ABSENT)).toBe("exists");
    });

    test("finds a start that is being worked on", async () => {
      const { provider } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      const { lockToken } = await takeTurn(provider);
      expect(await provider.enqueueForOrchestrator(start("a"), IF_ABSENT)).toBe("exists");
      await provider.ackOrchestrationItem(lockToken, turn({ events: [started("a")], metadata: NAMED }));

      expect(await provider.enqueueForOrchestrator(start("a"), IF_ABSENT)).toBe("exists");
      expect(await fetchTurn(provider)).toBeNull();
    });

    test("finds an instance that is over", async () => {
      const { provider } = await open();
      await create(provider, "a", { metadata: { ...NAMED, status: "Completed", output: "done" } });
      expect(await provider.enqueueForOrchestrator(start("a"), IF_ABSENT)).toBe("exists");
    });

    test("finds an instance that only its history knows", async () => {
      const { provider } = await open();
      await begin(provider, "a");
      expect(await provider.enqueueForOrchestrator(start("a"), IF_ABSENT)).toBe("exists");
    });

    test("is not hindered by messages that came before it", async () => {
      const { provider } = await open();
      await provider.enqueueForOrchestrator(raised("a"));
      expect(await provider.enqueueForOrchestrator(start("a"), IF_ABSENT)).toBe("enqueued");
      expect((await takeTurn(provider)).item.messages).toEqual([raised("a"), start("a")]);
    });

    test("may be delayed", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForOrchestrator(start("a"), { ...IF_ABSENT, delayMs: 1_000 });
      expect(await fetchTurn(provider)).toBeNull();
      await clock.advance(1_000);
      expect(await fetchTurn(provider)).not.toBeNull();
    });
  });

  describe("a start without that wish", () => {
    test("is enqueued again, whatever exists", async () => {
      const { provider } = await open();
      await create(provider, "a");
      expect(await provider.enqueueForOrchestrator(start("a"))).toBe("enqueued");
      expect(await provider.enqueueForOrchestrator(start("a"))).toBe("enqueued");
      expect((await takeTurn(provider)).item.messages).toEqual([start("a"), start("a")]);
    });
  });
}
