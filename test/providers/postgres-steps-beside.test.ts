// Steps share statements, rows and line with others. Nobody waits for a stranger for longer than he must, and each hears of his own.

import { describe, expect, onTestFinished, test } from "vitest";
import { type Clock, systemClock } from "../../src/clock.js";
import { ProviderError } from "../../src/errors.js";
import type { FetchOrchestrationOptions, TurnCommit } from "../../src/provider/provider.js";
import {
  act,
  completed,
  done,
  event,
  NAMED,
  raised,
  scheduled,
  start,
  started,
  supports,
  turn,
} from "../../src/provider-tests/builders.js";
import { fetchTurn, takeTurn, takeWork } from "../../src/provider-tests/steps.js";
import { PostgresProvider } from "../../src/providers/postgres/index.js";
import { ServerProxy } from "./postgres-proxy.js";
import { OwnDatabase, type Rival } from "./postgres-rivals.js";

const URL = process.env.DUROXIDE_TEST_PG_URL;
const POLL = { lockTimeoutMs: 60_000, pollTimeoutMs: 600_000 };
const STOPPED: Clock = {
  now: () => 1_000_000,
  setTimer: (delayMs, callback) => systemClock.setTimer(delayMs, callback),
};
const DONE = { type: "ActivityCompleted", result: "1" } as const;
/** Locks the row of the instance for as long as it removes. */
const PRUNE_X = "SELECT * FROM {schema}.prune_executions('x', 1, NULL)";

interface Beginning {
  readonly activities?: readonly number[];
  readonly metadata?: TurnCommit["metadata"];
  readonly wants?: Partial<FetchOrchestrationOptions>;
}

/** An instance whose first turn has asked for these activities. Answers the token of that turn. */
async function begin(provider: PostgresProvider, id: string, beginning: Beginning = {}): Promise<string> {
  const { activities = [], metadata = {}, wants = {} } = beginning;
  await provider.enqueueForOrchestrator(start(id));
  const { lockToken } = await takeTurn(provider, wants);
  await provider.ackOrchestrationItem(
    lockToken,
    turn({
      events: [started(id), ...activities.map((n) => scheduled(id, n))],
      workerItems: activities.map((n) => act(id, n)),
      metadata: { ...NAMED, ...metadata },
    }),
  );
  return lockToken;
}

function round(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

/** Fetches that wait, and commit this of whatever they get. Each tells what has become of it, and by which token. */
async function slots(
  provider: PostgresProvider,
  count: number,
  warm: ReadonlyMap<string, string>,
  commitOf: (instance: string) => Partial<TurnCommit> = () => ({}),
  wants: Partial<FetchOrchestrationOptions> = {},
) {
  const ended = new AbortController();
  onTestFinished(() => ended.abort());
  const fetching = (signal: AbortSignal) => provider.fetchOrchestrationItem({ ...POLL, warm, ...wants, signal });
  const onlyLooks = new AbortController();
  const looked = fetching(onlyLooks.signal);
  onlyLooks.abort();
  expect(await looked).toBeNull();
  const ends = Array.from({ length: count }, async () => {
    const locked = await fetching(ended.signal);
    if (locked === null) return { what: "nothing", lockToken: "" };
    const { item, lockToken } = locked;
    const what = await provider.ackOrchestrationItem(lockToken, turn(commitOf(item.instance))).then(
      () => `${item.instance} committed`,
      (error: unknown) => `${item.instance} ${error instanceof ProviderError ? error.kind : error}`,
    );
    return { what, lockToken };
  });
  await round();
  return ends;
}

function stepOf(id: string): Partial<TurnCommit> {
  return { events: [event(id, 3, DONE, { sourceEventId: 2 })] };
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

    expect((await Promise.race(ends)).what).toBe("y committed");
    await rival.rollback();
    expect((await Promise.all(ends)).map(({ what }) => what).sort()).toEqual(["x committed", "y committed"]);
  });

  test("keeps no others from another process, where it is a step that waits", async () => {
    const { database, provider } = await open();
    const other = await database.provider({ clock: STOPPED });
    const warm = new Map([["x", await begin(provider, "x", { activities: [2] })]]);
    await begin(provider, "y");
    const work = await takeWork(provider);
    await slots(provider, 1, warm, stepOf);
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
    for (const end of ends) void end.then(({ what }) => heard.push(what));
    const next = await worker;

    expect(next?.item).toMatchObject({ instance: "a", id: 4 });
    expect(heard).toEqual(["outcome of a", "a committed"]);
    await database.untilBlockedBy(rival);
    await rival.rollback();
    await Promise.all([...sent, ...ends]);
  });

  test("does not keep a turn of its batch waiting that is none, once that has its lock", async () => {
    const { database, provider } = await open();
    const warm = new Map<string, string>();
    for (const id of ["a", "s"]) warm.set(id, await begin(provider, id, { activities: [2] }));
    const works = [await takeWork(provider), await takeWork(provider)];
    const ends = await slots(provider, 2, warm, (id) => ({
      ...stepOf(id),
      orchestratorItems: id === "s" ? [raised("elsewhere")] : [],
    }));
    const [ofA, ofS] = [await holdUp(database, "a"), await holdUp(database, "s")];
    const sent = works.map(({ lockToken, item }) => provider.ackWorkItem(lockToken, done(item.instance, 2)));
    await database.untilWaiting(2); // The step, and what stores the other outcome.
    await ofS.rollback();

    expect((await Promise.race(ends)).what).toBe("s committed");
    await ofA.rollback();
    await Promise.all([...sent, ...ends]);
  });

  test("that is lost with its connection is told to the sender as his own call", async () => {
    const { database, proxy, provider } = await openByProxy();
    const warm = new Map([["a", await begin(provider, "a", { activities: [2] })]]);
    const work = await takeWork(provider);
    await slots(provider, 1, warm, stepOf);
    const rival = await holdUp(database, "a");
    const sent = provider.ackWorkItem(work.lockToken, done("a", 2));
    const told = expect(sent).rejects.toMatchObject({
      kind: "transient",
      operation: "ackWorkItem",
      message: expect.stringMatching(/^ackWorkItem: /),
    });
    await database.untilBlockedBy(rival);

    proxy.cut();

    await told;
    await rival.rollback();
  });

  test("that is lost with its connection takes nobody else with it: whoever is refused for good hears that", async () => {
    const { database, provider } = await open();
    const warm = new Map([["a", await begin(provider, "a", { activities: [2] })]]);
    const work = await takeWork(provider);
    await slots(provider, 1, warm, stepOf);
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
      warm.set("a", (await end!).lockToken);
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
