// A lock token says where its row is, and proves the lock by a secret. Whatever instances are called, and whatever tokens
// somebody makes up: only the holder of a lock can use it.

import { describe, expect, test } from "vitest";
import type { Provider } from "../../src/provider/provider.js";
import { act, done, NAMED, raised, scheduled, start, started, turn } from "../../src/provider-tests/builders.js";
import { create, fetchTurn, fetchWork, takeTurn, takeWork } from "../../src/provider-tests/steps.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";
import { newSecret, partsOf, tokenOf } from "../../src/providers/sqlite/lock-token.js";
import { turnLockOf } from "../../src/providers/sqlite/orchestrator-queue.js";
import { openStore } from "./sqlite-store.js";

const ODD_IDS = [
  "a@b",
  "@",
  "@@@",
  "1:2:3",
  ":",
  "::a",
  'it\'s "quoted"; DROP TABLE duroxide_history --',
  "nul\0inside",
  "\0",
  "lone \ud800 surrogate",
  "\udc00",
  '"json"',
  '"\\u0000"',
  "line\nbreak",
  "ünïcödé 🐘",
  " spaces ",
  "x".repeat(2_000),
] as const;

const LOST = { kind: "lock-lost" };

describe("the token of a lock", () => {
  test.each(ODD_IDS.map((id) => [JSON.stringify(id).slice(0, 60), id]))(
    "of the instance %s is used like any other",
    async (_, id) => {
      const { provider } = await openStore();
      await provider.enqueueForOrchestrator(start(id));
      const first = await takeTurn(provider);
      expect(first.item.instance).toBe(id);
      await provider.renewOrchestrationItemLock(first.lockToken, 60_000);
      await provider.abandonOrchestrationItem(first.lockToken);
      await expect(provider.ackOrchestrationItem(first.lockToken, turn())).rejects.toMatchObject(LOST);

      const again = await takeTurn(provider);
      const workerItems = [act(id, 2)];
      const events = [started(id), scheduled(id, 2)];
      await provider.ackOrchestrationItem(again.lockToken, turn({ events, workerItems, metadata: NAMED }));
      const work = await takeWork(provider);
      expect([work.item.instance, work.executionState]).toEqual([id, "running"]);
      expect(await provider.renewWorkItemLock(work.lockToken, 60_000)).toBe("running");
      await provider.ackWorkItem(work.lockToken, done(id, 2));

      const warm = new Map([[id, again.lockToken]]);
      const last = await takeTurn(provider, { warm });
      expect(last.item).toMatchObject({ instance: id, messages: [done(id, 2)], warmAsOf: again.lockToken });
      expect(await provider.read(id)).toEqual(events);
    },
  );

  test("is good for every provider on the same file, as for the one that gave it out", async () => {
    const { provider, file } = await openStore();
    await using other = await SqliteProvider.open(file, { durability: "process-crash" });
    await create(provider, "a", { workerItems: [act("a", 2)] });
    await provider.enqueueForOrchestrator(raised("a"));
    const [locked, work] = [await takeTurn(provider), await takeWork(provider)];

    await other.renewOrchestrationItemLock(locked.lockToken, 60_000);
    expect(await other.renewWorkItemLock(work.lockToken, 60_000)).toBe("running");
    await other.ackWorkItem(work.lockToken, done("a", 2));
    await other.ackOrchestrationItem(locked.lockToken, turn({ events: [scheduled("a", 2)] }));
    expect(await provider.read("a")).toHaveLength(2);
    expect((await takeTurn(other)).item.messages).toEqual([done("a", 2)]);
  });

  test("may be made of ids that look like the rest of it", async () => {
    let made = 0;
    const { provider } = await openStore({ newId: () => `@id:${++made}@:@` });
    await create(provider, "a@1", { workerItems: [act("a@1", 2)] });
    const work = await takeWork(provider);
    await provider.ackWorkItem(work.lockToken, done("a@1", 2));

    const locked = await takeTurn(provider);
    await provider.ackOrchestrationItem(locked.lockToken, turn());
    expect(await fetchTurn(provider)).toBeNull();
  });

  test("tells whose it is, whatever the parts contain", () => {
    const secret = newSecret(() => "se@cr@et");
    for (const instanceId of ODD_IDS) {
      const token = tokenOf(secret, `17:3:${instanceId}`);
      expect(turnLockOf(token)).toEqual({ secret, lockedAt: 17, executionId: 3, instanceId });
    }
    expect(partsOf("made up")).toEqual({ secret: "", place: "" });
  });
});

describe("a token that nobody gave out", () => {
  /** Somebody holds an instance and an activity meanwhile: made-up tokens must not hit them. */
  async function held(): Promise<{ readonly provider: SqliteProvider; readonly turns: string; readonly work: string }> {
    const { provider } = await openStore();
    await create(provider, "a", { workerItems: [act("a", 2)] });
    await provider.enqueueForOrchestrator(raised("a"));
    const [locked, work] = [await takeTurn(provider), await takeWork(provider)];
    return { provider, turns: locked.lockToken, work: work.lockToken };
  }

  async function expectRefused(provider: Provider, token: string): Promise<void> {
    const calls = [
      provider.ackOrchestrationItem(token, turn({ events: [scheduled("a", 2)], metadata: NAMED })),
      provider.renewOrchestrationItemLock(token, 60_000),
      provider.ackWorkItem(token, done("a", 2)),
      provider.renewWorkItemLock(token, 60_000),
    ];
    for (const call of calls) await expect(call, JSON.stringify(token)).rejects.toMatchObject(LOST);
    await provider.abandonOrchestrationItem(token);
    await provider.abandonOrchestrationItem(token, { delayMs: 10, ignoreAttempt: true });
    await provider.abandonWorkItem(token);
    await provider.abandonWorkItem(token, { delayMs: 10, ignoreAttempt: true });
  }

  test("is refused, and whoever holds the lock notices nothing", async () => {
    const { provider, turns, work } = await held();
    const { secret, place } = partsOf(turns);
    const parts = partsOf(work);
    const madeUp = [
      "",
      "@",
      "lost",
      "00000000-0000-4000-8000-000000000000",
      `@${place}`,
      `@${parts.place}`,
      `${secret}@`,
      secret,
      parts.secret,
      `${secret}@0:0:a`.replace(secret, "wrong"),
      `${secret}@${place}b`,
      `${secret}@1:1:b`,
      `${parts.secret}@999`,
      `${parts.secret}@-1`,
      `${parts.secret}@1.5`,
      `${parts.secret}@NaN`,
      `${parts.secret}@1e400`,
      `${secret}x@${place}`,
      `${parts.secret}x@${parts.place}`,
      `\0@${place}`,
      `\ud800@${place}`,
      "a@b@c@d",
      `${secret}@${"9".repeat(400)}:1:a`.replace(":a", ":b"),
    ];
    for (const token of madeUp) await expectRefused(provider, token);

    expect(await fetchTurn(provider)).toBeNull();
    expect(await fetchWork(provider)).toBeNull();
    expect(await provider.renewWorkItemLock(work, 60_000)).toBe("running");
    await provider.ackWorkItem(work, done("a", 2));
    await provider.ackOrchestrationItem(turns, turn({ events: [scheduled("a", 2)] }));
    expect((await takeTurn(provider)).attemptCount).toBe(1);
  });

  test("of a turn is none of an activity, and the other way round", async () => {
    const { provider, turns, work } = await held();
    await expect(provider.ackWorkItem(turns, done("a", 2))).rejects.toMatchObject(LOST);
    await expect(provider.renewWorkItemLock(turns, 1)).rejects.toMatchObject(LOST);
    await expect(provider.ackOrchestrationItem(work, turn())).rejects.toMatchObject(LOST);
    await expect(provider.renewOrchestrationItemLock(work, 1)).rejects.toMatchObject(LOST);
    await provider.abandonWorkItem(turns);
    await provider.abandonOrchestrationItem(work);

    expect([await fetchTurn(provider), await fetchWork(provider)]).toEqual([null, null]);
  });

  test("of another store is refused, though its rows have the same places", async () => {
    const [one, two] = [await held(), await held()];
    await expectRefused(two.provider, one.turns);
    await expectRefused(two.provider, one.work);

    expect([await fetchTurn(two.provider), await fetchWork(two.provider)]).toEqual([null, null]);
    await two.provider.ackOrchestrationItem(two.turns, turn());
    await two.provider.ackWorkItem(two.work, null);
  });

  test("does not make a dispatcher's memory one of the last commit", async () => {
    const { provider } = await openStore();
    await create(provider, "a");
    await provider.enqueueForOrchestrator(raised("a"));
    const { lockToken } = await takeTurn(provider);
    await provider.ackOrchestrationItem(lockToken, turn({ events: [scheduled("a", 2)] }));
    const { place } = partsOf(lockToken);

    for (const remembered of ["", "@", `@${place}`, `wrong@${place}`, partsOf(lockToken).secret]) {
      await provider.enqueueForOrchestrator(raised("a"));
      const { item, lockToken: taken } = await takeTurn(provider, { warm: new Map([["a", remembered]]) });
      expect([item.warmAsOf, item.history.length], remembered).toEqual([null, 2]);
      await provider.abandonOrchestrationItem(taken);
    }
  });
});
