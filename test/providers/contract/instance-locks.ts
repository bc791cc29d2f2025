import { describe, expect, test } from "vitest";
import { done, NAMED, raised, start, started, turn } from "./builders.js";
import type { OpenProvider } from "./open-provider.js";
import { create, fetchTurn, takeTurn } from "./steps.js";

export function describeInstanceLocks(open: OpenProvider): void {
  describe("a locked instance", () => {
    test("is fetched by nobody else", async () => {
      const { provider } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      await takeTurn(provider);

      expect(await fetchTurn(provider)).toBeNull();
    });

    test("goes to one of many concurrent fetches", async () => {
      const { provider } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      const fetched = await Promise.all(Array.from({ length: 10 }, () => fetchTurn(provider)));

      expect(fetched.filter((locked) => locked !== null)).toHaveLength(1);
    });

    test("keeps back the messages that arrive, until its lock ends", async () => {
      const { provider, clock } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      await takeTurn(provider, { lockTimeoutMs: 1_000 });
      for (const id of [1, 2, 3]) await provider.enqueueForOrchestrator(done("a", id));
      expect(await fetchTurn(provider)).toBeNull();

      await clock.advance(1_000);
      expect((await takeTurn(provider)).item.messages).toEqual([start("a"), done("a", 1), done("a", 2), done("a", 3)]);
    });

    test("does not keep others waiting", async () => {
      const { provider } = await open();
      await create(provider, "a");
      await create(provider, "b");
      await provider.enqueueForOrchestrator(start("a"));
      await provider.enqueueForOrchestrator(start("b"));
      expect((await takeTurn(provider)).item.instance).toBe("a");
      const b = await takeTurn(provider);
      expect(b.item.instance).toBe("b");

      await provider.ackOrchestrationItem(b.lockToken, turn({ metadata: NAMED }));
      await provider.enqueueForOrchestrator(done("b", 1));
      expect((await takeTurn(provider)).item.instance).toBe("b");
    });

    test("consumes with its ack only the messages of its fetch", async () => {
      const { provider } = await open();
      await create(provider, "a");
      await provider.enqueueForOrchestrator(done("a", 1));
      const { item, lockToken } = await takeTurn(provider);
      expect(item.messages).toEqual([done("a", 1)]);
      await provider.enqueueForOrchestrator(done("a", 2));
      await provider.enqueueForOrchestrator(done("a", 3));
      expect(await fetchTurn(provider)).toBeNull();

      await provider.ackOrchestrationItem(lockToken, turn());
      expect((await takeTurn(provider)).item.messages).toEqual([done("a", 2), done("a", 3)]);
    });

    test("can be fetched at once when its ack has released it", async () => {
      const { provider } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      const { lockToken } = await takeTurn(provider);
      await provider.enqueueForOrchestrator(raised("a"));
      await provider.ackOrchestrationItem(lockToken, turn({ events: [started("a")] }));

      expect((await takeTurn(provider)).item.messages).toEqual([raised("a")]);
    });

    test("is not released by an ack with a wrong token", async () => {
      const { provider } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      await takeTurn(provider);
      await expect(provider.ackOrchestrationItem("wrong", turn())).rejects.toMatchObject({ kind: "lock-lost" });

      expect(await fetchTurn(provider)).toBeNull();
    });

    test("is not released by an abandon with a wrong token, which succeeds silently", async () => {
      const { provider } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      await takeTurn(provider);
      await provider.abandonOrchestrationItem("wrong");

      expect(await fetchTurn(provider)).toBeNull();
    });
  });

  describe("concurrent fetches", () => {
    test("get distinct instances", async () => {
      const { provider } = await open();
      for (let i = 0; i < 20; i += 1) await provider.enqueueForOrchestrator(start(`i-${i}`));
      const fetched = await Promise.all(Array.from({ length: 40 }, () => fetchTurn(provider)));

      const instances = fetched.flatMap((locked) => locked?.item.instance ?? []);
      expect(instances).toHaveLength(20);
      expect(new Set(instances).size).toBe(20);
    });

    test("get distinct lock tokens", async () => {
      const { provider } = await open();
      for (let i = 0; i < 5; i += 1) await provider.enqueueForOrchestrator(start(`i-${i}`));
      const tokens = new Set<string>();
      for (let i = 0; i < 5; i += 1) tokens.add((await takeTurn(provider)).lockToken);

      expect(tokens.size).toBe(5);
    });

    test("never get a token twice, however often the instance is fetched", async () => {
      const { provider } = await open();
      await provider.enqueueForOrchestrator(start("a"));
      const tokens = new Set<string>();
      for (let i = 0; i < 500; i += 1) {
        const { lockToken } = await takeTurn(provider);
        tokens.add(lockToken);
        await provider.abandonOrchestrationItem(lockToken);
      }

      expect(tokens.size).toBe(500);
    });
  });

  describe("instance ids", () => {
    test("that differ only in case or in trailing space are different instances", async () => {
      const { provider } = await open();
      const ids = ["Order", "order", "order "];
      for (const id of ids) await create(provider, id);
      for (const id of ids) await provider.enqueueForOrchestrator(raised(id, "to", id));

      for (const id of ids) {
        const { item } = await takeTurn(provider);
        expect(item).toMatchObject({ instance: id, history: [started(id)], messages: [raised(id, "to", id)] });
      }
    });
  });
}
