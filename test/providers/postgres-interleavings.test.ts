// What happens when others commit between two statements of one call. A rival transaction holds the call where it hurts.
// Whatever the order: nothing is lost, nobody waits in a circle, and null means that there is nothing.

import pg from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Clock, systemClock, type Timer } from "../../src/clock.js";
import type { InstanceChange } from "../../src/provider/provider.js";
import { act, done, NAMED, raised, start, started, timer, turn } from "../../src/provider-tests/builders.js";
import { channelOf } from "../../src/providers/postgres/news.js";
import type { PostgresProvider } from "../../src/providers/postgres/postgres-provider.js";
import { OwnDatabase } from "./postgres-rivals.js";

const URL = process.env.DUROXIDE_TEST_PG_URL;
const LOCK = { lockTimeoutMs: 60_000 };
/** Before the provider does, whose call would simply be run again. */
const NOTICE_A_CIRCLE = "SET LOCAL deadlock_timeout = '10ms'";
/** Longer than any test: who misses what it waits for is not helped by the end of its poll. */
const POLL = { ...LOCK, pollTimeoutMs: 600_000 };

/** The turn of an instance under the lock "other", at the time 999; of this major version; with these messages. */
const COMMIT_TURN = `
  SELECT {schema}.commit_turns(
    999, NULL, ARRAY[$1::text], '{other}', '{1}', '{1}', 1, '{}', '{}', '{}', '{}', '{}', '{}', '{TestOrch}', '{1.0.0}', '{NULL}', '{NULL}', '{NULL}',
    ARRAY[$2::bigint], '{0}', '{0}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}',
    NULL, false, NULL, NULL, $3::json, NULL, NULL
  )`;

describe.skipIf(URL === undefined)("a turn that is committed", () => {
  test.each(["is over", "waits for a timer"])(
    "reaches an instance of the same batch that somebody else has taken over meanwhile and that %s",
    async (state) => {
      const database = await OwnDatabase.open(URL!);
      const provider = await database.provider();
      await begin(provider, "x");
      await begin(provider, "y");
      await provider.enqueueForOrchestrator(raised("x"));
      await provider.enqueueForOrchestrator(raised("y"));
      const [x, y] = await fetchBoth(provider);
      const rival = await database.rival();
      await rival.query("SELECT 1 FROM {schema}.schedule WHERE instance_id = 'y' FOR UPDATE");

      const acks = Promise.allSettled([
        provider.ackOrchestrationItem(x!.lockToken, turn({ orchestratorItems: [raised("y", "from x")] })),
        provider.ackOrchestrationItem(y!.lockToken, turn()),
      ]);
      await database.untilWaiting(1);
      await rival.query(
        "UPDATE {schema}.schedule SET lock_token = 'other', locked_until = 1000 WHERE instance_id = 'y'",
      );
      const later = { n: 0, turn: 1, instance: "y", due: 9e12, visible: 9e12, kind: "timer", item: "{}" };
      await rival.query(COMMIT_TURN, ["y", null, state === "is over" ? null : JSON.stringify([later])]);
      await rival.commit();

      expect((await acks).map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
      expect((await provider.fetchOrchestrationItem(LOCK))?.item.messages).toEqual([raised("y", "from x")]);
    },
  );

  test("and completes its instance tells the output to those who watched when it was sent; whoever came later looks", async () => {
    const database = await OwnDatabase.open(URL!);
    const provider = await database.provider({ wakeUps: "local" });
    await begin(provider, "x");
    await provider.enqueueForOrchestrator(raised("x"));
    const x = await provider.fetchOrchestrationItem(LOCK);
    const heard: (readonly [string, InstanceChange | undefined])[] = [];
    onTestFinished(provider.wake.watchInstance("x", (change) => heard.push(["early", change])));
    const rival = await database.rival();
    await rival.query("SELECT 1 FROM {schema}.schedule WHERE instance_id = 'x' FOR UPDATE");

    const acked = provider.ackOrchestrationItem(
      x!.lockToken,
      turn({ metadata: { status: "Completed", output: "done" } }),
    );
    await database.untilWaiting(1);
    onTestFinished(provider.wake.watchInstance("x", (change) => heard.push(["late", change])));
    await rival.commit();
    await acked;

    expect(heard).toEqual([
      ["early", { output: "done" }],
      ["late", "state"],
    ]);
  });

  test("tells others when the instance can be fetched next, also if that was known before the turn", async () => {
    const database = await OwnDatabase.open(URL!);
    const provider = await database.provider({ wakeUps: "poll" });
    await provider.enqueueForOrchestrator(start("x"));
    const x = await provider.fetchOrchestrationItem(LOCK);
    const fireAtMs = Date.now() + 1_000_000;
    await provider.enqueueForOrchestrator(timer("x", 7, fireAtMs));
    const news = await listen(database);

    await provider.ackOrchestrationItem(x!.lockToken, turn({ metadata: NAMED, events: [started("x")] }));

    expect(await news.next((note) => note.nextMessageAt !== null)).toMatchObject({ nextMessageAt: fireAtMs });
  });
});

describe.skipIf(URL === undefined)("a fetch of turns", () => {
  test("waits in no circle with whoever sends to those for which it waits", async () => {
    const database = await OwnDatabase.open(URL!);
    const clock = new SetClock(1_000);
    const provider = await database.provider({ clock });
    await provider.enqueueForOrchestrator(start("b"));
    clock.time += 1;
    await provider.enqueueForOrchestrator(start("a"));
    const [claims, sends] = [await database.rival(), await database.rival()];
    await claims.query("SELECT 1 FROM {schema}.schedule WHERE instance_id = 'b' FOR UPDATE");
    await sends.query(NOTICE_A_CIRCLE);
    await sends.query("SELECT 1 FROM {schema}.schedule WHERE instance_id = 'a' FOR UPDATE");

    const fetched = provider.fetchOrchestrationItem(POLL);
    await database.untilBlockedBy(claims);
    await claims.query(
      "UPDATE {schema}.schedule SET locked_until = 9000, ready_at = 9000, lock_token = 't' WHERE instance_id = 'b'",
    );
    await claims.commit();
    await database.untilBlockedBy(sends);
    await sends.query("SELECT 1 FROM {schema}.schedule WHERE instance_id = 'b' FOR UPDATE");
    await sends.commit();

    expect((await fetched)?.item.instance).toBe("a");
  });

  test("looks at the version of what it has waited for as it is by then", async () => {
    const database = await OwnDatabase.open(URL!);
    const provider = await database.provider();
    await provider.enqueueForOrchestrator(start("x"));
    const turnOfAnother = await database.rival();
    await turnOfAnother.query("SELECT 1 FROM {schema}.schedule WHERE instance_id = 'x' FOR UPDATE");

    const [min, max] = [1, 2].map((major) => ({ major, minor: 0, patch: 0 }));
    const capability = { supportedVersions: [{ min: min!, max: max! }] };
    const fetched = provider.fetchOrchestrationItem({ ...POLL, capability });
    await database.untilBlockedBy(turnOfAnother);
    await turnOfAnother.query(
      "UPDATE {schema}.schedule SET lock_token = 'other', locked_until = 1000 WHERE instance_id = 'x'",
    );
    await turnOfAnother.query(COMMIT_TURN, ["x", 3, null]);
    await turnOfAnother.commit();
    await provider.enqueueForOrchestrator(start("y"));

    expect((await fetched)?.item.instance).toBe("y");
  });

  test("is not kept by what another fetch waits for", async () => {
    const database = await OwnDatabase.open(URL!);
    const provider = await database.provider();
    await provider.enqueueForOrchestrator(start("free"));
    await provider.enqueueForOrchestrator(start("kept"));
    const rival = await database.rival();
    await rival.query("SELECT 1 FROM {schema}.schedule WHERE instance_id = 'kept' FOR UPDATE");

    const both = [provider.fetchOrchestrationItem(POLL), provider.fetchOrchestrationItem(POLL)];
    const first = await Promise.race(both);
    await rival.rollback();

    expect(first?.item.instance).toBe("free");
    expect((await Promise.all(both)).map((locked) => locked?.item.instance)).toEqual(["free", "kept"]);
  });

  test("does not wait so long for a row that it misses what else comes", async () => {
    const database = await OwnDatabase.open(URL!);
    const provider = await database.provider();
    await provider.enqueueForOrchestrator(start("kept"));
    const rival = await database.rival();
    await rival.query("SELECT 1 FROM {schema}.schedule WHERE instance_id = 'kept' FOR UPDATE");

    const fetched = provider.fetchOrchestrationItem(POLL);
    await database.untilBlockedBy(rival);
    await provider.enqueueForOrchestrator(start("new"));

    expect((await fetched)?.item.instance).toBe("new");
    await rival.rollback();
  });

  test("gives everything back that it has claimed when something of it cannot be read", async () => {
    const database = await OwnDatabase.open(URL!);
    const provider = await database.provider();
    for (const id of ["a", "b", "c"]) await begin(provider, id);
    for (const id of ["a", "b", "c"]) await provider.enqueueForOrchestrator(raised(id));
    await database.query("ALTER FUNCTION {schema}.load_instance RENAME TO load_nothing");

    const warm = new Map([["others", "token"]]);
    const fetches = ["a", "b", "c"].map(() => provider.fetchOrchestrationItem({ ...LOCK, warm }));
    expect((await Promise.allSettled(fetches)).map(({ status }) => status)).toEqual(Array(3).fill("rejected"));

    const again = await Promise.all(["a", "b", "c"].map(() => provider.fetchOrchestrationItem(LOCK)));
    expect(again.map((locked) => [locked?.item.instance, locked?.attemptCount])).toEqual([
      ["a", 1],
      ["b", 1],
      ["c", 1],
    ]);
  });

  test("that sets an unreadable start aside leaves one that has come meanwhile to be fetched", async () => {
    const database = await OwnDatabase.open(URL!);
    const provider = await database.provider();
    await provider.enqueueForOrchestrator(start("x", { input: "broken" }));
    await database.query("UPDATE {schema}.messages SET work_item = '{'");
    const now = Date.now();
    const claim = "SELECT * FROM {schema}.fetch_turns($1, $2, '{t}', NULL, '{0,0,0}', '{1000,0,0}', true, false)";
    await database.query(claim, [now, now + 60_000]);
    await provider.enqueueForOrchestrator(start("x", { input: "well" }));
    await database.query("SELECT * FROM {schema}.set_turn_aside($1, 'x', 't')", [Date.now()]);

    expect(await provider.fetchOrchestrationItem(LOCK)).toMatchObject({
      attemptCount: 1,
      item: { messages: [start("x", { input: "well" })] },
    });
  });
});

describe.skipIf(URL === undefined)("a fetch of activities", () => {
  test("gets one of its own, also where somebody asks twice with the same options", async () => {
    const database = await OwnDatabase.open(URL!);
    const provider = await database.provider();
    await provider.enqueueForWorker(act("x", 2));
    await provider.enqueueForWorker(act("x", 3));

    const both = await Promise.all([provider.fetchWorkItem(LOCK), provider.fetchWorkItem(LOCK)]);

    expect(both.map((locked) => locked?.item)).toEqual([act("x", 2), act("x", 3)]);
  });

  test("waits for whoever has one locked, and takes it if he does not", async () => {
    const database = await OwnDatabase.open(URL!);
    const provider = await database.provider();
    await provider.enqueueForWorker(act("x", 2));
    const rival = await database.rival();
    await rival.query("SELECT 1 FROM {schema}.activities FOR UPDATE");

    const fetched = provider.fetchWorkItem(POLL);
    await database.untilBlockedBy(rival);
    await rival.rollback();

    expect((await fetched)?.item).toEqual(act("x", 2));
  });

  test("takes one whose lock is over while its worker renews it too late", async () => {
    const database = await OwnDatabase.open(URL!);
    const provider = await database.provider();
    await provider.enqueueForWorker(act("x", 2));
    const late = "UPDATE {schema}.activities SET lock_token = 'late', is_held = true, ready_at = 1000 RETURNING id";
    const [row] = await database.query<{ readonly id: number }>(late);
    const rival = await database.rival();
    const renewal = JSON.stringify([{ call: 0, id: row!.id, token: "late", until: 3_000 }]);
    expect(await rival.query("SELECT * FROM {schema}.renew_activities(2000, $1)", [renewal])).toEqual([]);

    expect((await provider.fetchWorkItem(LOCK))?.item).toEqual(act("x", 2));
    await rival.rollback();
  });
});

describe.skipIf(URL === undefined)("an activity", () => {
  test("that somebody else takes over while its outcome is on the way is no longer its worker's", async () => {
    const database = await OwnDatabase.open(URL!);
    const provider = await database.provider();
    await provider.enqueueForWorker(act("x", 2));
    const work = await provider.fetchWorkItem(LOCK);
    const rival = await database.rival();
    await rival.query("UPDATE {schema}.activities SET lock_token = 'other', attempts = 2");

    const acked = provider.ackWorkItem(work!.lockToken, done("x", 2));
    acked.catch(() => {});
    await database.untilBlockedBy(rival);
    await rival.commit();

    await expect(acked).rejects.toMatchObject({ kind: "lock-lost" });
    expect(await database.query("SELECT 1 FROM {schema}.messages")).toEqual([]);
    expect(await database.query("SELECT lock_token FROM {schema}.activities")).toEqual([{ lock_token: "other" }]);
  });

  test("of a session is left to whoever was faster to take the session", async () => {
    const database = await OwnDatabase.open(URL!);
    const provider = await database.provider();
    await provider.enqueueForWorker(act("x", 2, { sessionId: "s" }));
    const rival = await database.rival();
    await rival.query("INSERT INTO {schema}.sessions VALUES ('s', 'rival', $1, 0)", [Number.MAX_SAFE_INTEGER]);

    const fetched = provider.fetchWorkItem({ ...POLL, session: { ownerId: "o", lockTimeoutMs: 60_000 } });
    await database.untilBlockedBy(rival);
    await rival.commit();
    await provider.enqueueForWorker(act("x", 3));

    expect((await fetched)?.item).toEqual(act("x", 3));
  });
});

describe.skipIf(URL === undefined)("a renewal of sessions", () => {
  test("waits in no circle for a session that came to the owner after it began", async () => {
    const database = await OwnDatabase.open(URL!);
    const provider = await database.provider();
    const session = { ownerId: "o", lockTimeoutMs: 60_000 };
    await provider.enqueueForWorker(act("x", 5, { sessionId: "s5" }));
    await provider.fetchWorkItem({ ...LOCK, session });
    const [first, second] = [await database.rival(), await database.rival()];
    await first.query("SELECT 1 FROM {schema}.sessions WHERE session_id = 's5' FOR UPDATE");
    const renewed = provider.renewSessionLock(["o"], { extendForMs: 60_000, idleTimeoutMs: 60_000 });
    await database.untilWaiting(1);
    await provider.enqueueForWorker(act("x", 3, { sessionId: "s3" }));
    await provider.fetchWorkItem({ ...LOCK, session });
    await second.query(NOTICE_A_CIRCLE);
    await second.query("SELECT 1 FROM {schema}.sessions WHERE session_id = 's3' FOR UPDATE");
    const touching = second.query("SELECT 1 FROM {schema}.sessions WHERE session_id = 's5' FOR UPDATE");
    await database.untilWaiting(2);
    await first.rollback();

    await touching;
    await second.rollback();
    expect(await renewed).toBe(1);
  });
});

/** Time is what it is told. */
class SetClock implements Clock {
  constructor(public time: number) {}

  now(): number {
    return this.time;
  }

  setTimer(delayMs: number, callback: () => void): Timer {
    return systemClock.setTimer(delayMs, callback);
  }
}

async function begin(provider: PostgresProvider, instance: string): Promise<void> {
  await provider.enqueueForOrchestrator(start(instance));
  const locked = await provider.fetchOrchestrationItem(LOCK);
  await provider.ackOrchestrationItem(locked!.lockToken, turn({ metadata: NAMED, events: [started(instance)] }));
}

async function fetchBoth(provider: PostgresProvider) {
  const both = await Promise.all([provider.fetchOrchestrationItem(LOCK), provider.fetchOrchestrationItem(LOCK)]);
  return both.toSorted((one, other) => (one!.item.instance < other!.item.instance ? -1 : 1));
}

interface NewsNote {
  readonly nextMessageAt: number | null;
  readonly instances: readonly string[];
}

/** What processes tell each other from now on. */
async function listen(database: OwnDatabase): Promise<{ next(isIt: (note: NewsNote) => boolean): Promise<NewsNote> }> {
  const client = new pg.Client(database.url);
  await client.connect();
  onTestFinished(() => client.end());
  const notes: NewsNote[] = [];
  let heard = (): void => {};
  client.on("notification", ({ payload }) => {
    notes.push(JSON.parse(payload!) as NewsNote);
    heard();
  });
  await client.query(`LISTEN ${channelOf("duroxide")}`);
  return {
    async next(isIt) {
      for (;;) {
        const found = notes.find(isIt);
        if (found !== undefined) return found;
        await new Promise<void>((resolve) => {
          heard = resolve;
        });
      }
    },
  };
}
