// Steps share statements, rows and line with others. Nobody waits for a stranger for longer than he must, and each hears of his own.

import { describe, expect, onTestFinished, test } from "vitest";
import { ProviderError } from "../../src/errors.js";
import type { TurnCommit } from "../../src/provider/provider.js";
import {
  act,
  completed,
  done,
  event,
  raised,
  scheduled,
  start,
  supports,
  turn,
} from "../../src/provider-tests/builders.js";
import { fetchTurn, takeTurn, takeWork } from "../../src/provider-tests/steps.js";
import { PostgresProvider } from "../../src/providers/postgres/index.js";
import { ServerProxy } from "./postgres-proxy.js";
import { OwnDatabase, type Rival } from "./postgres-rivals.js";
import { begin, doneEvent, POLL, round, type SlotEnd, STOPPED, slots } from "./postgres-slots.js";

const URL = process.env.DUROXIDE_TEST_PG_URL;
const DONE = { type: "ActivityCompleted", result: "1" } as const;
/** Locks the row of the instance for as long as it removes. */
const PRUNE_X = "SELECT * FROM {schema}.prune_executions('x', 1, NULL)";

/** What has become of what a slot was handed, in words. */
async function told(end: Promise<SlotEnd | null>): Promise<string> {
  return end.then(
    (taken) => (taken === null ? "nothing" : `${taken.instance} committed`),
    (error: unknown) => (error instanceof ProviderError ? error.kind : String(error)),
  );
}

/** Its step waits until this one lets go. */
async function holdUp(database: OwnDatabase, id: string): Promise<Rival> {
  const rival = await database.rival();
  await rival.query("SELECT 1 FROM {schema}.activities WHERE instance_id = $1 FOR UPDATE", [id]);
  return rival;
}

async function open() {
  const database = await OwnDatabase.open(URL!);
  return { database, provider: await database.provider({ clock: STOPPED }) };
}

async function openByProxy() {
  const database = await OwnDatabase.open(URL!);
  const proxy = await ServerProxy.to(database.url);
  const provider = await PostgresProvider.open(proxy.url, { clock: STOPPED, wakeUps: "local", schema: "duroxide" });
  onTestFinished(() => provider.close());
  return { database, proxy, provider };
}

describe.skipIf(URL === undefined)("an instance whose row somebody has locked for long", () => {
  test("keeps no other one from whoever looks", async () => {
    const { database, provider } = await open();
    for (const id of ["x", "y"]) await begin(provider, id);
    for (const id of ["x", "y"]) await provider.enqueueForOrchestrator(raised(id));
    const rival = await database.rival();
    await rival.query(PRUNE_X);

    expect((await fetchTurn(provider))?.item.instance).toBe("y");

    await rival.rollback();
    expect((await fetchTurn(provider))?.item).toMatchObject({ instance: "x", messages: [raised("x")] });
  });

  test("keeps no others from those who wait for more", async () => {
    const database = await OwnDatabase.open(URL!);
    const provider = await database.provider();
    for (const id of ["x", "y", "z"]) await begin(provider, id);
    for (const id of ["x", "y", "z"]) await provider.enqueueForOrchestrator(raised(id));
    const rival = await database.rival();
    await rival.query(PRUNE_X);

    const got = await Promise.all([1, 2].map(() => provider.fetchOrchestrationItem(POLL)));

    expect(got.map((locked) => locked?.item.instance).sort()).toEqual(["y", "z"]);
    await rival.rollback();
    expect((await fetchTurn(provider))?.item.instance).toBe("x");
  });

  test("keeps nobody from sending to it and to others", async () => {
    const { database, provider } = await open();
    for (const id of ["x", "y"]) await begin(provider, id);
    const ends = await slots(provider, 2, new Map());
    const rival = await database.rival();
    await rival.query(PRUNE_X);

    await Promise.all(["x", "y"].map((id) => provider.enqueueForOrchestrator(raised(id))));

    expect(await Promise.race(ends.map(told))).toBe("y committed");
    await rival.rollback();
    expect((await Promise.all(ends.map(told))).sort()).toEqual(["x committed", "y committed"]);
  });

  test("keeps no others from another process, where it is a step that waits", async () => {
    const { database, provider } = await open();
    const other = await database.provider({ clock: STOPPED });
    const warm = new Map([["x", await begin(provider, "x", { activities: [2] })]]);
    await begin(provider, "y");
    const work = await takeWork(provider);
    await slots(provider, 1, warm, doneEvent);
    const rival = await database.rival();
    await rival.query("INSERT INTO {schema}.history VALUES ('x', 1, 3, 'x', 'x')");
    const sent = provider.ackWorkItem(work.lockToken, done("x", 2));
    await database.untilBlockedBy(rival);
    for (const id of ["x", "y"]) await other.enqueueForOrchestrator(raised(id));

    expect((await fetchTurn(other))?.item.instance).toBe("y");

    await rival.rollback();
    await sent;
    expect((await fetchTurn(other))?.item).toMatchObject({ instance: "x", messages: [raised("x")] });
  });
});

describe.skipIf(URL === undefined)("a step", () => {
  test("is answered though another one of its batch waits, in another statement", async () => {
    const { database, provider } = await open();
    const warm = new Map<string, string>();
    for (const id of ["a", "b"]) warm.set(id, await begin(provider, id, { activities: [2] }));
    const works = [await takeWork(provider), await takeWork(provider)];
    const big = "x".repeat(3_000_000); // Two of these do not fit into one statement.
    const ends = await slots(provider, 2, warm, (id) => ({
      events: [event(id, 3, { type: "ActivityCompleted", result: big }, { sourceEventId: 2 }), scheduled(id, 4)],
      workerItems: id === "a" ? [act(id, 4)] : [],
    }));
    const worker = provider.fetchWorkItem(POLL);
    await round();
    const rival = await holdUp(database, "b");

    const heard: string[] = [];
    const sent = works.map(async ({ lockToken, item }) => {
      await provider.ackWorkItem(lockToken, done(item.instance, 2));
      heard.push(`outcome of ${item.instance}`);
    });
    for (const end of ends) void told(end).then((what) => heard.push(what));
    const next = await worker;

    expect(next?.item).toMatchObject({ instance: "a", id: 4 });
    expect(heard).toEqual(["outcome of a", "a committed"]);
    await database.untilBlockedBy(rival);
    await rival.rollback();
    await Promise.all([...sent, ...ends]);
  });

  test("that is refused becomes a message at once, though another one of its batch waits, in another statement", async () => {
    const { database, provider } = await open();
    const other = await database.provider({ clock: STOPPED });
    const warm = new Map<string, string>();
    for (const id of ["a", "b"]) warm.set(id, await begin(provider, id, { activities: [2] }));
    const works = [await takeWork(provider), await takeWork(provider)];
    const big = "x".repeat(3_000_000); // Two of these do not fit into one statement.
    const ends = await slots(provider, 2, warm, (id) => ({
      events: [event(id, 3, { type: "ActivityCompleted", result: big }, { sourceEventId: 2 })],
    }));
    await other.enqueueForOrchestrator(raised("a")); // Nobody here hears of it.
    const rival = await holdUp(database, "b");

    const [ofA, ofB] = ["a", "b"].map((id) => {
      const { lockToken } = works.find(({ item }) => item.instance === id)!;
      return provider.ackWorkItem(lockToken, done(id, 2));
    });
    await ofA;

    expect(await Promise.race(ends.map(told))).toBe("lock-lost");
    const sent = await database.query("SELECT kind FROM {schema}.messages WHERE instance_id = 'a' ORDER BY id");
    expect(sent).toHaveLength(2);
    await database.untilBlockedBy(rival);
    await rival.rollback();
    await Promise.all([ofB, ...ends.map(told)]);
  });

  test("that is refused, and refused as a message, too, has nothing sent again of which nobody knows", async () => {
    const { database, proxy, provider } = await openByProxy();
    const other = await database.provider({ clock: STOPPED });
    const warm = new Map([["a", await begin(provider, "a", { activities: [2] })]]);
    const work = await takeWork(provider);
    await slots(provider, 1, warm, doneEvent);
    await other.enqueueForOrchestrator(raised("a")); // Nobody here hears of it.
    await database.query("CREATE SEQUENCE {schema}.refusals");
    await database.query(`CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN PERFORM nextval('{schema}.refusals'); RAISE check_violation; END $$`);
    await database.query(`CREATE TRIGGER refuse BEFORE INSERT ON {schema}.messages
      FOR EACH ROW WHEN (NEW.instance_id = 'a') EXECUTE FUNCTION {schema}.refuse()`);
    const rival = await database.rival();
    await rival.query(
      "INSERT INTO {schema}.schedule (instance_id, ready_at, place, place_order) VALUES ('new', 2000000, 2000000, 1)",
    );

    const refused = provider.ackWorkItem(work.lockToken, done("a", 2)).catch((error: unknown) => error);
    const unknown = provider.enqueueForOrchestrator(start("new")).catch((error: unknown) => error);
    await database.untilBlockedBy(rival);
    while ((await database.query("SELECT 1 FROM {schema}.refusals WHERE is_called")).length === 0);
    for (let trips = 0; trips < 5; trips += 1) await provider.getInstanceStatus("a"); // The refusal has come by then.
    proxy.cut();

    expect(await unknown).toMatchObject({ kind: "transient", operation: "enqueueForOrchestrator" });
    expect(await refused).toBeInstanceOf(ProviderError);
    await rival.rollback();
  });

  test("does not keep a turn of its batch waiting that is none, once that has its lock", async () => {
    const { database, provider } = await open();
    const warm = new Map<string, string>();
    for (const id of ["a", "s"]) warm.set(id, await begin(provider, id, { activities: [2] }));
    const works = [await takeWork(provider), await takeWork(provider)];
    const ends = await slots(provider, 2, warm, (id) => ({
      ...doneEvent(id),
      orchestratorItems: id === "s" ? [raised("elsewhere")] : [],
    }));
    const [ofA, ofS] = [await holdUp(database, "a"), await holdUp(database, "s")];
    const sent = works.map(({ lockToken, item }) => provider.ackWorkItem(lockToken, done(item.instance, 2)));
    await database.untilWaiting(2); // The step, and what stores the other outcome.
    await ofS.rollback();

    expect(await Promise.race(ends.map(told))).toBe("s committed");
    await ofA.rollback();
    await Promise.all([...sent, ...ends]);
  });

  test("that is lost with its connection is told to the sender as his own call", async () => {
    const { database, proxy, provider } = await openByProxy();
    const warm = new Map([["a", await begin(provider, "a", { activities: [2] })]]);
    const work = await takeWork(provider);
    await slots(provider, 1, warm, doneEvent);
    const rival = await holdUp(database, "a");
    const sent = provider.ackWorkItem(work.lockToken, done("a", 2));
    const heard = expect(sent).rejects.toMatchObject({
      kind: "transient",
      operation: "ackWorkItem",
      message: expect.stringMatching(/^ackWorkItem: /),
    });
    await database.untilBlockedBy(rival);

    proxy.cut();

    await heard;
    await rival.rollback();
  });

  test("that is lost with its connection takes nobody else with it: whoever is refused for good hears that", async () => {
    const { database, provider } = await open();
    const warm = new Map([["a", await begin(provider, "a", { activities: [2] })]]);
    const work = await takeWork(provider);
    await slots(provider, 1, warm, doneEvent);
    const rival = await holdUp(database, "a");
    const long = Array.from({ length: 400 }, (_, n) => Math.sin(n).toString(36)).join(""); // For an index.
    const lost = expect(provider.ackWorkItem(work.lockToken, done("a", 2))).rejects.toMatchObject({
      kind: "transient",
    });
    const refused = expect(provider.enqueueForOrchestrator(start(long))).rejects.toMatchObject({
      kind: "invalid",
      operation: "enqueueForOrchestrator",
    });
    const innocent = provider.enqueueForOrchestrator(start("innocent"));

    // What is certainly undone is sent once more.
    for (const _ of [1, 2]) {
      await database.untilBlockedBy(rival);
      await database.query(
        "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))",
        [rival.pid],
      );
    }

    await Promise.all([lost, refused]);
    expect(await innocent).toBe("enqueued");
    await rival.rollback();
  });

  test.each([true, false])("is one though somebody is in line whom nobody here can replay: %s", async (isInLine) => {
    const { database, provider } = await openByProxy();
    const wants = { capability: supports("1.0.0..2.0.0") };
    await begin(provider, "other", { metadata: { pinnedVersion: { major: 9, minor: 0, patch: 0 } } });
    const warm = new Map([["a", await begin(provider, "a", { activities: [2], wants })]]);
    if (isInLine) await provider.enqueueForOrchestrator(raised("other"));
    const before = await messagesDrawn(database);
    for (let n = 2; n < 12; n += 2) {
      const work = await takeWork(provider);
      const next = () => ({
        events: [event("a", n + 1, DONE, { sourceEventId: n }), scheduled("a", n + 2)],
        workerItems: [act("a", n + 2)],
      });
      const [end] = await slots(provider, 1, warm, next, wants);
      await provider.ackWorkItem(work.lockToken, done("a", n));
      warm.set("a", (await end)!.lockToken);
    }

    expect(await messagesDrawn(database)).toEqual(before);
  });

  test.each([true, false])(
    "and a turn that begins an execution and says nothing of it: both ends count, as a step: %s",
    async (isStep) => {
      const { provider } = await open();
      const warm = new Map([["b", await begin(provider, "b", { activities: [2] })]]);
      const end: Partial<TurnCommit> = {
        events: [event("b", 3, DONE, { sourceEventId: 2 }), completed("b", 4)],
        metadata: { status: "Completed", output: "done" },
      };
      const work = await takeWork(provider);
      await provider.enqueueForOrchestrator(start("new"));
      const unnamed = await takeTurn(provider);
      if (isStep) {
        const ends = await slots(provider, 1, warm, () => end);
        const sent = provider.ackWorkItem(work.lockToken, done("b", 2));
        await round();
        await round();
        await Promise.all([provider.ackOrchestrationItem(unnamed.lockToken, turn()), sent, ...ends]);
      } else {
        await provider.ackWorkItem(work.lockToken, done("b", 2));
        const { lockToken } = await takeTurn(provider);
        const acks = [unnamed.lockToken, lockToken].map((token) =>
          provider.ackOrchestrationItem(token, turn(token === lockToken ? end : {})),
        );
        await Promise.all(acks);
      }

      expect(await provider.getInstanceStatus("b")).toMatchObject({ status: "Completed", output: "done" });
    },
  );
});

async function messagesDrawn(database: OwnDatabase): Promise<unknown> {
  return database.query("SELECT last_value FROM {schema}.message_ids");
}
