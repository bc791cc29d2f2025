// A turn has no effect but its ack. So whoever waits for one may have it before what it answers is committed, and both are
// committed together: or neither, and then it is as if nobody had gone ahead.

import { isDeepStrictEqual } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Clock } from "../../src/clock.js";
import type { LockedOrchestrationItem, LockedWorkItem, Provider } from "../../src/provider/provider.js";
import {
  act,
  completed,
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
import { openConnection } from "./sqlite-connection.js";
import { commitsIn, openStore } from "./sqlite-store.js";

const WAITS = { pollTimeoutMs: 60_000 };
const ABSENT = { ifAbsent: true } as const;
const LOST = { kind: "lock-lost" };

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

/** What a runtime remembers: by which lock each instance was last committed. */
type Warm = Map<string, string>;

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

/** The first turn of an instance, which asks for an activity. */
const FIRST = (name: string, id = 2) =>
  turn({ events: [started(name), scheduled(name, id)], workerItems: [act(name, id)], metadata: NAMED });

/** An instance that runs and is warm, the first activity of which is held. */
async function running(clock: VirtualClock, provider: Provider, name: string, warm: Warm): Promise<LockedWorkItem> {
  const { taken } = await onTurn(clock, provider, warm, (locked) => {
    warm.set(name, locked.lockToken);
    return provider.ackOrchestrationItem(locked.lockToken, FIRST(name));
  });
  await provider.enqueueForOrchestrator(start(name), ABSENT);
  await taken;
  return takeWork(provider);
}

/** A store whose time is what the test says: also in the middle of a turn. */
async function openAt() {
  const { file } = await openStore();
  const time = { now: 1_000_000 };
  const clock: Clock = { now: () => time.now, setTimer: () => ({ clear: () => {} }) };
  const provider = await SqliteProvider.open(`${file}-at`, { durability: "process-crash", clock });
  onTestFinished(() => provider.close());
  return { provider, time };
}

/** Those who have come to wait do. */
async function waiting(): Promise<void> {
  for (let rounds = 0; rounds < 5; rounds += 1) await new Promise((resolve) => setImmediate(resolve));
}

describe("a turn that goes ahead", () => {
  test("is committed together with the start that it answers, which is written nowhere else", async () => {
    const { clock, provider, commits, count } = await open();
    const before = await commits();
    const heard: string[] = [];
    const { taken } = await onTurn(clock, provider, new Map(), (locked) => {
      heard.push("turn");
      return provider.ackOrchestrationItem(locked.lockToken, FIRST("a")).then(() => heard.push("acked"));
    });
    await provider.enqueueForOrchestrator(start("a"), ABSENT).then(() => heard.push("started"));
    await taken;

    expect(heard).toEqual(["turn", "started", "acked"]);
    expect((await commits()) - before).toBe(1);
    expect([count("orchestrator_queue"), count("instance_locks"), count("worker_queue")]).toEqual([0, 0, 1]);
    expect(await provider.read("a")).toEqual([started("a"), scheduled("a", 2)]);
    expect(await provider.getInstanceStatus("a")).toMatchObject({ status: "Running" });
  });

  test("is committed together with the outcome that it answers; the activity that it asks for begins after the commit", async () => {
    const { clock, provider, connection, commits, count } = await open();
    const warm: Warm = new Map();
    const held = await running(clock, provider, "a", warm);
    const before = await commits();
    const events = connection.prepare("SELECT COUNT(*) AS n FROM duroxide_history");
    const heard: unknown[] = [];
    const { taken } = await onTurn(clock, provider, warm, ({ lockToken, item, attemptCount }) => {
      heard.push(item.messages, item.warmAsOf, attemptCount, events.get());
      return provider.ackOrchestrationItem(
        lockToken,
        turn({ events: [completed("a", 3), scheduled("a", 4)], workerItems: [act("a", 4)] }),
      );
    });
    const next = fetchWork(provider, WAITS).then((locked) => heard.push(locked?.item.id, events.get()));
    await clock.advance(0);
    await Promise.all([provider.ackWorkItem(held.lockToken, done("a", 2)), taken, next]);

    expect(heard).toEqual([[done("a", 2)], warm.get("a"), 1, { n: 2 }, 4, { n: 4 }]);
    expect((await commits()) - before).toBe(1);
    expect([count("orchestrator_queue"), count("instance_locks"), count("worker_queue")]).toEqual([0, 0, 1]);
  });

  test("leaves its activity to a fetch that came with the outcome", async () => {
    const { clock, provider, commits } = await open();
    const warm: Warm = new Map();
    const held = await running(clock, provider, "a", warm);
    await provider.enqueueForWorker(act("a", 90)); // So that the fetch looks for itself.
    await takeWork(provider);
    const { taken } = await onTurn(clock, provider, warm, ({ lockToken }) =>
      provider.ackOrchestrationItem(lockToken, turn({ events: [scheduled("a", 3)], workerItems: [act("a", 3)] })),
    );
    const before = await commits();
    const [, next] = await Promise.all([
      provider.ackWorkItem(held.lockToken, done("a", 2)),
      fetchWork(provider), // Looks once.
      taken,
    ]);

    expect(next?.item.id).toBe(3);
    expect((await commits()) - before).toBe(1);
  });

  test("is one of many, twice as many each time: as many as wait, in one commit", async () => {
    const { clock, provider, commits } = await open();
    const made: number[] = [];
    for (let round = 0; round < 9; round += 1) {
      const names = Array.from({ length: 150 }, (_, place) => `${round}-${place}`);
      const turns = names.map(() =>
        fetchTurn(provider, { ...WAITS, warm: new Map() }).then((locked) =>
          provider.ackOrchestrationItem(locked!.lockToken, FIRST(locked!.item.instance)),
        ),
      );
      await clock.advance(0);
      const before = await commits();
      await Promise.all([...names.map((name) => provider.enqueueForOrchestrator(start(name), ABSENT)), ...turns]);
      made.push((await commits()) - before);
    }

    expect(made).toEqual([2, 2, 2, 2, 2, 2, 2, 2, 1]);
  });

  test("and takes its time is acked later, under a lock that is there", async () => {
    const { clock, provider, count } = await open();
    const { taken } = await onTurn(clock, provider, new Map(), (locked) => locked);
    await provider.enqueueForOrchestrator(start("a"), ABSENT);
    expect([count("orchestrator_queue"), count("instance_locks")]).toEqual([1, 1]);
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
    const { clock, provider } = await open();
    const { taken } = await onTurn(clock, provider, new Map(), ({ lockToken }) =>
      provider.abandonOrchestrationItem(lockToken, options),
    );
    await Promise.all([provider.enqueueForOrchestrator(start("a"), ABSENT), taken]);

    expect(await takeTurn(provider)).toMatchObject({ item: { messages: [start("a")] }, attemptCount });
  });

  test("keeps what comes for its instance meanwhile for the next turn", async () => {
    const { clock, provider } = await open();
    const warm: Warm = new Map();
    let sent: Promise<unknown> = Promise.resolve();
    const { taken } = await onTurn(clock, provider, warm, ({ lockToken }) => {
      sent = provider.enqueueForOrchestrator(raised("a"));
      warm.set("a", lockToken);
      return provider.ackOrchestrationItem(lockToken, FIRST("a"));
    });
    await provider.enqueueForOrchestrator(start("a"), ABSENT);
    await taken;
    await sent;

    expect(await takeTurn(provider, { warm })).toMatchObject({
      item: { messages: [raised("a")], warmAsOf: warm.get("a") },
    });
  });
});

describe("nobody goes ahead", () => {
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

  test("by an outcome that was tried before: what it stands on is made durable first", async () => {
    const store = await open();
    const { clock, provider } = store;
    const warm: Warm = new Map();
    const first = await running(clock, provider, "a", warm);
    await provider.abandonWorkItem(first.lockToken);
    const again = await takeWork(provider);

    expect(again.attemptCount).toBe(2);
    expect(await goesAhead(store, warm, () => provider.ackWorkItem(again.lockToken, done("a", 2)))).toBe(false);
  });

  test("with a history to go through; but with one that is warm", async () => {
    const store = await open();
    const { clock, provider } = store;
    const warm: Warm = new Map();
    const [a, b] = [await running(clock, provider, "a", warm), await running(clock, provider, "b", warm)];

    expect(await goesAhead(store, new Map(), () => provider.ackWorkItem(a.lockToken, done("a", 2)))).toBe(false);
    expect(await goesAhead(store, warm, () => provider.ackWorkItem(b.lockToken, done("b", 2)))).toBe(true);
  });

  test("by what another turn has sent", async () => {
    const store = await open();
    const { clock, provider } = store;
    await running(clock, provider, "a", new Map());
    await provider.enqueueForOrchestrator(raised("a"));
    const { lockToken } = await takeTurn(provider);
    const orchestratorItems = [start("child", { parentInstance: "a", parentId: 3 })];

    expect(
      await goesAhead(store, new Map(), () => provider.ackOrchestrationItem(lockToken, turn({ orchestratorItems }))),
    ).toBe(false);
  });

  test("while activities stand in line: they do not wait for turns", async () => {
    const store = await open();
    const { clock, provider } = store;
    const warm: Warm = new Map();
    const held = await running(clock, provider, "a", warm);
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
    const begin = (name: string) => () => provider.enqueueForOrchestrator(start(name), ABSENT);
    await provider.enqueueForWorker(act("x", 1));
    connection.exec("UPDATE duroxide_worker_queue SET activity_id = 2");

    expect(await goesAhead(store, new Map(), begin("a"))).toBe(false);
    await clock.advance(999);
    expect(await goesAhead(store, new Map(), begin("b"))).toBe(false);
    await clock.advance(1);
    expect(await goesAhead(store, new Map(), begin("c"))).toBe(true);
  });

  test("while this process has another connection to the file, which would wait for itself", async () => {
    const store = await open();
    const { clock, provider, file } = store;
    const begin = (name: string) => () => provider.enqueueForOrchestrator(start(name), ABSENT);
    const other = await SqliteProvider.open(file, { durability: "process-crash", clock });
    expect(await goesAhead(store, new Map(), begin("a"))).toBe(false);
    await other.close();
    expect(await goesAhead(store, new Map(), begin("b"))).toBe(true);
  });

  test("for a second after a turn that took long: others could not write meanwhile", async () => {
    const { provider, time } = await openAt();
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
    let seen: Promise<unknown> = Promise.resolve();
    const { taken } = await onTurn(clock, provider, new Map(), ({ lockToken }) => {
      seen = Promise.all([provider.getInstanceStatus("a"), provider.read("a")]);
      return provider.ackOrchestrationItem(lockToken, FIRST("a"));
    });
    await Promise.all([provider.enqueueForOrchestrator(start("a"), ABSENT), taken]);

    expect(await seen).toMatchObject([{ status: "Running" }, [started("a"), scheduled("a", 2)]]);
  });

  test("goes on at the time that it is by then: what it takes is locked from then on", async () => {
    const { provider, time } = await openAt();
    const work = fetchWork(provider, { ...WAITS, lockTimeoutMs: 1_000 });
    const taken = fetchTurn(provider, WAITS).then((locked) => {
      time.now += 700;
      return provider.ackOrchestrationItem(locked!.lockToken, FIRST("a"));
    });
    await waiting();
    await Promise.all([provider.enqueueForOrchestrator(start("a"), ABSENT), taken]);
    const { lockToken } = (await work)!;
    time.now += 999;
    await provider.renewWorkItemLock(lockToken, 1_000);
  });

  test("is acked by a turn that took longer than its lock: nobody can have taken it", async () => {
    const { provider, time } = await openAt();
    const taken = fetchTurn(provider, { ...WAITS, lockTimeoutMs: 1_000 }).then((locked) => {
      time.now += 2_000;
      return provider.ackOrchestrationItem(locked!.lockToken, FIRST("a"));
    });
    await waiting();
    await Promise.all([provider.enqueueForOrchestrator(start("a"), ABSENT), taken]);
    expect(await provider.read("a")).toHaveLength(2);
  });

  test("wakes workers for what its turns ask for, also where it has woken all of them before", async () => {
    const { clock, provider } = await open();
    await provider.enqueueForWorker(act("x", 1, { tag: "gpu" }));
    const gpu = await takeWork(provider, { tagFilter: { kind: "any" } });
    const { taken } = await onTurn(clock, provider, new Map(), ({ lockToken }) =>
      provider.ackOrchestrationItem(lockToken, FIRST("a")),
    );
    const work = fetchWork(provider, WAITS);
    await clock.advance(0);
    await Promise.all([
      provider.enqueueForOrchestrator(start("a"), ABSENT),
      provider.abandonWorkItem(gpu.lockToken),
      taken,
    ]);

    expect((await work)?.item).toEqual(act("a", 2));
  });

  test("hands out nothing that its turns take back", async () => {
    const { clock, provider } = await open();
    const warm: Warm = new Map();
    await provider.enqueueForOrchestrator(start("a"), ABSENT);
    const first = await takeTurn(provider);
    warm.set("a", first.lockToken);
    const work = fetchWork(provider, { pollTimeoutMs: 1_000 });
    const { taken } = await onTurn(clock, provider, warm, ({ lockToken }) =>
      provider.ackOrchestrationItem(
        lockToken,
        turn({ events: [completed("a", 3)], cancelledActivities: [{ instance: "a", executionId: 1, id: 2 }] }),
      ),
    );
    await Promise.all([
      provider.ackOrchestrationItem(first.lockToken, FIRST("a")),
      provider.enqueueForOrchestrator(raised("a")),
      taken,
    ]);
    await clock.advance(1_000);

    expect(await work).toBeNull();
  });

  test("and fails is made again before anybody who came later", async () => {
    const { clock, provider } = await open();
    const warm: Warm = new Map();
    const held = await running(clock, provider, "a", warm);
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
    let second: Promise<LockedOrchestrationItem | null> = Promise.resolve(null);
    const { taken } = await onTurn(clock, provider, new Map(), (locked) => {
      second = fetchTurn(provider, WAITS);
      return locked.item.instance;
    });
    await Promise.all([
      provider.enqueueForOrchestrator(start("a"), ABSENT),
      provider.enqueueForOrchestrator(start("b"), ABSENT),
    ]);

    expect(await taken).toBe("a");
    expect((await second)?.item.instance).toBe("b");
  });

  test("is finished before the provider is closed", async () => {
    const { clock, provider, file, connection } = await open();
    let closed: Promise<void> = Promise.resolve();
    const { taken } = await onTurn(clock, provider, new Map(), ({ lockToken }) => {
      const acked = provider.ackOrchestrationItem(lockToken, FIRST("a"));
      closed = provider.close();
      return acked;
    });
    expect(await provider.enqueueForOrchestrator(start("a"), ABSENT)).toBe("enqueued");
    await Promise.all([taken, closed]);
    expect(connection.prepare("SELECT COUNT(*) AS n FROM duroxide_history").get()).toEqual({ n: 2 });

    await using again = await SqliteProvider.open(file, { durability: "process-crash" });
    expect(await again.read("a")).toHaveLength(2);
  });

  test("and is refused for one of the turns is made again without them: outcomes count, turns have lost their locks", async () => {
    const { clock, provider } = await open();
    const warm: Warm = new Map();
    const works = [await running(clock, provider, "a", warm), await running(clock, provider, "b", warm)];
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
    const held = await running(clock, provider, "a", warm);
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
