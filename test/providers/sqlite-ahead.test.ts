// A turn has no effect but its ack. So whoever waits for one may have it before what it answers is committed, and both are
// committed together: or neither, and then it is as if nobody had gone ahead.

import { describe, expect, test } from "vitest";
import type { InstanceChange, LockedOrchestrationItem, LockedWorkItem } from "../../src/provider/provider.js";
import { act, completed, done, raised, scheduled, start, turn } from "../../src/provider-tests/builders.js";
import { fetchTurn, fetchWork, takeTurn, takeWork } from "../../src/provider-tests/steps.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";
import { running, type Warm } from "./running-instance.js";
import { ABSENT, goesAhead, LOST, NEXT, onTurn, open, openAt, WAITS, waiting } from "./sqlite-ahead.js";

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
  test("is not met by whoever waited with it for another process to let go of the file", async () => {
    const { clock, provider, connection } = await open({ busyTimeoutMs: 1_000 });
    const warm: Warm = new Map();
    const held = await running(provider, "a", warm);
    const { taken } = await onTurn(clock, provider, warm, ({ lockToken }) =>
      provider.ackOrchestrationItem(lockToken, NEXT("a")),
    );
    connection.exec("BEGIN IMMEDIATE");
    const outcome = provider.ackWorkItem(held.lockToken, done("a", 2));
    await clock.advance(1);
    const other = provider.enqueueForOrchestrator(start("b"));
    await clock.advance(1);
    connection.exec("ROLLBACK");

    await clock.advance(200);
    expect(await Promise.all([other, outcome, taken])).toEqual(["enqueued", undefined, undefined]);
    expect(await provider.read("a")).toHaveLength(4);
  });

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
