// A turn has no effect but its ack. So whoever waits for one may have it before what it answers is committed, and both are
// committed together: or neither, and then it is as if nobody had gone ahead.

import { isDeepStrictEqual } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Clock } from "../../src/clock.js";
import type {
  InstanceChange,
  LockedOrchestrationItem,
  LockedWorkItem,
  Provider,
  TurnCommit,
} from "../../src/provider/provider.js";
import {
  act,
  completed,
  continueAsNew,
  done,
  NAMED,
  raised,
  scheduled,
  start,
  started,
  turn,
} from "../../src/provider-tests/builders.js";
import { fetchTurn, fetchWork, takeTurn, takeWork } from "../../src/provider-tests/steps.js";
import { type SqliteOptions, SqliteProvider } from "../../src/providers/sqlite/index.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { running, type Warm } from "./running-instance.js";
import { ChildProgram } from "./sqlite-child.js";
import { openConnection } from "./sqlite-connection.js";
import { commitsIn, openStore } from "./sqlite-store.js";

const WAITS = { pollTimeoutMs: 60_000 };
const ABSENT = { ifAbsent: true } as const;
const LOST = { kind: "lock-lost" };
/** All starts may go ahead, so that a test need not prove an orchestration first. */
const ALWAYS = { startsGoAhead: "always" } as const;

async function open(options: SqliteOptions = {}) {
  const clock = new VirtualClock();
  const store = await openStore({ clock, ...options });
  const connection = await openConnection(store.file);
  onTestFinished(() => connection.close());
  const count = (table: string): unknown =>
    (connection.prepare(`SELECT COUNT(*) AS n FROM duroxide_${table}`).get() as { readonly n: number }).n;
  const commits = () => commitsIn(store.file);
  return { clock, ...store, connection, count, commits };
}

/** Waits for a turn, and does `take` with it as soon as it is there. */
async function onTurn<T>(
  clock: VirtualClock,
  provider: Provider,
  warm: Warm,
  take: (locked: LockedOrchestrationItem) => T,
): Promise<{ readonly taken: Promise<Awaited<T>> }> {
  const taken = fetchTurn(provider, { ...WAITS, warm }).then((locked) => take(locked!));
  await clock.advance(0);
  return { taken: taken as Promise<Awaited<T>> };
}

/** A turn of the instance that answers an activity and asks for the next one. */
const NEXT = (name: string, id = 2) =>
  turn({ events: [completed(name, id + 1), scheduled(name, id + 2)], workerItems: [act(name, id + 2)] });

/** The first turn of an instance, which asks for an activity. */
const FIRST = (name: string) =>
  turn({ events: [started(name), scheduled(name, 2)], workerItems: [act(name, 2)], metadata: NAMED });

/** The only turn of an instance. */
const ONLY = (name: string) =>
  turn({
    events: [started(name), completed(name, 2)],
    metadata: { ...NAMED, status: "Completed", output: '"done"' },
  });

/** Takes the next turn as soon as it is there, and acks it with this one. */
function ackNext(clock: VirtualClock, provider: Provider, commit: (name: string) => TurnCommit) {
  return onTurn(clock, provider, new Map(), ({ lockToken, item }) =>
    provider.ackOrchestrationItem(lockToken, commit(item.instance)),
  );
}

/** A store whose time is what the test says: also in the middle of a turn. */
async function openAt(options: SqliteOptions = {}) {
  const { file } = await openStore();
  const time = { now: 1_000_000 };
  const clock: Clock = { now: () => time.now, setTimer: () => ({ clear: () => {} }) };
  const provider = await SqliteProvider.open(`${file}-at`, { durability: "process-crash", clock, ...options });
  onTestFinished(() => provider.close());
  return { provider, time, commits: () => commitsIn(`${file}-at`) };
}

/** Those who have come to wait do. */
async function waiting(): Promise<void> {
  for (let rounds = 0; rounds < 5; rounds += 1) await new Promise((resolve) => setImmediate(resolve));
}

describe("a turn that goes ahead", () => {
  test("is committed with the outcome that it answers, which is written nowhere else; its activity begins after that", async () => {
    const { clock, provider, connection, commits, count } = await open();
    const warm: Warm = new Map();
    const held = await running(provider, "a", warm);
    const before = await commits();
    const events = connection.prepare("SELECT COUNT(*) AS n FROM duroxide_history");
    const heard: unknown[] = [];
    const { taken } = await onTurn(clock, provider, warm, ({ lockToken, item, attemptCount }) => {
      heard.push(item.messages, item.warmAsOf, attemptCount, events.get());
      return provider.ackOrchestrationItem(lockToken, NEXT("a")).then(() => heard.push("acked"));
    });
    const next = fetchWork(provider, WAITS).then((locked) => heard.push(locked?.item.id, events.get()));
    await clock.advance(0);
    const handedIn = provider.ackWorkItem(held.lockToken, done("a", 2)).then(() => heard.push("handed in"));
    await Promise.all([handedIn, taken, next]);

    expect(heard).toEqual([[done("a", 2)], warm.get("a"), 1, { n: 2 }, "handed in", "acked", 4, { n: 4 }]);
    expect((await commits()) - before).toBe(1);
    expect([count("orchestrator_queue"), count("instance_locks"), count("worker_queue")]).toEqual([0, 0, 1]);
  });

  test("leaves its activity to a fetch that came with the outcome", async () => {
    const { clock, provider, commits } = await open();
    const warm: Warm = new Map();
    const held = await running(provider, "a", warm);
    const { taken } = await onTurn(clock, provider, warm, ({ lockToken }) =>
      provider.ackOrchestrationItem(lockToken, NEXT("a")),
    );
    const before = await commits();
    const [, next] = await Promise.all([
      provider.ackWorkItem(held.lockToken, done("a", 2)),
      fetchWork(provider), // Looks once.
      taken,
    ]);

    expect(next?.item.id).toBe(4);
    expect((await commits()) - before).toBe(1);
  });

  test("is one of many, twice as many each time: as many as wait, in one commit", async () => {
    const { clock, provider, commits } = await open();
    const warm: Warm = new Map();
    const held = new Map<string, LockedWorkItem>();
    for (let place = 0; place < 20; place += 1) held.set(`${place}`, await running(provider, `${place}`, warm));
    const made: number[] = [];
    for (let round = 0; round < 6; round += 1) {
      const turns = Array.from(held, () =>
        fetchTurn(provider, { ...WAITS, warm }).then((locked) => {
          const { item, lockToken } = locked!;
          warm.set(item.instance, lockToken);
          return provider.ackOrchestrationItem(lockToken, NEXT(item.instance, 2 + 2 * round));
        }),
      );
      await clock.advance(0);
      const before = await commits();
      const acks = Array.from(held, ([name, { lockToken, item }]) =>
        provider.ackWorkItem(lockToken, done(name, item.id)),
      );
      await Promise.all([...acks, ...turns]);
      made.push((await commits()) - before);
      for (const _ of acks) {
        const work = await takeWork(provider);
        held.set(work.item.instance, work);
      }
    }

    expect(made).toEqual([2, 2, 2, 2, 2, 1]);
  });

  test("goes to a slot that comes together with the outcome; also when the first locks would have ended long ago", async () => {
    const { provider, time, commits } = await openAt();
    const warm: Warm = new Map();
    let held = await running(provider, "a", warm);
    const made: number[] = [];
    const round = async (): Promise<void> => {
      const before = await commits();
      const id = held.item.id;
      const turnTaken = fetchTurn(provider, { ...WAITS, warm }).then((locked) => {
        warm.set("a", locked!.lockToken);
        return provider.ackOrchestrationItem(locked!.lockToken, NEXT("a", id));
      });
      await Promise.all([provider.ackWorkItem(held.lockToken, done("a", id)), turnTaken]);
      made.push((await commits()) - before);
      held = await takeWork(provider);
    };
    for (let rounds = 0; rounds < 3; rounds += 1) await round();
    time.now += 3_000_000;
    held = await takeWork(provider); // For the second time: its outcome does not go ahead, those of the next ones do.
    for (let rounds = 0; rounds < 3; rounds += 1) await round();

    expect(made).toEqual([1, 1, 1, 2, 1, 1]);
  });

  test.each([
    ["goes past a start that came first, where there is a slot for both: that one has it after the commit", 2],
    ["waits behind a start that came first where there is a slot for one of them", 1],
  ])("%s", async (_, slots) => {
    const { clock, provider, commits, count } = await open();
    const warm: Warm = new Map();
    const held = await running(provider, "a", warm);
    const before = await commits();
    const heard: unknown[] = [];
    const turns = Array.from({ length: slots }, async () => {
      const { item, lockToken } = (await fetchTurn(provider, { ...WAITS, warm }))!;
      heard.push([item.instance, count("history"), count("orchestrator_queue")]);
      if (item.instance === "a") await provider.ackOrchestrationItem(lockToken, NEXT("a"));
    });
    await clock.advance(0);
    await Promise.all([
      provider.enqueueForOrchestrator(start("b"), { ifAbsent: true }),
      provider.ackWorkItem(held.lockToken, done("a", 2)),
      ...turns,
    ]);

    const [ahead, behind] = [
      [
        ["a", 2, 0],
        ["b", 4, 1],
      ],
      [["b", 2, 2]],
    ];
    expect(heard).toEqual(slots === 2 ? ahead : behind);
    expect((await commits()) - before).toBe(1);
  });

  test("and takes its time is acked later, under a lock that is there", async () => {
    const { clock, provider, count } = await open();
    const warm: Warm = new Map();
    const held = await running(provider, "a", warm);
    const { taken } = await onTurn(clock, provider, warm, (locked) => locked);
    await provider.ackWorkItem(held.lockToken, done("a", 2));
    expect([count("orchestrator_queue"), count("instance_locks")]).toEqual([1, 1]);
    expect(await fetchTurn(provider)).toBeNull();
    const { lockToken } = await taken;
    await provider.renewOrchestrationItemLock(lockToken, 30_000);
    await provider.ackOrchestrationItem(lockToken, NEXT("a"));

    expect([count("orchestrator_queue"), count("instance_locks"), count("history")]).toEqual([0, 0, 4]);
  });

  test.each([
    ["counted", {}, 2],
    ["uncounted", { ignoreAttempt: true }, 1],
  ])("and is given back comes again, %s", async (_, options, attemptCount) => {
    const { clock, provider } = await open();
    const warm: Warm = new Map();
    const held = await running(provider, "a", warm);
    const { taken } = await onTurn(clock, provider, warm, ({ lockToken }) =>
      provider.abandonOrchestrationItem(lockToken, options),
    );
    await Promise.all([provider.ackWorkItem(held.lockToken, done("a", 2)), taken]);

    expect(await takeTurn(provider)).toMatchObject({ item: { messages: [done("a", 2)] }, attemptCount });
  });

  test("keeps what comes for its instance meanwhile for the next turn", async () => {
    const { clock, provider } = await open();
    const warm: Warm = new Map();
    const held = await running(provider, "a", warm);
    let sent: Promise<unknown> = Promise.resolve();
    const { taken } = await onTurn(clock, provider, warm, ({ lockToken }) => {
      sent = provider.enqueueForOrchestrator(raised("a"));
      warm.set("a", lockToken);
      return provider.ackOrchestrationItem(lockToken, NEXT("a"));
    });
    await Promise.all([provider.ackWorkItem(held.lockToken, done("a", 2)), taken]);
    await sent;

    expect(await takeTurn(provider, { warm })).toMatchObject({
      item: { messages: [raised("a")], warmAsOf: warm.get("a") },
    });
  });
});

/** Whether the turn was there before the commit of what it answers. */
async function goesAhead(
  { clock, provider, connection }: Awaited<ReturnType<typeof open>>,
  warm: Warm,
  cause: () => Promise<unknown>,
): Promise<boolean> {
  const messages = connection.prepare("SELECT instance_id FROM duroxide_orchestrator_queue");
  const before = messages.all();
  const { taken } = await onTurn(clock, provider, warm, () => messages.all());
  await cause();
  expect(messages.all()).not.toEqual(before);
  return isDeepStrictEqual(await taken, before);
}

describe("a start whose first turn goes ahead", () => {
  const openAlways = (options: SqliteOptions = {}) => open({ ...ALWAYS, ...options });

  test("is committed with that turn, and written nowhere else; its client hears of it only then, and before the turn is acked", async () => {
    const { clock, provider, connection, commits, count } = await openAlways();
    const before = await commits();
    const events = connection.prepare("SELECT COUNT(*) AS n FROM duroxide_history");
    const heard: unknown[] = [];
    const { taken } = await onTurn(clock, provider, new Map(), async ({ lockToken, item, attemptCount }) => {
      heard.push(item, attemptCount, events.get());
      await provider.ackOrchestrationItem(lockToken, FIRST("a"));
      heard.push("acked");
    });
    await provider.enqueueForOrchestrator(start("a"), ABSENT).then((outcome) => heard.push(outcome, events.get()));
    await taken;

    const item = {
      instance: "a",
      orchestrationName: "TestOrch",
      version: "1.0.0",
      executionId: 1,
      history: [],
      warmAsOf: null,
      historyError: null,
      messages: [start("a")],
      kvSnapshot: new Map(),
    };
    expect(heard).toEqual([item, 1, { n: 0 }, "enqueued", { n: 2 }, "acked"]);
    expect((await commits()) - before).toBe(1);
    expect([count("orchestrator_queue"), count("instance_locks"), count("worker_queue")]).toEqual([0, 0, 1]);
    expect(await provider.read("a")).toEqual([started("a"), scheduled("a", 2)]);
    expect(await provider.getInstanceStatus("a")).toMatchObject({ status: "Running", orchestrationName: "TestOrch" });
  });

  test("counts once, however often it comes: together with the first, before its turn is acked, and later", async () => {
    const { clock, provider, count } = await openAlways();
    let meanwhile: Promise<unknown> = Promise.resolve();
    const begin = () => provider.enqueueForOrchestrator(start("a"), ABSENT);
    const { taken } = await onTurn(clock, provider, new Map(), ({ lockToken }) => {
      meanwhile = begin();
      return provider.ackOrchestrationItem(lockToken, FIRST("a"));
    });
    expect(await Promise.all([begin(), begin(), taken])).toEqual(["enqueued", "exists", undefined]);
    expect([await meanwhile, await begin()]).toEqual(["exists", "exists"]);
    expect([await fetchTurn(provider), count("orchestrator_queue"), count("history")]).toEqual([null, 0, 2]);
  });

  test("counts once, also where its turn takes its time, is taken away, and is taken anew", async () => {
    const { clock, provider } = await openAlways();
    const begin = () => provider.enqueueForOrchestrator(start("a"), ABSENT);
    const { taken } = await onTurn(clock, provider, new Map(), (locked) => locked);
    expect(await begin()).toBe("enqueued");
    expect(await begin()).toBe("exists");
    await clock.advance(30_000);
    const again = await takeTurn(provider);

    expect(again).toMatchObject({ item: { messages: [start("a")] }, attemptCount: 2 });
    await expect(provider.ackOrchestrationItem((await taken).lockToken, FIRST("a"))).rejects.toMatchObject(LOST);
    expect(await begin()).toBe("exists");
    await provider.ackOrchestrationItem(again.lockToken, ONLY("a"));
    expect([await begin(), await fetchTurn(provider)]).toEqual(["exists", null]);
  });

  test("and takes its time is acked later, under a lock that is there", async () => {
    const { clock, provider, count } = await openAlways();
    const { taken } = await onTurn(clock, provider, new Map(), (locked) => locked);
    expect(await provider.enqueueForOrchestrator(start("a"), ABSENT)).toBe("enqueued");
    expect([count("orchestrator_queue"), count("instance_locks")]).toEqual([1, 1]);
    expect(await provider.getInstanceStatus("a")).toMatchObject({ status: "Pending" });
    expect(await fetchTurn(provider)).toBeNull();
    const { lockToken } = await taken;
    await provider.renewOrchestrationItemLock(lockToken, 30_000);
    await provider.ackOrchestrationItem(lockToken, FIRST("a"));

    expect([count("orchestrator_queue"), count("instance_locks"), count("history")]).toEqual([0, 0, 2]);
  });

  test.each([
    ["counted", {}, 2],
    ["uncounted", { ignoreAttempt: true }, 1],
  ])("and is given back comes again, %s", async (_, options, attemptCount) => {
    const { clock, provider } = await openAlways();
    const { taken } = await onTurn(clock, provider, new Map(), ({ lockToken }) =>
      provider.abandonOrchestrationItem(lockToken, options),
    );
    expect((await Promise.all([provider.enqueueForOrchestrator(start("a"), ABSENT), taken]))[0]).toBe("enqueued");

    expect(await takeTurn(provider)).toMatchObject({ item: { messages: [start("a")] }, attemptCount });
  });

  test.each<[string, TurnCommit, object]>([
    [
      "names an event twice",
      turn({ events: [started("a"), started("a")], metadata: NAMED }),
      { kind: "duplicate-event" },
    ],
    ["has an event without a number", turn({ events: [{ ...started("a"), eventId: 0 }] }), { kind: "invalid" }],
    ["sends a message to a worker", turn({ workerItems: [start("b") as never] }), { kind: "invalid" }],
    ["sends an activity to an instance", turn({ orchestratorItems: [act("b", 2) as never] }), { kind: "invalid" }],
  ])(
    "is stored all the same where that turn %s: it is fetched again, and then told what is wrong",
    async (_, refused, why) => {
      const { clock, provider, count } = await openAlways();
      let ack: Promise<unknown> = Promise.resolve();
      await onTurn(clock, provider, new Map(), ({ lockToken }) => {
        ack = provider.ackOrchestrationItem(lockToken, refused);
        ack.catch(() => {});
      });
      const outcomes = await Promise.all([
        provider.enqueueForOrchestrator(start("a"), ABSENT),
        provider.enqueueForOrchestrator(start("b"), ABSENT),
      ]);
      expect(outcomes).toEqual(["enqueued", "enqueued"]);
      await expect(ack).rejects.toMatchObject(LOST);
      expect([count("orchestrator_queue"), count("history"), count("worker_queue")]).toEqual([2, 0, 0]);

      const again = await takeTurn(provider);
      expect(again).toMatchObject({ item: { messages: [start("a")] }, attemptCount: 1 });
      await expect(provider.ackOrchestrationItem(again.lockToken, refused)).rejects.toMatchObject(why);
      await provider.ackOrchestrationItem(again.lockToken, FIRST("a"));
      expect(await provider.read("a")).toHaveLength(2);
      expect(await provider.enqueueForOrchestrator(start("a"), ABSENT)).toBe("exists");
    },
  );

  test("is stored all the same where that turn is refused: whoever waits has its turn then, after the commit", async () => {
    const { clock, provider, count } = await openAlways();
    const { taken } = await ackNext(clock, provider, () => turn({ events: [started("a"), started("a")] }));
    const refused = expect(taken).rejects.toMatchObject(LOST);
    const second = await onTurn(clock, provider, new Map(), async ({ lockToken, item, attemptCount }) => {
      const stored = [count("orchestrator_queue"), count("instance_locks")];
      await provider.ackOrchestrationItem(lockToken, FIRST("a"));
      return [item.messages, attemptCount, stored];
    });
    expect(await provider.enqueueForOrchestrator(start("a"), ABSENT)).toBe("enqueued");

    await refused;
    expect(await second.taken).toEqual([[start("a")], 1, [1, 1]]);
    expect([count("orchestrator_queue"), count("instance_locks"), count("history")]).toEqual([0, 0, 2]);
  });

  test("goes ahead of nobody where something else for its instance comes with it: it has all of it, in one turn", async () => {
    const { clock, provider, count } = await openAlways();
    const { taken } = await onTurn(clock, provider, new Map(), ({ item }) => [
      item.messages,
      count("orchestrator_queue"),
    ]);
    const before = raised("a", "before");
    const after = raised("a", "after");
    await Promise.all([
      provider.enqueueForOrchestrator(before),
      provider.enqueueForOrchestrator(start("a"), ABSENT),
      provider.enqueueForOrchestrator(after),
    ]);
    expect(await taken).toEqual([[before, start("a"), after], 3]);
  });

  test("goes ahead of nobody where something for its instance has waited for it", async () => {
    const store = await openAlways();
    const { provider } = store;
    await provider.enqueueForOrchestrator(raised("a", "before"));
    expect(await fetchTurn(provider)).toBeNull();
    const begins = () => provider.enqueueForOrchestrator(start("a"), ABSENT);

    expect(await goesAhead(store, new Map(), begins)).toBe(false);
  });

  test("keeps what is sent to its instance meanwhile, and as soon as it is there, for the next turn", async () => {
    const { clock, provider } = await openAlways();
    const warm: Warm = new Map();
    const sent: Promise<unknown>[] = [];
    const { taken } = await onTurn(clock, provider, warm, ({ lockToken }) => {
      sent.push(provider.enqueueForOrchestrator(raised("a", "meanwhile")));
      warm.set("a", lockToken);
      return provider.ackOrchestrationItem(lockToken, FIRST("a"));
    });
    await provider.enqueueForOrchestrator(start("a"), ABSENT).then(() => {
      sent.push(provider.enqueueForOrchestrator(raised("a", "then")));
    });
    await Promise.all([taken, ...sent]);

    expect(await takeTurn(provider, { warm })).toMatchObject({
      item: { messages: [raised("a", "meanwhile"), raised("a", "then")], warmAsOf: warm.get("a") },
    });
  });

  test("may end in that turn: nothing is left but its history", async () => {
    const { clock, provider, commits, count } = await openAlways();
    const before = await commits();
    const { taken } = await ackNext(clock, provider, ONLY);
    await Promise.all([provider.enqueueForOrchestrator(start("a"), ABSENT), taken]);

    expect((await commits()) - before).toBe(1);
    expect([count("orchestrator_queue"), count("instance_locks"), count("history")]).toEqual([0, 0, 2]);
    expect(await provider.getInstanceStatus("a")).toMatchObject({ status: "Completed", output: '"done"' });
    expect([await fetchTurn(provider), await provider.enqueueForOrchestrator(start("a"), ABSENT)]).toEqual([
      null,
      "exists",
    ]);
  });

  test("and ends at once is told to those who watch it, though they begin when they hear that it has started", async () => {
    const { clock, provider } = await openAlways();
    const changes = () => provider.wake.changes!;
    const early: InstanceChange[] = [];
    const late: InstanceChange[] = [];
    const counted: number[] = [];
    const { taken } = await ackNext(clock, provider, ONLY);
    provider.wake.watchInstance("a", (change) => early.push(change!));
    const begun = provider.enqueueForOrchestrator(start("a"), ABSENT).then(() => {
      provider.wake.watchInstance("a", (change) => late.push(change!));
      counted.push(changes());
    });
    await Promise.all([begun, taken]);
    counted.push(changes());

    expect([early, late]).toEqual([["state", "state"], ["state"]]);
    expect(counted[1]! - counted[0]!).toBe(1);
  });

  test("may continue as new in that turn: the next execution begins after the commit", async () => {
    const { clock, provider, commits, count } = await openAlways();
    const before = await commits();
    const next = continueAsNew("a", { input: "2" });
    const { taken } = await ackNext(clock, provider, (name) =>
      turn({
        events: [started(name)],
        orchestratorItems: [next],
        metadata: { ...NAMED, status: "ContinuedAsNew", output: "2" },
      }),
    );
    const second = await onTurn(clock, provider, new Map(), (locked) => [locked, count("history")]);
    expect(
      await Promise.all([
        provider.enqueueForOrchestrator(start("a"), ABSENT),
        provider.enqueueForOrchestrator(start("a"), ABSENT),
        taken,
      ]),
    ).toEqual(["enqueued", "exists", undefined]);

    expect(await second.taken).toMatchObject([{ item: { messages: [next], history: [started("a")] } }, 1]);
    expect((await commits()) - before).toBe(1);
  });

  test("may start children in that turn: theirs are handed out after the commit", async () => {
    const { clock, provider, commits, count } = await openAlways();
    const before = await commits();
    const child = start("child", { parentInstance: "a", parentId: 2 });
    const { taken } = await ackNext(clock, provider, (name) =>
      turn({ events: [started(name)], orchestratorItems: [child], metadata: NAMED }),
    );
    const second = await onTurn(clock, provider, new Map(), ({ item }) => [item.messages, count("history")]);
    await Promise.all([provider.enqueueForOrchestrator(start("a"), ABSENT), taken]);

    expect(await second.taken).toEqual([[child], 1]);
    expect((await commits()) - before).toBe(1);
    expect([count("orchestrator_queue"), count("instance_locks")]).toEqual([1, 1]);
  });

  test("may ask for activities in that turn: a worker who waits has them after the commit", async () => {
    const { clock, provider, commits, count } = await openAlways();
    const before = await commits();
    const { taken } = await ackNext(clock, provider, FIRST);
    const work = fetchWork(provider, WAITS).then((locked) => [locked?.item, count("history")]);
    await clock.advance(0);
    await Promise.all([provider.enqueueForOrchestrator(start("a"), ABSENT), taken]);

    expect(await work).toEqual([act("a", 2), 2]);
    expect((await commits()) - before).toBe(1);
  });

  test("is one of many, twice as many each time: as many as wait, in one commit, and each counts once", async () => {
    const { clock, provider, commits, count } = await openAlways();
    const made: number[] = [];
    for (let round = 0; round < 6; round += 1) {
      const names = Array.from({ length: 20 }, (_, place) => `${round}-${place}`);
      const turns = names.map(() =>
        fetchTurn(provider, WAITS).then((locked) =>
          provider.ackOrchestrationItem(locked!.lockToken, FIRST(locked!.item.instance)),
        ),
      );
      await clock.advance(0);
      const before = await commits();
      await Promise.all([...names.map((name) => provider.enqueueForOrchestrator(start(name), ABSENT)), ...turns]);
      made.push((await commits()) - before);
    }

    expect(made).toEqual([2, 2, 2, 2, 2, 1]);
    expect([count("orchestrator_queue"), count("instance_locks"), count("history")]).toEqual([0, 0, 240]);
  });

  test("for which there is no room on the disk is none: it may be started again", async () => {
    const { clock, provider } = await openAlways({ maxDatabaseBytes: 2 ** 20 });
    const large = "x".repeat(2 ** 20);
    await onTurn(clock, provider, new Map(), ({ lockToken }) => {
      const events = [started("a", { input: large })];
      provider.ackOrchestrationItem(lockToken, turn({ events, metadata: NAMED })).catch(() => {});
    });
    const refused = provider.enqueueForOrchestrator(start("a", { input: large }), ABSENT);
    await expect(refused).rejects.toMatchObject({ kind: "transient" });
    expect([await provider.getInstanceStatus("a"), await fetchTurn(provider)]).toEqual([null, null]);

    expect(await provider.enqueueForOrchestrator(start("a"), ABSENT)).toBe("enqueued");
    expect(await takeTurn(provider)).toMatchObject({ item: { messages: [start("a")] }, attemptCount: 1 });
  });

  test("whose turn there is no room for is stored, and its turn is fetched again", async () => {
    const { clock, provider } = await openAlways({ maxDatabaseBytes: 2 ** 20 });
    let ack: Promise<unknown> = Promise.resolve();
    await onTurn(clock, provider, new Map(), ({ lockToken }) => {
      const events = [started("a"), completed("a", 2, "x".repeat(2 ** 20))];
      ack = provider.ackOrchestrationItem(lockToken, turn({ events, metadata: NAMED }));
      ack.catch(() => {});
    });
    expect(await provider.enqueueForOrchestrator(start("a"), ABSENT)).toBe("enqueued");
    await expect(ack).rejects.toMatchObject(LOST);
    expect(await takeTurn(provider)).toMatchObject({ item: { messages: [start("a")] }, attemptCount: 1 });
  });

  test("has nothing to do with one of its name that was deleted just before it: whoever works on that one has lost its lock", async () => {
    const { clock, provider } = await openAlways();
    await provider.enqueueForOrchestrator(start("a", { input: "1" }), ABSENT);
    const old = await takeTurn(provider);
    await provider.ackOrchestrationItem(old.lockToken, FIRST("a"));
    await provider.enqueueForOrchestrator(raised("a"));
    const late = await takeTurn(provider);
    const warm: Warm = new Map([["a", old.lockToken]]);
    const again = start("a", { input: "2" });
    const acks: Promise<unknown>[] = [];
    const { taken } = await onTurn(clock, provider, warm, ({ lockToken, item }) => {
      acks.push(provider.ackOrchestrationItem(late.lockToken, ONLY("a")));
      acks.push(provider.ackOrchestrationItem(lockToken, FIRST("a")));
      return item;
    });
    const [deleted, outcome] = await Promise.all([
      provider.admin.deleteInstancesAtomic(["a"], true),
      provider.enqueueForOrchestrator(again, ABSENT),
    ]);

    expect([deleted.instancesDeleted, outcome]).toEqual([1, "enqueued"]);
    expect(await taken).toMatchObject({ messages: [again], history: [], warmAsOf: null });
    expect(await Promise.allSettled(acks)).toMatchObject([
      { status: "rejected", reason: LOST },
      { status: "fulfilled" },
    ]);
    expect(await provider.read("a")).toHaveLength(2);
    expect((await takeWork(provider)).item).toEqual(act("a", 2));
    expect([await fetchWork(provider), await fetchTurn(provider)]).toEqual([null, null]);
  });

  test("is deleted by whoever deletes it meanwhile, when it is there", async () => {
    const { clock, provider, count } = await openAlways();
    let deleted: Promise<unknown> = Promise.resolve();
    const { taken } = await onTurn(clock, provider, new Map(), ({ lockToken }) => {
      deleted = provider.admin.deleteInstance("a", true);
      return provider.ackOrchestrationItem(lockToken, FIRST("a"));
    });
    await Promise.all([provider.enqueueForOrchestrator(start("a"), ABSENT), taken]);
    expect(await deleted).toMatchObject({ instancesDeleted: 1, eventsDeleted: 2 });
    expect([count("history"), count("worker_queue"), count("instance_locks")]).toEqual([0, 0, 0]);

    const next = await ackNext(clock, provider, ONLY);
    expect((await Promise.all([provider.enqueueForOrchestrator(start("a"), ABSENT), next.taken]))[0]).toBe("enqueued");
    expect(await provider.getInstanceStatus("a")).toMatchObject({ status: "Completed" });
  });

  test.each<[string, (ack: () => Promise<unknown>, close: () => Promise<void>) => Promise<unknown>[], object]>([
    ["before it is closed is finished", (ack, close) => [ack(), close()], { status: "Running" }],
    ["after it is closed is not, and the start is there", (ack, close) => [close(), ack()], { status: "Pending" }],
  ])("and that is acked %s", async (_, end, seen) => {
    const { clock, provider, file } = await openAlways();
    const { taken } = await onTurn(clock, provider, new Map(), ({ lockToken }) => {
      const ack = () => provider.ackOrchestrationItem(lockToken, FIRST("a"));
      return Promise.allSettled(end(ack, () => provider.close()));
    });
    expect(await provider.enqueueForOrchestrator(start("a"), ABSENT)).toBe("enqueued");
    await taken;

    await using again = await SqliteProvider.open(file, { durability: "process-crash", clock });
    expect(await again.getInstanceStatus("a")).toMatchObject(seen);
    expect(await again.enqueueForOrchestrator(start("a"), ABSENT)).toBe("exists");
    await clock.advance(30_000);
    expect((await fetchTurn(again))?.item.messages ?? []).toEqual(
      isDeepStrictEqual(seen, { status: "Running" }) ? [] : [start("a")],
    );
  });
});

describe("a start is stored first", () => {
  const begins = (provider: Provider, name: string, orchestration = "TestOrch") => {
    return () => provider.enqueueForOrchestrator(start(name, { orchestration }), ABSENT);
  };

  /** Ids of which every one says that a round of starts is to begin at this place. */
  const idsAt = (place: number): (() => string) => {
    let ids = 0;
    return () => {
      ids += 1;
      return `${"\0".repeat(ids)}${String.fromCharCode(place)}`; // Leading zeros do not count.
    };
  };

  async function take(provider: Provider, name: string, commit: (name: string) => TurnCommit): Promise<void> {
    await provider.enqueueForOrchestrator(start(name), ABSENT);
    const { lockToken } = await takeTurn(provider);
    await provider.ackOrchestrationItem(lockToken, commit(name));
  }

  test("until a hundred first turns of its orchestration were taken here; and 64 of 2,048 all the same", async () => {
    const store = await open({ newId: idsAt(63) }); // One more of the 64.
    const { provider } = store;
    for (let nr = 0; nr < 99; nr += 1) await take(provider, `proof-${nr}`, ONLY);
    expect(await goesAhead(store, new Map(), begins(provider, "a"))).toBe(false);
    await take(provider, "last proof", ONLY);

    expect(await goesAhead(store, new Map(), begins(provider, "b"))).toBe(false);
    expect(await goesAhead(store, new Map(), begins(provider, "c"))).toBe(true);
    expect(await goesAhead(store, new Map(), begins(provider, "d", "Another"))).toBe(false);
    expect(await goesAhead(store, new Map(), begins(provider, "e"))).toBe(true);
  });

  test("also when a hundred of them have failed: those may be poison, and their code was not run", async () => {
    const store = await open({ newId: idsAt(64) });
    const { provider } = store;
    const poisoned = (name: string) => ({ ...ONLY(name), metadata: { ...NAMED, status: "Failed" } }) as const;
    for (let nr = 0; nr < 100; nr += 1) await take(provider, `failed-${nr}`, poisoned);
    expect(await goesAhead(store, new Map(), begins(provider, "a"))).toBe(false);
    for (let nr = 0; nr < 100; nr += 1) await take(provider, `completed-${nr}`, ONLY);
    expect(await goesAhead(store, new Map(), begins(provider, "b"))).toBe(true);
  });

  test("where somebody says that it never goes ahead", async () => {
    const store = await open({ startsGoAhead: "never" });
    expect(await goesAhead(store, new Map(), begins(store.provider, "a"))).toBe(false);
  });

  test("where it may be one of several: nobody has asked whether it is the only one", async () => {
    const store = await open(ALWAYS);
    const { provider, count } = store;
    expect(await goesAhead(store, new Map(), () => provider.enqueueForOrchestrator(start("a")))).toBe(false);
    expect(await provider.enqueueForOrchestrator(start("a"))).toBe("enqueued");
    expect(count("orchestrator_queue")).toBe(2);
  });

  test("where another one comes with it that is to be queued in any case", async () => {
    const store = await open(ALWAYS);
    const { provider, count } = store;
    const both = () =>
      Promise.all([
        provider.enqueueForOrchestrator(start("a"), ABSENT),
        provider.enqueueForOrchestrator(start("a", { input: "2" })),
      ]);
    expect(await goesAhead(store, new Map(), both)).toBe(false);
    expect(count("orchestrator_queue")).toBe(2);
  });

  test("where it is for later", async () => {
    const { clock, provider, count } = await open(ALWAYS);
    const heard: string[] = [];
    const { taken } = await onTurn(clock, provider, new Map(), ({ item }) => heard.push(item.instance));
    expect(await provider.enqueueForOrchestrator(start("a"), { ...ABSENT, delayMs: 5_000 })).toBe("enqueued");
    expect([count("orchestrator_queue"), heard]).toEqual([1, []]);
    expect(await provider.enqueueForOrchestrator(start("a"), ABSENT)).toBe("exists");
    await clock.advance(4_999);
    expect(heard).toEqual([]);
    await clock.advance(1);
    await taken;
    expect(heard).toEqual(["a"]);
  });

  test("while another process is at work, and for a second after it", async () => {
    const store = await open(ALWAYS);
    const { clock, provider, connection } = store;
    await provider.enqueueForWorker(act("x", 1));
    await takeWork(provider);
    connection.exec("UPDATE duroxide_worker_queue SET enqueued_at = 1");

    expect(await goesAhead(store, new Map(), begins(provider, "a"))).toBe(false);
    await clock.advance(999);
    expect(await goesAhead(store, new Map(), begins(provider, "b"))).toBe(false);
    await clock.advance(1);
    expect(await goesAhead(store, new Map(), begins(provider, "c"))).toBe(true);
  });

  test("while this process has another connection to the file", async () => {
    const store = await open(ALWAYS);
    const { clock, provider, file } = store;
    const other = await SqliteProvider.open(file, { durability: "process-crash", clock });
    expect(await goesAhead(store, new Map(), begins(provider, "a"))).toBe(false);
    await other.close();
    expect(await goesAhead(store, new Map(), begins(provider, "b"))).toBe(true);
  });

  test("for a second after a turn that took long", async () => {
    const { provider, time } = await openAt(ALWAYS);
    const went: boolean[] = [];
    const takes = async (name: string, ms: number) => {
      let isStarted = false;
      const taken = fetchTurn(provider, WAITS).then((locked) => {
        went.push(!isStarted);
        time.now += ms;
        return provider.ackOrchestrationItem(locked!.lockToken, FIRST(name));
      });
      await waiting();
      await provider.enqueueForOrchestrator(start(name), ABSENT);
      isStarted = true;
      await taken;
    };
    await takes("a", 21);
    await takes("b", 0);
    time.now += 1_000;
    await takes("c", 0);

    expect(went).toEqual([true, false, true]);
  });
});

describe("an orchestration that has proved itself, and ends its process in a first turn", () => {
  test.each([
    [
      "takes nothing along that anybody was told of; whoever starts it again is stored first, and it ends as poison",
      { place: 64, bad: null, beside: null, attempts: 0 },
    ],
    [
      "is counted from then on where it is one of those that are stored first all the same, and ends as poison",
      { place: 63, bad: "Pending", beside: "Completed", attempts: 1 },
    ],
  ])(
    "%s",
    async (_, { place, bad, beside, attempts }) => {
      const { file, provider } = await openStore();
      await provider.close();
      const statuses = async (...names: readonly string[]) => {
        await using look = await SqliteProvider.open(file);
        const seen = await Promise.all(names.map((name) => look.getInstanceStatus(name)));
        return seen.map((status) => status?.status ?? null);
      };
      const proving = new ChildProgram("ends-itself", file, `${place}`);
      expect(await proving.line()).toBe("100 have come to their end");
      expect((await proving.ended()).signal).toBe("SIGKILL");
      expect(await statuses("good-0", "good-99", "bad", "beside")).toEqual(["Completed", "Completed", bad, beside]);

      for (let attempt = attempts; attempt < 2; attempt += 1) {
        expect((await new ChildProgram("ends-itself", file).ended()).signal).toBe("SIGKILL");
        expect(await statuses("bad")).toEqual(["Pending"]);
      }
      expect(JSON.parse(await new ChildProgram("ends-itself", file).line())).toEqual(["poison", "Completed"]);
    },
    120_000,
  );
});

describe("nobody goes ahead", () => {
  test("by what a client sends: it is stored first, so that its turns are counted", async () => {
    const store = await open();
    const { provider } = store;
    const warm: Warm = new Map();
    await running(provider, "a", warm);
    const starts = () => provider.enqueueForOrchestrator(start("b"), { ifAbsent: true });

    expect(await goesAhead(store, warm, () => provider.enqueueForOrchestrator(raised("a")))).toBe(false);
    expect(await goesAhead(store, warm, starts)).toBe(false);
  });

  test("by an outcome that was tried before: what it stands on is made durable first", async () => {
    const store = await open();
    const { provider } = store;
    const warm: Warm = new Map();
    const first = await running(provider, "a", warm);
    await provider.abandonWorkItem(first.lockToken);
    const again = await takeWork(provider);

    expect(again.attemptCount).toBe(2);
    expect(await goesAhead(store, warm, () => provider.ackWorkItem(again.lockToken, done("a", 2)))).toBe(false);
  });

  test("with a history to go through; but with one that is warm", async () => {
    const store = await open();
    const { provider } = store;
    const warm: Warm = new Map();
    const [a, b] = [await running(provider, "a", warm), await running(provider, "b", warm)];

    expect(await goesAhead(store, new Map(), () => provider.ackWorkItem(a.lockToken, done("a", 2)))).toBe(false);
    expect(await goesAhead(store, warm, () => provider.ackWorkItem(b.lockToken, done("b", 2)))).toBe(true);
  });

  test("by what another turn has sent", async () => {
    const store = await open();
    const { provider } = store;
    await running(provider, "a", new Map());
    await provider.enqueueForOrchestrator(raised("a"));
    const { lockToken } = await takeTurn(provider);
    const orchestratorItems = [start("child", { parentInstance: "a", parentId: 3 })];

    expect(
      await goesAhead(store, new Map(), () => provider.ackOrchestrationItem(lockToken, turn({ orchestratorItems }))),
    ).toBe(false);
  });

  test("by what runs ahead of a start that is for later; others who come with it do", async () => {
    const { clock, provider } = await open();
    const warm: Warm = new Map();
    const first = await running(provider, "first", warm); // After one, two may go.
    const { taken } = await onTurn(clock, provider, warm, ({ lockToken }) =>
      provider.ackOrchestrationItem(lockToken, NEXT("first")),
    );
    await Promise.all([provider.ackWorkItem(first.lockToken, done("first", 2)), taken]);
    await takeWork(provider);
    const held = await running(provider, "a", warm);
    await provider.enqueueForOrchestrator(start("later"), { ...ABSENT, delayMs: 5_000 });
    await provider.enqueueForWorker(act("later", 2));
    const early = await takeWork(provider);
    const turns: unknown[] = [];
    for (const _ of [1, 2]) {
      void fetchTurn(provider, { ...WAITS, warm }).then((locked) => {
        if (locked === null) return;
        turns.push([locked.item.instance, locked.item.messages]);
        return provider.ackOrchestrationItem(locked.lockToken, NEXT("a"));
      });
      await clock.advance(0);
    }
    await Promise.all([
      provider.ackWorkItem(early.lockToken, done("later", 2)),
      provider.ackWorkItem(held.lockToken, done("a", 2)),
    ]);
    await clock.advance(4_999);

    expect(turns).toEqual([["a", [done("a", 2)]]]);
  });

  test("while activities stand in line: they do not wait for turns", async () => {
    const store = await open();
    const { provider } = store;
    const warm: Warm = new Map();
    const held = await running(provider, "a", warm);
    await provider.enqueueForWorker(act("x", 9));
    let next: Promise<LockedWorkItem | null> = Promise.resolve(null);

    expect(
      await goesAhead(store, warm, () => {
        next = fetchWork(provider);
        return provider.ackWorkItem(held.lockToken, done("a", 2));
      }),
    ).toBe(false);
    expect((await next)?.item.id).toBe(9);
  });

  test("while another process is at work, and for a second after it", async () => {
    const store = await open();
    const { clock, provider, connection } = store;
    const warm: Warm = new Map();
    const a = await running(provider, "a", warm);
    connection.exec("UPDATE duroxide_worker_queue SET enqueued_at = 1");
    expect(await goesAhead(store, warm, () => provider.ackWorkItem(a.lockToken, done("a", 2)))).toBe(false);

    const [b, c] = [await running(provider, "b", warm), await running(provider, "c", warm)];
    await clock.advance(999);
    expect(await goesAhead(store, warm, () => provider.ackWorkItem(b.lockToken, done("b", 2)))).toBe(false);
    await clock.advance(1);
    expect(await goesAhead(store, warm, () => provider.ackWorkItem(c.lockToken, done("c", 2)))).toBe(true);
  });

  test("while this process has another connection to the file, which would wait for itself", async () => {
    const store = await open();
    const { clock, provider, file } = store;
    const warm: Warm = new Map();
    const other = await SqliteProvider.open(file, { durability: "process-crash", clock });
    const [a, b] = [await running(provider, "a", warm), await running(provider, "b", warm)];
    expect(await goesAhead(store, warm, () => provider.ackWorkItem(a.lockToken, done("a", 2)))).toBe(false);
    await other.close();
    expect(await goesAhead(store, warm, () => provider.ackWorkItem(b.lockToken, done("b", 2)))).toBe(true);
  });

  test("for a second after a turn that took long: others could not write meanwhile", async () => {
    const { provider, time } = await openAt();
    const warm: Warm = new Map();
    const works = new Map<string, LockedWorkItem>();
    for (const name of ["a", "b", "c", "d", "e"]) works.set(name, await running(provider, name, warm));
    const went: boolean[] = [];
    const takes = async (name: string, ms: number) => {
      let isHandedIn = false;
      const taken = fetchTurn(provider, { ...WAITS, warm }).then((locked) => {
        went.push(!isHandedIn);
        time.now += ms;
        return provider.ackOrchestrationItem(locked!.lockToken, NEXT(name));
      });
      await waiting();
      await provider.ackWorkItem(works.get(name)!.lockToken, done(name, 2));
      isHandedIn = true;
      await taken;
    };
    await takes("a", 21);
    await takes("b", 0);
    time.now += 999;
    await takes("c", 0);
    time.now += 1;
    await takes("d", 20);
    await takes("e", 0);

    expect(went).toEqual([true, false, false, true, true]);
  });
});

describe("a transaction from which turns have gone ahead", () => {
  test("keeps readers waiting, who then see all of it", async () => {
    const { clock, provider } = await open();
    const warm: Warm = new Map();
    const held = await running(provider, "a", warm);
    let seen: Promise<readonly unknown[]> = Promise.resolve([]);
    const { taken } = await onTurn(clock, provider, warm, ({ lockToken }) => {
      seen = provider.read("a");
      return provider.ackOrchestrationItem(lockToken, NEXT("a"));
    });
    await Promise.all([provider.ackWorkItem(held.lockToken, done("a", 2)), taken]);

    expect(await seen).toHaveLength(4);
  });

  test("goes on at the time that it is by then: what it takes is locked from then on", async () => {
    const { provider, time } = await openAt();
    const warm: Warm = new Map();
    const held = await running(provider, "a", warm);
    const work = fetchWork(provider, { ...WAITS, lockTimeoutMs: 1_000 });
    let isAhead = true;
    const taken = fetchTurn(provider, { ...WAITS, warm }).then((locked) => {
      expect(isAhead).toBe(true);
      time.now += 700;
      return provider.ackOrchestrationItem(locked!.lockToken, NEXT("a"));
    });
    await waiting();
    await provider.ackWorkItem(held.lockToken, done("a", 2));
    isAhead = false;
    await taken;
    const { lockToken } = (await work)!;
    time.now += 999;
    await provider.renewWorkItemLock(lockToken, 1_000);
  });

  test("is acked by a turn that took longer than its lock: nobody can have taken it", async () => {
    const { provider, time } = await openAt();
    const warm: Warm = new Map();
    const held = await running(provider, "a", warm);
    const taken = fetchTurn(provider, { ...WAITS, warm, lockTimeoutMs: 1_000 }).then((locked) => {
      time.now += 2_000;
      return provider.ackOrchestrationItem(locked!.lockToken, NEXT("a"));
    });
    await waiting();
    await Promise.all([provider.ackWorkItem(held.lockToken, done("a", 2)), taken]);
    expect(await provider.read("a")).toHaveLength(4);
  });

  test("tells of the end of an instance whoever has waited for it, and nobody who waits for another one of that name", async () => {
    const { clock, provider } = await open();
    const warm: Warm = new Map();
    const first = await running(provider, "first", warm); // After one, two may go.
    const { taken } = await onTurn(clock, provider, warm, ({ lockToken }) =>
      provider.ackOrchestrationItem(lockToken, turn({ events: [completed("first", 3)] })),
    );
    await Promise.all([provider.ackWorkItem(first.lockToken, done("first", 2)), taken]);
    const works = [await running(provider, "a", warm), await running(provider, "b", warm)];
    const heard: InstanceChange[] = [];
    const heardOfNext: InstanceChange[] = [];
    provider.wake.watchInstance("a", (change) => heard.push(change!));
    const again: Promise<unknown>[] = [];
    let ended: Promise<unknown> = Promise.resolve();
    const end = ({ item, lockToken }: LockedOrchestrationItem): void => {
      if (item.instance === "b") return; // It takes its time: what comes meanwhile is at the door.
      again.push(
        provider.admin.deleteInstancesAtomic(["a"], true),
        provider.enqueueForOrchestrator(start("a"), ABSENT).then((outcome) => {
          provider.wake.watchInstance("a", (change) => heardOfNext.push(change!));
          return outcome;
        }),
      );
      const metadata = { status: "Completed", output: '"done"' } as const;
      ended = provider.ackOrchestrationItem(lockToken, turn({ events: [completed("a", 3)], metadata }));
    };
    const turns = [await onTurn(clock, provider, warm, end), await onTurn(clock, provider, warm, end)];
    await Promise.all(works.map(({ lockToken, item }) => provider.ackWorkItem(lockToken, done(item.instance, 2))));
    await Promise.all(turns.map((each) => each.taken));
    await ended;

    expect(await Promise.all(again)).toMatchObject([{ instancesDeleted: 1 }, "enqueued"]);
    expect(heard).toContainEqual({ output: '"done"' });
    expect(heardOfNext).not.toContainEqual({ output: '"done"' });
  });

  test("wakes workers for what its turns ask for, also where it has woken all of them before", async () => {
    const { clock, provider } = await open();
    const warm: Warm = new Map();
    const held = await running(provider, "a", warm);
    await provider.enqueueForWorker(act("x", 1, { tag: "gpu" }));
    const gpu = await takeWork(provider, { tagFilter: { kind: "any" } });
    const { taken } = await onTurn(clock, provider, warm, ({ lockToken }) =>
      provider.ackOrchestrationItem(lockToken, NEXT("a")),
    );
    const work = fetchWork(provider, WAITS);
    await clock.advance(0);
    await Promise.all([
      provider.ackWorkItem(held.lockToken, done("a", 2)),
      provider.abandonWorkItem(gpu.lockToken),
      taken,
    ]);

    expect((await work)?.item).toEqual(act("a", 4));
  });

  test("hands out nothing that its turns take back", async () => {
    const { clock, provider } = await open();
    const warm: Warm = new Map();
    const held = await running(provider, "a", warm);
    await running(provider, "b", warm);
    await provider.enqueueForOrchestrator(raised("b"));
    const b = await takeTurn(provider);
    const work = fetchWork(provider, { pollTimeoutMs: 1_000 });
    const { taken } = await onTurn(clock, provider, warm, ({ lockToken }) =>
      provider.ackOrchestrationItem(
        lockToken,
        turn({ events: [completed("a", 3)], cancelledActivities: [{ instance: "b", executionId: 1, id: 7 }] }),
      ),
    );
    await Promise.all([
      provider.ackOrchestrationItem(b.lockToken, turn({ events: [scheduled("b", 7)], workerItems: [act("b", 7)] })),
      provider.ackWorkItem(held.lockToken, done("a", 2)),
      taken,
    ]);
    await clock.advance(1_000);

    expect(await work).toBeNull();
  });

  test("and fails is made again before anybody who came later", async () => {
    const { clock, provider } = await open();
    const warm: Warm = new Map();
    const held = await running(provider, "a", warm);
    let later: Promise<unknown> = Promise.resolve();
    const { taken } = await onTurn(clock, provider, warm, ({ lockToken }) => {
      const ack = provider.ackOrchestrationItem(lockToken, turn({ events: [completed("a", 2)] })); // It is there already.
      later = Promise.all(Array.from({ length: 201 }, () => provider.enqueueForOrchestrator(raised("a"))));
      return ack.catch((error: unknown) => error);
    });
    await Promise.all([provider.ackWorkItem(held.lockToken, done("a", 2)), taken]);
    await later;

    expect((await takeTurn(provider)).item.messages[0]).toEqual(done("a", 2));
  });

  test("misses nobody who comes meanwhile", async () => {
    const { clock, provider } = await open();
    const warm: Warm = new Map();
    const works = [await running(provider, "a", warm), await running(provider, "b", warm)];
    let second: Promise<LockedOrchestrationItem | null> = Promise.resolve(null);
    const { taken } = await onTurn(clock, provider, warm, (locked) => {
      second = fetchTurn(provider, { ...WAITS, warm });
      return locked.item.instance;
    });
    await Promise.all(works.map(({ lockToken, item }) => provider.ackWorkItem(lockToken, done(item.instance, 2))));

    expect(await taken).toBe("a");
    expect((await second)?.item.instance).toBe("b");
  });

  test("is finished before the provider is closed", async () => {
    const { clock, provider, file, connection } = await open();
    const warm: Warm = new Map();
    const held = await running(provider, "a", warm);
    let closed: Promise<void> = Promise.resolve();
    const { taken } = await onTurn(clock, provider, warm, ({ lockToken }) => {
      const acked = provider.ackOrchestrationItem(lockToken, NEXT("a"));
      closed = provider.close();
      return acked;
    });
    await Promise.all([provider.ackWorkItem(held.lockToken, done("a", 2)), taken]);
    await closed;
    expect(connection.prepare("SELECT COUNT(*) AS n FROM duroxide_history").get()).toEqual({ n: 4 });

    await using again = await SqliteProvider.open(file, { durability: "process-crash" });
    expect(await again.read("a")).toHaveLength(4);
  });

  test("and is refused for one of the turns is made again without them: outcomes count, turns have lost their locks", async () => {
    const { clock, provider } = await open();
    const warm: Warm = new Map();
    const first = await running(provider, "first", warm); // After one, two may go.
    const { taken } = await onTurn(clock, provider, warm, ({ lockToken }) =>
      provider.ackOrchestrationItem(lockToken, turn({ events: [completed("first", 3)] })),
    );
    await Promise.all([provider.ackWorkItem(first.lockToken, done("first", 2)), taken]);
    const works = [await running(provider, "a", warm), await running(provider, "b", warm)];
    const acks: Promise<unknown>[] = [];
    for (const _ of works) {
      await onTurn(clock, provider, warm, ({ item, lockToken }) => {
        // That of `a` is there already.
        const events = [completed(item.instance, item.instance === "a" ? 2 : 3)];
        const ack = provider.ackOrchestrationItem(lockToken, turn({ events }));
        acks.push(ack);
        ack.catch(() => {});
      });
    }
    const outcomes = await Promise.allSettled(
      works.map(({ lockToken, item }) => provider.ackWorkItem(lockToken, done(item.instance, 2))),
    );

    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled"]);
    expect(await Promise.allSettled(acks)).toMatchObject([
      { status: "rejected", reason: LOST },
      { status: "rejected", reason: LOST },
    ]);
    for (const name of ["a", "b"]) {
      const again = await takeTurn(provider, { warm });
      expect(again).toMatchObject({ item: { instance: name, messages: [done(name, 2)] }, attemptCount: 1 });
      expect(await provider.read(name)).toHaveLength(2);
    }
    expect(await fetchWork(provider)).toBeNull();
  });

  test("and for which there is no room on the disk leaves everything as it was", async () => {
    const { clock, provider } = await open({ maxDatabaseBytes: 2 ** 20 });
    const warm: Warm = new Map();
    const held = await running(provider, "a", warm);
    const large = "x".repeat(2 ** 20);
    let ack: Promise<unknown> = Promise.resolve();
    await onTurn(clock, provider, warm, ({ lockToken }) => {
      ack = provider.ackOrchestrationItem(lockToken, turn({ events: [completed("a", 3, large)] }));
      ack.catch(() => {});
    });
    await provider.ackWorkItem(held.lockToken, done("a", 2));
    await expect(ack).rejects.toMatchObject(LOST);

    expect(await takeTurn(provider, { warm })).toMatchObject({ item: { messages: [done("a", 2)] }, attemptCount: 1 });
    expect(await provider.read("a")).toHaveLength(2);
  });
});
