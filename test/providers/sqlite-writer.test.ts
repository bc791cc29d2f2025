// A thread of its own writes what is written down for it. Whoever calls must not notice: not where somebody else commits in between,
// where what was written down is refused, or where the thread dies.

import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { encodeWorkItem } from "../../src/history/codec.js";
import { activity, Client, orchestration, Runtime } from "../../src/index.js";
import { act, completed, done, raised, scheduled, start, started, turn } from "../../src/provider-tests/builders.js";
import { create, fetchTurn, fetchWork, takeTurn, takeWork } from "../../src/provider-tests/steps.js";
import { loadDriver } from "../../src/providers/sqlite/driver.js";
import { type SqliteOptions, SqliteProvider } from "../../src/providers/sqlite/index.js";
import { Writer } from "../../src/providers/sqlite/writer.js";
import { WRITER_PROGRAM, type WriterAnswer } from "../../src/providers/sqlite/writer-program.js";
import { identityOf, WriterThread } from "../../src/providers/sqlite/writer-thread.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { HandClock } from "./hand-clock.js";
import { running, type Warm } from "./running-instance.js";
import { ChildProgram } from "./sqlite-child.js";
import { openConnection } from "./sqlite-connection.js";
import { commitsIn, lockedTurns, openStore } from "./sqlite-store.js";

/** A library in whose threads a process may end at any moment: without one, nothing is written by a thread unless it is told to. */
const { isSafeInThreads } = await loadDriver();

const ABSENT = { ifAbsent: true } as const;
const WAITS = { pollTimeoutMs: 60_000 };

/** What became of the logs that threads were asked to execute. */
function watchThreads(): WriterAnswer[] {
  const answers: WriterAnswer[] = [];
  const execute = WriterThread.prototype.execute;
  const spy = vi.spyOn(WriterThread.prototype, "execute").mockImplementation(async function (this: WriterThread, log) {
    const answer = await execute.call(this, log);
    answers.push(answer);
    return answer;
  });
  onTestFinished(() => spy.mockRestore());
  return answers;
}

/** The first transaction is never written down: nobody knows what was there before. */
async function open(options: SqliteOptions = {}) {
  const answers = watchThreads();
  const { provider, file } = await openStore({ writerThread: "always", ...options });
  await provider.enqueueForOrchestrator(start("first"));
  await takeTurn(provider, { lockTimeoutMs: 86_400_000 });
  const other = await openConnection(file);
  onTestFinished(() => other.close());
  const count = (table: string): unknown =>
    (other.prepare(`SELECT COUNT(*) AS n FROM duroxide_${table}`).get() as { readonly n: number }).n;
  answers.splice(0);
  return { provider, file, other, count, answers };
}

describe("what a thread writes", () => {
  test("is answered when it is there: another connection finds it", async () => {
    const { provider, count, answers } = await open();
    const found: unknown[] = [];
    const names = ["a", "b", "c"];
    await Promise.all(
      names.map((name) =>
        provider.enqueueForOrchestrator(start(name), ABSENT).then(() => void found.push(count("orchestrator_queue"))),
      ),
    );

    expect(found).toEqual([4, 4, 4]);
    expect(answers).toEqual(["yes"]);
  });

  test("can be read by whoever was answered", async () => {
    const { provider, answers } = await open();
    const tokens = await lockedTurns(provider, ["a", "b"]);
    answers.splice(0);
    const acks = ["a", "b"].map(async (name, place) => {
      await provider.ackOrchestrationItem(tokens[place]!, turn({ events: [scheduled(name, 2)] }));
      return provider.read(name);
    });

    expect(await Promise.all(acks)).toEqual(["a", "b"].map((name) => [started(name), scheduled(name, 2)]));
    expect(answers).toEqual(["yes"]);
  });

  test("is one commit for all calls of one moment, and for the turns that go ahead of it", async () => {
    const { provider, file, answers } = await open();
    const warm: Warm = new Map();
    const held = await running(provider, "a", warm);
    const before = await commitsIn(file);
    answers.splice(0);
    const next = fetchTurn(provider, { ...WAITS, warm }).then((locked) =>
      provider.ackOrchestrationItem(locked!.lockToken, turn({ events: [completed("a", 3)] })),
    );
    await Promise.all([provider.ackWorkItem(held.lockToken, done("a", 2)), next]);

    expect(answers).toEqual(["yes"]);
    expect((await commitsIn(file)) - before).toBe(1);
    expect(await provider.read("a")).toHaveLength(3);
  });

  test("is handed to those who wait for it after its commit", async () => {
    const { provider, count } = await open();
    const waiting = fetchWork(provider, WAITS).then((locked) => [locked?.item.id, count("worker_queue")]);
    const [token] = await lockedTurns(provider, ["a"]);
    await provider.ackOrchestrationItem(token!, turn({ workerItems: [act("a", 7)] }));

    expect(await waiting).toEqual([7, 1]);
  });

  test("keeps its order with what needs an answer of the tables, which is run here", async () => {
    const { provider } = await open();
    const [token] = await lockedTurns(provider, ["a"]);
    const outcomes = await Promise.allSettled([
      provider.enqueueForOrchestrator(raised("a", "1")),
      provider.abandonOrchestrationItem(token!),
      provider.enqueueForOrchestrator(raised("a", "2")),
      provider.ackOrchestrationItem(token!, turn({ events: [scheduled("a", 2)] })),
    ]);

    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "fulfilled", "rejected"]);
    expect(outcomes[3]).toMatchObject({ reason: { kind: "lock-lost" } });
    const { item, attemptCount } = await takeTurn(provider);
    expect([item.messages.slice(1), attemptCount]).toEqual([[raised("a", "1"), raised("a", "2")], 2]);
  });
});

describe("what is refused by the thread", () => {
  test("because another connection has committed is run again, by what the tables say now", async () => {
    const { provider, other, answers } = await open();
    const [a, b] = await lockedTurns(provider, ["a", "b"]);
    answers.splice(0);
    other.exec("DELETE FROM duroxide_instance_locks WHERE instance_id = 'a'");
    const outcomes = await Promise.allSettled([
      provider.ackOrchestrationItem(a!, turn({ events: [scheduled("a", 2)] })),
      provider.ackOrchestrationItem(b!, turn({ events: [scheduled("b", 2)] })),
    ]);

    expect(outcomes).toMatchObject([{ reason: { kind: "lock-lost" } }, { status: "fulfilled" }]);
    expect([await provider.read("a"), await provider.read("b")]).toMatchObject([{ length: 1 }, { length: 2 }]);
    expect(answers).not.toContain("yes");
  });

  test("is told as what others have committed: whoever waits looks", async () => {
    const { provider, other } = await open({ crossProcessPollMs: 5 });
    await provider.enqueueForOrchestrator(start("a"), ABSENT);
    await takeTurn(provider);
    const waiting = fetchTurn(provider, WAITS);
    other.exec("DELETE FROM duroxide_instance_locks; UPDATE duroxide_orchestrator_queue SET state = 'ready'");

    expect((await waiting)?.item.instance).toBe("first");
  });

  test("is not hidden by what somebody commits between the thread's commit and its answer", async () => {
    const { provider, other } = await open({ crossProcessPollMs: 5 });
    await provider.enqueueForOrchestrator(start("a"), ABSENT);
    const waiting = fetchWork(provider, WAITS);
    const answered = WriterThread.prototype.execute;
    const spy = vi.spyOn(WriterThread.prototype, "execute").mockImplementationOnce(async function (
      this: WriterThread,
      log,
    ) {
      const answer = await answered.call(this, log);
      other.exec("DELETE FROM duroxide_orchestrator_queue WHERE instance_id = 'b'");
      other.exec(`INSERT INTO duroxide_worker_queue (instance_id, execution_id, activity_id, attempt_count, enqueued_at, work_item)
        VALUES ('b', 1, 7, 0, 1, '${encodeWorkItem(act("b", 7))}')`);
      return answer;
    });
    onTestFinished(() => spy.mockRestore());
    await provider.enqueueForOrchestrator(start("b"), ABSENT);

    expect(await provider.getInstanceStatus("b")).toBeNull();
    expect((await waiting)?.item.id).toBe(7);
  });

  test("because of one call refuses that one, in the words of its store, and its neighbours are committed", async () => {
    const { provider } = await open();
    const tokens = await lockedTurns(provider, ["a", "b", "c"]);
    const outcomes = await Promise.allSettled([
      provider.ackOrchestrationItem(tokens[0]!, turn({ events: [scheduled("a", 2)], workerItems: [act("a", 2)] })),
      provider.ackOrchestrationItem(tokens[1]!, turn({ events: [scheduled("b", 1)], workerItems: [act("b", 2)] })),
      provider.ackOrchestrationItem(tokens[2]!, turn({ events: [scheduled("c", 2)] })),
    ]);

    expect(outcomes).toMatchObject([
      { status: "fulfilled" },
      { reason: { kind: "duplicate-event", operation: "ackOrchestrationItem" } },
      { status: "fulfilled" },
    ]);
    expect((await takeWork(provider)).item.instance).toBe("a");
    expect(await fetchWork(provider)).toBeNull();
  });

  test("of a call alone, found when the rest of it needs an answer, is told in the words of its store", async () => {
    const { provider: before, file } = await openStore();
    await create(before, "a");
    await before.enqueueForOrchestrator(raised("a"));
    await before.close();
    const provider = await SqliteProvider.open(file, { writerThread: "always" }); // It knows of no message yet.
    onTestFinished(() => provider.close());
    const { lockToken } = await takeTurn(provider);
    const taken = turn({ events: [scheduled("a", 1)], orchestratorItems: [raised("a")] });

    await expect(provider.ackOrchestrationItem(lockToken, taken)).rejects.toMatchObject({
      kind: "duplicate-event",
      operation: "ackOrchestrationItem",
    });
    await provider.ackOrchestrationItem(lockToken, turn({ events: [scheduled("a", 2)] }));
    expect(await fetchTurn(provider)).toBeNull();
  });

  test("takes back the turns that went ahead of it, whose acks hear of it", async () => {
    const { provider, other } = await open();
    const warm: Warm = new Map();
    const held = await running(provider, "a", warm);
    const next = fetchTurn(provider, { ...WAITS, warm }).then((locked) => {
      other.exec("UPDATE duroxide_instances SET updated_at = updated_at + 1");
      return provider.ackOrchestrationItem(locked!.lockToken, turn({ events: [completed("a", 3)] }));
    });
    const [outcome] = await Promise.all([provider.ackWorkItem(held.lockToken, done("a", 2)), next.catch((e) => e)]);

    expect(outcome).toBeUndefined();
    expect(await next.catch((error: unknown) => error)).toMatchObject({ kind: "lock-lost" });
    expect((await takeTurn(provider, { warm })).item.messages).toEqual([done("a", 2)]);
  });

  test("because the disk is full changes nothing, and is transient", async () => {
    const { provider, count } = await open({ maxDatabaseBytes: 1_048_576 });
    const outcomes = await Promise.allSettled([
      provider.enqueueForOrchestrator(start("small")),
      provider.enqueueForOrchestrator(start("large", { input: "x".repeat(2_000_000) })),
    ]);

    expect(outcomes).toMatchObject([{ value: "enqueued" }, { reason: { kind: "transient" } }]);
    expect(count("orchestrator_queue")).toBe(2);
  });

  test("takes those along that were written down after it; all of them are run again", async () => {
    const { provider, other, count, answers } = await open();
    await provider.enqueueForOrchestrator(start("a"), ABSENT);
    other.exec("UPDATE duroxide_orchestrator_queue SET due_at = due_at");
    answers.splice(0);
    const starts: Promise<unknown>[] = [];
    for (let n = 0; n < 4; n += 1) {
      starts.push(provider.enqueueForOrchestrator(start(`b${n}`), ABSENT));
      await new Promise((resolve) => setImmediate(resolve));
    }

    expect(await Promise.all(starts)).toEqual(["enqueued", "enqueued", "enqueued", "enqueued"]);
    expect(count("orchestrator_queue")).toBe(6);
    expect(answers.filter((answer) => answer !== "yes").length).toBeGreaterThan(0);
  });
});

describe("whoever waits here for another process to let go of the file", () => {
  test.runIf(isSafeInThreads && availableParallelism() > 1)(
    "is not run beside what is written down meanwhile",
    async () => {
      const clock = new HandClock();
      const { provider, other } = await open({ writerThread: "auto", clock, crossProcessPollMs: 0 });
      const load = (name: string) =>
        Promise.all(Array.from({ length: 100 }, (_, n) => provider.enqueueForWorker(act(`${name}-${n}`, 2))));
      for (let batch = 0; batch < 40; batch += 1) await load(`load-${batch}`);
      const warm: Warm = new Map();
      const [token] = await lockedTurns(provider, ["x"]);
      void fetchTurn(provider, { ...WAITS, warm });
      for (let batch = 0; batch < 8; batch += 1) await load(`more-${batch}`);
      await provider.cleanupOrphanedSessions({ idleTimeoutMs: 1 }); // Needs an answer: for a while transactions are run here.
      other.exec("BEGIN IMMEDIATE");
      const waits = provider.enqueueForOrchestrator(raised("x", "2"));
      for (let round = 0; round < 3; round += 1) await new Promise((resolve) => setImmediate(resolve));

      clock.time += 60; // The while is over, and so is the wait.
      const execute = WriterThread.prototype.execute;
      const spy = vi.spyOn(WriterThread.prototype, "execute").mockImplementationOnce(function (
        this: WriterThread,
        log,
      ) {
        const answer = execute.call(this, log);
        other.exec("ROLLBACK");
        void clock.rounds(1);
        return answer;
      });
      onTestFinished(() => spy.mockRestore());
      warm.set("x", token!);
      const ack = provider.ackOrchestrationItem(
        token!,
        turn({ events: [scheduled("x", 2)], workerItems: [act("x", 2)] }),
      );
      const rest = load("rest");
      await clock.rounds(20);
      await Promise.all([waits, ack, rest]);

      expect(spy).toHaveBeenCalled();
      expect(await provider.read("x")).toEqual([started("x"), scheduled("x", 2)]);
      clock.time += 60_000;
      expect((await takeTurn(provider)).item).toMatchObject({ instance: "x", messages: [raised("x", "2")] });
    },
  );
});

describe("a thread", () => {
  /** With a table of its own, that has ten rows at the most. */
  async function thread(program?: string) {
    const { file } = await openStore();
    const other = await openConnection(file);
    onTestFinished(() => other.close());
    other.exec("CREATE TABLE duroxide_rows (id INTEGER PRIMARY KEY CHECK (id <= 10))");
    const started = new WriterThread(await loadDriver(), file, identityOf(file), ["PRAGMA busy_timeout = 20"], program);
    onTestFinished(() => started.close());
    const inserting = (id: number) => {
      const log = started.newLog();
      log.add("INSERT INTO duroxide_rows (id) VALUES (?)", 1, 1, [id], 0, 1);
      return started.execute(log);
    };
    const rows = () =>
      other
        .prepare("SELECT id FROM duroxide_rows")
        .all()
        .map((row) => (row as { id: number }).id);
    return { started, inserting, rows, other };
  }

  test("executes nothing before it is told what to rely on", async () => {
    const { started, inserting, rows } = await thread();
    expect([await inserting(1), await started.mark(), await inserting(2)]).toEqual(["no", "yes", "yes"]);
    expect(rows()).toEqual([2]);
  });

  test("executes nothing after what it has refused, until it is told anew", async () => {
    const { started, inserting, rows } = await thread();
    const answers = await Promise.all([started.mark(), inserting(1), inserting(11), inserting(2), started.compare()]);
    expect(answers).toEqual(["yes", "yes", "no", "no", "no"]);
    expect([await started.mark(), await inserting(3)]).toEqual(["yes", "yes"]);
    expect(rows()).toEqual([1, 3]);
  });

  test("executes nothing where another connection has committed", async () => {
    const { started, inserting, rows, other } = await thread();
    await Promise.all([started.mark(), inserting(1)]);
    other.exec("INSERT INTO duroxide_rows (id) VALUES (5)");
    expect(await Promise.all([started.compare(), inserting(2)])).toEqual(["others", "no"]);
    await started.mark();
    other.exec("INSERT INTO duroxide_rows (id) VALUES (6)");
    expect([await inserting(2), rows()]).toEqual(["others", [1, 5, 6]]);
  });

  test("is handed values as they are, and so is whoever runs its log himself", async () => {
    const { started, other } = await thread();
    const values = [
      "",
      "a",
      null,
      0,
      1,
      -1,
      2.5,
      -2.5,
      2 ** 53 - 1,
      "größer als 🚀",
      "",
      null,
      "x".repeat(100_000),
      "'\\\n\u0001",
    ];
    other.exec("CREATE TABLE duroxide_values (nr INTEGER PRIMARY KEY, value)");
    const log = started.newLog();
    const insert = "INSERT INTO duroxide_values (value) VALUES (?)";
    for (const place of values.keys()) log.add(insert, 1, 1, values, place, place + 1);
    log.add(`${insert}${", (?)".repeat(values.length - 1)}`, 1, values.length, values, 0, values.length);
    await started.mark();
    expect(await started.execute(log)).toBe("yes");
    const written = other.prepare("SELECT value FROM duroxide_values ORDER BY nr").all();
    expect(written.map((row) => (row as { value: unknown }).value)).toEqual([...values, ...values]);

    const replayed: unknown[] = [];
    log.replay((_sql, those) => {
      replayed.push(...those);
      return those.length;
    });
    expect(replayed).toEqual([...values, ...values]);
  });

  test("executes nothing where other rows are met than were reckoned with", async () => {
    const { started, rows } = await thread();
    await started.mark();
    const log = started.newLog();
    log.add("INSERT INTO duroxide_rows (id) VALUES (?)", 1, 1, [1], 0, 1);
    log.add("DELETE FROM duroxide_rows WHERE id IN (?, ?)", 1, 2, [1, 2], 0, 2);
    expect([await started.execute(log), rows()]).toEqual(["no", []]);
  });

  test("answers at once whoever stands still for it, after all that it was asked before", async () => {
    const { started, inserting, rows, other } = await thread();
    const answers = [started.mark(), inserting(1), inserting(2)];
    expect([started.compareNow(), rows()]).toEqual(["yes", [1, 2]]);
    other.exec("DELETE FROM duroxide_rows");
    expect(started.compareNow()).toBe("others");
    expect(await Promise.all(answers)).toEqual(["yes", "yes", "yes"]);
  });

  test("that dies answers with no, but for what it has committed", async () => {
    const dies = WRITER_PROGRAM.replace(
      "function tell(answers) {",
      "function tell(answers) { if (marks++ > 0) process.exit();",
    );
    const { started, inserting, rows } = await thread(`let marks = 0;${dies}`);
    await started.mark();
    const answers = await Promise.all([inserting(1), inserting(2)]);
    expect(rows()[0]).toBe(1); // Whether the second was there when the thread looked is a matter of time.
    expect(answers).toEqual([1, 2].map((id) => (rows().includes(id) ? "yes" : "no")));
    expect([started.hasEnded, started.compareNow(), await inserting(3)]).toEqual([true, "no", "no"]);
  });

  test("to which something cannot be sent is not used any more: nothing is executed that comes after it", async () => {
    const { started, inserting, rows } = await thread();
    await started.mark();
    const log = started.newLog();
    const packed = vi.spyOn(log, "packed").mockImplementation(() => {
      throw new RangeError("Invalid string length");
    });
    const answers = await Promise.all([inserting(1), started.execute(log), inserting(2), started.compare()]);
    expect([packed.mock.calls.length, answers, started.compareNow()]).toEqual([1, ["yes", "no", "no", "no"], "no"]);
    expect([started.hasEnded, rows()]).toEqual([true, [1]]);
  });

  test("is not handed what cannot be bound: whoever brought it hears why, and its neighbours are committed", async () => {
    const { provider } = await open();
    const tokens = await lockedTurns(provider, ["a", "b"]);
    const status = Symbol("bad") as unknown as "Running";
    const outcomes = await Promise.allSettled([
      provider.ackOrchestrationItem(tokens[0]!, turn({ events: [scheduled("a", 2)], metadata: { status } })),
      provider.ackOrchestrationItem(tokens[1]!, turn({ events: [scheduled("b", 2)] })),
    ]);

    expect(outcomes).toMatchObject([
      { reason: { message: expect.stringContaining("bound") } },
      { status: "fulfilled" },
    ]);
    expect([await provider.read("a"), await provider.read("b")]).toMatchObject([{ length: 1 }, { length: 2 }]);
  });

  test("that dies is missed by nobody: what it has not done is done here, once", async () => {
    const { provider, count, answers } = await open();
    const spy = vi.spyOn(WriterThread.prototype, "hasEnded", "get").mockReturnValue(true);
    onTestFinished(() => spy.mockRestore());
    await Promise.all(["a", "b"].map((name) => provider.enqueueForOrchestrator(start(name), ABSENT)));
    expect([count("orchestrator_queue"), answers]).toEqual([3, []]);
  });

  test("cannot always be had: then everything is written here", async () => {
    const writer = new Writer("always", true, new HandClock(), () => {
      throw new Error("no threads here");
    });
    expect([writer.isWanted(false), writer.isWanted(false)]).toEqual([false, false]);
    await writer.close();
  });
});

describe("a store", () => {
  /** Batches of so many starts, until the thread has written, or has not for 200 of them. Answers how many starts there were. */
  async function load(provider: SqliteProvider, answers: readonly WriterAnswer[], size: number): Promise<number> {
    let starts = 0;
    for (let batch = 0; batch < 200 && answers.length === 0; batch += 1) {
      const names = Array.from({ length: size }, (_, n) => `${size}-${batch}-${n}`);
      await Promise.all(names.map((name) => provider.enqueueForOrchestrator(start(name), ABSENT)));
      starts += size;
    }
    return starts;
  }

  test.runIf(isSafeInThreads)(
    "has a thread where many calls share a transaction for a while, and only then",
    async () => {
      const { provider, answers, count } = await open({ writerThread: "auto", clock: new HandClock() });
      const small = await load(provider, answers, 4);
      expect(answers).toEqual([]);
      const large = await load(provider, answers, 64);
      expect(answers[0]).toBe("yes");
      answers.splice(0);
      for (let n = 0; n < 100; n += 1) await provider.enqueueForOrchestrator(start(`alone-${n}`), ABSENT);
      expect(answers.length).toBeLessThan(50); // It came back.
      expect(count("orchestrator_queue")).toBe(1 + small + large + 100);
    },
  );

  test("has a thread by which most chains are written that have slots for all", async () => {
    const { provider, answers } = await open();
    const step = activity("Step", (_ctx, n: number) => n + 1);
    const chain = orchestration("Chain", async (ctx, n: number) => {
      for (let steps = 0; steps < 3; steps += 1) n = await ctx.scheduleActivity(step, n);
      return n;
    });
    const slots = { orchestrationConcurrency: 50, workerConcurrency: 50 };
    await using _runtime = await Runtime.start({ provider, orchestrations: [chain], activities: [step], ...slots });
    const client = new Client(provider);
    const results = Array.from({ length: 50 }, async (_, nr) => {
      const outputs: number[] = [];
      for (let nth = 0; nth < 4; nth += 1) outputs.push(await (await client.start(chain, { input: nr })).result());
      return outputs;
    });

    expect(await Promise.all(results)).toEqual(Array.from({ length: 50 }, (_, nr) => Array(4).fill(nr + 3)));
    // 200 chains of eight steps, in batches of 25 and more, and half of them brought here: still a good many.
    expect(answers.filter((answer) => answer === "yes").length).toBeGreaterThan(15);
  });

  test("has none for a file that is not the one any more that it has opened", async () => {
    const { file, provider, answers } = await open();
    await provider.enqueueForOrchestrator(start("a"), ABSENT);
    await provider.close();
    await using moved = await SqliteProvider.open(file, { writerThread: "always" });
    for (const part of ["", "-wal", "-shm"]) renameSync(`${file}${part}`, `${file}.moved${part}`);
    await SqliteProvider.open(join(dirname(file), ".", "store.db")).then((other) => other.close()); // Another one of that name.
    answers.splice(0);
    for (let n = 0; n < 5; n += 1) await moved.enqueueForOrchestrator(start(`b${n}`), ABSENT);

    expect(answers).not.toContain("yes");
    expect((await moved.admin.getQueueDepths()).orchestratorQueue).toBe(6);
  });

  test("has none by itself on a clock that a test drives", () => {
    const writer = new Writer("auto", true, new VirtualClock(), () => {
      throw new Error("a thread was started");
    });
    for (let batch = 0; batch < 100; batch += 1) writer.saw(100);
    expect(writer.isWanted(false)).toBe(false);
  });

  test("has none where it is told so, or in memory", async () => {
    const answers = watchThreads();
    const never = await openStore({ writerThread: "never" });
    await load(never.provider, answers, 64);
    await using memory = await SqliteProvider.open(":memory:", { writerThread: "always" });
    await load(memory, answers, 64);
    expect(answers).toEqual([]);
  });

  test("has none by itself with a library that ends the process badly if a thread ends with it", () => {
    const writer = new Writer("auto", false, new HandClock(), () => {
      throw new Error("a thread was started");
    });
    for (let batch = 0; batch < 100; batch += 1) writer.saw(100);
    expect(writer.isWanted(false)).toBe(false);
  });

  test("writes itself beside another one of the same process", async () => {
    const { provider, file, answers } = await open();
    await using beside = await SqliteProvider.open(file, { writerThread: "always" });
    for (let n = 0; n < 5; n += 1) {
      await provider.enqueueForOrchestrator(start(`a${n}`), ABSENT);
      await beside.enqueueForOrchestrator(start(`b${n}`), ABSENT);
    }
    expect(answers).toEqual([]);
  });

  test("that closes while its thread begins, or has just been asked for the first time, is closed", async () => {
    for (let rounds = 0; rounds < 4; rounds += 1) {
      const { provider } = await openStore({ writerThread: "always" });
      await provider.enqueueForOrchestrator(start("first"));
      void provider.enqueueForOrchestrator(start("a"), ABSENT).catch(() => {});
      for (let round = 0; round < rounds; round += 1) await new Promise((resolve) => setImmediate(resolve));
      await provider.close();
      await expect(provider.read("a")).rejects.toMatchObject({ kind: "invalid" });
    }
  });

  test("is closed in a process that has nothing else to do, and goes on", async () => {
    const { file } = await openStore();
    const child = new ChildProgram("writer-close", file);
    expect(await child.line()).toBe("closed");
    expect(await child.ended()).toEqual({ signal: null, stderr: "" });
  });

  test("that closes has answered all that it was asked before", async () => {
    const { provider, count } = await open();
    const starts = Array.from({ length: 300 }, (_, n) => provider.enqueueForOrchestrator(start(`a${n}`), ABSENT));
    await new Promise((resolve) => setImmediate(resolve));
    await provider.close();
    const outcomes = await Promise.allSettled(starts);
    const enqueued = outcomes.filter(({ status }) => status === "fulfilled").length;
    expect(enqueued).toBe(300);
    expect(count("orchestrator_queue")).toBe(301);
  });

  test("lets its process end, and its thread has nothing of what the process was started with", async () => {
    const { file, count } = await open({ writerThread: "never" });
    const preloaded = `${file}.preloaded`;
    writeFileSync(
      `${file}.cjs`,
      `const { workerData } = require("node:worker_threads");
       require("node:fs").appendFileSync(${JSON.stringify(preloaded)}, (workerData?.file ?? "a process") + "\\n");`,
    );
    vi.stubEnv("NODE_OPTIONS", `--require ${file}.cjs`);
    onTestFinished(() => void vi.unstubAllEnvs());
    const child = new ChildProgram("writer", file);

    expect(await child.line()).toBe("60 started");
    expect(await child.ended()).toEqual({ signal: null, stderr: "" });
    expect(count("orchestrator_queue")).toBe(61);
    const loaded = readFileSync(preloaded, "utf8");
    expect([loaded.includes("a process"), loaded.includes(file)]).toEqual([true, false]);
  });
});
