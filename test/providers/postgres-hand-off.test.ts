// A fetch that waits gets what is made for it in the transaction that makes it: written once, already locked. Whatever it is
// handed must be what a look would have found; and nothing older may have to wait for it.

import { describe, expect, onTestFinished, test } from "vitest";
import type { Clock } from "../../src/clock.js";
import type {
  FetchOrchestrationOptions,
  FetchWorkOptions,
  LockedOrchestrationItem,
  LockedWorkItem,
} from "../../src/provider/provider.js";
import {
  act,
  done,
  NAMED,
  queued,
  raised,
  scheduled,
  start,
  started,
  turn,
} from "../../src/provider-tests/builders.js";
import { create, fetchTurn, fetchWork, takeTurn, takeWork } from "../../src/provider-tests/steps.js";
import type { PostgresProvider } from "../../src/providers/postgres/index.js";
import { OwnDatabase } from "./postgres-rivals.js";
import { POLL, STOPPED, waiting } from "./postgres-slots.js";

const URL = process.env.DUROXIDE_TEST_PG_URL;

async function open() {
  const database = await OwnDatabase.open(URL!);
  const provider = await database.provider({ clock: STOPPED });
  const ended = new AbortController();
  onTestFinished(() => ended.abort());
  return {
    database,
    provider,
    /** One who shares the schema. Nobody here hears of what it does. */
    other: () => database.provider({ clock: STOPPED }),
    waitForTurn: (options: Partial<FetchOrchestrationOptions> = {}): Promise<Waiting<LockedOrchestrationItem>> =>
      oneWaiting((signal) => provider.fetchOrchestrationItem({ ...POLL, ...options, signal }), ended.signal),
    waitForWork: (options: Partial<FetchWorkOptions> = {}): Promise<Waiting<LockedWorkItem>> =>
      oneWaiting((signal) => provider.fetchWorkItem({ ...POLL, ...options, signal }), ended.signal),
  };
}

interface Waiting<T> {
  readonly found: Promise<T | null>;
}

async function oneWaiting<T>(
  fetch: (signal: AbortSignal) => Promise<T | null>,
  ended: AbortSignal,
): Promise<Waiting<T>> {
  const [found] = await waiting(fetch, ended, 1);
  return { found: found! };
}

/** The transactions that have written the rows of a table as they are. */
async function writersOf(database: OwnDatabase, table: string): Promise<ReadonlySet<string>> {
  const rows = await database.query<{ readonly xmin: string }>(`SELECT xmin::text AS xmin FROM {schema}.${table}`);
  return new Set(rows.map(({ xmin }) => xmin));
}

const selectQueued = "SELECT 1 FROM {schema}.messages UNION ALL SELECT 1 FROM {schema}.schedule";

/** Two processes that hear each other. The time of the first stands still, and what it puts off until soon waits for `ring`. */
async function openBusy() {
  const database = await OwnDatabase.open(URL!);
  const soon = new Set<() => void>();
  const clock: Clock = {
    now: STOPPED.now,
    setTimer: (delayMs, callback) => {
      if (delayMs > 10) return STOPPED.setTimer(delayMs, callback);
      soon.add(callback);
      return { clear: () => void soon.delete(callback) };
    },
  };
  const provider = await database.provider({ clock, wakeUps: "listen" });
  const other = await database.provider({ clock: STOPPED, wakeUps: "listen" });
  const ended = new AbortController();
  onTestFinished(() => ended.abort());
  const wait = async () => oneWaiting((signal) => provider.fetchOrchestrationItem({ ...POLL, signal }), ended.signal);

  /** Resolves when the first has heard of what the other has started. */
  const startElsewhere = async (instance: string): Promise<void> => {
    const heard = new Promise<void>((resolve) => {
      onTestFinished(provider.wake.watchInstance(instance, () => resolve()));
    });
    await other.enqueueForOrchestrator(start(instance));
    await heard;
  };
  const hearing = await wait();
  await startElsewhere("hello");
  expect((await hearing.found)?.item.instance).toBe("hello"); // It is idle, hears, and looks at once.

  const rival = await database.rival();
  const held = await wait();
  await rival.query(
    "INSERT INTO {schema}.schedule (instance_id, ready_at, place, place_order) VALUES ('held', 2000000, 2000000, 1)",
  );
  const sent = provider.enqueueForOrchestrator(start("held"));
  await database.untilBlockedBy(rival);
  const isTaken = async (instance: string): Promise<boolean> => {
    // As many round trips as a look would have needed, many times over.
    for (let trips = 0; trips < 200; trips += 1) await database.query("SELECT 1");
    const rows = await database.query(
      "SELECT 1 FROM {schema}.schedule WHERE instance_id = $1 AND lock_token IS NOT NULL",
      [instance],
    );
    return rows.length > 0;
  };
  return {
    database,
    provider,
    wait,
    startElsewhere,
    isTaken,
    ring: () => {
      for (const callback of [...soon]) if (soon.delete(callback)) callback();
    },
    /** What kept the process busy is over. */
    release: async (): Promise<void> => {
      await rival.rollback();
      await sent;
      expect((await held.found)?.item.instance).toBe("held");
    },
  };
}

describe.skipIf(URL === undefined)("news that finds its process busy", () => {
  test("is looked at by the next statement that sends, and nobody who waits for what that sends goes without it", async () => {
    const { provider, wait, startElsewhere, isTaken, release } = await openBusy();
    const both = [await wait(), await wait()];
    await startElsewhere("theirs");
    expect(await isTaken("theirs")).toBe(false);

    await provider.enqueueForOrchestrator(start("ours"));

    const found = (await Promise.all(both.map((each) => each.found))).map((locked) => locked!.item.instance);
    expect(found.toSorted()).toEqual(["ours", "theirs"]);
    await release();
  });

  test("is looked at once the process has time, if nothing is sent", async () => {
    const { wait, startElsewhere, isTaken, ring, release } = await openBusy();
    const waits = await wait();
    await startElsewhere("theirs");
    ring();
    expect(await isTaken("theirs")).toBe(false);
    await release();

    ring();

    expect((await waits.found)?.item.instance).toBe("theirs");
  });

  test("is looked at again where somebody else had it locked at that moment", async () => {
    const { database, provider, wait, startElsewhere, ring, release } = await openBusy();
    const both = [await wait(), await wait()];
    await startElsewhere("theirs");
    const inTheWay = await database.rival();
    await inTheWay.query("SELECT 1 FROM {schema}.schedule WHERE instance_id = 'theirs' FOR UPDATE");

    await provider.enqueueForOrchestrator(start("ours"));
    expect((await Promise.race(both.map((each) => each.found)))?.item.instance).toBe("ours");
    await inTheWay.rollback();
    await release();
    ring();

    const found = (await Promise.all(both.map((each) => each.found))).map((locked) => locked!.item.instance);
    expect(found.toSorted()).toEqual(["ours", "theirs"]);
  });
});

describe.skipIf(URL === undefined)("a fetch that waits for a turn", () => {
  test("gets a start, its row written once, and as a look would have found it", async () => {
    const { database, provider, waitForTurn } = await open();
    const waits = await waitForTurn();

    await provider.enqueueForOrchestrator(start("a", { input: "one" }));
    const locked = await waits.found;

    expect(locked).toMatchObject({
      attemptCount: 1,
      item: { instance: "a", executionId: 1, history: [], messages: [start("a", { input: "one" })] },
    });
    expect(await writersOf(database, "schedule")).toEqual(await writersOf(database, "messages"));
    await provider.ackOrchestrationItem(locked!.lockToken, turn({ metadata: NAMED, events: [started("a")] }));
    expect(await database.query(selectQueued)).toEqual([]);
  });

  test("gets the history of an instance that somebody else has run, and not what it knows itself", async () => {
    const { provider, waitForTurn, other: openOther } = await open();
    const other = await openOther();
    await create(other, "theirs");
    await provider.enqueueForOrchestrator(start("ours"));
    const first = await takeTurn(provider);
    await provider.ackOrchestrationItem(first.lockToken, turn({ metadata: NAMED, events: [started("ours")] }));
    const { lockToken } = await takeWorkOf(provider, "ours");
    const warm = new Map([["ours", first.lockToken]]);
    const both = [await waitForTurn({ warm }), await waitForTurn({ warm })];

    await Promise.all([
      provider.enqueueForOrchestrator(raised("theirs")),
      provider.ackWorkItem(lockToken, done("ours", 2)),
    ]);

    const items = (await Promise.all(both.map(({ found }) => found))).map((locked) => locked!.item);
    const known = items.map(({ instance, warmAsOf, history }) => [instance, warmAsOf, history.length]);
    expect(known.toSorted()).toEqual([
      ["ours", warm.get("ours"), 0],
      ["theirs", null, 1],
    ]);
  });

  test("gets all messages that are sent to one instance at one moment, in their order", async () => {
    const { provider, waitForTurn } = await open();
    const waits = await waitForTurn();
    const messages = [start("a"), queued("a", "one"), queued("a", "two")];
    await Promise.all(messages.map((message) => provider.enqueueForOrchestrator(message)));
    expect((await waits.found)?.item.messages).toEqual(messages);
    expect(await fetchTurn(provider)).toBeNull();
  });

  test("gets what has waited longer, and what is new stays in line", async () => {
    const { provider, waitForTurn, other: openOther } = await open();
    const other = await openOther();
    const waits = await waitForTurn();
    await other.enqueueForOrchestrator(start("older"));

    await provider.enqueueForOrchestrator(start("newer"));

    expect((await waits.found)?.item.instance).toBe("older");
    expect((await takeTurn(provider)).item.instance).toBe("newer");
  });

  test("gives way to what has waited longer, and no more of them than that takes", async () => {
    const { provider, waitForTurn, other: openOther } = await open();
    const other = await openOther();
    const waits = [await waitForTurn(), await waitForTurn(), await waitForTurn()];
    await other.enqueueForOrchestrator(start("older"));

    await Promise.all(["one", "two", "three"].map((id) => provider.enqueueForOrchestrator(start(id))));

    const found = (await Promise.all(waits.map((wait) => wait.found))).map((locked) => locked!.item.instance);
    expect(found.toSorted()).toEqual(["older", "one", "two"]);
    expect((await takeTurn(provider)).item.instance).toBe("three");
  });

  test("is not given an instance that it cannot replay, nor one that nobody has started", async () => {
    const { provider, waitForTurn } = await open();
    await create(provider, "newer", { metadata: { ...NAMED, pinnedVersion: { major: 3, minor: 0, patch: 0 } } });
    const [min, max] = [1, 2].map((major) => ({ major, minor: 0, patch: 0 }));
    const waits = await waitForTurn({ capability: { supportedVersions: [{ min: min!, max: max! }] } });

    await provider.enqueueForOrchestrator(raised("newer"));
    await provider.enqueueForOrchestrator(raised("unknown"));
    await provider.enqueueForOrchestrator(start("mine"));

    expect((await waits.found)?.item.instance).toBe("mine");
    expect(await fetchTurn(provider)).toMatchObject({ attemptCount: 1, item: { instance: "newer" } });
  });

  test("gets nothing from a start of what has begun, nor from an outcome whose lock is lost", async () => {
    const { database, provider, waitForTurn } = await open();
    await create(provider, "a");
    const { lockToken } = await takeWorkOf(provider, "a");
    await provider.abandonWorkItem(lockToken);
    const waits = await waitForTurn();

    expect(await provider.enqueueForOrchestrator(start("a"), { ifAbsent: true })).toBe("exists");
    await expect(provider.ackWorkItem(lockToken, done("a", 2))).rejects.toMatchObject({ kind: "lock-lost" });

    expect(await database.query(selectQueued)).toEqual([]);
    await provider.enqueueForOrchestrator(start("b"));
    expect((await waits.found)?.item.instance).toBe("b");
  });

  test("does not get the turn of an instance that somebody works on; his ack gives it away", async () => {
    const { provider, waitForTurn } = await open();
    await provider.enqueueForOrchestrator(start("a"));
    const held = await takeTurn(provider);
    const waits = await waitForTurn();
    await provider.enqueueForOrchestrator(raised("a"));

    await provider.ackOrchestrationItem(held.lockToken, turn({ metadata: NAMED, events: [started("a")] }));

    expect((await waits.found)?.item.messages).toEqual([raised("a")]);
  });

  test("is not given what is not visible yet", async () => {
    const { provider, waitForTurn } = await open();
    const waits = await waitForTurn();
    await provider.enqueueForOrchestrator(start("later"), { delayMs: 60_000 });
    await provider.enqueueForOrchestrator(start("now"));
    expect((await waits.found)?.item.instance).toBe("now");
  });
});

describe.skipIf(URL === undefined)("a fetch that waits for an activity", () => {
  test("gets what a turn schedules, its row written once by that turn", async () => {
    const { database, provider, waitForWork } = await open();
    const both = [await waitForWork(), await waitForWork()];

    await create(provider, "a", { workerItems: [act("a", 2), act("a", 3), act("a", 4)] });
    const works = await Promise.all(both.map(({ found }) => found));

    const got = works.map((work) => [work?.item.id, work?.attemptCount, work?.executionState]);
    expect(got.toSorted()).toEqual([
      [2, 1, "running"],
      [3, 1, "running"],
    ]);
    expect(await writersOf(database, "activities")).toEqual(await writersOf(database, "executions"));
    expect((await takeWork(provider)).item).toEqual(act("a", 4));
    for (const work of works) await provider.renewWorkItemLock(work!.lockToken, 60_000);
    await Promise.all(works.map((work) => provider.ackWorkItem(work!.lockToken, done("a", work!.item.id))));
    expect((await takeTurn(provider)).item.messages).toHaveLength(2);
  });

  test("gets what its tags let through, and what has waited longer comes first", async () => {
    const { provider, waitForWork, other: openOther } = await open();
    const other = await openOther();
    const gpu = await waitForWork({ tagFilter: { kind: "tags", tags: ["gpu"] } });
    const plain = await waitForWork();
    await create(provider, "a", { workerItems: [act("a", 2, { tag: "gpu" })] });
    expect((await gpu.found)?.item.id).toBe(2);

    await other.enqueueForWorker(act("older", 7));
    await create(provider, "b", { workerItems: [act("b", 2)] });
    expect((await plain.found)?.item.instance).toBe("older");
    expect((await takeWork(provider)).item.instance).toBe("b");
  });

  test("of a session gets no work of another one, and work of its own only by a look", async () => {
    const { provider, waitForWork } = await open();
    const session = { ownerId: "owner", lockTimeoutMs: 60_000 };
    const waits = await waitForWork({ session });
    await create(provider, "a", { workerItems: [act("a", 2, { sessionId: "s" })] });
    expect((await waits.found)?.item.sessionId).toBe("s");
    await provider.enqueueForWorker(act("a", 3, { sessionId: "s" }));
    expect(await fetchWork(provider, { session: { ...session, ownerId: "another" } })).toBeNull();
  });

  test("is not given an activity of a lost lock, nor one that is cancelled at once", async () => {
    const { database, provider, waitForWork } = await open();
    await provider.enqueueForOrchestrator(start("a"));
    const { lockToken } = await takeTurn(provider);
    const waits = await waitForWork();

    const first = { events: [started("a"), scheduled("a", 2)], metadata: NAMED, workerItems: [act("a", 2)] };
    await provider.ackOrchestrationItem(
      lockToken,
      turn({ ...first, cancelledActivities: [{ instance: "a", executionId: 1, id: 2 }] }),
    );
    const again = provider.ackOrchestrationItem(
      lockToken,
      turn({ events: [scheduled("a", 3)], workerItems: [act("a", 3)] }),
    );

    await expect(again).rejects.toMatchObject({ kind: "lock-lost" });
    expect(await database.query("SELECT 1 FROM {schema}.activities")).toEqual([]);
    await create(provider, "b", { workerItems: [act("b", 2)] });
    expect((await waits.found)?.item.instance).toBe("b");
  });

  test("is given the very row that it wants, wherever it stands among others", async () => {
    const { provider, waitForWork } = await open();
    const plain = await waitForWork();
    const gpu = act("a", 2, { tag: "gpu" });
    await create(provider, "a", { workerItems: [gpu, act("a", 3), { ...gpu, id: 4 }] });

    const { item, lockToken } = (await plain.found)!;
    expect(item.id).toBe(3);
    await provider.ackWorkItem(lockToken, null);

    const left = await Promise.all(
      [1, 2].map(() => fetchWork(provider, { tagFilter: { kind: "tags", tags: ["gpu"] } })),
    );
    expect(left.map((locked) => locked?.item.id)).toEqual([2, 4]);
  });

  test("is given one of more than a thousand, which keep their order", async () => {
    const { database, provider, waitForWork } = await open();
    const waits = await waitForWork();
    const ids = Array.from({ length: 1_001 }, (_, index) => index + 2);
    await create(provider, "a", { workerItems: ids.map((id) => act("a", id)) });

    const { item, lockToken } = (await waits.found)!;
    expect(item.id).toBe(2);
    await provider.ackWorkItem(lockToken, null);

    const rows = await database.query<{ readonly id: number }>(
      "SELECT activity_id::integer AS id FROM {schema}.activities AS a ORDER BY a.id",
    );
    expect(rows.map(({ id }) => id)).toEqual(ids.slice(1));
  });
});

describe.skipIf(URL === undefined)("the first turns of instances", () => {
  test.each([
    ["an instance", "executions"],
    ["an execution", "instances"],
  ])("are committed together also where %s of one of them is there already", async (_what, gone) => {
    const { database, provider } = await open();
    await create(provider, "known", {});
    await database.query(`DELETE FROM {schema}.${gone}`);
    await database.query("DELETE FROM {schema}.history");
    for (const id of ["known", "new"]) await provider.enqueueForOrchestrator(start(id));
    const turns = [await takeTurn(provider), await takeTurn(provider)];

    await Promise.all(
      turns.map(({ lockToken, item }) =>
        provider.ackOrchestrationItem(lockToken, turn({ events: [started(item.instance)], metadata: NAMED })),
      ),
    );

    for (const id of ["known", "new"]) {
      expect(await provider.getInstanceStatus(id)).toMatchObject({ status: "Running", executionId: 1 });
      expect((await provider.read(id)).length).toBe(1);
    }
  });
});

describe.skipIf(URL === undefined)("a look that others have just made", () => {
  test("is not made again: whoever comes next waits at once, and hears of what is new", async () => {
    const { database, provider, waitForTurn } = await open();
    await waitForTurn();
    await database.query("ALTER FUNCTION {schema}.fetch_turns RENAME TO look_for_turns"); // Whoever looks now is refused.
    const both = [await waitForTurn(), await waitForTurn()];
    await Promise.all(["a", "b", "c"].map((id) => provider.enqueueForOrchestrator(start(id))));
    const items = await Promise.all(both.map(({ found }) => found));
    expect(items.every((locked) => locked !== null)).toBe(true);
  });

  test("is made at the end of a poll that has made none: null means that there is nothing", async () => {
    const database = await OwnDatabase.open(URL!);
    const [provider, other] = [await database.provider(), await database.provider()];
    expect(await provider.fetchOrchestrationItem({ lockTimeoutMs: 60_000, pollTimeoutMs: 1 })).toBeNull();
    await other.enqueueForOrchestrator(start("a")); // Nobody here hears of it.
    expect((await provider.fetchOrchestrationItem({ lockTimeoutMs: 60_000, pollTimeoutMs: 1 }))?.item.instance).toBe(
      "a",
    );
  });
});

/** An activity that the running instance has, and this one alone. */
async function takeWorkOf(provider: PostgresProvider, instance: string): Promise<LockedWorkItem> {
  await provider.enqueueForWorker(act(instance, 2));
  return takeWork(provider);
}

describe.skipIf(URL === undefined)("many starts that nobody waits for", () => {
  test("are all there, once, though somebody else begins to send to one of them at the same moment", async () => {
    const { database, provider } = await open();
    const ids = Array.from({ length: 10 }, (_, place) => `start-${place}`);
    const rival = await database.rival();
    await rival.query(
      "INSERT INTO {schema}.schedule (instance_id, ready_at, place, place_order) VALUES ('start-5', 2000000, 2000000, 1)",
    );
    const sent = Promise.all(ids.map((id) => provider.enqueueForOrchestrator(start(id))));
    await database.untilBlockedBy(rival);

    await rival.commit();

    expect(await sent).toEqual(ids.map(() => "enqueued"));
    expect((await writersOf(database, "messages")).size).toBe(1); // The batch was not taken apart.
    const found: string[] = [];
    for (let locked = await fetchTurn(provider); locked !== null; locked = await fetchTurn(provider)) {
      found.push(locked.item.instance);
    }
    expect(found.toSorted()).toEqual(ids);
  });
});
