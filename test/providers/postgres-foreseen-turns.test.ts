// A fetch that waits may be handed an instance before the messages to it are stored, where this provider knows what the store
// would say; and its turn is committed with them. Where the store would have said anything else, it is as if nobody had been told.

import { describe, expect, onTestFinished, test } from "vitest";
import type { Event } from "../../src/history/event.js";
import type {
  FetchOrchestrationOptions,
  LockedOrchestrationItem,
  LockedWorkItem,
  TurnCommit,
} from "../../src/provider/provider.js";
import {
  act,
  done,
  event,
  NAMED,
  raised,
  scheduled,
  start,
  started,
  supports,
  timer,
  turn,
} from "../../src/provider-tests/builders.js";
import { fetchTurn, takeTurn, takeWork } from "../../src/provider-tests/steps.js";
import { Confidence } from "../../src/providers/postgres/confidence.js";
import { PostgresProvider } from "../../src/providers/postgres/index.js";
import { ServerProxy } from "./postgres-proxy.js";
import { OwnDatabase } from "./postgres-rivals.js";
import { begin, POLL, round, STOPPED, waiting } from "./postgres-slots.js";
import { watchTransactions } from "./postgres-transactions.js";

const URL = process.env.DUROXIDE_TEST_PG_URL;
const LOCK_LOST = { kind: "lock-lost" };

/** The instance "a" runs, and waits for its activity 2, which this worker has; a fetch waits for turns, to whom it is warm. */
async function open(options: { readonly metadata?: TurnCommit["metadata"] } = {}) {
  const database = await OwnDatabase.open(URL!);
  const proxy = await ServerProxy.to(database.url);
  const provider = await PostgresProvider.open(proxy.url, { clock: STOPPED, wakeUps: "local", schema: "duroxide" });
  onTestFinished(() => provider.close());
  const ended = new AbortController();
  onTestFinished(() => ended.abort());
  const lockToken = await begin(provider, "a", { activities: [2], ...options });
  const work = await takeWork(provider);
  const warm = new Map([["a", lockToken]]);
  return {
    database,
    provider,
    proxy,
    work,
    warm,
    /** One who shares the schema. Nobody here hears of what it does. */
    other: () => database.provider({ clock: STOPPED }),
    slot: (wants: Partial<FetchOrchestrationOptions> = {}): Promise<Slot> =>
      oneWaiting(provider, { ...POLL, warm, ...wants }, ended.signal),
  };
}

/** A fetch that waits. */
interface Slot {
  readonly found: Promise<LockedOrchestrationItem | null>;
  /** Commits this turn as soon as it is handed anything. */
  answers(commit: Partial<TurnCommit>): Promise<void>;
}

async function oneWaiting(
  provider: PostgresProvider,
  wants: FetchOrchestrationOptions,
  ended: AbortSignal,
): Promise<Slot> {
  const [found] = await waiting((signal) => provider.fetchOrchestrationItem({ ...wants, signal }), ended, 1);
  return {
    found: found!,
    answers: async (commit) => {
      const locked = await found;
      await provider.ackOrchestrationItem(locked!.lockToken, turn(commit));
    },
  };
}

const DONE = { type: "ActivityCompleted", result: "1" } as const;

function activityDone(eventId: number, sourceEventId: number): Event {
  return event("a", eventId, DONE, { sourceEventId });
}

/** The turn that answers the outcome of activity 2, and asks for the next one. */
const NEXT: Partial<TurnCommit> = {
  events: [activityDone(3, 2), scheduled("a", 4)],
  workerItems: [act("a", 4)],
};

async function eventsOf(provider: PostgresProvider, instance: string): Promise<readonly number[]> {
  return (await provider.read(instance)).map(({ eventId }) => eventId);
}

/** Nobody has been answered, and nothing is stored, until this one lets go. */
async function heldUp(database: OwnDatabase, { lockToken }: LockedWorkItem) {
  const rival = await database.rival();
  const row = /@(\d+)/.exec(lockToken)![1];
  await rival.query("SELECT 1 FROM {schema}.activities WHERE id = $1 FOR UPDATE", [row]);
  return rival;
}

const BLOCKED = "FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))";

async function isPending(promise: Promise<unknown>): Promise<boolean> {
  for (let rounds = 0; rounds < 10; rounds += 1) await round();
  const pending = Symbol("pending");
  return (await Promise.race([promise, Promise.resolve(pending)])) === pending;
}

describe.skipIf(URL === undefined)("a turn that can be foreseen", () => {
  test("is committed by the transaction that stores what it answers, which nobody need write down", async () => {
    const { database, provider, work, slot, warm } = await open();
    const transactions = await watchTransactions(database);
    const first = await slot();
    const worker = provider.fetchWorkItem({ ...POLL });
    await round();

    const acked = first.answers(NEXT);
    await provider.ackWorkItem(work.lockToken, done("a", 2));
    await acked;

    expect(await transactions()).toEqual([["event", "outcome"]]);
    const { item, attemptCount } = (await first.found)!;
    expect(attemptCount).toBe(1);
    expect(item).toEqual({
      instance: "a",
      orchestrationName: NAMED.orchestrationName,
      version: NAMED.orchestrationVersion,
      executionId: 1,
      messages: [done("a", 2)],
      warmAsOf: warm.get("a"),
      history: [],
      historyError: null,
      kvSnapshot: new Map(),
    });
    expect(await eventsOf(provider, "a")).toEqual([1, 2, 3, 4]);
    expect(await worker).toMatchObject({ item: act("a", 4), attemptCount: 1, executionState: "running" });
    expect(await database.query("SELECT 1 FROM {schema}.schedule")).toEqual([]);
    expect(await fetchTurn(provider)).toBeNull();
  });

  test("shares its transaction with the turn of a locked instance that is acked when its outcome is", async () => {
    const { database, provider, work, slot } = await open();
    await begin(provider, "b");
    await provider.enqueueForOrchestrator(raised("b"));
    const { lockToken } = await takeTurn(provider);
    const transactions = await watchTransactions(database);
    const first = await slot();

    const acked = first.answers(NEXT);
    await Promise.all([
      provider.ackOrchestrationItem(lockToken, turn({ events: [scheduled("b", 2)] })),
      provider.ackWorkItem(work.lockToken, done("a", 2)),
      acked,
    ]);

    expect(await transactions()).toEqual([["event", "outcome"]]);
    expect(await eventsOf(provider, "a")).toEqual([1, 2, 3, 4]);
    expect(await eventsOf(provider, "b")).toEqual([1, 2]);
  });

  test("is none of an instance that has a timer, which whoever is handed it may have, too", async () => {
    const { database, provider, work, slot, warm } = await open();
    const first = await slot();
    const acked = first.answers({ ...NEXT, orchestratorItems: [timer("a", 9, 2_000_000)] });
    await provider.ackWorkItem(work.lockToken, done("a", 2));
    await acked;
    warm.set("a", (await first.found)!.lockToken);
    const next = await takeWork(provider);
    const second = await slot();
    const transactions = await watchTransactions(database);

    const answered = second.answers({ events: [activityDone(5, 4)] });
    await provider.ackWorkItem(next.lockToken, done("a", 4));
    await answered;

    expect(await transactions()).toEqual([["message", "outcome"], ["event"]]);
  });

  test("may be followed by another one: what was committed last is known", async () => {
    const { database, provider, work, slot, warm } = await open();
    const first = await slot();
    const acked = first.answers(NEXT);
    await provider.ackWorkItem(work.lockToken, done("a", 2));
    await acked;
    warm.set("a", (await first.found)!.lockToken);
    const transactions = await watchTransactions(database);

    const second = await slot();
    const last = second.answers({ events: [activityDone(5, 4)] });
    await provider.ackWorkItem((await takeWork(provider)).lockToken, done("a", 4));
    await last;

    expect(await transactions()).toEqual([["event", "outcome"]]);
  });

  test("answers no client: what he sends is stored before anybody sees it, so that it is counted", async () => {
    const { database, provider, slot } = await open();
    const transactions = await watchTransactions(database);
    const first = await slot();
    const begun = first.answers({ events: [started("new")], metadata: NAMED });
    expect(await provider.enqueueForOrchestrator(start("new"), { ifAbsent: true })).toBe("enqueued");
    await begun;
    const second = await slot();
    const raisedTo = second.answers({ events: [scheduled("a", 3)] });
    await provider.enqueueForOrchestrator(raised("a"));
    await raisedTo;

    expect(await transactions()).toEqual([["message"], ["event"], ["message"], ["event"]]);
  });

  test("that comes late is committed before the provider is closed", async () => {
    const { provider, work, slot } = await open();
    const first = await slot();
    // It writes to another instance, and so waits for the statement.
    const acked = first.answers({ events: [activityDone(3, 2)], orchestratorItems: [raised("b")] });
    const sent = provider.ackWorkItem(work.lockToken, done("a", 2));
    await first.found;
    await round();
    await Promise.all([provider.close(), sent, acked]);
  });

  test("is committed once, whatever those make of it who watch its instance", async () => {
    const { provider, work, slot } = await open();
    const first = await slot();
    const acked = first.answers({ events: [activityDone(3, 2)] });
    const stop = provider.wake.watchInstance("a", () => {
      throw new Error("this one cannot be told");
    });
    await provider.ackWorkItem(work.lockToken, done("a", 2));
    await acked;
    stop();

    expect(await fetchTurn(provider)).toBeNull();
    expect(await eventsOf(provider, "a")).toEqual([1, 2, 3]);
  });

  test("is not committed after another one's turn", async () => {
    const { provider, work, slot, other: openOther } = await open();
    const first = await slot();
    const other = await openOther();
    await other.enqueueForOrchestrator(raised("a"));
    const signalled = event("a", 3, { type: "ExternalEvent", name: "signal", data: "{}" });
    await other.ackOrchestrationItem((await takeTurn(other)).lockToken, turn({ events: [signalled] }));
    const acked = first.answers({ events: [activityDone(9, 2)] });

    await Promise.all([
      provider.ackWorkItem(work.lockToken, done("a", 2)),
      expect(acked).rejects.toMatchObject(LOCK_LOST),
    ]);

    expect(await takeTurn(provider)).toMatchObject({
      attemptCount: 1,
      item: { messages: [done("a", 2)], warmAsOf: null },
    });
    expect(await eventsOf(provider, "a")).toEqual([1, 2, 3]);
  });

  test("is not committed where another message was there before: both come together, in their order", async () => {
    const { provider, work, slot, other: openOther } = await open();
    const first = await slot();
    await (await openOther()).enqueueForOrchestrator(raised("a"));
    const acked = first.answers(NEXT);

    await Promise.all([
      provider.ackWorkItem(work.lockToken, done("a", 2)),
      expect(acked).rejects.toMatchObject(LOCK_LOST),
    ]);

    const { item, attemptCount } = await takeTurn(provider);
    expect(attemptCount).toBe(1);
    expect(item.messages).toEqual([raised("a"), done("a", 2)]);
    expect(await eventsOf(provider, "a")).toEqual([1, 2]);
  });

  test("is committed though the store finds something older; but who knows of that, looks for it first", async () => {
    const { provider, work, slot, warm, other: openOther } = await open();
    const other = await openOther();
    const first = await slot();
    await other.enqueueForOrchestrator(start("older"));
    const acked = first.answers(NEXT);
    await provider.ackWorkItem(work.lockToken, done("a", 2));
    await acked; // He could not have looked for anything else before that.
    warm.set("a", (await first.found)!.lockToken);
    expect((await takeTurn(provider)).item.instance).toBe("older");

    const next = await slot();
    await other.enqueueForOrchestrator(start("older still"));
    await provider.ackWorkItem((await takeWork(provider)).lockToken, done("a", 4));

    expect((await next.found)?.item.instance).toBe("older still");
    expect(await takeTurn(provider)).toMatchObject({ attemptCount: 1, item: { messages: [done("a", 4)] } });
  });

  test("is not committed while another provider has the instance", async () => {
    const { provider, work, slot, other: openOther } = await open();
    const first = await slot();
    const other = await openOther();
    await other.enqueueForOrchestrator(raised("a"));
    const { lockToken } = await takeTurn(other);
    const acked = first.answers(NEXT);

    await Promise.all([
      provider.ackWorkItem(work.lockToken, done("a", 2)),
      expect(acked).rejects.toMatchObject(LOCK_LOST),
    ]);

    expect(await fetchTurn(provider)).toBeNull();
    await other.ackOrchestrationItem(lockToken, turn());
    expect((await takeTurn(provider)).item.messages).toEqual([done("a", 2)]);
  });

  test("is none for a runtime that replays other versions than who had the instance last: only the store knows", async () => {
    const { provider, work, slot } = await open({ metadata: { pinnedVersion: { major: 3, minor: 0, patch: 0 } } });
    const first = await slot({ capability: supports("1.0.0..2.0.0") });

    await provider.ackWorkItem(work.lockToken, done("a", 2));

    expect(await isPending(first.found)).toBe(true);
    expect(await takeTurn(provider)).toMatchObject({ attemptCount: 1, item: { messages: [done("a", 2)] } });
  });

  test.each([
    { major: 1, foreseen: true },
    { major: 3, foreseen: false },
  ])(
    "of an instance that has got the version $major.0.0 is one for who replays 1.0.0 to 2.0.0: $foreseen",
    async ({ major, foreseen }) => {
      const { database, provider, work, slot, warm } = await open();
      const capability = supports("1.0.0..2.0.0");
      const first = await slot({ capability });
      const acked = first.answers({ ...NEXT, metadata: { pinnedVersion: { major, minor: 0, patch: 0 } } });
      await provider.ackWorkItem(work.lockToken, done("a", 2));
      await acked;
      warm.set("a", (await first.found)!.lockToken);
      const next = await takeWork(provider);
      const transactions = await watchTransactions(database);

      const second = await slot({ capability });
      const answered = foreseen ? second.answers({ events: [activityDone(5, 4)] }) : null;
      await provider.ackWorkItem(next.lockToken, done("a", 4));
      await answered;

      expect(await isPending(second.found)).toBe(!foreseen);
      expect(await transactions()).toEqual(foreseen ? [["event", "outcome"]] : [["message", "outcome"]]);
    },
  );

  test("is none of an instance that has ended", async () => {
    const { database, provider, work, slot, warm } = await open();
    await provider.enqueueForOrchestrator(raised("a"));
    const end = event("a", 3, { type: "OrchestrationCompleted", output: "1" });
    const last = await takeTurn(provider);
    await provider.ackOrchestrationItem(last.lockToken, turn({ events: [end], metadata: { status: "Completed" } }));
    await provider.enqueueForOrchestrator(raised("a"));
    const late = await takeTurn(provider);
    await provider.ackOrchestrationItem(late.lockToken, turn({}));
    warm.set("a", late.lockToken);
    const first = await slot();
    const transactions = await watchTransactions(database);

    const acked = first.answers({ events: [activityDone(4, 2)] });
    await provider.ackWorkItem(work.lockToken, done("a", 2));
    await acked;

    expect(await transactions()).toEqual([["message", "outcome"], ["event"]]);
  });

  test("is not committed where the lock of the activity is lost, and neither is the outcome", async () => {
    const { database, provider, work, slot } = await open();
    await provider.abandonWorkItem(work.lockToken);
    const first = await slot();
    const acked = first.answers(NEXT);

    const outcomes = await Promise.allSettled([acked, provider.ackWorkItem(work.lockToken, done("a", 2))]);

    expect(outcomes).toMatchObject([{ reason: LOCK_LOST }, { reason: LOCK_LOST }]);
    expect(await eventsOf(provider, "a")).toEqual([1, 2]);
    expect(await database.query("SELECT 1 FROM {schema}.messages UNION ALL SELECT 1 FROM {schema}.schedule")).toEqual(
      [],
    );
    expect(await takeWork(provider)).toMatchObject({ item: act("a", 2), attemptCount: 2 });
  });

  test("is computed only once the outcome is stored, if its activity was run before: it may be what ended the process", async () => {
    const { database, provider, work, slot } = await open();
    await provider.abandonWorkItem(work.lockToken);
    const again = await takeWork(provider);
    expect(again.attemptCount).toBe(2);
    const first = await slot();
    const rival = await heldUp(database, again);

    const sent = provider.ackWorkItem(again.lockToken, done("a", 2));
    await database.untilBlockedBy(rival);
    expect(await isPending(first.found)).toBe(true);

    await rival.rollback();
    await sent;
    expect((await first.found)?.item.messages).toEqual([done("a", 2)]);
  });

  test("is not computed by a runtime that has forgotten it, or knows another turn than the last", async () => {
    const { database, provider, work, slot, warm } = await open();
    warm.set("a", "another@a");
    const first = await slot();
    const rival = await heldUp(database, work);

    const sent = provider.ackWorkItem(work.lockToken, done("a", 2));
    await database.untilBlockedBy(rival);
    expect(await isPending(first.found)).toBe(true);

    await rival.rollback();
    await sent;
    expect((await first.found)?.item).toMatchObject({ messages: [done("a", 2)], warmAsOf: null });
  });

  test("that comes late waits until what it answers is stored, and is then committed like any other", async () => {
    const { database, provider, work, slot } = await open();
    const transactions = await watchTransactions(database);
    const first = await slot();
    const rival = await heldUp(database, work);
    const sent = provider.ackWorkItem(work.lockToken, done("a", 2));
    await database.untilBlockedBy(rival);

    const acked = first.answers(NEXT);
    expect(await isPending(Promise.race([acked, sent]))).toBe(true);
    await rival.rollback();
    await Promise.all([acked, sent]);

    expect(await transactions()).toEqual([["message", "outcome"], ["event"]]);
    expect(await eventsOf(provider, "a")).toEqual([1, 2, 3, 4]);
    expect(await fetchTurn(provider)).toBeNull();
  });

  test("can be given back, and its lock renewed, while what it answers is on its way", async () => {
    const { database, provider, work, slot } = await open();
    const first = await slot();
    const rival = await heldUp(database, work);
    const sent = provider.ackWorkItem(work.lockToken, done("a", 2));
    await database.untilBlockedBy(rival);
    const { lockToken } = (await first.found)!;

    const renewed = provider.renewOrchestrationItemLock(lockToken, 60_000);
    await rival.rollback();
    await Promise.all([sent, renewed]);
    await provider.abandonOrchestrationItem(lockToken);

    expect(await takeTurn(provider)).toMatchObject({ attemptCount: 2, item: { messages: [done("a", 2)] } });
  });

  test("given back at once is there for others", async () => {
    const { provider, work, slot } = await open();
    const first = await slot();
    const back = first.found.then((locked) =>
      provider.abandonOrchestrationItem(locked!.lockToken, { ignoreAttempt: true }),
    );

    await provider.ackWorkItem(work.lockToken, done("a", 2));
    await back;

    expect(await takeTurn(provider)).toMatchObject({ attemptCount: 1, item: { messages: [done("a", 2)] } });
  });

  test("is committed once, however often it is acked", async () => {
    const { provider, work, slot } = await open();
    const first = await slot();
    const acked = first.answers(NEXT);
    const again = first.answers(NEXT);

    const outcomes = await Promise.allSettled([acked, again, provider.ackWorkItem(work.lockToken, done("a", 2))]);

    expect(outcomes).toMatchObject([{ status: "fulfilled" }, { reason: LOCK_LOST }, { status: "fulfilled" }]);
    expect(await eventsOf(provider, "a")).toEqual([1, 2, 3, 4]);
  });

  test("is committed after what it answers, and not with it, if it writes to others or cancels activities", async () => {
    for (const rest of [
      { orchestratorItems: [start("child", { parentInstance: "a", parentId: 4 })] },
      { cancelledActivities: [{ instance: "a", executionId: 1, id: 7 }] },
    ]) {
      const { database, provider, work, slot } = await open();
      const transactions = await watchTransactions(database);
      const first = await slot();
      const acked = first.answers({ events: [activityDone(3, 2)], ...rest });

      await provider.ackWorkItem(work.lockToken, done("a", 2));
      await acked;

      expect((await transactions()).map((each) => each.filter((what) => what !== "message"))).toEqual([
        ["outcome"],
        ["event"],
      ]);
    }
  });

  test("that the store refuses takes back nothing but itself", async () => {
    const { database, provider, work, slot } = await open();
    const first = await slot();
    const acked = first.answers({ events: [scheduled("a", 2)] }); // There is such an event.

    await Promise.all([
      provider.ackWorkItem(work.lockToken, done("a", 2)),
      expect(acked).rejects.toMatchObject(LOCK_LOST),
    ]);

    expect(await database.query("SELECT 1 FROM {schema}.activities")).toEqual([]);
    expect(await takeTurn(provider)).toMatchObject({ attemptCount: 1, item: { messages: [done("a", 2)] } });
  });

  test("is refused if the connection is lost; what has become of it is then all of it, or nothing", async () => {
    for (const isLostOnServer of [true, false]) {
      const { database, provider, proxy, work, slot } = await open();
      const first = await slot();
      const acked = first.answers(NEXT);
      const rival = await heldUp(database, work);
      const sent = provider.ackWorkItem(work.lockToken, done("a", 2));
      const outcomes = Promise.allSettled([acked, sent]);
      await database.untilBlockedBy(rival);

      proxy.cut();
      expect(await outcomes).toMatchObject([{ reason: LOCK_LOST }, { reason: { kind: "transient" } }]);
      if (isLostOnServer) await database.query(`SELECT pg_terminate_backend(pid) ${BLOCKED}`, [rival.pid]);
      while (isLostOnServer && (await database.query(`SELECT 1 ${BLOCKED}`, [rival.pid])).length > 0);
      await rival.rollback();

      const again = provider.ackWorkItem(work.lockToken, done("a", 2));
      if (isLostOnServer) {
        await again;
        expect(await eventsOf(provider, "a")).toEqual([1, 2]);
        expect(await takeTurn(provider)).toMatchObject({ attemptCount: 1, item: { messages: [done("a", 2)] } });
      } else {
        await expect(again).rejects.toMatchObject(LOCK_LOST);
        expect(await eventsOf(provider, "a")).toEqual([1, 2, 3, 4]);
        expect(await fetchTurn(provider)).toBeNull();
      }
    }
  });
});

/** An event that another provider has sent, and whose turn it has. */
async function signalledBy(other: PostgresProvider): Promise<LockedOrchestrationItem> {
  await other.enqueueForOrchestrator(raised("a"));
  return takeTurn(other);
}

describe.skipIf(URL === undefined)("a step", () => {
  test("is in what another provider is handed out, who has waited for it", async () => {
    const { database, provider, work, slot, other: openOther } = await open();
    const other = await openOther();
    const first = await slot();
    const rival = await heldUp(database, work);
    const acked = first.answers(NEXT);
    const sent = provider.ackWorkItem(work.lockToken, done("a", 2));
    await database.untilBlockedBy(rival);

    const handedOut = signalledBy(other);
    await database.untilWaiting(2); // The step for the rival, and the fetch for the step.
    await rival.rollback();
    await Promise.all([sent, acked]);

    const { item } = await handedOut;
    expect(item.messages).toEqual([raised("a")]);
    expect(item.history.map(({ eventId }) => eventId)).toEqual([1, 2, 3, 4]);
  });

  test("is none where another provider has handed the instance out in the meantime, though it has not changed it", async () => {
    const { database, provider, work, slot, other: openOther } = await open();
    const other = await openOther();
    const first = await slot();
    await other.enqueueForOrchestrator(raised("a"));
    const rival = await database.rival();
    const claimed = await rival.query<{ readonly part: string }>(
      "SELECT * FROM {schema}.fetch_turns(1000000, 2000000, '{theirs}', NULL, '{0,0,0}', '{9,0,0}', false, false)",
    );
    expect(claimed.map(({ part }) => part)).toContain("cold");
    const acked = first.answers(NEXT);
    const sent = Promise.all([
      provider.ackWorkItem(work.lockToken, done("a", 2)),
      expect(acked).rejects.toMatchObject(LOCK_LOST),
    ]);
    await database.untilBlockedBy(rival);
    await rival.commit();
    await sent;

    expect(await eventsOf(provider, "a")).toEqual([1, 2]);
    expect(await fetchTurn(provider)).toBeNull();
    await other.abandonOrchestrationItem("theirs@a");
    expect((await takeTurn(provider)).item.messages).toEqual([raised("a"), done("a", 2)]);
  });

  test("beside a message that is on its way comes before it", async () => {
    const { database, provider, work, slot, other: openOther } = await open();
    const other = await openOther();
    const first = await slot();
    const rival = await database.rival();
    await rival.query("LOCK TABLE {schema}.messages IN SHARE MODE"); // Whoever sends has locked the instance's row of the schedule by then.
    const raising = other.enqueueForOrchestrator(raised("a"));
    await database.untilBlockedBy(rival);

    const acked = first.answers(NEXT);
    await provider.ackWorkItem(work.lockToken, done("a", 2));
    await acked;
    await rival.rollback();
    await raising;

    const { item } = await takeTurn(other);
    expect(item.messages).toEqual([raised("a")]);
    expect(item.history.map(({ eventId }) => eventId)).toEqual([1, 2, 3, 4]);
  });

  test("that does not find what it expects takes back none of those beside it", async () => {
    const { database, provider, work, slot, warm, other: openOther } = await open();
    await provider.enqueueForOrchestrator(start("b"));
    const begun = await takeTurn(provider);
    await provider.ackOrchestrationItem(
      begun.lockToken,
      turn({ events: [started("b"), scheduled("b", 2)], workerItems: [act("b", 2)], metadata: NAMED }),
    );
    warm.set("b", begun.lockToken);
    const workOfB = await takeWork(provider);
    const slots = [await slot(), await slot()];
    await (await openOther()).enqueueForOrchestrator(raised("a"));
    const transactions = await watchTransactions(database);
    const endOfB = { events: [event("b", 3, DONE, { sourceEventId: 2 })] };
    const ends = slots.map(async ({ found, answers }) => {
      const { instance } = (await found)!.item;
      return [
        instance,
        await answers(instance === "a" ? NEXT : endOfB).then(
          () => null,
          ({ kind }) => kind,
        ),
      ] as const;
    });

    await Promise.all([
      provider.ackWorkItem(work.lockToken, done("a", 2)),
      provider.ackWorkItem(workOfB.lockToken, done("b", 2)),
    ]);

    expect(new Map(await Promise.all(ends))).toEqual(
      new Map([
        ["a", "lock-lost"],
        ["b", null],
      ]),
    );
    expect(await transactions()).toEqual([
      ["event", "outcome"],
      ["message", "outcome"],
    ]);
    expect(await eventsOf(provider, "b")).toEqual([1, 2, 3]);
    expect((await takeTurn(provider)).item.messages).toEqual([raised("a"), done("a", 2)]);
  });

  test("shares a statement with turns of locked instances, and each is there or refused for itself", async () => {
    const { provider, work, slot } = await open();
    await provider.enqueueForOrchestrator(start("new"));
    const begun = await takeTurn(provider);
    const first = await slot();

    const acked = first.answers(NEXT);
    const sent = provider.ackWorkItem(work.lockToken, done("a", 2));
    await first.found;
    await round();
    const others = Promise.allSettled([
      provider.ackOrchestrationItem(begun.lockToken, turn({ events: [started("new")], metadata: NAMED })),
      provider.ackOrchestrationItem("nobody's@gone", turn({ events: [started("gone")], metadata: NAMED })),
    ]);

    await Promise.all([acked, sent]);
    expect(await others).toMatchObject([{ status: "fulfilled" }, { reason: LOCK_LOST }]);
    expect(await eventsOf(provider, "a")).toEqual([1, 2, 3, 4]);
    expect(await eventsOf(provider, "new")).toEqual([1]);
    expect(await eventsOf(provider, "gone")).toEqual([]);
  });

  test("that ends its instance leaves nothing in the queues, and its last values behind", async () => {
    const { database, provider, work, slot } = await open();
    const first = await slot();
    const value = { type: "KeyValueSet", key: "k", value: "v", lastUpdatedAtMs: 1 } as const;
    const events = [
      activityDone(3, 2),
      event("a", 4, value),
      event("a", 5, { type: "OrchestrationCompleted", output: "7" }),
    ];
    const acked = first.answers({ events, metadata: { status: "Completed", output: "7" } });
    await provider.ackWorkItem(work.lockToken, done("a", 2));
    await acked;

    expect(await provider.getInstanceStatus("a")).toMatchObject({ status: "Completed", output: "7" });
    expect(await provider.getKvValue("a", "k")).toBe("v");
    expect(
      await database.query(
        "SELECT 1 FROM {schema}.messages UNION ALL SELECT 1 FROM {schema}.schedule UNION ALL SELECT 1 FROM {schema}.activities",
      ),
    ).toEqual([]);
  });

  test("and the deletion of its instance come one after the other, without a circle", async () => {
    const { database, provider, work, slot, other: openOther } = await open();
    const other = await openOther();
    const first = await slot();
    const rival = await heldUp(database, work);
    const acked = first.answers(NEXT);
    const sent = provider.ackWorkItem(work.lockToken, done("a", 2));
    await database.untilBlockedBy(rival);

    const deleted = other.admin!.deleteInstance("a", true);
    await database.untilWaiting(2);
    await rival.rollback();
    await Promise.all([acked, sent, deleted]);

    expect(await eventsOf(provider, "a")).toEqual([]);
    expect(await database.query("SELECT 1 FROM {schema}.activities UNION ALL SELECT 1 FROM {schema}.schedule")).toEqual(
      [],
    );
    expect(await database.deadlocks()).toBe(0);
  });
});

describe("confidence", () => {
  test("is lost for a while when too much was wrong, and kept when most was right", () => {
    let now = 0;
    const clock = { ...STOPPED, now: () => now };
    const confidence = new Confidence(clock);
    for (let times = 0; times < 100; times += 1) confidence.learn(9, 1);
    expect(confidence.isPaused).toBe(false);
    for (let times = 0; times < 20; times += 1) confidence.learn(1, 1);
    expect(confidence.isPaused).toBe(true);
    now += 1_000;
    expect(confidence.isPaused).toBe(false);
  });
});
