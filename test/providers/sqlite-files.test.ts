import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Clock, systemClock } from "../../src/clock.js";
import { InvalidOptionsError } from "../../src/errors.js";
import type { StartOrchestration } from "../../src/history/work-item.js";
import {
  act,
  done,
  kvAllCleared,
  kvSet,
  NAMED,
  queued,
  raised,
  start,
  started,
  statusSet,
  timer,
  turn,
} from "../../src/provider-tests/builders.js";
import {
  commitNext,
  create,
  fetchTurn,
  fetchWork,
  runTurn,
  takeTurn,
  takeWork,
} from "../../src/provider-tests/steps.js";
import { type DriverSources, loadDriver } from "../../src/providers/sqlite/driver.js";
import * as fetchOrchestration from "../../src/providers/sqlite/fetch-orchestration.js";
import * as history from "../../src/providers/sqlite/history.js";
import { type SqliteOptions, SqliteProvider } from "../../src/providers/sqlite/index.js";
import * as orchestratorQueue from "../../src/providers/sqlite/orchestrator-queue.js";
import * as sessions from "../../src/providers/sqlite/sessions.js";
import * as workerQueue from "../../src/providers/sqlite/worker-queue.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { ChildProgram } from "./sqlite-child.js";
import { openConnection } from "./sqlite-connection.js";

/** A path in a directory of its own, which goes with the test. */
async function newFile(name = "store.db"): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "duroxide-sqlite-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return join(directory, name);
}

async function open(file: string, options: SqliteOptions = {}): Promise<SqliteProvider> {
  const provider = await SqliteProvider.open(file, { durability: "process-crash", ...options });
  onTestFinished(() => provider.close());
  return provider;
}

/** Does something to the file behind the provider's back. */
async function tamper(file: string, sql: string): Promise<void> {
  const connection = await openConnection(file);
  connection.exec(sql);
  connection.close();
}

describe("a store that is opened again", () => {
  test("has everything that was committed", async () => {
    const file = await newFile();
    const clock = new VirtualClock();
    const before = await open(file, { clock });
    const status = statusSet("a", 3, "half way");
    await create(before, "a", { events: [started("a"), kvSet("a", 2, "key", "value", 7), status] });
    await create(before, "over", { metadata: { ...NAMED, status: "Completed", output: "42" } });
    await before.enqueueForOrchestrator(timer("a", 9, clock.now() + 1_000));
    await before.enqueueForWorker(act("a", 4, { tag: "gpu", sessionId: "s" }));
    await takeWork(before, { session: { ownerId: "w", lockTimeoutMs: 5_000 }, tagFilter: { kind: "any" } });
    await before.close();

    const after = await open(file, { clock });

    expect(await after.read("a")).toEqual([started("a"), kvSet("a", 2, "key", "value", 7), status]);
    expect(await after.getKvValue("a", "key")).toBe("value");
    expect(await after.getCustomStatus("a", 0)).toEqual({ status: "half way", version: 1 });
    expect(await after.getInstanceStatus("over")).toMatchObject({ status: "Completed", output: "42" });
    expect(await after.renewSessionLock(["w"], { extendForMs: 5_000, idleTimeoutMs: 5_000 })).toBe(1);
    expect(await fetchTurn(after)).toBeNull();
    await clock.advance(1_000);
    expect((await takeTurn(after)).item.messages).toEqual([timer("a", 9, clock.now())]);
  });

  test("still honours the locks that were taken before", async () => {
    const file = await newFile();
    const clock = new VirtualClock();
    const before = await open(file, { clock });
    await before.enqueueForOrchestrator(start("a"));
    const { lockToken } = await takeTurn(before);
    await before.close();

    const after = await open(file, { clock });

    expect(await fetchTurn(after)).toBeNull();
    await after.ackOrchestrationItem(lockToken, turn({ events: [started("a")], metadata: NAMED }));
    expect(await after.read("a")).toHaveLength(1);
  });

  test("has what a process was told is written, though it was killed the moment after", async () => {
    const file = await newFile();
    const program = new ChildProgram("kill", file);
    expect((await program.ended()).signal).toBe("SIGKILL");

    const provider = await open(file);

    expect(await provider.read("killed")).toHaveLength(2);
    expect(await provider.getKvValue("killed", "step")).toBe("1");
    expect(await fetchTurn(provider)).toBeNull();
  });

  test("is opened by many at once, and migrated by one", async () => {
    const file = await newFile();
    const programs = Array.from({ length: 3 }, () => new ChildProgram("open", file, "owner"));
    const here = Array.from({ length: 5 }, () => open(file));

    for (const program of programs) expect(JSON.parse(await program.line())).toEqual({ outcome: "opened" });
    await Promise.all(here);
    const connection = await openConnection(file);
    expect(connection.prepare("SELECT version, name FROM duroxide_migrations").all()).toEqual([
      { version: 1, name: "initial" },
    ]);
    connection.close();
  });
});

describe("a file that is used for something else too", () => {
  test("keeps its own tables, and its own user_version", async () => {
    const file = await newFile();
    await tamper(file, "CREATE TABLE orders (id INTEGER); INSERT INTO orders VALUES (7); PRAGMA user_version = 3");

    await create(await open(file), "a");

    const connection = await openConnection(file);
    expect(connection.prepare("SELECT id FROM orders").all()).toEqual([{ id: 7 }]);
    expect(connection.prepare("PRAGMA user_version").get()).toEqual({ user_version: 3 });
    const foreign = "SELECT name FROM sqlite_schema WHERE name NOT LIKE 'duroxide%' AND name NOT LIKE 'sqlite%'";
    expect(connection.prepare(foreign).all()).toEqual([{ name: "orders" }]);
    connection.close();
  });
});

describe("a file that cannot be a store is refused", () => {
  test("when it is no database", async () => {
    const file = await newFile("notes.txt");
    await writeFile(file, "These are not the pages you are looking for. ".repeat(100));

    await expect(SqliteProvider.open(file)).rejects.toMatchObject({
      kind: "invalid",
      message: expect.stringContaining(`'${file}' is not a SQLite database`),
    });
    expect(await readFile(file, "utf8")).toContain("not the pages");
  });

  test("when its directory does not exist", async () => {
    const file = join(await newFile("missing"), "store.db");
    await expect(SqliteProvider.open(file)).rejects.toMatchObject({
      kind: "invalid",
      message: expect.stringContaining("directory must exist"),
    });
  });

  test("when it is a directory", async () => {
    const folder = join(await newFile(), "..");
    await expect(SqliteProvider.open(relative(process.cwd(), folder))).rejects.toMatchObject({
      kind: "invalid",
      message: expect.stringContaining(`cannot open '${folder}': it is a directory. Name a file in it`),
    });
  });

  test("when a newer version has written it, and it says which versions and what to do", async () => {
    const file = await newFile();
    await (await open(file)).close();
    await tamper(file, "INSERT INTO duroxide_migrations VALUES (99, 'from the future', 0)");

    await expect(SqliteProvider.open(file)).rejects.toMatchObject({
      kind: "invalid",
      message: expect.stringMatching(/schema version 99.*none above 1.*Update duroxide-ts/),
    });
  });

  test("when it cannot have a write-ahead log", async () => {
    // Early versions of node:sqlite know no URIs, and find no directory of that name.
    await expect(SqliteProvider.open(`file:${await newFile()}?mode=memory`)).rejects.toMatchObject({
      kind: "invalid",
      message: expect.stringMatching(/cannot use write-ahead logging|cannot open/),
    });
  });

  test.skipIf(process.platform === "win32")("when it can only be read", async () => {
    const file = await newFile();
    await (await open(file)).close();
    await chmod(file, 0o444);
    await chmod(join(file, ".."), 0o555);

    const answer = JSON.parse(await new ChildProgram("open", file, "reader").line());

    await chmod(join(file, ".."), 0o755);
    expect(answer).toMatchObject({ outcome: "refused", kind: "invalid" });
    expect(answer.message).toContain("must be writable");
  });
});

describe("a database that has reached its limit", () => {
  const limit: SqliteOptions = { maxDatabaseBytes: 1_048_576 };
  const large = (instance: string): StartOrchestration => start(instance, { input: "x".repeat(20_000) });

  /** The instances that found room. */
  async function fill(provider: SqliteProvider): Promise<string[]> {
    const stored: string[] = [];
    for (;;) {
      const instance = `large-${stored.length}`;
      const error = await provider.enqueueForOrchestrator(large(instance)).catch((thrown: unknown) => thrown);
      if (error !== "enqueued") {
        expect(error).toMatchObject({ kind: "transient", message: expect.stringContaining("disk full") });
        return stored;
      }
      stored.push(instance);
    }
  }

  test("refuses what does not fit, and loses nothing", async () => {
    const file = await newFile();
    const provider = await open(file, limit);
    const stored = await fill(provider);
    await provider.close();

    const roomier = await open(file);

    const found: string[] = [];
    for (let locked = await fetchTurn(roomier); locked !== null; locked = await fetchTurn(roomier)) {
      found.push(locked.item.instance);
    }
    expect(stored.length).toBeGreaterThan(10);
    expect(found).toEqual(stored);
  });

  test("works on as soon as there is room again", async () => {
    const provider = await open(await newFile(), limit);
    const stored = await fill(provider);

    await commitNext(provider, stored[0]!);
    await commitNext(provider, stored[1]!);

    expect(await provider.enqueueForOrchestrator(large("late"))).toBe("enqueued");
  });

  test("rolls a turn back whole when half of it does not fit", async () => {
    const provider = await open(await newFile(), limit);
    await create(provider, "a");
    await provider.enqueueForOrchestrator(raised("a"));
    const { lockToken } = await takeTurn(provider);
    await fill(provider);
    const tooMuch = turn({
      events: [kvSet("a", 2, "small", "1"), kvSet("a", 3, "large", "x".repeat(900_000))],
      workerItems: [act("a", 2)],
    });

    await expect(provider.ackOrchestrationItem(lockToken, tooMuch)).rejects.toMatchObject({ kind: "transient" });

    expect(await provider.read("a")).toEqual([started("a")]);
    expect(await provider.getKvAllValues("a")).toEqual(new Map());
    expect(await fetchWork(provider)).toBeNull();
    await provider.ackOrchestrationItem(lockToken, turn());
  });
});

describe("a file that another process has locked", () => {
  test("is read as ever, and refuses to be written after the timeout, to be tried again later", async () => {
    const file = await newFile();
    const clock = new VirtualClock();
    const provider = await open(file, { clock, busyTimeoutMs: 400 });
    await create(provider, "a");
    const program = new ChildProgram("lock", file);
    expect(await program.line()).toBe("locked");

    expect(await provider.read("a")).toHaveLength(1);
    const began = clock.now();
    await expect(clock.run(provider.enqueueForOrchestrator(raised("a")))).rejects.toMatchObject({
      kind: "transient",
      retryable: true,
      message: expect.stringContaining("locked by another process"),
    });
    expect(clock.now() - began).toBeGreaterThanOrEqual(400);

    program.send("release");
    expect(await program.line()).toBe("released");
    expect(await provider.enqueueForOrchestrator(raised("a"))).toBe("enqueued");
    expect((await takeTurn(provider)).item.messages).toEqual([raised("a")]);
  });

  test("is written by those who wait for it, once it is released", async () => {
    const file = await newFile();
    const clock = new VirtualClock();
    const provider = await open(file, { clock });
    const program = new ChildProgram("lock", file);
    expect(await program.line()).toBe("locked");

    const waiting = ["a", "b", "c"].map((instance) => provider.enqueueForOrchestrator(start(instance)));
    await clock.advance(100);
    program.send("release");
    expect(await program.line()).toBe("released");

    expect(await clock.run(Promise.all(waiting))).toEqual(["enqueued", "enqueued", "enqueued"]);
  });

  test("is not opened before it is released", async () => {
    const file = await newFile();
    const clock = new VirtualClock();
    await (await open(file)).close();
    const program = new ChildProgram("lock", file);
    expect(await program.line()).toBe("locked");

    await expect(clock.run(SqliteProvider.open(file, { clock, busyTimeoutMs: 200 }))).rejects.toMatchObject({
      kind: "transient",
      message: expect.stringContaining("open: the database"),
    });

    program.send("release");
    expect(await program.line()).toBe("released");
    await open(file);
  });

  test("does not keep a provider from being closed", async () => {
    const file = await newFile();
    const clock = new VirtualClock();
    const provider = await open(file, { clock });
    const program = new ChildProgram("lock", file);
    expect(await program.line()).toBe("locked");

    const waiting = provider.enqueueForOrchestrator(start("a"));
    await provider.close();

    await expect(waiting).rejects.toMatchObject({ kind: "invalid", message: expect.stringContaining("closed") });
    program.send("release");
    expect(await program.line()).toBe("released");
  });
});

describe("a damaged row", () => {
  test("of a history is told to the dispatcher by its fetch, and to a reader by an error", async () => {
    const file = await newFile();
    const provider = await open(file);
    await create(provider, "a", { events: [started("a"), kvSet("a", 2, "key", "value")] });
    await provider.enqueueForOrchestrator(raised("a"));
    await tamper(file, `UPDATE duroxide_history SET event_data = '{"event_id": 2}' WHERE event_id = 2`);

    const { item, lockToken, attemptCount } = await takeTurn(provider);

    expect(item).toMatchObject({ instance: "a", orchestrationName: "TestOrch", history: [], kvSnapshot: new Map() });
    expect(item.historyError).toContain("event 2");
    expect(attemptCount).toBe(1);
    await expect(provider.read("a")).rejects.toMatchObject({
      kind: "corrupt",
      message: expect.stringContaining("'a'"),
    });
    await expect(provider.readWithExecution("a", 1)).rejects.toMatchObject({ kind: "corrupt" });
    await provider.ackOrchestrationItem(lockToken, turn({ events: [{ ...started("a"), eventId: 99_999 }] }));
  });

  test("in the orchestrator queue is skipped, and goes with the ack of its batch", async () => {
    const file = await newFile();
    const provider = await open(file);
    await create(provider, "a");
    await provider.enqueueForOrchestrator(raised("a", "broken"));
    await provider.enqueueForOrchestrator(raised("a", "sound"));
    await tamper(
      file,
      `UPDATE duroxide_orchestrator_queue SET work_item = '{"Nonsense":{}}' WHERE work_item LIKE '%broken%'`,
    );

    const { item, lockToken } = await takeTurn(provider);

    expect(item.messages).toEqual([raised("a", "sound")]);
    await provider.ackOrchestrationItem(lockToken, turn());
    expect(await fetchTurn(provider)).toBeNull();
  });

  test("alone in the queue of an instance that nobody started stands in nobody's way", async () => {
    const file = await newFile();
    const provider = await open(file);
    await provider.enqueueForOrchestrator(start("broken"));
    await provider.enqueueForOrchestrator(start("sound"));
    await tamper(file, "UPDATE duroxide_orchestrator_queue SET work_item = '?' WHERE instance_id = 'broken'");

    expect((await takeTurn(provider)).item.instance).toBe("sound");
    expect(await fetchTurn(provider)).toBeNull();
    expect(await provider.getInstanceStatus("broken")).toBeNull();
  });

  test("in the worker queue is counted and set aside for good, and the next one is fetched", async () => {
    const file = await newFile();
    const clock = new VirtualClock();
    const provider = await open(file, { clock });
    await provider.enqueueForWorker(act("a", 1));
    await provider.enqueueForWorker(act("a", 2));
    await tamper(file, "UPDATE duroxide_worker_queue SET work_item = '?' WHERE activity_id = 1");

    expect((await takeWork(provider)).item).toEqual(act("a", 2));

    await clock.advance(86_400_000);
    expect((await takeWork(provider)).item).toEqual(act("a", 2));
    expect(await fetchWork(provider)).toBeNull();
    const connection = await openConnection(file);
    const row = connection.prepare("SELECT attempt_count FROM duroxide_worker_queue WHERE activity_id = 1").get();
    expect(row).toEqual({ attempt_count: 1 });
    connection.close();
  });
});

describe("what is lost on purpose", () => {
  test("is told to whoever asked to be told", async () => {
    const warnings: string[] = [];
    const provider = await open(":memory:", { onWarning: (message) => warnings.push(message) });
    await provider.enqueueForOrchestrator(queued("nobody"));

    expect(await fetchTurn(provider)).toBeNull();

    expect(warnings).toEqual(["Dropped 1 queue message(s) to instance 'nobody', which nobody has started."]);
  });

  test("harms nobody when the listener throws", async () => {
    const onWarning = (): void => {
      throw new Error("listener is broken");
    };
    const provider = await open(":memory:", { onWarning });
    await provider.enqueueForOrchestrator(queued("nobody"));

    expect(await fetchTurn(provider)).toBeNull();
  });
});

describe("messages that ran ahead of their start", () => {
  test("are looked at once, not by every fetch", async () => {
    const file = await newFile();
    const provider = await open(file);
    await provider.enqueueForOrchestrator(raised("early"));

    expect(await fetchTurn(provider)).toBeNull();

    const connection = await openConnection(file);
    const row = connection.prepare("SELECT state, attempt_count FROM duroxide_orchestrator_queue").get();
    expect(row).toEqual({ state: "parked", attempt_count: 0 });
    connection.close();
  });

  test("come with it, in order, even if it is delayed", async () => {
    const clock = new VirtualClock();
    const provider = await open(":memory:", { clock });
    await provider.enqueueForOrchestrator(start("a"), { delayMs: 1_000 });
    await provider.enqueueForOrchestrator(raised("a"));
    await provider.enqueueForOrchestrator(queued("a"));
    expect(await fetchTurn(provider)).toBeNull();

    await clock.advance(1_000);

    const { item, attemptCount } = await takeTurn(provider);
    expect(item.messages).toEqual([start("a"), raised("a"), queued("a")]);
    expect(attemptCount).toBe(1);
  });

  test("are fetched once the instance has a history", async () => {
    const provider = await open(":memory:");
    await provider.enqueueForOrchestrator(raised("a"));
    expect(await fetchTurn(provider)).toBeNull();

    await provider.appendWithExecution("a", 1, [started("a")]);

    expect((await takeTurn(provider)).item).toMatchObject({ orchestrationName: "TestOrch", messages: [raised("a")] });
  });
});

describe("two processes on one file", () => {
  test("claim 2,000 instances and 2,000 activities: none twice, none lost, and no lock of the file is noticed", async () => {
    const file = await newFile();
    const provider = await open(file);
    const numbers = Array.from({ length: 2_000 }, (_, number) => number + 1);
    for (const number of numbers) {
      await provider.enqueueForOrchestrator(start(`instance-${number}`));
      await provider.enqueueForWorker(act("elsewhere", number));
    }
    const programs = [new ChildProgram("claim", file), new ChildProgram("claim", file)];
    for (const program of programs) expect(await program.line()).toBe("ready");

    for (const program of programs) program.send("go");
    const claims = await Promise.all(programs.map(async (program) => JSON.parse(await program.line())));

    const instances = claims.flatMap((claim) => claim.instances);
    const activities = claims.flatMap((claim) => claim.activities);
    expect(instances.sort()).toEqual(numbers.map((number) => `instance-${number}`).sort());
    expect(activities.sort((a, b) => a - b)).toEqual(numbers);
    for (const claim of claims) {
      expect(claim.errors).toEqual([]);
      expect(claim.instances.length).toBeGreaterThan(0);
      expect(claim.activities.length).toBeGreaterThan(0);
    }
    expect(await provider.fetchOrchestrationItem({ lockTimeoutMs: 1_000 })).toBeNull();
    expect(await provider.fetchWorkItem({ lockTimeoutMs: 1_000 })).toBeNull();
  }, 120_000);

  test("wake each other's long polls", async () => {
    const file = await newFile();
    const clock = new VirtualClock();
    const [here, there] = [await open(file, { clock }), await open(file, { clock })];
    const message = fetchTurn(here, { pollTimeoutMs: 30_000 });
    const activity = fetchWork(here, { pollTimeoutMs: 30_000 });
    await clock.advance(1_000);

    await there.enqueueForOrchestrator(start("a"));
    await there.enqueueForWorker(act("a", 1));
    await clock.advance(50);

    const began = clock.now();
    expect((await message)?.item.instance).toBe("a");
    expect((await activity)?.item).toEqual(act("a", 1));
    expect(clock.now()).toBe(began);
  });

  test("tell each other that an instance may have changed", async () => {
    const file = await newFile();
    const clock = new VirtualClock();
    const [here, there] = [await open(file, { clock }), await open(file, { clock })];
    let calls = 0;
    const unwatch = here.wake.watchInstance("a", () => {
      calls += 1;
    });

    await clock.advance(500);
    expect(calls).toBe(0);
    await there.enqueueForOrchestrator(start("a"));
    await clock.advance(50);
    expect(calls).toBe(1);

    unwatch();
    await there.enqueueForOrchestrator(start("a"));
    await clock.advance(500);
    expect(calls).toBe(1);
  });

  test("take over what the other one's lock has let go", async () => {
    const file = await newFile();
    const clock = new VirtualClock();
    const [here, there] = [await open(file, { clock }), await open(file, { clock })];
    await there.enqueueForOrchestrator(start("a"));
    await takeTurn(there, { lockTimeoutMs: 5_000 });

    const found = fetchTurn(here, { pollTimeoutMs: 30_000 });
    const began = clock.now();

    expect((await clock.run(found))?.attemptCount).toBe(2);
    expect(clock.now() - began).toBe(5_000);
  });
});

describe("a provider that nobody waits for", () => {
  test("has no timers", async () => {
    const clock = new VirtualClock();
    const provider = await open(await newFile(), { clock });
    await provider.enqueueForOrchestrator(start("a"), { delayMs: 5_000 });
    await provider.enqueueForOrchestrator(start("b"));
    await takeTurn(provider);
    await provider.enqueueForWorker(act("b", 1));
    await takeWork(provider);

    expect(clock.pendingTimers).toBe(0);
  });

  test("has none left when the wait is over, however it ended", async () => {
    const clock = new VirtualClock();
    const provider = await open(await newFile(), { clock });
    const abort = new AbortController();
    const polls = [
      fetchTurn(provider, { pollTimeoutMs: 1_000 }),
      fetchTurn(provider, { pollTimeoutMs: 60_000, signal: abort.signal }),
      fetchWork(provider, { pollTimeoutMs: 60_000 }),
    ];
    const unwatch = provider.wake.watchInstance("a", () => {});
    await clock.advance(1_000);
    abort.abort();
    await provider.enqueueForWorker(act("a", 1));

    expect((await Promise.all(polls)).map((found) => found !== null)).toEqual([false, false, true]);
    unwatch();
    unwatch();
    expect(clock.pendingTimers).toBe(0);
  });

  test("does not look at the file for others when it is told so", async () => {
    const file = await newFile();
    const clock = new VirtualClock();
    const here = await open(file, { clock, crossProcessPollMs: 0 });
    const there = await open(file, { clock });
    const found = fetchTurn(here, { pollTimeoutMs: 1_000 });
    await clock.advance(10);
    expect(clock.pendingTimers).toBe(1);

    await there.enqueueForOrchestrator(start("a"));
    await clock.advance(900);
    expect(clock.pendingTimers).toBe(1);

    await clock.advance(100);
    expect(await found).toBeNull();
    expect((await fetchTurn(here))?.item.instance).toBe("a"); // Whoever asks looks.
  });
});

describe("a clock that is set back", () => {
  async function openAt(): Promise<{ provider: SqliteProvider; clock: Clock & { time: number } }> {
    const clock = { time: 10_000, now: () => clock.time, setTimer: systemClock.setTimer };
    return { provider: await open(":memory:", { clock }), clock };
  }

  test("hides what was enqueued in its future, and locks nothing", async () => {
    const { provider, clock } = await openAt();
    await provider.enqueueForOrchestrator(start("a"));

    clock.time = 9_000;
    expect(await fetchTurn(provider)).toBeNull();

    clock.time = 10_000;
    expect((await takeTurn(provider)).attemptCount).toBe(1);
  });

  test("does not keep an ack from removing its whole batch", async () => {
    const { provider, clock } = await openAt();
    await provider.enqueueForOrchestrator(start("a"));
    const { lockToken } = await takeTurn(provider);

    clock.time = 9_000;
    await provider.ackOrchestrationItem(lockToken, turn({ events: [started("a")], metadata: NAMED }));

    clock.time = 20_000_000;
    expect(await fetchTurn(provider)).toBeNull();
  });
});

describe("text of any kind", () => {
  const texts = [
    "",
    '"',
    '"quoted"',
    "a\0b",
    "\0",
    "\ud800",
    "x\udc00y",
    "名前/ключ 🎉 ",
    "'; DROP TABLE x; --",
    "\\u0000",
  ];

  test.each(texts.map((text) => [JSON.stringify(text), text]))("such as %s comes back as it was", async (_, text) => {
    const file = await newFile();
    const provider = await open(file);
    const instance = `i${text}`;
    const events = [started(instance), kvSet(instance, 2, text, text), statusSet(instance, 3, text)];
    await create(provider, instance, {
      events,
      metadata: { orchestrationName: `n${text}`, orchestrationVersion: `v${text}`, status: "Completed", output: text },
      workerItems: [act(instance, 1, { tag: `t${text}`, sessionId: `s${text}` })],
    });
    await provider.close();
    const again = await open(file);

    expect(await again.read(instance)).toEqual(events);
    expect(await again.getKvValue(instance, text)).toBe(text);
    expect(await again.getKvAllValues(instance)).toEqual(new Map([[text, text]]));
    expect(await again.getInstanceStats(instance)).toMatchObject({ kvTotalValueBytes: Buffer.byteLength(text) });
    expect(await again.getInstanceStatus(instance)).toMatchObject({
      orchestrationName: `n${text}`,
      orchestrationVersion: `v${text}`,
      output: text,
      customStatus: text,
    });
    const session = { ownerId: `o${text}`, lockTimeoutMs: 1_000 };
    const work = await takeWork(again, { session, tagFilter: { kind: "tags", tags: [`t${text}`] } });
    expect(work.item).toEqual(act(instance, 1, { tag: `t${text}`, sessionId: `s${text}` }));
    expect(await again.renewSessionLock([`o${text}`], { extendForMs: 1_000, idleTimeoutMs: 1_000 })).toBe(1);
    await again.enqueueForOrchestrator(raised(instance, "name", text));
    const { item } = await takeTurn(again);
    expect(item).toMatchObject({ instance, messages: [raised(instance, "name", text)] });
    expect(item.kvSnapshot).toEqual(new Map([[text, { value: text, lastUpdatedAtMs: 0 }]]));
  });

  test("does not make two instances one", async () => {
    const provider = await open(":memory:");
    for (const instance of ["a", "a\0b", "a\0c", '"a"', "\ud800", "\udbff", "\ufffd"]) {
      await runTurnOf(provider, instance);
    }
    for (const instance of ["a", "a\0b", "a\0c", '"a"', "\ud800", "\udbff", "\ufffd"]) {
      expect(await provider.getKvAllValues(instance)).toEqual(new Map([["who", instance]]));
    }
  });

  async function runTurnOf(provider: SqliteProvider, instance: string): Promise<void> {
    await create(provider, instance);
    await runTurn(provider, instance, { events: [kvAllCleared(instance, 2), kvSet(instance, 3, "who", instance)] });
  }
});

describe("the statements", () => {
  const statements = [fetchOrchestration, orchestratorQueue, workerQueue, sessions, history].flatMap((module) =>
    Object.entries(module).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );

  test.each(statements)("%s finds its rows by an index, without sorting", async (_, sql) => {
    const file = await newFile();
    await (await open(file)).close();
    const connection = await openConnection(file);
    onTestFinished(() => connection.close());

    const plan = connection.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { readonly detail: string }[];

    const scans = plan.map((step) => step.detail).filter((detail) => /^SCAN|TEMP B-TREE/.test(detail));
    // The candidate is the first of an ordered walk; the tags of the recursive query are a handful; who is asked for is one.
    const allowed = [
      "SCAN q USING INDEX duroxide_messages_ready",
      "SCAN duroxide_orchestrator_queue USING COVERING INDEX duroxide_messages_ready",
      "SCAN duroxide_worker_queue USING INDEX duroxide_activities_ready",
      "SCAN ready",
      "SCAN CONSTANT ROW",
      "SCAN asked",
    ];
    expect(scans.filter((detail) => !allowed.includes(detail))).toEqual([]);
  });
});

describe("options", () => {
  test.each<[string, object, string]>([
    ["a misspelled name", { busyTimeout: 5 }, "unknown option 'busyTimeout'. Did you mean 'busyTimeoutMs'?"],
    ["a wrong word", { durability: "fast" }, `option 'durability' must be "full" or "process-crash", not "fast"`],
    ["a negative timeout", { busyTimeoutMs: -1 }, "option 'busyTimeoutMs' must be an integer from 0"],
    ["a fractional poll", { crossProcessPollMs: 0.5 }, "option 'crossProcessPollMs' must be an integer from 0"],
    ["too little space", { maxDatabaseBytes: 1_000 }, "option 'maxDatabaseBytes' must be an integer from 1048576"],
    ["no clock", { clock: {} as never }, "option 'clock' must be a clock with now() and setTimer()"],
    ["no source of ids", { newId: "id" }, "option 'newId' must be a function"],
  ])("with %s are refused", async (_, options, message) => {
    const opened = SqliteProvider.open(":memory:", options);
    await expect(opened).rejects.toThrow(InvalidOptionsError);
    await expect(opened).rejects.toThrow(`SqliteProvider.open: ${message}`);
  });

  test("need a file", async () => {
    await expect(SqliteProvider.open("")).rejects.toThrow(InvalidOptionsError);
  });

  test.each<[unknown, string]>([
    ["sqlite:./app.db", "'sqlite:…' looks like a URL. Pass a path"],
    ["postgres://localhost/app", "'postgres:…' looks like a URL. Pass a path"],
    [new URL("file:///app.db"), "not a URL; use fileURLToPath(url)"],
  ])("need a path, which %s is not", async (file, message) => {
    const opened = SqliteProvider.open(file as string);
    await expect(opened).rejects.toThrow(InvalidOptionsError);
    await expect(opened).rejects.toThrow(message);
  });

  test("belong to open: a constructed provider says so", () => {
    const Constructor = SqliteProvider as unknown as new (file: string) => SqliteProvider;
    expect(() => new Constructor("./x.db")).toThrow("Use await SqliteProvider.open(file)");
  });

  test("name the file whole in what goes wrong, wherever the process stands", async () => {
    const file = join(await newFile("missing"), "store.db");
    await expect(SqliteProvider.open(relative(process.cwd(), file))).rejects.toThrow(`'${file}'`);
  });

  test("that are undefined are the defaults", async () => {
    const provider = await SqliteProvider.open(":memory:", {
      clock: undefined,
      newId: undefined,
      durability: undefined,
    });
    await provider.enqueueForOrchestrator(start("a"));
    expect((await takeTurn(provider)).lockToken).toMatch(/^[\w-]{20,}@/);
    await provider.close();
  });

  test.each<[SqliteOptions["durability"], number]>([
    [undefined, 2],
    ["full", 2],
    ["process-crash", 1],
  ])("with durability %s sync as much as they promise", async (durability, level) => {
    const { Database } = await import("../../src/providers/sqlite/database.js");
    const { resolveOptions } = await import("../../src/providers/sqlite/options.js");
    const file = await newFile();
    const database = await Database.open(file, resolveOptions(file, { durability }));

    expect(database.get("PRAGMA synchronous")).toEqual({ synchronous: level });
    expect(database.get("PRAGMA journal_mode")).toEqual({ journal_mode: "wal" });
    database.close();
  });
});

describe("the driver", () => {
  const missing: DriverSources = {
    builtin: () => undefined,
    installed: () => Promise.reject(new Error("Cannot find package '@photostructure/sqlite'")),
  };

  test("is Node's own where there is one", async () => {
    const { name } = await loadDriver();
    const hasBuiltin = process.getBuiltinModule("node:sqlite") !== undefined;
    expect(name).toBe(hasBuiltin ? "node:sqlite" : "@photostructure/sqlite");
  });

  test("is refused with what to install where there is none", async () => {
    await expect(loadDriver(missing)).rejects.toMatchObject({
      kind: "invalid",
      message: expect.stringMatching(/Node 22\.13 or newer.*npm install @photostructure\/sqlite/),
    });
  });

  test("prints nothing", async () => {
    const program = new ChildProgram("open", await newFile(), "owner");
    expect(JSON.parse(await program.line())).toEqual({ outcome: "opened" });
    expect((await program.ended()).stderr).toBe("");
  });
});

describe("a closed provider", () => {
  test("ends its long polls with nothing", async () => {
    const clock = new VirtualClock();
    const provider = await open(await newFile(), { clock });
    const polls = [fetchTurn(provider, { pollTimeoutMs: 60_000 }), fetchWork(provider, { pollTimeoutMs: 60_000 })];
    await clock.advance(100);

    await provider.close();

    expect(await Promise.all(polls)).toEqual([null, null]);
    expect(clock.pendingTimers).toBe(0);
  });

  test("rejects every later call, and says why", async () => {
    const provider = await open(":memory:");
    await provider.close();
    const calls: readonly Promise<unknown>[] = [
      provider.enqueueForOrchestrator(start("a")),
      provider.enqueueForWorker(act("a", 1)),
      fetchTurn(provider, { pollTimeoutMs: 1_000 }),
      fetchWork(provider),
      provider.ackOrchestrationItem("token", turn()),
      provider.ackWorkItem("token", done("a", 1)),
      provider.read("a"),
      provider.getKvValue("a", "key"),
      provider.getInstanceStatus("a"),
    ];
    for (const call of calls) {
      await expect(call).rejects.toMatchObject({ kind: "invalid", message: expect.stringContaining("is closed") });
    }
  });

  test("can be closed again, and watched in vain", async () => {
    const clock = new VirtualClock();
    const provider = await open(await newFile(), { clock });
    await provider.close();
    await provider.close();
    await provider[Symbol.asyncDispose]();

    provider.wake.watchInstance("a", () => {})();
    expect(clock.pendingTimers).toBe(0);
  });
});
