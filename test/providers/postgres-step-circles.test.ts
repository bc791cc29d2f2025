// Steps lock rows of instances, activities and sessions, and so do others. Whatever comes together, nobody waits in a circle: here
// the server would notice one only after minutes, so that whoever gets into one is not answered in time.

import { describe, expect, test } from "vitest";
import type { LockedWorkItem } from "../../src/provider/provider.js";
import { done, event, NAMED, raised, started, turn } from "../../src/provider-tests/builders.js";
import { takeTurn, takeWork } from "../../src/provider-tests/steps.js";
import type { PostgresProvider } from "../../src/providers/postgres/index.js";
import { OwnDatabase } from "./postgres-rivals.js";
import { begin, doneEvent, round, STOPPED, slots } from "./postgres-slots.js";

const URL = process.env.DUROXIDE_TEST_PG_URL;
const SESSION = { ownerId: "node", lockTimeoutMs: 60_000 };
const NO_CIRCLES = `DO $$ BEGIN
  EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = ''10min''', current_database());
END $$`;

async function open(): Promise<OwnDatabase> {
  const database = await OwnDatabase.open(URL!);
  await database.query(NO_CIRCLES);
  return database;
}

/** With one activity, which is taken. */
async function beginAndWork(provider: PostgresProvider, id: string, sessionId?: string) {
  const lockToken = await begin(provider, id, { activities: [2], sessionId });
  return { lockToken, work: await takeWork(provider, { session: SESSION }) };
}

async function holdActivitiesOf(database: OwnDatabase, instance: string) {
  const rival = await database.rival();
  await rival.query(`SELECT 1 FROM {schema}.activities WHERE instance_id = '${instance}' FOR UPDATE`);
  return rival;
}

describe.skipIf(URL === undefined)("steps wait in no circle with", () => {
  test("whoever hands out instances of which it believes to know some, beside others", async () => {
    const database = await open();
    const [one, two] = [await database.provider({ clock: STOPPED }), await database.provider({ clock: STOPPED })];
    const warmOfOne = new Map([
      ["b", await begin(one, "b", { activities: [2] })],
      ["m", await begin(one, "m", { activities: [2] })],
    ]);
    const [b, m] = [await takeWork(one), await takeWork(one)];
    const warmOfTwo = new Map([["z", await begin(two, "z", { activities: [2, 3] })]]);
    const [first, second] = [await takeWork(one), await takeWork(two)];
    await one.enqueueForOrchestrator(raised("z"));
    const { lockToken } = await takeTurn(one);
    const signalled = event("z", 4, { type: "ExternalEvent", name: "signal", data: "{}" });
    await one.ackOrchestrationItem(lockToken, turn({ events: [signalled] }));
    warmOfOne.set("z", lockToken);
    await slots(one, 3, warmOfOne, (instance) => doneEvent(instance, 5));
    // One that sends something is no step: it is handed out by the statement that stores what it answers.
    const sends = { orchestratorItems: [raised("elsewhere")] };
    await slots(two, 2, warmOfTwo, (instance) => ({ ...doneEvent(instance, 7), ...(instance === "z" ? sends : {}) }));
    const rival = await database.rival();
    await rival.query("SELECT 1 FROM {schema}.instances WHERE instance_id = 'm' FOR UPDATE");

    const steps = [b, m, first].map(({ lockToken: token, item }) => one.ackWorkItem(token, done(item.instance, 2)));
    await database.untilBlockedBy(rival);
    // They wait for nobody: what a step has locked is passed over.
    await Promise.all([two.ackWorkItem(second.lockToken, done("z", 3)), two.enqueueForOrchestrator(raised("b"))]);
    await rival.rollback();

    await Promise.all(steps);
  });

  test("turns that say anew who their instance is, beside others", async () => {
    const database = await open();
    const [one, two] = [await database.provider({ clock: STOPPED }), await database.provider({ clock: STOPPED })];
    const warm = new Map<string, string>();
    for (const id of ["x", "y"]) warm.set(id, await begin(one, id, { activities: [2] }));
    const works = [await takeWork(one), await takeWork(one)];
    const acked = await slots(one, 2, warm, (instance) => doneEvent(instance));
    for (const id of ["x", "y"]) await two.enqueueForOrchestrator(raised(id));
    const [x, y] = [await takeTurn(two), await takeTurn(two)];
    const rival = await database.rival();
    await rival.query("SELECT 1 FROM {schema}.instances WHERE instance_id = 'x' FOR UPDATE");

    const steps = works.map(({ lockToken, item }) => one.ackWorkItem(lockToken, done(item.instance, 2)));
    const refused = Promise.allSettled(acked);
    await database.untilBlockedBy(rival);
    const turns = [
      two.ackOrchestrationItem(
        y.lockToken,
        turn({ executionId: 2, events: [started("y", { executionId: 2 })], metadata: NAMED }),
      ),
      two.ackOrchestrationItem(x.lockToken, turn({})),
    ];
    await database.untilWaiting(2);
    await rival.rollback();

    await Promise.all([...steps, ...turns, refused]);
  });

  test("outcomes of the same session that come with messages to their instances", async () => {
    const database = await open();
    const [one, two] = [await database.provider({ clock: STOPPED }), await database.provider({ clock: STOPPED })];
    const a = await beginAndWork(one, "a", "S");
    const y = await beginAndWork(two, "y", "S");
    const acked = await slots(one, 1, new Map([["a", a.lockToken]]), () => doneEvent("a"));
    await slots(two, 2, new Map(), () => ({}));
    const rival = await holdActivitiesOf(database, "a");

    const step = one.ackWorkItem(a.work.lockToken, done("a", 2));
    await database.untilBlockedBy(rival);
    const others = [two.ackWorkItem(y.work.lockToken, done("y", 2)), two.enqueueForOrchestrator(raised("a"))];
    await database.untilWaiting(2);
    await rival.rollback();

    await Promise.all([step, ...acked, ...others]);
  });

  test("activities that are done with and cancelled at the same time", async () => {
    const database = await open();
    const [one, two] = [await database.provider({ clock: STOPPED }), await database.provider({ clock: STOPPED })];
    const a = await beginAndWork(one, "a");
    const y = await beginAndWork(two, "y");
    await one.enqueueForOrchestrator(raised("y"));
    const turnOfY = await takeTurn(one);
    const [acked] = await slots(one, 1, new Map([["a", a.lockToken]]), () => doneEvent("a"));
    await slots(two, 2, new Map(), () => ({}));
    const rival = await holdActivitiesOf(database, "a");

    const step = one.ackWorkItem(a.work.lockToken, done("a", 2));
    const cancelled = cancelOf(one, turnOfY.lockToken, "y");
    await database.untilBlockedBy(rival);
    const met = expect(acked).rejects.toMatchObject({ kind: "lock-lost" }); // Somebody has sent to it.
    await Promise.all([two.ackWorkItem(y.work.lockToken, null), two.enqueueForOrchestrator(raised("a"))]);
    await rival.rollback();

    await Promise.all([step, met, cancelled]);
  });

  test.each([
    ["of one session", "S"],
    ["of none", undefined],
  ])("renewals of activities %s that a neighbour of the step cancels", async (_, sessionId) => {
    const database = await open();
    const provider = await database.provider({ clock: STOPPED });
    const y = await beginAndWork(provider, "y", sessionId);
    const a = await beginAndWork(provider, "a", sessionId);
    await provider.enqueueForOrchestrator(raised("y"));
    const turnOfY = await takeTurn(provider);
    const [acked] = await slots(provider, 1, new Map([["a", a.lockToken]]), () => doneEvent("a"));
    const rival = await database.rival();
    await rival.query("INSERT INTO {schema}.history VALUES ('a', 1, 3, 'x', 'x')"); // Whoever commits that waits for it.

    const step = provider.ackWorkItem(a.work.lockToken, done("a", 2));
    const cancelled = cancelOf(provider, turnOfY.lockToken, "y");
    await database.untilBlockedBy(rival);
    const renew = ({ lockToken }: LockedWorkItem) => provider.renewWorkItemLock(lockToken, 60_000);
    const renewed = Promise.allSettled([renew(y.work), renew(a.work)]);
    await database.untilWaiting(2);
    await rival.rollback();

    await Promise.all([step, acked, cancelled, renewed]);
    expect((await provider.read("a")).map(({ eventId }) => eventId)).toEqual([1, 2, 3]);
  });

  test("events that are appended beside all turns", async () => {
    const database = await open();
    const [one, two] = [await database.provider({ clock: STOPPED }), await database.provider({ clock: STOPPED })];
    const a = await beginAndWork(one, "a");
    const [acked] = await slots(one, 1, new Map([["a", a.lockToken]]), () => doneEvent("a"));
    const rival = await holdActivitiesOf(database, "a");

    const step = one.ackWorkItem(a.work.lockToken, done("a", 2));
    await database.untilBlockedBy(rival);
    const appended = two.appendWithExecution("a", 1, [event("a", 3, { type: "ExternalEvent", name: "s", data: "{}" })]);
    const refused = expect(appended).rejects.toMatchObject({ code: "DUROXIDE_PROVIDER" });
    await database.untilWaiting(2);
    await rival.rollback();

    await Promise.all([step, acked, refused]);
  });
});

/** A turn that cancels activity 2, committed with the next step. */
async function cancelOf(provider: PostgresProvider, lockToken: string, instance: string): Promise<void> {
  await round();
  await round();
  await provider.ackOrchestrationItem(
    lockToken,
    turn({ ...doneEvent(instance, 9), cancelledActivities: [{ instance, executionId: 1, id: 2 }] }),
  );
}
