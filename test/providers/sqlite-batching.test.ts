// Writes that are pending at one moment share a transaction. What each of them promises does not change by that.

import { describe, expect, onTestFinished, test } from "vitest";
import { type Clock, systemClock } from "../../src/clock.js";
import type { ProviderError } from "../../src/errors.js";
import { act, done, NAMED, raised, scheduled, start, started, turn } from "../../src/provider-tests/builders.js";
import { fetchTurn, fetchWork, takeTurn, takeWork } from "../../src/provider-tests/steps.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { openConnection } from "./sqlite-connection.js";
import { commitsIn, lockedTurns, openStore } from "./sqlite-store.js";

/** Keeps the file from being written, as another process would. */
async function lockFile(file: string): Promise<() => void> {
  const connection = await openConnection(file);
  connection.exec("BEGIN IMMEDIATE");
  onTestFinished(() => connection.close());
  return () => connection.exec("ROLLBACK");
}

describe("writes that are pending at one moment", () => {
  test("are one commit: ten acks", async () => {
    const { provider, file } = await openStore();
    const names = Array.from({ length: 10 }, (_, place) => `instance-${place}`);
    const tokens = await lockedTurns(provider, names);
    const before = await commitsIn(file);

    await Promise.all(
      tokens.map((token, place) =>
        provider.ackOrchestrationItem(token, turn({ events: [scheduled(names[place]!, 2)] })),
      ),
    );

    expect((await commitsIn(file)) - before).toBe(1);
    for (const name of names) expect(await provider.read(name)).toEqual([started(name), scheduled(name, 2)]);
  });

  test("are one commit, whatever they are", async () => {
    const { provider, file } = await openStore();
    const [token] = await lockedTurns(provider, ["a"]);
    await provider.enqueueForWorker(act("a", 7));
    const work = await takeWork(provider);
    const before = await commitsIn(file);

    const [, , outcome, taken] = await Promise.all([
      provider.ackOrchestrationItem(token!, turn({ workerItems: [act("a", 8)] })),
      provider.ackWorkItem(work.lockToken, done("a", 7)),
      provider.enqueueForOrchestrator(start("b"), { ifAbsent: true }),
      fetchWork(provider),
    ]);

    expect((await commitsIn(file)) - before).toBe(1);
    expect(outcome).toBe("enqueued");
    expect(taken?.item.id).toBe(8);
  });

  test("are as many commits as there are moments", async () => {
    const { provider, file } = await openStore();
    const before = await commitsIn(file);

    for (const name of ["a", "b", "c"]) await provider.enqueueForOrchestrator(start(name));

    expect((await commitsIn(file)) - before).toBe(3);
  });

  test("see each other in their order: of two starts on condition the second finds the first", async () => {
    const { provider } = await openStore();
    const starts = [1, 2].map(() => provider.enqueueForOrchestrator(start("a"), { ifAbsent: true }));

    expect(await Promise.all(starts)).toEqual(["enqueued", "exists"]);
  });

  test("happen at one time", async () => {
    let time = 1_000;
    const clock: Clock = { now: () => ++time, setTimer: systemClock.setTimer };
    const { provider, file } = await openStore({ clock });

    await Promise.all(["a", "b", "c"].map((name) => provider.enqueueForOrchestrator(start(name))));

    const connection = await openConnection(file);
    onTestFinished(() => connection.close());
    const times = connection.prepare("SELECT DISTINCT due_at FROM duroxide_orchestrator_queue").all();
    expect(times).toHaveLength(1);
  });

  test("are answered after the commit: another connection finds what it is told of", async () => {
    const { provider, file } = await openStore();
    const connection = await openConnection(file);
    onTestFinished(() => connection.close());
    const count = connection.prepare("SELECT COUNT(*) AS rows FROM duroxide_orchestrator_queue");
    const found: unknown[] = [];

    await Promise.all(
      ["a", "b", "c"].map((name) =>
        provider.enqueueForOrchestrator(start(name)).then(() => void found.push(count.get())),
      ),
    );

    expect(found).toEqual([{ rows: 3 }, { rows: 3 }, { rows: 3 }]);
  });
});

describe("a call that is refused", () => {
  test("because it has lost its lock rejects alone, and its neighbours share one commit", async () => {
    const { provider, file } = await openStore();
    const [first, last] = await lockedTurns(provider, ["a", "c"]);
    const before = await commitsIn(file);

    const outcomes = await Promise.allSettled([
      provider.ackOrchestrationItem(first!, turn({ events: [scheduled("a", 2)] })),
      provider.ackOrchestrationItem("lost", turn({ events: [scheduled("b", 2)] })),
      provider.ackWorkItem("lost", done("b", 1)),
      provider.ackOrchestrationItem(last!, turn({ events: [scheduled("c", 2)] })),
    ]);

    expect(outcomes).toMatchObject([
      { status: "fulfilled" },
      { status: "rejected", reason: { kind: "lock-lost", operation: "ackOrchestrationItem" } },
      { status: "rejected", reason: { kind: "lock-lost", operation: "ackWorkItem" } },
      { status: "fulfilled" },
    ]);
    expect((await commitsIn(file)) - before).toBe(1);
    for (const name of ["a", "c"]) expect(await provider.read(name)).toHaveLength(2);
    expect(await provider.read("b")).toEqual([]);
  });

  test("after it has written leaves nothing behind, and its neighbours are committed", async () => {
    const { provider } = await openStore();
    const tokens = await lockedTurns(provider, ["a", "b", "c"]);
    const doubled = [scheduled("b", 2), scheduled("b", 3), scheduled("b", 1)];
    const workerItems = [act("b", 2)];

    const outcomes = await Promise.allSettled([
      provider.ackOrchestrationItem(tokens[0]!, turn({ events: [scheduled("a", 2)], workerItems: [act("a", 2)] })),
      provider.ackOrchestrationItem(tokens[1]!, turn({ events: doubled, workerItems })),
      provider.ackOrchestrationItem(tokens[2]!, turn({ events: [scheduled("c", 2)] })),
    ]);

    expect(outcomes).toMatchObject([
      { status: "fulfilled" },
      { status: "rejected", reason: { kind: "duplicate-event" } },
      { status: "fulfilled" },
    ]);
    for (const name of ["a", "c"]) expect(await provider.read(name)).toEqual([started(name), scheduled(name, 2)]);
    expect(await provider.read("b")).toEqual([started("b")]);
    expect((await takeWork(provider)).item.instance).toBe("a");
    expect(await fetchWork(provider)).toBeNull();
    await provider.ackOrchestrationItem(tokens[1]!, turn({ events: [scheduled("b", 2)] }));
    expect(await fetchTurn(provider)).toBeNull();
  });

  test("wakes nobody, and its neighbours wake those that wait for them once, though they were run twice", async () => {
    const { provider } = await openStore();
    const tokens = await lockedTurns(provider, ["a", "b"]);
    const heard: string[] = [];
    for (const name of ["a", "b"]) onTestFinished(provider.wake.watchInstance(name, () => heard.push(name)));

    await Promise.allSettled([
      provider.ackOrchestrationItem(tokens[0]!, turn({ events: [scheduled("a", 2)], metadata: NAMED })),
      provider.ackOrchestrationItem(tokens[1]!, turn({ events: [scheduled("b", 1)] })),
    ]);

    expect(heard).toEqual(["a"]);
  });

  test("because it does not fit on the disk rejects alone", async () => {
    const { provider } = await openStore({ maxDatabaseBytes: 1_048_576 });

    const outcomes = await Promise.allSettled([
      provider.enqueueForOrchestrator(start("small")),
      provider.enqueueForOrchestrator(start("large", { input: "x".repeat(2_000_000) })),
      provider.enqueueForOrchestrator(start("late")),
    ]);

    expect(outcomes).toMatchObject([
      { value: "enqueued" },
      { reason: { kind: "transient", message: expect.stringContaining("disk full") } },
      { value: "enqueued" },
    ]);
    expect((await takeTurn(provider)).item.instance).toBe("small");
    expect((await takeTurn(provider)).item.instance).toBe("late");
    expect(await fetchTurn(provider)).toBeNull();
  });

  test("by a watcher that throws, after its commit, does not touch its neighbours, nor is it run again", async () => {
    const { provider } = await openStore();
    const tokens = await lockedTurns(provider, ["a", "b"]);
    const stop = provider.wake.watchInstance("a", () => {
      throw new Error("listener");
    });
    onTestFinished(stop);

    const outcomes = await Promise.allSettled(
      tokens.map((token, place) => provider.ackOrchestrationItem(token, turn({ workerItems: [act("ab"[place]!, 1)] }))),
    );

    expect(outcomes[1]?.status).toBe("fulfilled");
    const work = [await takeWork(provider), await takeWork(provider), await fetchWork(provider)];
    expect(work.map((locked) => locked?.item.instance)).toEqual(["a", "b", undefined]);
  });
});

describe("writes that wait for another process", () => {
  test("fail alike when it takes too long, each in the words of its own operation", async () => {
    const clock = new VirtualClock();
    const { provider, file } = await openStore({ clock, busyTimeoutMs: 400 });
    const unlock = await lockFile(file);
    const began = clock.now();

    const calls = Promise.allSettled([
      provider.enqueueForOrchestrator(start("a")),
      provider.enqueueForWorker(act("a", 1)),
    ]);
    const outcomes = await clock.run(calls);

    expect(outcomes).toMatchObject([
      { reason: { kind: "transient", operation: "enqueueForOrchestrator" } },
      { reason: { kind: "transient", operation: "enqueueForWorker" } },
    ]);
    expect(clock.now() - began).toBe(400);
    unlock();
    expect(await fetchTurn(provider)).toBeNull();
  });

  test("wait no longer than they were told, though others have waited before them", async () => {
    const clock = new VirtualClock();
    const { provider, file } = await openStore({ clock, busyTimeoutMs: 400 });
    await lockFile(file);
    const began = clock.now();
    const ended = (name: string): Promise<number> =>
      provider.enqueueForOrchestrator(start(name)).then(
        () => Number.NaN,
        () => clock.now() - began,
      );

    const first = ended("a");
    await clock.advance(300);
    const second = ended("b");

    expect(await clock.run(Promise.all([first, second]))).toEqual([400, 700]);
  });

  test("are written when it is done, all of them", async () => {
    const clock = new VirtualClock();
    const { provider, file } = await openStore({ clock });
    const unlock = await lockFile(file);
    const early = ["a", "b"].map((name) => provider.enqueueForOrchestrator(start(name)));
    await clock.advance(50);
    const late = provider.enqueueForOrchestrator(start("c"));
    await clock.advance(50);
    unlock();

    expect(await clock.run(Promise.all([...early, late]))).toEqual(["enqueued", "enqueued", "enqueued"]);
  });
});

describe("a provider that is closed", () => {
  test("has written what it was asked to before, and refuses what comes after", async () => {
    const { provider, file } = await openStore();
    const before = [provider.enqueueForOrchestrator(start("a")), provider.enqueueForOrchestrator(start("b"))];
    const closed = provider.close();
    const after = await Promise.allSettled([provider.enqueueForOrchestrator(start("c")), provider.read("a")]);

    expect(await Promise.all(before)).toEqual(["enqueued", "enqueued"]);
    for (const outcome of after) {
      const { reason } = outcome as { readonly reason: ProviderError };
      expect(reason).toMatchObject({ kind: "invalid", message: expect.stringContaining("is closed") });
    }
    await closed;
    await using again = await SqliteProvider.open(file);
    expect([(await takeTurn(again)).item.instance, (await takeTurn(again)).item.instance]).toEqual(["a", "b"]);
    expect(await fetchTurn(again)).toBeNull();
  });
});

describe("virtual time", () => {
  test("stands still while writes follow each other, however many", async () => {
    const clock = new VirtualClock();
    const { provider } = await openStore({ clock });
    const times: number[] = [];
    const writeMany = async (): Promise<void> => {
      for (let count = 0; count < 100; count += 1) {
        await provider.enqueueForOrchestrator(raised("a"));
        times.push(clock.now());
      }
    };
    const began = clock.now();
    clock.setTimer(10, () => void writeMany());
    clock.setTimer(11, () => {});

    await clock.advance(20);

    expect(times).toEqual(Array.from({ length: 100 }, () => began + 10));
  });
});
