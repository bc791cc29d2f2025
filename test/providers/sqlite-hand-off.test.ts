// Fetches that wait are served by the transaction that makes work for them: without a commit of their own, in their turn,
// and never with what is not committed.

import { describe, expect, onTestFinished, test } from "vitest";
import type { LockedOrchestrationItem, LockedWorkItem } from "../../src/provider/provider.js";
import {
  act,
  completed,
  done,
  NAMED,
  queued,
  raised,
  scheduled,
  semver,
  start,
  started,
  supports,
  timer,
  turn,
} from "../../src/provider-tests/builders.js";
import { create, createEnded, fetchTurn, fetchWork, takeTurn, takeWork } from "../../src/provider-tests/steps.js";
import { type SqliteOptions, SqliteProvider } from "../../src/providers/sqlite/index.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { openConnection } from "./sqlite-connection.js";
import { commitsIn, lockedTurns, openStore, type SqliteStore } from "./sqlite-store.js";

const WAITS = { pollTimeoutMs: 60_000 };

async function open(options: SqliteOptions = {}): Promise<SqliteStore & { readonly clock: VirtualClock }> {
  const clock = new VirtualClock();
  return { clock, ...(await openStore({ clock, ...options })) };
}

/** Those of the fetches that have ended, and with what. */
async function endedOf<T>(clock: VirtualClock, fetches: readonly Promise<T>[]): Promise<(T | "waits")[]> {
  const answers: (T | "waits")[] = fetches.map(() => "waits");
  for (const [place, fetch] of fetches.entries()) {
    fetch.then(
      (answer) => {
        answers[place] = answer;
      },
      () => {},
    );
  }
  await clock.advance(0);
  return answers;
}

function idsOf(fetched: readonly (LockedWorkItem | null | "waits")[]): (number | "waits" | null)[] {
  return fetched.map((locked) => (locked === "waits" || locked === null ? locked : locked.item.id));
}

function instancesOf(fetched: readonly (LockedOrchestrationItem | null | "waits")[]): (string | null)[] {
  return fetched.map((locked) => (locked === "waits" || locked === null ? locked : locked.item.instance));
}

describe("fetches that wait", () => {
  test("are served by the commit that makes work for them: activities", async () => {
    const { clock, provider, file } = await open();
    const [token] = await lockedTurns(provider, ["a"]);
    const waiting = [1, 2, 3, 4].map(() => fetchWork(provider, WAITS));
    await clock.advance(0);
    const workerItems = [1, 2, 3, 4].map((id) => act("a", id));
    const before = await commitsIn(file);

    await provider.ackOrchestrationItem(token!, turn({ workerItems }));
    const taken = await Promise.all(waiting);

    expect(taken.map((locked) => locked?.item.id).sort()).toEqual([1, 2, 3, 4]);
    expect((await commitsIn(file)) - before).toBe(1);
  });

  test("are served by the commit that makes work for them: turns, and the next activities", async () => {
    const { clock, provider, file } = await open();
    const turns = ["a", "b", "c"].map(() => fetchTurn(provider, WAITS));
    await clock.advance(0);
    const before = await commitsIn(file);

    await Promise.all(["a", "b", "c"].map((name) => provider.enqueueForOrchestrator(start(name))));
    const locked = await Promise.all(turns);
    expect(instancesOf(locked).sort()).toEqual(["a", "b", "c"]);
    expect((await commitsIn(file)) - before).toBe(1);

    const work = locked.map(() => fetchWork(provider, WAITS));
    await clock.advance(0);
    await Promise.all(
      locked.map((each) => {
        const { instance } = each!.item;
        const commit = turn({ events: [started(instance)], workerItems: [act(instance, 2)], metadata: NAMED });
        return provider.ackOrchestrationItem(each!.lockToken, commit);
      }),
    );
    expect((await Promise.all(work)).map((each) => each?.executionState)).toEqual(["running", "running", "running"]);
    expect((await commitsIn(file)) - before).toBe(2);
  });

  test("are answered when the commit is done, and after those who wrote", async () => {
    const { clock, provider, file } = await open();
    const connection = await openConnection(file);
    onTestFinished(() => connection.close());
    const rows = connection.prepare("SELECT state, attempt_count FROM duroxide_orchestrator_queue");
    const heard: unknown[] = [];
    const waiting = fetchTurn(provider, WAITS).then(() => heard.push("served", rows.get()));
    await clock.advance(0);
    await provider.enqueueForOrchestrator(start("a")).then(() => heard.push("written"));
    await waiting;

    expect(heard).toEqual(["written", "served", { state: "taken", attempt_count: 1 }]);
  });

  test("are served before those that have just come, and for as many as there is work", async () => {
    const { clock, provider } = await open();
    const waiting = [1, 2].map(() => fetchWork(provider, WAITS));
    await clock.advance(0);
    const [, newcomer] = await Promise.all([provider.enqueueForWorker(act("a", 1)), fetchWork(provider)]);

    expect(newcomer).toBeNull();
    expect(idsOf(await endedOf(clock, waiting)).toSorted()).toEqual([1, "waits"]);
  });

  test("leave to those that have just come what they do not want themselves", async () => {
    const { clock, provider } = await open();
    const waiting = [fetchWork(provider, { ...WAITS, tagFilter: { kind: "tags", tags: ["gpu"] } })];
    await clock.advance(0);
    const [, , newcomer] = await Promise.all([
      provider.enqueueForWorker(act("a", 1)),
      provider.enqueueForWorker(act("a", 2, { tag: "gpu" })),
      fetchWork(provider),
    ]);

    expect(newcomer?.item.id).toBe(1);
    expect(idsOf(await endedOf(clock, waiting))).toEqual([2]);
  });

  test("find what other commits, and the time, have left for them: a served one is no reason to forget the rest", async () => {
    const { clock, provider } = await open();
    await provider.enqueueForOrchestrator(start("late"), { delayMs: 50 });
    const waiting = [1, 2].map(() => fetchTurn(provider, WAITS));
    await clock.advance(10);
    await provider.enqueueForOrchestrator(start("early"));
    expect(instancesOf(await endedOf(clock, waiting)).toSorted()).toEqual(["early", "waits"]);

    await clock.advance(40);
    expect(instancesOf(await endedOf(clock, waiting)).toSorted()).toEqual(["early", "late"]);
  });
});

describe("nothing is handed over out of turn", () => {
  test("where something older could be fetched: an expired lock, a timer that is due, what was given back", async () => {
    const { clock, provider } = await open();
    await provider.enqueueForOrchestrator(start("expired"));
    await takeTurn(provider, { lockTimeoutMs: 100 });
    await provider.enqueueForOrchestrator(timer("expired", 9, clock.now() + 100));
    await create(provider, "timer", { orchestratorItems: [timer("timer", 2, clock.now() + 100)] });
    await clock.advance(99);

    // The time has come, and nobody has looked since.
    const arrive = provider.enqueueForOrchestrator(start("new"));
    const fetches = clock.advance(1).then(() => Promise.all([1, 2, 3].map(() => fetchTurn(provider))));
    await arrive;
    expect(instancesOf(await fetches)).toEqual(["expired", "new", "timer"]);
  });

  test("to a fetch that comes with new work, while there is older", async () => {
    const { provider } = await open();
    const [token] = await lockedTurns(provider, ["given back"]);
    await provider.enqueueForOrchestrator(start("old"));
    const [, , ...fetched] = await Promise.all([
      provider.enqueueForOrchestrator(start("new")),
      provider.abandonOrchestrationItem(token!),
      fetchTurn(provider),
      fetchTurn(provider),
      fetchTurn(provider),
    ]);

    expect(instancesOf(fetched)).toEqual(["given back", "old", "new"]);
  });

  test("of activities, whatever their tags", async () => {
    const { provider } = await open();
    await provider.enqueueForWorker(act("a", 1, { tag: "gpu" }));
    const any = { tagFilter: { kind: "any" } } as const;
    const [, , ...fetched] = await Promise.all([
      provider.enqueueForWorker(act("a", 2)),
      provider.enqueueForWorker(act("a", 3, { tag: "gpu" })),
      ...[1, 2, 3, 4].map(() => fetchWork(provider, any)),
    ]);

    expect(idsOf(fetched)).toEqual([1, 2, 3, null]);
  });

  test("for ever: an instance that always has news does not keep an older one waiting", async () => {
    const { clock, provider } = await open();
    await create(provider, "busy");
    await provider.enqueueForOrchestrator(raised("busy"));
    let held = await takeTurn(provider);
    await provider.enqueueForOrchestrator(start("patient"));
    const served: string[] = [];
    for (let rounds = 0; rounds < 3; rounds += 1) {
      const orchestratorItems = held.item.instance === "busy" ? [raised("busy")] : [];
      const metadata = held.item.instance === "busy" ? {} : NAMED;
      const [, next] = await Promise.all([
        provider.ackOrchestrationItem(held.lockToken, turn({ orchestratorItems, metadata })),
        fetchTurn(provider, WAITS),
      ]);
      if (next === null) break;
      held = next;
      served.push(held.item.instance);
      await clock.advance(1);
    }

    expect(served.slice(0, 2)).toEqual(["patient", "busy"]);
  });
});

describe("a commit that fails", () => {
  test("takes back what was handed over, and those who wait are served by what is committed after all", async () => {
    const { clock, provider } = await open();
    const [token] = await lockedTurns(provider, ["a"]);
    const forTurn = [1, 2].map(() => fetchTurn(provider, WAITS));
    const forWork = [1, 2].map(() => fetchWork(provider, WAITS));
    await clock.advance(0);

    const outcomes = await Promise.allSettled([
      provider.enqueueForOrchestrator(start("b")),
      provider.enqueueForWorker(act("b", 1)),
      provider.ackOrchestrationItem(
        token!,
        turn({ events: [scheduled("a", 1)], workerItems: [act("a", 9)], orchestratorItems: [start("c")] }),
      ),
    ]);
    expect(outcomes).toMatchObject([
      { status: "fulfilled" },
      { status: "fulfilled" },
      { status: "rejected", reason: { kind: "duplicate-event", operation: "ackOrchestrationItem" } },
    ]);
    const turns = await endedOf(clock, forTurn);
    const works = await endedOf(clock, forWork);
    expect(instancesOf(turns).toSorted()).toEqual(["b", "waits"]);
    expect(idsOf(works).toSorted()).toEqual([1, "waits"]);
    const b = turns.find((locked) => locked !== "waits") as LockedOrchestrationItem;
    await provider.ackOrchestrationItem(b.lockToken, turn({ events: [started("b")], metadata: NAMED }));
    await provider.ackOrchestrationItem(token!, turn({ events: [scheduled("a", 2)] }));
  });

  test("because of one turn's event that is there already rejects that turn alone, however many share the batch", async () => {
    const { clock, provider } = await open();
    const names = ["a", "b", "c", "d", "e"];
    const tokens = await lockedTurns(provider, names);
    const waiting = names.map(() => fetchWork(provider, WAITS));
    await clock.advance(0);
    const outcomes = await Promise.allSettled(
      tokens.map((token, place) => {
        const name = names[place]!;
        const events = [scheduled(name, name === "c" ? 1 : 2)];
        return provider.ackOrchestrationItem(token, turn({ events, workerItems: [act(name, 2)] }));
      }),
    );

    expect(outcomes.map(({ status }) => status === "fulfilled")).toEqual([true, true, false, true, true]);
    const taken = await endedOf(clock, waiting);
    const whose = taken.map((locked) => (locked === "waits" || locked === null ? "nobody" : locked.item.instance));
    expect(whose.toSorted()).toEqual(["a", "b", "d", "e", "nobody"]);
    for (const name of names) expect(await provider.read(name)).toHaveLength(name === "c" ? 1 : 2);
  });

  test("because of those who wait does not fail those who write", async () => {
    let fails = false;
    let made = 0;
    const newId = (): string => {
      if (fails) throw new Error("no more ids");
      made += 1;
      return `id-${made}`;
    };
    const { clock, provider } = await open({ newId });
    const waiting = fetchTurn(provider, WAITS);
    const work = fetchWork(provider, WAITS);
    waiting.catch(() => {});
    work.catch(() => {});
    await clock.advance(0);
    fails = true;

    expect(await provider.enqueueForOrchestrator(start("a"))).toBe("enqueued");
    await provider.enqueueForWorker(act("a", 1));
    // Those who waited have looked for themselves, and heard of it.
    await expect(waiting).rejects.toThrow("no more ids");
    await expect(work).rejects.toThrow("no more ids");
    fails = false;
    expect((await takeTurn(provider)).attemptCount).toBe(1);
    expect((await takeWork(provider)).attemptCount).toBe(1);
  });

  test("because another process keeps the file leaves those who wait where they are", async () => {
    const { clock, provider, file } = await open({ busyTimeoutMs: 100 });
    const waiting = fetchTurn(provider, WAITS);
    await clock.advance(0);
    const other = await openConnection(file);
    onTestFinished(() => other.close());
    other.exec("BEGIN IMMEDIATE");
    await expect(clock.run(provider.enqueueForOrchestrator(start("a")))).rejects.toMatchObject({ kind: "transient" });
    expect(instancesOf(await endedOf(clock, [waiting]))).toEqual(["waits"]);

    other.exec("ROLLBACK");
    await provider.enqueueForOrchestrator(start("b"));
    expect(instancesOf(await endedOf(clock, [waiting]))).toEqual(["b"]);
  });
});

describe("what one commit makes", () => {
  test("is handed over by instance: all its messages in one batch, in their order", async () => {
    const { clock, provider } = await open();
    const waiting = [1, 2, 3].map(() => fetchTurn(provider, WAITS));
    await clock.advance(0);
    const items = [start("a"), start("b"), raised("a", "1"), queued("b"), raised("a", "2")];
    await Promise.all(items.map((item) => provider.enqueueForOrchestrator(item)));

    const taken = (await endedOf(clock, waiting)).flatMap((locked) => (locked === "waits" || !locked ? [] : [locked]));
    expect(Object.fromEntries(taken.map(({ item }) => [item.instance, item.messages]))).toEqual({
      a: [start("a"), raised("a", "1"), raised("a", "2")],
      b: [start("b"), queued("b")],
    });
  });

  test("waits where its instance is locked, all of it, and comes when the lock is given back", async () => {
    const { clock, provider } = await open();
    const [token] = await lockedTurns(provider, ["a"]);
    const waiting = [1, 2].map(() => fetchTurn(provider, WAITS));
    await clock.advance(0);
    const items = [raised("a", "1"), start("b"), raised("a", "2"), raised("a", "3")];
    await Promise.all(items.map((item) => provider.enqueueForOrchestrator(item)));
    expect(instancesOf(await endedOf(clock, waiting)).toSorted()).toEqual(["b", "waits"]);

    await provider.ackOrchestrationItem(token!, turn({ orchestratorItems: [raised("a", "4")] }));
    const last = (await endedOf(clock, waiting)).find(
      (locked) => locked !== "waits" && locked?.item.instance === "a",
    ) as LockedOrchestrationItem;
    expect(last.item.messages).toEqual(["1", "2", "3", "4"].map((name) => raised("a", name)));
    expect(last.attemptCount).toBe(1);
  });

  test("starts an instance whose messages have waited for that: all of them come", async () => {
    const { clock, provider } = await open();
    await provider.enqueueForOrchestrator(raised("a", "early"));
    expect(await fetchTurn(provider)).toBeNull();
    const waiting = fetchTurn(provider, WAITS);
    await clock.advance(0);
    await Promise.all([
      provider.enqueueForOrchestrator(raised("a", "less early")),
      provider.enqueueForOrchestrator(start("a")),
    ]);

    const [locked] = await endedOf(clock, [waiting]);
    expect((locked as LockedOrchestrationItem).item.messages).toEqual([
      raised("a", "early"),
      raised("a", "less early"),
      start("a"),
    ]);
  });

  test("and is for nobody yet is neither handed over, nor counted, nor lost", async () => {
    const { clock, provider, file } = await open();
    const waiting = fetchTurn(provider, WAITS);
    await clock.advance(0);
    await Promise.all([raised("a"), queued("a")].map((item) => provider.enqueueForOrchestrator(item)));
    expect(await endedOf(clock, [waiting])).toEqual(["waits"]);
    const connection = await openConnection(file);
    onTestFinished(() => connection.close());
    const rows = connection.prepare("SELECT state, attempt_count FROM duroxide_orchestrator_queue").all();
    expect(rows).toEqual([1, 2].map(() => ({ state: "parked", attempt_count: 0 })));

    await provider.enqueueForOrchestrator(start("a"));
    const [locked] = await endedOf(clock, [waiting]);
    expect((locked as LockedOrchestrationItem).item.messages).toEqual([raised("a"), queued("a"), start("a")]);
  });

  test("may be a timer that is due at once, a delay, or none of it: everything in its time", async () => {
    const { clock, provider } = await open();
    const [token] = await lockedTurns(provider, ["a"]);
    const waiting = [1, 2, 3].map(() => fetchTurn(provider, WAITS));
    await clock.advance(0);
    const due = timer("a", 2, clock.now() - 5);
    const later = timer("b", 3, clock.now() + 100);
    await provider.ackOrchestrationItem(token!, turn({ orchestratorItems: [raised("a"), due, start("b"), later] }));
    await provider.enqueueForOrchestrator(start("c"), { delayMs: 200 });

    const first = (await endedOf(clock, waiting)).flatMap((locked) => (locked === "waits" || !locked ? [] : [locked]));
    expect(Object.fromEntries(first.map(({ item }) => [item.instance, item.messages]))).toEqual({
      a: [due, raised("a")],
      b: [start("b")],
    });
    for (const { item, lockToken } of first) {
      await provider.ackOrchestrationItem(lockToken, turn({ executionId: item.executionId, metadata: NAMED }));
    }
    await clock.advance(99);
    expect(instancesOf(await endedOf(clock, waiting)).filter((name) => name === "waits")).toHaveLength(1);
    await clock.advance(1);
    expect(instancesOf(await endedOf(clock, waiting)).toSorted()).toEqual(["a", "b", "b"]);
  });

  test("and cancels again is handed to nobody", async () => {
    const { clock, provider } = await open();
    const [token] = await lockedTurns(provider, ["a"]);
    const waiting = [1, 2, 3].map(() => fetchWork(provider, WAITS));
    await clock.advance(0);
    await provider.ackOrchestrationItem(
      token!,
      turn({
        workerItems: [act("a", 2), act("a", 3), act("a", 4)],
        cancelledActivities: [3, 9].map((id) => ({ instance: "a", executionId: 1, id })),
      }),
    );

    expect(idsOf(await endedOf(clock, waiting)).toSorted()).toEqual([2, 4, "waits"]);
  });

  test("and deletes again is handed to nobody", async () => {
    const { clock, provider } = await open();
    await createEnded(provider, "a");
    await create(provider, "parent");
    const forTurn = [1, 2].map(() => fetchTurn(provider, WAITS));
    const forWork = [1, 2].map(() => fetchWork(provider, WAITS));
    await clock.advance(0);
    await Promise.all([
      provider.enqueueForOrchestrator(raised("a")),
      provider.enqueueForWorker(act("a", 1)),
      provider.enqueueForWorker(act("b", 2)),
      provider.enqueueForOrchestrator(start("b")),
      provider.enqueueForOrchestrator(start("child", { parentInstance: "parent", parentId: 2 })),
      provider.admin.deleteInstancesAtomic(["a", "parent"], true),
    ]);

    expect(instancesOf(await endedOf(clock, forTurn)).toSorted()).toEqual(["b", "waits"]);
    expect(idsOf(await endedOf(clock, forWork)).toSorted()).toEqual([2, "waits"]);
    expect(await provider.admin.getQueueDepths()).toMatchObject({ orchestratorQueue: 0, workerQueue: 0 });
  });
});

describe("work of a session", () => {
  const owned = (ownerId: string) => ({ ...WAITS, session: { ownerId, lockTimeoutMs: 10_000 } });

  test("is handed to its owner, whoever else waits, and claims the session for whoever gets the first", async () => {
    const { clock, provider } = await open();
    const [token] = await lockedTurns(provider, ["a"]);
    const plain = fetchWork(provider, WAITS);
    const [one, two] = [fetchWork(provider, owned("A")), fetchWork(provider, owned("B"))];
    await clock.advance(0);
    const workerItems = [act("a", 2, { sessionId: "s" }), act("a", 3, { sessionId: "s" })];
    await provider.ackOrchestrationItem(token!, turn({ workerItems }));

    const ended = await endedOf(clock, [plain, one, two]);
    expect(idsOf(ended).toSorted()).toEqual([2, "waits", "waits"]);
    expect(ended[0]).toBe("waits");
    const owner = ended[1] === "waits" ? "B" : "A";
    expect((await takeWork(provider, { session: { ownerId: owner, lockTimeoutMs: 10_000 } })).item.id).toBe(3);
  });

  test("does not change the order of what has none", async () => {
    const { provider } = await open();
    const items = [act("a", 1), act("a", 2, { sessionId: "s" }), act("a", 3), act("a", 4, { tag: "gpu" }), act("a", 5)];
    const fetches = items.map(
      () => ({ tagFilter: { kind: "any" }, session: { ownerId: "A", lockTimeoutMs: 1 } }) as const,
    );
    const [, , , , , ...fetched] = await Promise.all([
      ...items.map((item) => provider.enqueueForWorker(item)),
      ...fetches.map((options) => fetchWork(provider, options)),
    ]);

    expect(fetched.map((locked) => locked?.item.id)).toEqual([1, 2, 3, 4, 5]);
  });
});

describe("who may have what", () => {
  test("is decided for each of those who wait: by version, though the first in line is for another", async () => {
    const { clock, provider } = await open();
    const pinned = (version: string) => ({ metadata: { ...NAMED, pinnedVersion: semver(version) } });
    await create(provider, "one", pinned("1.0.0"));
    await create(provider, "two", pinned("2.0.0"));
    const old = fetchTurn(provider, { ...WAITS, capability: supports("1.0.0..1.9.9") });
    const current = fetchTurn(provider, { ...WAITS, capability: supports("2.0.0..2.9.9") });
    await clock.advance(0);
    await Promise.all(["two", "one"].map((name) => provider.enqueueForOrchestrator(raised(name))));

    expect(instancesOf(await endedOf(clock, [old, current]))).toEqual(["one", "two"]);
  });

  test("is decided by what the commit itself has made of the instance", async () => {
    const { clock, provider } = await open();
    const [token] = await lockedTurns(provider, ["a"]);
    const old = fetchTurn(provider, { ...WAITS, capability: supports("1.0.0..1.9.9") });
    await clock.advance(0);
    const metadata = { ...NAMED, pinnedVersion: semver("2.0.0") };
    await provider.ackOrchestrationItem(token!, turn({ metadata, orchestratorItems: [raised("a")] }));
    expect(await endedOf(clock, [old])).toEqual(["waits"]);

    expect((await takeTurn(provider)).item.instance).toBe("a");
  });

  test("is handed over with what is in memory already, or with all of its history", async () => {
    const { clock, provider } = await open();
    const [token] = await lockedTurns(provider, ["a"]);
    const warm = new Map([["a", token!]]);
    const waiting = fetchTurn(provider, { ...WAITS, warm });
    await clock.advance(0);
    const events = [scheduled("a", 2)];
    await provider.ackOrchestrationItem(token!, turn({ events, orchestratorItems: [raised("a", "1")] }));
    const [first] = (await endedOf(clock, [waiting])) as LockedOrchestrationItem[];
    expect([first?.item.warmAsOf, first?.item.history]).toEqual([token, []]);

    const cold = fetchTurn(provider, { ...WAITS, warm });
    await clock.advance(0);
    await provider.ackOrchestrationItem(
      first!.lockToken,
      turn({ events: [scheduled("a", 3)], orchestratorItems: [raised("a", "2")] }),
    );
    const [second] = (await endedOf(clock, [cold])) as LockedOrchestrationItem[];
    expect(second?.item.warmAsOf).toBeNull();
    expect(second?.item.history).toEqual([started("a"), scheduled("a", 2), scheduled("a", 3)]);
  });

  test("an instance that ends with the commit is handed over as ended, with its whole history", async () => {
    const { clock, provider } = await open();
    const [token] = await lockedTurns(provider, ["a"]);
    const waiting = fetchTurn(provider, WAITS);
    await clock.advance(0);
    const metadata = { ...NAMED, status: "Completed", output: "done" } as const;
    const commit = turn({ events: [completed("a", 2)], metadata, orchestratorItems: [raised("a")] });
    await provider.ackOrchestrationItem(token!, commit);

    const [locked] = (await endedOf(clock, [waiting])) as LockedOrchestrationItem[];
    expect(locked?.item.history).toEqual([started("a"), completed("a", 2)]);
    await provider.ackOrchestrationItem(locked!.lockToken, turn());
    expect(await provider.getInstanceStatus("a")).toMatchObject({ status: "Completed", output: "done" });
  });
});

/** Of each queue it is known that nothing is ready: somebody has looked, found nothing, and given up. */
async function knownToBeEmpty({ clock, provider }: { clock: VirtualClock; provider: SqliteProvider }): Promise<void> {
  const looks = [fetchTurn(provider, { pollTimeoutMs: 1 }), fetchWork(provider, { pollTimeoutMs: 1 })];
  await clock.advance(1);
  expect(await Promise.all(looks)).toEqual([null, null]);
}

describe("a fetch that begins to wait where nothing was ready", () => {
  const LOOKS = [
    ["turns", (provider: SqliteProvider) => fetchTurn(provider, WAITS)],
    ["activities", (provider: SqliteProvider) => fetchWork(provider, WAITS)],
  ] as const;

  test.each(LOOKS)(
    "finds at once what another connection has committed since, though nobody looks for that: %s",
    async (_, look) => {
      const { clock, provider, file } = await open({ crossProcessPollMs: 0 });
      await using other = await SqliteProvider.open(file, { clock });
      await knownToBeEmpty({ clock, provider });
      await other.enqueueForOrchestrator(start("a"));
      await other.enqueueForWorker(act("a", 1));

      expect(await endedOf<unknown>(clock, [look(provider)])).toMatchObject([{ item: { instance: "a" } }]);
    },
  );

  test("finds at once what fell due while nobody waited", async () => {
    const { clock, provider } = await open();
    await provider.enqueueForOrchestrator(start("late"), { delayMs: 500 });
    await provider.enqueueForWorker(act("a", 1));
    await takeWork(provider, { lockTimeoutMs: 500 });
    await knownToBeEmpty({ clock, provider });
    await clock.advance(1_000);

    expect(instancesOf(await endedOf(clock, [fetchTurn(provider, WAITS)]))).toEqual(["late"]);
    expect(idsOf(await endedOf(clock, [fetchWork(provider, WAITS)]))).toEqual([1]);
  });

  test.each(LOOKS)(
    "finds at once what another connection has sent with a delay, or held, while nobody waited: %s",
    async (_, look) => {
      const { clock, provider, file } = await open();
      await using other = await SqliteProvider.open(file, { clock });
      await knownToBeEmpty({ clock, provider });
      await other.enqueueForOrchestrator(start("a"), { delayMs: 500 });
      await other.enqueueForWorker(act("a", 1));
      await takeWork(other, { lockTimeoutMs: 500 });
      expect([await fetchTurn(provider), await fetchWork(provider)]).toEqual([null, null]);
      await clock.advance(1_000);

      expect(await endedOf<unknown>(clock, [look(provider)])).toMatchObject([{ item: { instance: "a" } }]);
    },
  );

  test("finds at once what another connection has committed since somebody else gave up waiting, a moment ago", async () => {
    const { clock, provider, file } = await open();
    await provider.enqueueForOrchestrator(start("a"), { delayMs: 5_000_000 });
    await knownToBeEmpty({ clock, provider });
    const other = await openConnection(file);
    onTestFinished(() => other.close());
    const caller = new AbortController();
    const first = fetchTurn(provider, { ...WAITS, signal: caller.signal });
    caller.abort();
    await first;
    other.exec("UPDATE duroxide_orchestrator_queue SET state = 'ready', visible_at = 0");

    expect(instancesOf(await endedOf(clock, [fetchTurn(provider, WAITS)]))).toEqual(["a"]);
  });

  test("finds at once what a commit has left because nobody who waited could take it", async () => {
    const { clock, provider } = await open();
    const pinned = { ...NAMED, pinnedVersion: semver("2.0.0") };
    await create(provider, "a", { metadata: pinned });
    await knownToBeEmpty({ clock, provider });
    const other = fetchTurn(provider, { ...WAITS, capability: supports("1.0.0..1.9.9") });
    const gpu = fetchWork(provider, { ...WAITS, tagFilter: { kind: "tags", tags: ["gpu"] } });
    await clock.advance(0);
    await Promise.all([provider.enqueueForOrchestrator(raised("a")), provider.enqueueForWorker(act("a", 1))]);

    expect(instancesOf(await endedOf(clock, [fetchTurn(provider, WAITS), other]))).toEqual(["a", "waits"]);
    expect(idsOf(await endedOf(clock, [fetchWork(provider, WAITS), gpu]))).toEqual([1, "waits"]);
  });

  test("is served by the next commit that makes work for it", async () => {
    const { clock, provider } = await open();
    await knownToBeEmpty({ clock, provider });
    const waiting = [fetchTurn(provider, WAITS), fetchTurn(provider, WAITS)];
    await provider.enqueueForOrchestrator(start("a"));

    expect(instancesOf(await endedOf(clock, waiting))).toEqual(["a", "waits"]);
  });
});

describe("a fetch that begins to wait", () => {
  test("is woken at the end of a lock that was made shorter before", async () => {
    const { clock, provider } = await open();
    await provider.enqueueForOrchestrator(start("a"));
    await provider.enqueueForWorker(act("a", 1));
    const [locked, work] = [
      await takeTurn(provider, { lockTimeoutMs: 30_000 }),
      await takeWork(provider, { lockTimeoutMs: 30_000 }),
    ];
    const early = [fetchTurn(provider, { pollTimeoutMs: 10 }), fetchWork(provider, { pollTimeoutMs: 10 })] as const;
    await clock.advance(10);
    expect(await Promise.all(early)).toEqual([null, null]);
    await provider.renewOrchestrationItemLock(locked.lockToken, 1_000);
    await provider.renewWorkItemLock(work.lockToken, 1_000);

    const [forTurn, forWork] = [fetchTurn(provider, WAITS), fetchWork(provider, WAITS)];
    await clock.advance(1_000);
    expect(instancesOf(await endedOf(clock, [forTurn]))).toEqual(["a"]);
    expect(idsOf(await endedOf(clock, [forWork]))).toEqual([1]);
  });
});

describe("a commit that hands out activities and turns", () => {
  test("gives the activities first, and the turns at the same time of the clock", async () => {
    const { clock, provider } = await open();
    await create(provider, "a", { workerItems: [act("a", 2), act("a", 3)] });
    const { lockToken } = await takeWork(provider);
    const given: string[] = [];
    const at = clock.now();
    const waiting = fetchTurn(provider, WAITS).then(() => given.push(`turn after ${clock.now() - at} ms`));
    await clock.advance(0);
    const next = fetchWork(provider)
      .then(() => Promise.resolve())
      .then(() => given.push("activity"));
    await Promise.all([provider.ackWorkItem(lockToken, done("a", 2)), next]);
    await clock.advance(1_000);
    await waiting;

    expect(given).toEqual(["activity", "turn after 0 ms"]);
  });

  test("gives turns at once where there are no activities", async () => {
    const { clock, provider } = await open();
    await create(provider, "a", { workerItems: [act("a", 2)] });
    const { lockToken } = await takeWork(provider);
    let isGiven = false;
    void fetchTurn(provider, WAITS).then(() => {
      isGiven = true;
    });
    await clock.advance(0);
    await provider.ackWorkItem(lockToken, done("a", 2));
    for (let hops = 0; hops < 10; hops += 1) await null;

    expect(isGiven).toBe(true);
  });
});

describe("a provider that is closed", () => {
  test("has served those who waited for what it was asked to write before, or answers them that there is nothing", async () => {
    const { clock, provider, file } = await open();
    const waiting = [1, 2].map(() => fetchTurn(provider, WAITS));
    await clock.advance(0);
    const written = provider.enqueueForOrchestrator(start("a"));
    const closed = provider.close();

    expect(await written).toBe("enqueued");
    await closed;
    const fetched = await Promise.all(waiting);
    await using again = await SqliteProvider.open(file, { clock });
    const left = await fetchTurn(again);
    expect([...instancesOf(fetched), left?.item.instance].filter((name) => name != null)).toEqual(["a"]);
  });
});
