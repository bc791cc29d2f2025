// A process that nobody disturbs knows its own locks and need not look for them. Whatever ends a lock otherwise, in this
// process or in another one, ends it for good: also where a later row has the same id.

import { describe, expect, onTestFinished, test } from "vitest";
import type { Provider } from "../../src/provider/provider.js";
import { act, done, NAMED, raised, scheduled, start, started, timer, turn } from "../../src/provider-tests/builders.js";
import { create, fetchTurn, fetchWork, runTurn, takeTurn, takeWork } from "../../src/provider-tests/steps.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";
import { partsOf } from "../../src/providers/sqlite/lock-token.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { openConnection } from "./sqlite-connection.js";
import { lockedTurns, openStore } from "./sqlite-store.js";

const LOST = { kind: "lock-lost" };
const [FULFILLED, REFUSED] = [{ status: "fulfilled" }, { status: "rejected", reason: LOST }];
const SHORT_MS = 1_000;

/** Two connections to one file, each with a time of its own. */
async function openTwo() {
  const [clock, otherClock] = [new VirtualClock(), new VirtualClock()];
  const { provider: one, file } = await openStore({ clock });
  const two = await SqliteProvider.open(file, { durability: "process-crash", clock: otherClock });
  onTestFinished(() => two.close());
  const pass = async (ms: number): Promise<void> => {
    await clock.advance(ms);
    await otherClock.advance(ms);
  };
  return { one, two, file, clock, otherClock, pass };
}

/** Who does it to the lock that the first connection holds. */
const EITHER = ["one", "two"] as const;

/** An instance that runs, one turn and one activity of which are held. */
async function held(provider: Provider): Promise<{ readonly turns: string; readonly work: string }> {
  await create(provider, "a", { workerItems: [act("a", 2)], orchestratorItems: [raised("a")] });
  return { turns: (await takeTurn(provider)).lockToken, work: (await takeWork(provider)).lockToken };
}

/** What arrives at the very moment of the fetch is handed over as this process knows its instance. */
async function sendAndFetch(provider: Provider, instance: string, warm: ReadonlyMap<string, string> = new Map()) {
  const [, locked] = await Promise.all([
    provider.enqueueForOrchestrator(raised(instance)),
    fetchTurn(provider, { warm }),
  ]);
  return locked;
}

async function messageIds(file: string): Promise<unknown[]> {
  const connection = await openConnection(file);
  onTestFinished(() => connection.close());
  return connection.prepare("SELECT id FROM duroxide_orchestrator_queue ORDER BY id").all();
}

describe("a lock that somebody has taken over", () => {
  const CLOCKS = [
    ["after its time", SHORT_MS],
    ["by a clock that is ahead", 0],
  ] as const;

  test.each(CLOCKS)(
    "of a turn, by another connection, %s: the old token is refused, the new one works",
    async (_, ms) => {
      const { one, two, clock, otherClock } = await openTwo();
      for (const [provider, name] of [
        [one, "of-one"],
        [two, "of-two"],
      ] as const)
        await create(provider, name);
      await create(one, "a");
      await one.enqueueForOrchestrator(raised("a"));
      const old = await takeTurn(one, { lockTimeoutMs: SHORT_MS });
      await clock.advance(ms);
      await otherClock.advance(SHORT_MS);
      const taken = await takeTurn(two);

      await expect(one.ackOrchestrationItem(old.lockToken, turn())).rejects.toMatchObject(LOST);
      await two.ackOrchestrationItem(taken.lockToken, turn({ events: [scheduled("a", 2)] }));
      expect(taken).toMatchObject({ item: { messages: [raised("a")] }, attemptCount: 2 });
      expect(await one.read("a")).toEqual([started("a"), scheduled("a", 2)]);
    },
  );

  test.each(CLOCKS)("of an activity, by another connection, %s: likewise", async (_, ms) => {
    const { one, two, clock, otherClock } = await openTwo();
    for (const provider of [one, two]) {
      await provider.enqueueForWorker(act("other", 1));
      await provider.ackWorkItem((await takeWork(provider)).lockToken, null);
    }
    await create(one, "a", { workerItems: [act("a", 2)] });
    const old = await takeWork(one, { lockTimeoutMs: SHORT_MS });
    await clock.advance(ms);
    await otherClock.advance(SHORT_MS);
    const taken = await takeWork(two);

    await expect(one.ackWorkItem(old.lockToken, done("a", 2, { result: "late" }))).rejects.toMatchObject(LOST);
    await two.ackWorkItem(taken.lockToken, done("a", 2));
    expect((await takeTurn(two)).item.messages).toEqual([done("a", 2)]);
  });

  test("by the same connection: the old tokens are refused, the new ones work", async () => {
    const { one, pass } = await openTwo();
    await create(one, "a", { workerItems: [act("a", 2)], orchestratorItems: [raised("a")] });
    const lockTimeoutMs = SHORT_MS;
    const old = [await takeTurn(one, { lockTimeoutMs }), await takeWork(one, { lockTimeoutMs })] as const;
    await pass(SHORT_MS);
    const taken = [await takeTurn(one), await takeWork(one)] as const;

    await expect(one.ackOrchestrationItem(old[0].lockToken, turn())).rejects.toMatchObject(LOST);
    await expect(one.ackWorkItem(old[1].lockToken, null)).rejects.toMatchObject(LOST);
    await one.ackOrchestrationItem(taken[0].lockToken, turn());
    await one.ackWorkItem(taken[1].lockToken, null);
    expect([await fetchTurn(one), await fetchWork(one)]).toEqual([null, null]);
  });

  test("leaves the batches of others as they were, whoever acks them", async () => {
    const { one, two, pass } = await openTwo();
    for (const name of ["expires", "held"]) await one.enqueueForOrchestrator(start(name));
    await takeTurn(one, { lockTimeoutMs: SHORT_MS });
    const other = await takeTurn(one);
    await pass(SHORT_MS);
    expect((await takeTurn(one)).item.instance).toBe("expires");

    await two.ackOrchestrationItem(other.lockToken, turn({ events: [started("held")], metadata: NAMED }));
    expect([await fetchTurn(one), await fetchTurn(two)]).toEqual([null, null]);
  });
});

describe("an instance that is deleted by force while its turn and its activity are held", () => {
  test.each(EITHER)("by connection %s refuses both acks", async (who) => {
    const connections = await openTwo();
    const { one } = connections;
    const { turns, work } = await held(one);
    await connections[who].admin.deleteInstance("a", true);

    await expect(one.ackOrchestrationItem(turns, turn({ metadata: NAMED }))).rejects.toMatchObject(LOST);
    await expect(one.ackWorkItem(work, done("a", 2))).rejects.toMatchObject(LOST);
    expect(await one.getInstanceStatus("a")).toBeNull();
    expect(await fetchTurn(one)).toBeNull();
  });

  test.each(EITHER)("by connection %s: a new one of its name in the same rows loses nothing", async (who) => {
    const connections = await openTwo();
    const { one, file } = connections;
    const { turns, work } = await held(one);
    const rows = await messageIds(file);
    await connections[who].admin.deleteInstance("a", true);
    await one.enqueueForOrchestrator(start("a"));
    await one.enqueueForWorker(act("a", 2));
    expect(await messageIds(file)).toEqual(rows);

    await expect(one.ackOrchestrationItem(turns, turn())).rejects.toMatchObject(LOST);
    await expect(one.ackWorkItem(work, null)).rejects.toMatchObject(LOST);
    expect(await takeTurn(one)).toMatchObject({ item: { messages: [start("a")], history: [] }, attemptCount: 1 });
    const again = await takeWork(one);
    expect(again).toMatchObject({ item: act("a", 2), attemptCount: 1 });
    expect(partsOf(again.lockToken).place).toBe(partsOf(work).place);
  });
});

describe("an activity that a turn cancels while a worker holds it", () => {
  const cancelledActivities = [{ instance: "a", executionId: 1, id: 2 }];

  test.each(EITHER)("through connection %s refuses the ack, and a new one in its row stays", async (who) => {
    const connections = await openTwo();
    const { one } = connections;
    await create(one, "a", { workerItems: [act("a", 2)] });
    const { lockToken } = await takeWork(one);
    await runTurn(connections[who], "a", { cancelledActivities });
    await one.enqueueForWorker(act("b", 1));

    await expect(one.ackWorkItem(lockToken, done("a", 2))).rejects.toMatchObject(LOST);
    const next = await takeWork(one);
    expect(next.item).toEqual(act("b", 1));
    expect(partsOf(next.lockToken).place).toBe(partsOf(lockToken).place);
    expect(await fetchTurn(one)).toBeNull();
  });

  test("refuses the ack of the same moment, and is completed by one that came before", async () => {
    const { one } = await openTwo();
    const { turns, work } = await held(one);
    const tooLate = await Promise.allSettled([
      one.ackOrchestrationItem(turns, turn({ cancelledActivities })),
      one.ackWorkItem(work, done("a", 2)),
    ]);
    expect(tooLate).toMatchObject([FULFILLED, REFUSED]);
    expect(await fetchTurn(one)).toBeNull();

    const [token] = await lockedTurns(one, ["b"]);
    await one.enqueueForWorker(act("b", 2));
    const inTime = await Promise.allSettled([
      one.ackWorkItem((await takeWork(one)).lockToken, done("b", 2)),
      one.ackOrchestrationItem(token!, turn({ cancelledActivities: [{ instance: "b", executionId: 1, id: 2 }] })),
    ]);
    expect(inTime).toMatchObject([FULFILLED, FULFILLED]);
    expect((await takeTurn(one)).item.messages).toEqual([done("b", 2)]);
  });
});

describe("a turn that cancels a timer which another instance's turn holds", () => {
  test("leaves that instance locked, also for what arrives at the moment of a fetch", async () => {
    const { one } = await openTwo();
    await create(one, "held");
    await one.enqueueForOrchestrator(timer("held", 2, 0));
    const { item, lockToken } = await takeTurn(one);
    expect(item.instance).toBe("held");
    await create(one, "a");
    await runTurn(one, "a", { cancelledTimers: [{ instance: "held", executionId: 1, id: 2 }] });

    expect(await sendAndFetch(one, "held")).toBeNull();
    await one.ackOrchestrationItem(lockToken, turn());
    expect((await takeTurn(one)).item.messages).toEqual([raised("held")]);
  });
});

describe("a lock that is renewed for less time", () => {
  test.each(EITHER)("through connection %s is lost at its new end, though nobody has taken it since", async (who) => {
    const connections = await openTwo();
    const { one, pass } = connections;
    const { turns, work } = await held(one);
    await connections[who].renewOrchestrationItemLock(turns, SHORT_MS);
    await connections[who].renewWorkItemLock(work, SHORT_MS);
    await pass(SHORT_MS);

    await expect(one.ackOrchestrationItem(turns, turn())).rejects.toMatchObject(LOST);
    await expect(one.ackWorkItem(work, done("a", 2))).rejects.toMatchObject(LOST);
    expect(await takeTurn(one)).toMatchObject({ item: { messages: [raised("a")] }, attemptCount: 2 });
    expect(await takeWork(one)).toMatchObject({ item: act("a", 2), attemptCount: 2 });
  });

  test("acks until then", async () => {
    const { one, pass } = await openTwo();
    const { turns, work } = await held(one);
    await one.renewOrchestrationItemLock(turns, SHORT_MS);
    await one.renewWorkItemLock(work, SHORT_MS);
    await pass(SHORT_MS - 1);

    await one.ackOrchestrationItem(turns, turn());
    await one.ackWorkItem(work, null);
    expect([await fetchTurn(one), await fetchWork(one)]).toEqual([null, null]);
  });
});

describe("a lock that is given back", () => {
  test.each([
    ["at once", 0],
    ["with a delay", SHORT_MS],
  ])("%s acks nothing any more, and what it held comes again", async (_, delayMs) => {
    const { one, pass } = await openTwo();
    const { turns, work } = await held(one);
    await one.abandonOrchestrationItem(turns, { delayMs });
    await one.abandonWorkItem(work, { delayMs });

    await expect(one.ackOrchestrationItem(turns, turn())).rejects.toMatchObject(LOST);
    await expect(one.ackWorkItem(work, done("a", 2))).rejects.toMatchObject(LOST);
    if (delayMs > 0) expect([await fetchTurn(one), await fetchWork(one)]).toEqual([null, null]);
    await pass(delayMs);
    expect(await takeTurn(one)).toMatchObject({ item: { messages: [raised("a")] }, attemptCount: 2 });
    expect(await takeWork(one)).toMatchObject({ item: act("a", 2), attemptCount: 2 });
  });

  test("with a delay keeps its instance from what arrives at the moment of a fetch", async () => {
    const { one, pass } = await openTwo();
    const [token] = await lockedTurns(one, ["a"]);
    await one.abandonOrchestrationItem(token!, { delayMs: SHORT_MS });

    expect(await sendAndFetch(one, "a")).toBeNull();
    await pass(SHORT_MS);
    expect((await takeTurn(one)).item.messages).toEqual([raised("a"), raised("a")]);
  });
});

describe("one token that is acked twice in one moment", () => {
  test("commits one turn", async () => {
    const { one } = await openTwo();
    const [token] = await lockedTurns(one, ["a"]);
    const acks = [2, 3].map((id) => one.ackOrchestrationItem(token!, turn({ events: [scheduled("a", id)] })));

    expect(await Promise.allSettled(acks)).toMatchObject([FULFILLED, REFUSED]);
    expect(await one.read("a")).toEqual([started("a"), scheduled("a", 2)]);
    expect(await fetchTurn(one)).toBeNull();
  });

  test("delivers one completion", async () => {
    const { one } = await openTwo();
    await create(one, "a", { workerItems: [act("a", 2)] });
    const { lockToken } = await takeWork(one);
    const acks = ["first", "second"].map((result) => one.ackWorkItem(lockToken, done("a", 2, { result })));

    expect(await Promise.allSettled(acks)).toMatchObject([FULFILLED, REFUSED]);
    expect((await takeTurn(one)).item.messages).toEqual([done("a", 2, { result: "first" })]);
  });
});

describe("a call that fails after it has written", () => {
  /** Refused for an event that is there already. */
  const doubled = turn({ events: [scheduled("refused", 1)] });

  test("leaves its neighbours committed, and all locks that were taken before", async () => {
    const { one } = await openTwo();
    const tokens = await lockedTurns(one, ["a", "refused", "later"]);
    await one.enqueueForWorker(act("a", 7));
    await one.enqueueForWorker(act("later", 7));
    const [work, later] = [await takeWork(one), await takeWork(one)];

    const outcomes = await Promise.allSettled([
      one.ackOrchestrationItem(tokens[0]!, turn({ events: [scheduled("a", 2)] })),
      one.ackOrchestrationItem(tokens[1]!, doubled),
      one.ackWorkItem(work.lockToken, null),
    ]);
    expect(outcomes).toMatchObject([FULFILLED, { reason: { kind: "duplicate-event" } }, FULFILLED]);
    expect(await one.read("a")).toEqual([started("a"), scheduled("a", 2)]);

    await one.ackOrchestrationItem(tokens[1]!, turn({ events: [scheduled("refused", 2)] }));
    await one.ackOrchestrationItem(tokens[2]!, turn({ events: [scheduled("later", 2)] }));
    await one.ackWorkItem(later.lockToken, null);
    for (const name of ["refused", "later"]) expect(await one.read(name)).toHaveLength(2);
    expect([await fetchTurn(one), await fetchWork(one)]).toEqual([null, null]);
  });

  test("keeps its lock, also from what arrives at the moment of a fetch", async () => {
    const { one } = await openTwo();
    const [token] = await lockedTurns(one, ["refused"]);
    await expect(one.ackOrchestrationItem(token!, doubled)).rejects.toMatchObject({ kind: "duplicate-event" });

    expect(await sendAndFetch(one, "refused", new Map([["refused", token!]]))).toBeNull();
    await one.ackOrchestrationItem(token!, turn());
    expect((await takeTurn(one)).item.messages).toEqual([raised("refused")]);
  });

  test("and takes a fetch of its moment back: whoever fetches next acks once", async () => {
    const { one } = await openTwo();
    const [token] = await lockedTurns(one, ["refused"]);
    await one.enqueueForWorker(act("a", 1));
    const [refused, work] = await Promise.allSettled([one.ackOrchestrationItem(token!, doubled), takeWork(one)]);

    expect([refused, work]).toMatchObject([{ reason: { kind: "duplicate-event" } }, { value: { attemptCount: 1 } }]);
    if (work.status === "rejected") throw work.reason;
    await one.ackWorkItem(work.value.lockToken, null);
    await expect(one.ackWorkItem(work.value.lockToken, null)).rejects.toMatchObject(LOST);
    expect(await fetchWork(one)).toBeNull();
  });
});

describe("what a process remembers of an instance", () => {
  test("is not the last commit any more once it has appended to the history", async () => {
    const { one } = await openTwo();
    const [token] = await lockedTurns(one, ["a"]);
    await one.ackOrchestrationItem(token!, turn());
    const warm = new Map([["a", token!]]);
    const before = await sendAndFetch(one, "a", warm);
    expect(before?.item.warmAsOf).toBe(token);
    await one.abandonOrchestrationItem(before!.lockToken);
    const again = await takeTurn(one);
    await one.ackOrchestrationItem(again.lockToken, turn());
    await one.appendWithExecution("a", 1, [scheduled("a", 2)]);

    const after = await sendAndFetch(one, "a", new Map([["a", again.lockToken]]));
    expect(after?.item).toMatchObject({ warmAsOf: null, history: [started("a"), scheduled("a", 2)] });
  });

  test("is no reason to overlook that another connection has locked it", async () => {
    const { one, two } = await openTwo();
    await create(one, "a");
    await two.enqueueForOrchestrator(raised("a"));
    const { lockToken } = await takeTurn(two);

    expect(await sendAndFetch(one, "a")).toBeNull();
    await two.ackOrchestrationItem(lockToken, turn());
    expect((await takeTurn(one)).item.messages).toEqual([raised("a")]);
  });
});

describe("a process that has seen that nothing is ready", () => {
  test("finds with its next fetch what another connection has made ready since", async () => {
    const { one, two } = await openTwo();
    for (const round of [1, 2]) {
      expect([await fetchTurn(one), await fetchWork(one)]).toEqual([null, null]);
      await two.enqueueForOrchestrator(start(`instance-${round}`));
      await two.enqueueForWorker(act("a", round));

      expect((await takeTurn(one)).item.instance).toBe(`instance-${round}`);
      expect((await takeWork(one)).item.id).toBe(round);
    }
  });

  test("finds what another connection gives back", async () => {
    const { one, two } = await openTwo();
    await create(one, "a", { workerItems: [act("a", 2)], orchestratorItems: [raised("a")] });
    const [locked, work] = [await takeTurn(two), await takeWork(two)];
    expect([await fetchTurn(one), await fetchWork(one)]).toEqual([null, null]);
    await two.abandonOrchestrationItem(locked.lockToken);
    await two.abandonWorkItem(work.lockToken);

    expect((await takeTurn(one)).attemptCount).toBe(2);
    expect((await takeWork(one)).attemptCount).toBe(2);
  });

  test("finds what it has made ready itself, and what time has", async () => {
    const { one, pass } = await openTwo();
    expect([await fetchTurn(one), await fetchWork(one)]).toEqual([null, null]);
    await one.enqueueForOrchestrator(start("a"), { delayMs: SHORT_MS });
    await one.enqueueForWorker(act("a", 1));

    await takeWork(one, { lockTimeoutMs: SHORT_MS });
    expect([await fetchTurn(one), await fetchWork(one)]).toEqual([null, null]);
    await pass(SHORT_MS);
    expect((await takeTurn(one)).item.instance).toBe("a");
    expect((await takeWork(one)).attemptCount).toBe(2);
  });
});
