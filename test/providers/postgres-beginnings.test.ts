// A start and the first turn that answers it may be committed together (S10). Whoever is in the way, an instance begins once, whoever
// asked for it hears the truth, and nothing that others have sent to it is forgotten.

import { describe, expect, onTestFinished, test } from "vitest";
import type { LockedWorkItem, TurnCommit } from "../../src/provider/provider.js";
import { act, done, event, NAMED, raised, scheduled, start, started, turn } from "../../src/provider-tests/builders.js";
import { fetchTurn, takeTurn, takeWork } from "../../src/provider-tests/steps.js";
import type { PostgresOptions, PostgresProvider } from "../../src/providers/postgres/index.js";
import { OwnDatabase } from "./postgres-rivals.js";
import { begin, doneEvent, POLL, STOPPED, slots, waiting } from "./postgres-slots.js";
import { watchTransactions } from "./postgres-transactions.js";

const URL = process.env.DUROXIDE_TEST_PG_URL;
const AHEAD: PostgresOptions = { clock: STOPPED, startsGoAhead: "always" };
const ABSENT = { ifAbsent: true } as const;
const LOCK_LOST = { kind: "lock-lost" };
const NO_CIRCLES = `DO $$ BEGIN
  EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = ''10min''', current_database());
END $$`;

async function open() {
  const database = await OwnDatabase.open(URL!);
  await database.query(NO_CIRCLES);
  return { database, provider: await database.provider(AHEAD) };
}

/** The first turn of an instance, which asks for an activity. */
function first(id: string): Partial<TurnCommit> {
  return { events: [started(id), scheduled(id, 2)], workerItems: [act(id, 2)], metadata: NAMED };
}

async function count(database: OwnDatabase, table: string): Promise<number> {
  const [row] = await database.query<{ readonly n: number }>(`SELECT count(*) AS n FROM {schema}.${table}`);
  return row!.n;
}

describe.skipIf(URL === undefined)("a start and its first turn", () => {
  test("are committed together; who has started hears of it first, and the activity begins after that", async () => {
    const { database, provider } = await open();
    const transactions = await watchTransactions(database);
    const heard: string[] = [];
    const ended = new AbortController();
    onTestFinished(() => ended.abort());
    const [work] = await waiting(
      (signal) => provider.fetchWorkItem({ lockTimeoutMs: 60_000, pollTimeoutMs: 600_000, signal }),
      ended.signal,
      1,
    );
    const [acked] = await slots(provider, 1, new Map(), first);

    const told = provider.enqueueForOrchestrator(start("a"), ABSENT).then((outcome) => heard.push(outcome));
    await Promise.all([
      told,
      acked!.then(() => heard.push("acked")),
      work!.then((locked: LockedWorkItem | null) => heard.push(`activity ${locked?.item.id}`)),
    ]);

    expect(heard).toEqual(["enqueued", "acked", "activity 2"]);
    expect(await transactions()).toEqual([["event"]]);
    expect([await count(database, "schedule"), await count(database, "messages")]).toEqual([0, 0]);
    expect(await provider.read("a")).toEqual([started("a"), scheduled("a", 2)]);
    expect(await provider.getInstanceStatus!("a")).toMatchObject({ status: "Running" });
  });

  test("may be all that there is of an instance, and may be followed by steps", async () => {
    const { database, provider } = await open();
    const output = { status: "Completed", output: '"done"' } as const;
    const [acked] = await slots(provider, 1, new Map(), (id) => ({
      events: [started(id), event(id, 2, { type: "OrchestrationCompleted", output: '"done"' })],
      metadata: { ...NAMED, ...output },
    }));
    expect(await provider.enqueueForOrchestrator(start("short"), ABSENT)).toBe("enqueued");
    await acked;
    expect(await provider.getInstanceStatus!("short")).toMatchObject(output);

    const [begun] = await slots(provider, 1, new Map(), first);
    await provider.enqueueForOrchestrator(start("long"), ABSENT);
    const { lockToken } = (await begun)!;
    const transactions = await watchTransactions(database);
    const [stepped] = await slots(provider, 1, new Map([["long", lockToken]]), (id) => doneEvent(id));
    await provider.ackWorkItem((await takeWork(provider)).lockToken, done("long", 2));
    await stepped;
    expect(await transactions()).toEqual([["event", "outcome"]]);
  });

  test("are told to those who watch after whoever has started: he may begin to watch only then", async () => {
    const { provider } = await open();
    const ends = { ...NAMED, status: "Completed", output: "1" } as const;
    await slots(provider, 1, new Map(), (id) => ({ events: [started(id)], metadata: ends }));

    await provider.enqueueForOrchestrator(start("a"), ABSENT);
    await new Promise((resolve) => onTestFinished(provider.wake.watchInstance("a", resolve)));
  });

  test.each([
    ["that sends something", { orchestratorItems: [raised("elsewhere")] }],
    ["that does not say who it is", { metadata: {} }],
  ])("are two transactions where it is one %s", async (_, differs) => {
    const { database, provider } = await open();
    const transactions = await watchTransactions(database);
    const [acked] = await slots(provider, 1, new Map(), (id) => ({ ...first(id), ...differs }));
    expect(await provider.enqueueForOrchestrator(start("a"), ABSENT)).toBe("enqueued");
    await acked;

    expect((await transactions())[0]).toEqual(["message"]);
    expect(await provider.read("a")).toEqual([started("a"), scheduled("a", 2)]);
    expect(await count(database, "messages")).toBe("orchestratorItems" in differs ? 1 : 0);
  });

  test("are two transactions where nothing was proven, or starts never go ahead", async () => {
    const { database } = await open();
    const transactions = await watchTransactions(database);
    for (const startsGoAhead of ["proven", "never"] as const) {
      const provider = await database.provider({ clock: STOPPED, startsGoAhead });
      const [acked] = await slots(provider, 1, new Map(), first);
      await provider.enqueueForOrchestrator(start(startsGoAhead), ABSENT);
      await acked;
    }
    expect(await transactions()).toEqual([["message"], ["event"], ["message"], ["event"]]);
  });

  test("go together once a hundred have begun, but for those that are stored first all the same", async () => {
    const { database } = await open();
    const provider = await database.provider({ clock: STOPPED });
    const startOne = async (id: string): Promise<void> => {
      const [acked] = await slots(provider, 1, new Map(), (name) => ({ events: [started(name)], metadata: NAMED }));
      await provider.enqueueForOrchestrator(start(id), ABSENT);
      await acked;
    };
    for (let n = 0; n < 100; n += 1) await startOne(`before-${n}`);
    const transactions = await watchTransactions(database);
    for (let n = 0; n < 70; n += 1) await startOne(`after-${n}`);

    const stored = (await transactions()).filter((what) => what.includes("message")).length;
    expect(stored).toBeLessThanOrEqual(64);
    expect(await count(database, "history")).toBe(170);
  });
});

describe.skipIf(URL === undefined)("a beginning", () => {
  test("is none of what has begun elsewhere: the turn is refused, and who asked for it hears so", async () => {
    const { database, provider } = await open();
    const other = await database.provider(AHEAD);
    await begin(other, "a", { activities: [2] });
    const [acked] = await slots(provider, 1, new Map(), first);
    const refused = expect(acked).rejects.toMatchObject(LOCK_LOST);

    expect(await provider.enqueueForOrchestrator(start("a"), ABSENT)).toBe("exists");
    await refused;
    expect(await provider.read("a")).toEqual([started("a"), scheduled("a", 2)]);
    expect(await count(database, "messages")).toBe(0);
  });

  test("is not tried of what has begun here, or has ended here", async () => {
    const { provider } = await open();
    const [acked] = await slots(provider, 1, new Map(), (id) => ({
      events: [started(id), event(id, 2, { type: "OrchestrationCompleted", output: "1" })],
      metadata: { ...NAMED, status: "Completed", output: "1" },
    }));
    await provider.enqueueForOrchestrator(start("a"), ABSENT);
    await acked;
    const handed: string[] = [];
    await slots(provider, 1, new Map(), (id) => {
      handed.push(id);
      return first(id);
    });

    expect(await provider.enqueueForOrchestrator(start("a"), ABSENT)).toBe("exists");
    expect(handed).toEqual([]);
  });

  test("and a start that others are storing: whoever comes second hears that it exists", async () => {
    const { database, provider } = await open();
    const other = await database.provider({ clock: STOPPED });
    const [acked] = await slots(provider, 1, new Map(), first);
    const refused = expect(acked).rejects.toMatchObject(LOCK_LOST);
    const rival = await database.rival();
    await rival.query("LOCK TABLE {schema}.messages IN SHARE MODE");
    const stored = other.enqueueForOrchestrator(start("a"), ABSENT);
    await database.untilBlockedBy(rival);
    const begun = provider.enqueueForOrchestrator(start("a"), ABSENT);
    await database.untilWaiting(2);
    await rival.rollback();

    expect([await stored, await begun]).toEqual(["enqueued", "exists"]);
    await refused;
    expect((await takeTurn(other)).item.messages).toEqual([start("a")]);
  });

  test("and a start that comes while it is being committed: whoever comes second hears that it exists", async () => {
    const { database, provider } = await open();
    const other = await database.provider({ clock: STOPPED });
    const [acked] = await slots(provider, 1, new Map(), first);
    const rival = await database.rival();
    await rival.query("LOCK TABLE {schema}.history IN SHARE MODE");
    const begun = provider.enqueueForOrchestrator(start("a"), ABSENT);
    await database.untilBlockedBy(rival);
    const second = other.enqueueForOrchestrator(start("a"), ABSENT);
    await database.untilWaiting(2);
    await rival.rollback();

    expect([await begun, await second]).toEqual(["enqueued", "exists"]);
    await acked;
    expect(await count(database, "messages")).toBe(0);
    expect(await count(database, "schedule")).toBe(0);
  });

  test("keeps a message that is sent meanwhile: it is handed out afterwards", async () => {
    const { database, provider } = await open();
    const other = await database.provider({ clock: STOPPED });
    const [acked] = await slots(provider, 1, new Map(), first);
    const rival = await database.rival();
    await rival.query("LOCK TABLE {schema}.history IN SHARE MODE");
    const begun = provider.enqueueForOrchestrator(start("a"), ABSENT);
    await database.untilBlockedBy(rival);
    const sent = other.enqueueForOrchestrator(raised("a"));
    await database.untilWaiting(2);
    await rival.rollback();
    await Promise.all([begun, acked, sent]);

    const { item } = await takeTurn(other);
    expect(item).toMatchObject({ instance: "a", messages: [raised("a")], history: [started("a"), scheduled("a", 2)] });
  });

  test("is none where a message has run ahead of it: both are handed out together", async () => {
    const { database, provider } = await open();
    const other = await database.provider({ clock: STOPPED });
    await other.enqueueForOrchestrator(raised("a"));
    expect(await fetchTurn(other)).toBeNull();
    const ends = await slots(provider, 1, new Map(), first);
    const refused = expect(ends[0]).rejects.toMatchObject(LOCK_LOST);

    expect(await provider.enqueueForOrchestrator(start("a"), ABSENT)).toBe("enqueued");
    await refused;
    expect((await takeTurn(other)).item.messages).toEqual([raised("a"), start("a")]);
  });

  test("comes with turns of locked instances, and with steps; one that is refused is refused alone", async () => {
    const { database, provider } = await open();
    const other = await database.provider({ clock: STOPPED });
    await begin(other, "begun", { activities: [2] });
    const warm = new Map<string, string>();
    for (const id of ["s", "t"]) warm.set(id, await begin(provider, id, { activities: [2] }));
    const works = [await takeWork(provider), await takeWork(provider), await takeWork(provider)];
    await provider.enqueueForOrchestrator(start("locked"));
    const locked = await takeTurn(provider);
    const ends = await slots(provider, 6, warm, (id) => (warm.has(id) ? doneEvent(id) : first(id)));
    await other.enqueueForOrchestrator(raised("t")); // Which makes a message of its step.

    const ids = ["new-1", "begun", "new-2"];
    const outcomes = await Promise.all([
      ...ids.map((id) => provider.enqueueForOrchestrator(start(id), ABSENT)),
      ...works.flatMap(({ lockToken, item }) =>
        item.instance === "begun" ? [] : [provider.ackWorkItem(lockToken, done(item.instance, 2))],
      ),
      provider.ackOrchestrationItem(locked.lockToken, turn(first("locked"))),
    ]);
    expect(outcomes.slice(0, 3)).toEqual(["enqueued", "exists", "enqueued"]);
    for (const id of ["new-1", "new-2", "locked", "begun"]) {
      expect(await provider.read(id)).toEqual([started(id), scheduled(id, 2)]);
    }
    expect(await provider.read("s")).toHaveLength(3);
    expect(ends).toHaveLength(6);
  });

  test("and others of the same names, at the same time and in any order: each begins once, and nobody waits in a circle", async () => {
    const { database, provider } = await open();
    const other = await database.provider(AHEAD);
    const third = await database.provider({ clock: STOPPED });
    const stopped = new AbortController();
    const { signal } = stopped;
    const slot = async (from: PostgresProvider): Promise<void> => {
      while (!signal.aborted) {
        const locked = await from.fetchOrchestrationItem({ ...POLL, signal });
        if (locked === null) continue;
        await from.ackOrchestrationItem(locked.lockToken, turn(first(locked.item.instance))).catch((error: unknown) => {
          expect(error).toMatchObject(LOCK_LOST);
        });
      }
    };
    const working = [provider, other].flatMap((each) => Array.from({ length: 12 }, () => slot(each)));
    for (let round = 0; round < 20; round += 1) {
      const ids = Array.from({ length: 12 }, (_, n) => `${round}-${(n * 7 + round) % 12}`);
      const asked = [provider, other, third].map((each, place) => {
        const order = place === 0 ? ids : place === 1 ? [...ids].reverse() : [...ids].sort();
        return Promise.all(
          order.map(async (id) => [id, await each.enqueueForOrchestrator(start(id), ABSENT)] as const),
        );
      });
      const told = (await Promise.all(asked)).flat();
      for (const id of ids) {
        const outcomes = told.filter(([name]) => name === id).map(([, outcome]) => outcome);
        expect(outcomes.toSorted()).toEqual(["enqueued", "exists", "exists"]);
      }
    }
    stopped.abort();
    await Promise.all(working);
    const [twice] = await database.query<{ readonly n: number }>(
      `SELECT count(*) AS n FROM (
         SELECT 1 FROM {schema}.history WHERE event_type = 'OrchestrationStarted' GROUP BY instance_id HAVING count(*) > 1
       ) AS x`,
    );
    expect(twice!.n).toBe(0);
  });
});
