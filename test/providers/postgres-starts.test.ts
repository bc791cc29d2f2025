// Starts that nobody waits for are a statement of their own. What they promise, and what they leave behind, does not change by that.

import { describe, expect, onTestFinished, test } from "vitest";
import type { Provider } from "../../src/provider/provider.js";
import { done, raised, start, started } from "../../src/provider-tests/builders.js";
import { create, fetchTurn, takeTurn, takeWork } from "../../src/provider-tests/steps.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { OwnDatabase } from "./postgres-rivals.js";
import { begin, doneEvent, STOPPED, slots } from "./postgres-slots.js";

const URL = process.env.DUROXIDE_TEST_PG_URL ?? "";
const IF_ABSENT = { ifAbsent: true };
const NAMES = Array.from({ length: 10 }, (_, place) => `instance-${place}`);

async function open() {
  const database = await OwnDatabase.open(URL);
  const clock = new VirtualClock();
  onTestFinished(() => database.deadlocks().then((deadlocks) => expect(deadlocks).toBe(0)));
  return { database, clock, provider: await database.provider({ clock }) };
}

function startAll(provider: Provider, names: readonly string[]) {
  return Promise.all(names.map((name) => provider.enqueueForOrchestrator(start(name), IF_ABSENT)));
}

/** Counts how often starts are tried as new ones: those that are undone, too. */
async function countTried(database: OwnDatabase): Promise<() => Promise<number>> {
  await database.query("CREATE SEQUENCE {schema}.tried");
  await database.query("ALTER FUNCTION {schema}.send_starts RENAME TO send_starts_itself");
  await database.query(`
    CREATE FUNCTION {schema}.send_starts(p_now bigint, p_ids text[], p_items text[]) RETURNS boolean LANGUAGE plpgsql AS $$
    BEGIN PERFORM nextval('{schema}.tried'); RETURN {schema}.send_starts_itself(p_now, p_ids, p_items); END $$`);
  return async () => {
    const [row] = await database.query<{ readonly count: number }>(
      "SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS count FROM {schema}.tried",
    );
    return row!.count;
  };
}

/** What there may be of an instance before it is started. */
const THERE: readonly [what: string, make: (provider: Provider, name: string) => Promise<unknown>, is: string][] = [
  ["a start of it", (provider, name) => provider.enqueueForOrchestrator(start(name), IF_ABSENT), "exists"],
  ["itself", create, "exists"],
  ["an execution", (provider, name) => provider.appendWithExecution(name, 1, [started(name)]), "exists"],
  ["a message that ran ahead", (provider, name) => provider.enqueueForOrchestrator(raised(name)), "enqueued"],
];

describe.skipIf(URL === "")("starts that nobody waits for", () => {
  test("leave the same rows as any that are sent with others", async () => {
    const { database, provider } = await open();
    const tried = await countTried(database);
    const schedule = `
      SELECT instance_id, ready_at, place, place_order - min(place_order) OVER () AS place_order, lock_token, locked_until, attempts,
             batch
      FROM {schema}.schedule WHERE instance_id = ANY ($1) ORDER BY place, place_order`;
    const messages = `
      SELECT id - min(id) OVER () AS id, instance_id, due_at, visible_at, kind, parent_instance_id, timer_execution_id, timer_id,
             work_item
      FROM {schema}.messages WHERE instance_id = ANY ($1) ORDER BY id`;
    const rows = async () => ({
      schedule: await database.query(schedule, [NAMES]),
      messages: await database.query(messages, [NAMES]),
    });

    await startAll(provider, NAMES);
    const alone = await rows();
    expect(await tried()).toBe(1);
    await database.query("TRUNCATE {schema}.schedule, {schema}.messages");
    await Promise.all([startAll(provider, NAMES), provider.enqueueForOrchestrator(raised("other"))]);

    expect(await tried()).toBe(1);
    expect(await rows()).toEqual(alone);
    expect(alone.messages).toHaveLength(NAMES.length);
  });

  test("are handed out in the order in which they came, not in that of their names", async () => {
    const { provider } = await open();
    const names = ["m", "z", "a", "\u{1f600}", "\uffff", '"quoted', "nul\0"];

    await startAll(provider, names);

    for (const name of names) expect((await takeTurn(provider)).item.instance).toBe(name);
    expect(await fetchTurn(provider)).toBeNull();
  });

  test.each(THERE)("are sent once, though there is %s of one of them", async (_, make, is) => {
    const { database, provider } = await open();
    await make(provider, "b");
    const tried = await countTried(database);

    expect(await startAll(provider, ["a", "b", "c"])).toEqual(["enqueued", is, "enqueued"]);

    expect(await tried()).toBe(1);
    const starts = "SELECT instance_id FROM {schema}.messages WHERE kind = 'start' AND instance_id <> 'b' ORDER BY id";
    expect(await database.query(starts)).toEqual([{ instance_id: "a" }, { instance_id: "c" }]);
    const ofB = await database.query("SELECT 1 FROM {schema}.messages WHERE kind = 'start' AND instance_id = 'b'");
    expect(ofB).toHaveLength(is === "enqueued" || make === THERE[0]?.[1] ? 1 : 0);
  });

  test("are tried as new ones no more once one was not, and again after a while", async () => {
    const { database, provider } = await open();
    await startAll(provider, ["there"]);
    const tried = await countTried(database);

    expect(await startAll(provider, ["there", "new"])).toEqual(["exists", "enqueued"]);
    for (let nr = 0; nr < 32; nr += 1) await startAll(provider, [`one-${nr}`]);
    expect(await tried()).toBe(1);

    await startAll(provider, ["last"]);
    expect(await tried()).toBe(2);
  });

  test("wait for whoever has begun one of them, and hear that it exists", async () => {
    const { database, provider } = await open();
    const rival = await database.rival();
    await rival.query(
      "INSERT INTO {schema}.schedule (instance_id, ready_at, place, place_order) VALUES ('b', 1, 1, 1)",
    );
    await rival.query("DELETE FROM {schema}.schedule");
    await rival.query("INSERT INTO {schema}.executions (instance_id, execution_id, started_at) VALUES ('b', 1, 1)");

    const outcomes = startAll(provider, ["a", "b", "c"]);
    await database.untilBlockedBy(rival);
    await rival.commit();

    expect(await outcomes).toEqual(["enqueued", "exists", "enqueued"]);
    const left = await database.query("SELECT instance_id FROM {schema}.schedule ORDER BY 1");
    expect(left).toEqual([{ instance_id: "a" }, { instance_id: "c" }]);
  });

  test("of the same instances, by several at once and in any order: each is sent by one, and nobody waits in a circle", async () => {
    const { database, clock, provider } = await open();
    const providers = [provider, await database.provider({ clock }), await database.provider({ clock })];
    for (let round = 0; round < 20; round += 1) {
      const names = NAMES.map((name) => `${round}-${name}`);
      const orders = [names, names.toReversed(), [...names.slice(5), ...names.slice(0, 5)]];

      const outcomes = await Promise.all(
        providers.map(async (one, nr) => {
          const ofOrder = await startAll(one, orders[nr]!);
          return new Map(orders[nr]!.map((name, place) => [name, ofOrder[place]]));
        }),
      );

      for (const name of names) {
        expect(outcomes.map((of) => of.get(name)).sort()).toEqual(["enqueued", "exists", "exists"]);
      }
    }
    const [row] = await database.query("SELECT count(*) AS starts FROM {schema}.messages");
    expect(row).toEqual({ starts: 20 * NAMES.length });
  });

  test("are not tried where there are none: by whoever only looks for locks that are over, beside a step", async () => {
    const database = await OwnDatabase.open(URL);
    let now = STOPPED.now();
    const provider = await database.provider({ clock: { ...STOPPED, now: () => now } });
    const warm = new Map([["a", await begin(provider, "a", { activities: [2] })]]);
    await provider.enqueueForOrchestrator(start("held"));
    await takeTurn(provider, { lockTimeoutMs: 100 });
    const work = await takeWork(provider);
    const [end] = await slots(provider, 1, warm, doneEvent);
    const tried = await countTried(database);
    now += 1_000;

    await provider.ackWorkItem(work.lockToken, done("a", 2));

    expect(await end).toMatchObject({ instance: "a" });
    await provider.close(); // Then all that was on its way is over.
    expect(await tried()).toBe(0);
  });

  test("that are delayed, or whose instance need not be absent, are none of them", async () => {
    const { database, provider } = await open();
    const tried = await countTried(database);

    await provider.enqueueForOrchestrator(start("later"), { ifAbsent: true, delayMs: 1_000 });
    await provider.enqueueForOrchestrator(start("any"));
    await provider.enqueueForOrchestrator(start("child", { parentInstance: "parent", parentId: 2 }), IF_ABSENT);

    expect(await tried()).toBe(0);
    const rows =
      "SELECT instance_id, visible_at > due_at AS is_later, parent_instance_id FROM {schema}.messages ORDER BY id";
    expect(await database.query(rows)).toEqual([
      { instance_id: "later", is_later: true, parent_instance_id: null },
      { instance_id: "any", is_later: false, parent_instance_id: null },
      { instance_id: "child", is_later: false, parent_instance_id: "parent" },
    ]);
  });
});
