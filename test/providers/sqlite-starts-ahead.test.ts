// Where an orchestration is proven, a start may be committed together with its first turn: or neither, and then whoever has started it
// hears so. Else it is stored first, so that a turn which ends its process is counted.

import { isDeepStrictEqual } from "node:util";
import { describe, expect, test } from "vitest";
import type { InstanceChange, Provider, TurnCommit } from "../../src/provider/provider.js";
import {
  act,
  completed,
  continueAsNew,
  NAMED,
  raised,
  scheduled,
  start,
  started,
  turn,
} from "../../src/provider-tests/builders.js";
import { fetchTurn, fetchWork, takeTurn, takeWork } from "../../src/provider-tests/steps.js";
import { type SqliteOptions, SqliteProvider } from "../../src/providers/sqlite/index.js";
import type { Warm } from "./running-instance.js";
import {
  ABSENT,
  ALWAYS,
  ackNext,
  FIRST,
  goesAhead,
  LOST,
  ONLY,
  onTurn,
  open,
  openAt,
  WAITS,
  waiting,
} from "./sqlite-ahead.js";
import { ChildProgram } from "./sqlite-child.js";
import { openStore } from "./sqlite-store.js";

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
      { argv: ["64"], bad: null, attempts: 0 },
    ],
    [
      "is counted from then on where it is one of those that are stored first all the same, and ends as poison",
      { argv: ["63", "alone"], bad: "Pending", attempts: 1 },
    ],
  ])(
    "%s",
    async (_, { argv, bad, attempts }) => {
      const { file, provider } = await openStore();
      await provider.close();
      const statuses = async (...names: readonly string[]) => {
        await using look = await SqliteProvider.open(file);
        const seen = await Promise.all(names.map((name) => look.getInstanceStatus(name)));
        return seen.map((status) => status?.status ?? null);
      };
      const proving = new ChildProgram("ends-itself", file, ...argv);
      expect(await proving.line()).toBe("100 have come to their end");
      expect((await proving.ended()).signal).toBe("SIGKILL");
      expect(await statuses("good-0", "good-99", "bad", "beside")).toEqual(["Completed", "Completed", bad, null]);

      for (let attempt = attempts; attempt < 2; attempt += 1) {
        expect((await new ChildProgram("ends-itself", file).ended()).signal).toBe("SIGKILL");
        expect(await statuses("bad")).toEqual(["Pending"]);
      }
      expect(JSON.parse(await new ChildProgram("ends-itself", file).line())).toEqual(["poison", "Completed"]);
    },
    120_000,
  );
});
