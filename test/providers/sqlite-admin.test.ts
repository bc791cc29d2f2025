// What is special to SQLite in management: several processes on one file, many ids at once, odd text, damaged rows, big
// stores. What every provider must do is the contract's business.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  act,
  completed,
  done,
  kvSet,
  NAMED,
  raised,
  start,
  started,
  timer,
  turn,
} from "../../src/provider-tests/builders.js";
import { continueExecution, create, runTurn, takeTurn, takeWork } from "../../src/provider-tests/steps.js";
import * as admin from "../../src/providers/sqlite/admin.js";
import * as deletion from "../../src/providers/sqlite/deletion.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { openConnection } from "./sqlite-connection.js";

const ENDED = { ...NAMED, status: "Completed", output: "done" } as const;

/** A path in a directory of its own, which goes with the test. */
async function newFile(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "duroxide-sqlite-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return join(directory, "store.db");
}

async function open(file = ":memory:", clock = new VirtualClock()): Promise<SqliteProvider> {
  const provider = await SqliteProvider.open(file, { durability: "process-crash", clock });
  onTestFinished(() => provider.close());
  return provider;
}

/** Does something to the file behind the provider's back. */
async function tamper(file: string, sql: string): Promise<void> {
  const connection = await openConnection(file);
  connection.exec(sql);
  connection.close();
}

/** How many rows each table has that tells of instances. */
async function rowsOf(file: string): Promise<Readonly<Record<string, number>>> {
  const tables = ["instances", "executions", "history", "orchestrator_queue", "worker_queue", "instance_locks"];
  const connection = await openConnection(file);
  const count = (table: string) =>
    (connection.prepare(`SELECT COUNT(*) AS rows FROM duroxide_${table}`).get() as { readonly rows: number }).rows;
  const rows = Object.fromEntries([...tables, "kv_store", "kv_delta"].map((table) => [table, count(table)]));
  connection.close();
  return rows;
}

describe("an instance that another process deletes", () => {
  async function twoProcesses() {
    const file = await newFile();
    const clock = new VirtualClock();
    return { here: await open(file, clock), there: await open(file, clock), clock };
  }

  test("cannot be committed by the one that works on it, nor come back by it", async () => {
    const { here, there } = await twoProcesses();
    await create(here, "a");
    await here.enqueueForOrchestrator(raised("a"));
    const { lockToken } = await takeTurn(here);

    await there.admin.deleteInstance("a", true);

    const late = here.ackOrchestrationItem(lockToken, turn({ events: [completed("a", 2)], metadata: ENDED }));
    await expect(late).rejects.toMatchObject({ kind: "lock-lost" });
    await expect(here.renewOrchestrationItemLock(lockToken, 1_000)).rejects.toMatchObject({ kind: "lock-lost" });
    expect(await here.admin.listInstances()).toEqual([]);
    expect(await here.read("a")).toEqual([]);
  });

  test("gets nothing from its old activities, also when it was started again", async () => {
    const { here, there } = await twoProcesses();
    await create(here, "a", { workerItems: [act("a", 2)] });
    const { lockToken } = await takeWork(here);

    await there.admin.deleteInstance("a", true);
    await create(there, "a", { workerItems: [act("a", 2)] });

    await expect(here.ackWorkItem(lockToken, done("a", 2))).rejects.toMatchObject({ kind: "lock-lost" });
    expect(await there.admin.getQueueDepths()).toEqual({ orchestratorQueue: 0, workerQueue: 1, timerQueue: 0 });
  });

  test("is told to those who watch it in either process", async () => {
    const { here, there, clock } = await twoProcesses();
    await create(here, "a");
    const told: string[] = [];
    onTestFinished(here.wake.watchInstance("a", () => told.push("here")));
    onTestFinished(there.wake.watchInstance("a", () => told.push("there")));

    await here.admin.deleteInstance("a", true);
    expect(told).toEqual(["here"]);
    await clock.advance(50);

    expect(told).toContain("there");
  });
});

describe("a deletion", () => {
  test("leaves no row of the instance in any table, and every row of the others", async () => {
    const file = await newFile();
    const clock = new VirtualClock();
    const provider = await open(file, clock);
    for (const instance of ["kept", "gone"]) {
      const events = [started(instance), kvSet(instance, 2, "key", "1")];
      await create(provider, instance, { events, metadata: { ...NAMED, status: "ContinuedAsNew" } });
      await runTurn(provider, instance, { executionId: 2, events: [kvSet(instance, 1, "key", "2")] });
      await provider.enqueueForOrchestrator(timer(instance, 3, clock.now() + 1_000));
      await provider.enqueueForWorker(act(instance, 4));
      await provider.enqueueForOrchestrator(raised(instance));
      await takeTurn(provider);
    }

    const result = await provider.admin.deleteInstance("gone", true);

    expect(result).toEqual({ instancesDeleted: 1, executionsDeleted: 2, eventsDeleted: 3, queueMessagesDeleted: 3 });
    expect(await rowsOf(file)).toEqual({
      instances: 1,
      executions: 2,
      history: 3,
      orchestrator_queue: 2,
      worker_queue: 1,
      instance_locks: 1,
      kv_store: 1,
      kv_delta: 1,
    });
    expect(await provider.getKvValue("kept", "key")).toBe("2");
  });

  test("that is refused has changed nothing", async () => {
    const file = await newFile();
    const provider = await open(file);
    await create(provider, "root", { metadata: ENDED });
    await create(provider, "child", { metadata: { ...ENDED, parentInstanceId: "root" } });
    await create(provider, "running");
    const before = await rowsOf(file);

    const orphaning = provider.admin.deleteInstancesAtomic(["running", "root"], true);
    await expect(orphaning).rejects.toMatchObject({ kind: "orphans" });
    const unforced = provider.admin.deleteInstancesAtomic(["child", "running"], false);
    await expect(unforced).rejects.toMatchObject({ kind: "still-running" });

    expect(await rowsOf(file)).toEqual(before);
  });

  test("leaves alone what is queued for an id that is no instance yet", async () => {
    const provider = await open();
    await provider.enqueueForOrchestrator(start("soon"));

    const nothing = { instancesDeleted: 0, executionsDeleted: 0, eventsDeleted: 0, queueMessagesDeleted: 0 };
    expect(await provider.admin.deleteInstancesAtomic(["soon"], true)).toEqual(nothing);

    expect((await takeTurn(provider)).item.instance).toBe("soon");
  });
});

describe("the depth of a queue", () => {
  test("leaves out what a live lock holds, but neither what a delay does nor what a lock held once", async () => {
    const clock = new VirtualClock();
    const provider = await open(":memory:", clock);
    const depths = async () => {
      const { orchestratorQueue, workerQueue } = await provider.admin.getQueueDepths();
      return [orchestratorQueue, workerQueue];
    };
    await create(provider, "a", { workerItems: [act("a", 2)] });
    await provider.enqueueForOrchestrator(raised("a"));
    const turnLock = await takeTurn(provider, { lockTimeoutMs: 100 });
    const workLock = await takeWork(provider, { lockTimeoutMs: 100 });
    expect(await depths()).toEqual([0, 0]);
    await provider.enqueueForOrchestrator(raised("a"));
    expect(await depths()).toEqual([1, 0]);

    await provider.abandonOrchestrationItem(turnLock.lockToken, { delayMs: 50 });
    await provider.abandonWorkItem(workLock.lockToken, { delayMs: 50 });
    expect(await depths()).toEqual([2, 1]);

    await clock.advance(50);
    await takeTurn(provider, { lockTimeoutMs: 100 });
    await takeWork(provider, { lockTimeoutMs: 100 });
    expect(await depths()).toEqual([0, 0]);
    await clock.advance(100);
    expect(await depths()).toEqual([2, 1]);
  });
});

describe("history that cannot be decoded", () => {
  test("is listed, counted, pruned and deleted like any other", async () => {
    const file = await newFile();
    const provider = await open(file);
    await create(provider, "a", { workerItems: [act("a", 2)] });
    await continueExecution(provider, "a", 2);
    await tamper(file, "UPDATE duroxide_history SET event_data = '{'");
    await tamper(file, "UPDATE duroxide_worker_queue SET work_item = '{'");
    await expect(provider.read("a")).rejects.toMatchObject({ kind: "corrupt" });

    expect(await provider.admin.listInstances()).toEqual(["a"]);
    expect(await provider.admin.getInstanceInfo("a")).toMatchObject({ currentExecutionId: 2, status: "Running" });
    expect(await provider.admin.getExecutionInfo("a", 1)).toMatchObject({ eventCount: 1 });
    expect(await provider.admin.getSystemMetrics()).toMatchObject({ totalExecutions: 2, totalEvents: 2 });
    expect(await provider.admin.pruneExecutions("a", {})).toMatchObject({ executionsDeleted: 1, eventsDeleted: 1 });
    expect(await provider.admin.deleteInstance("a", true)).toMatchObject({ eventsDeleted: 1, queueMessagesDeleted: 1 });
  });
});

describe("an id of any text", () => {
  const ODD = [
    "",
    " ",
    "a\0b",
    "a\0c",
    '"a"',
    '"',
    "it's",
    "\ud800",
    "\udbff",
    "\ufffd",
    "[1]",
    "A",
    "a",
    "a ",
    "\u0001",
  ];

  test("is listed as it was given, by all, by status and by parent", async () => {
    const provider = await open();
    for (const id of ODD) await create(provider, id, { metadata: { ...ENDED, output: id } });
    for (const id of ODD) {
      await create(provider, `child of ${id}`, { metadata: { ...NAMED, parentInstanceId: id, orchestrationName: id } });
    }

    expect(await provider.admin.listInstancesByStatus("Completed")).toEqual(ODD.toReversed());
    for (const id of ODD) {
      expect(await provider.admin.getInstanceInfo(id)).toMatchObject({ instanceId: id, output: id });
      expect((await provider.admin.getInstanceTree(id)).allIds).toEqual([id, `child of ${id}`]);
      const child = { orchestrationName: id, parentInstanceId: id };
      expect(await provider.admin.getInstanceInfo(`child of ${id}`)).toMatchObject(child);
    }
  });

  test("chooses its own instance in a list, and no other", async () => {
    const provider = await open();
    for (const id of ODD) await create(provider, id, { metadata: ENDED });
    let left = ODD;

    for (const id of ODD) {
      expect(await provider.admin.deleteInstanceBulk({ instanceIds: [id] })).toMatchObject({ instancesDeleted: 1 });
      left = left.slice(1);
      expect(await provider.admin.listInstances()).toEqual(left.toReversed());
    }
  });
});

describe("a big store", () => {
  /** Writes rows as turns would, without the turns. */
  async function fill(file: string, count: number): Promise<void> {
    await tamper(
      file,
      `
        WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < ${count})
        INSERT INTO duroxide_instances
          (instance_id, orchestration_name, orchestration_version, current_execution_id, parent_instance_id,
           created_at, created_order, updated_at)
        SELECT 'i' || n, 'TestOrch', '1.0.0', 1, NULL, n / 10, n % 10, n FROM numbers;
        INSERT INTO duroxide_executions (instance_id, execution_id, status, started_at, completed_at)
        SELECT instance_id, 1, IIF(updated_at % 2 = 0, 'Completed', 'Running'), 0, IIF(updated_at % 2 = 0, updated_at, NULL)
        FROM duroxide_instances;
        INSERT INTO duroxide_history (instance_id, execution_id, event_id, event_type, event_data)
        SELECT instance_id, 1, 1, 'OrchestrationStarted', '{}' FROM duroxide_instances;
      `,
    );
  }

  test("with 20,000 instances is listed, counted and emptied", async () => {
    const file = await newFile();
    const provider = await open(file);
    await fill(file, 20_000);

    const listed = await provider.admin.listInstances();
    expect(listed).toHaveLength(20_000);
    expect([listed[0], listed.at(-1)]).toEqual(["i19999", "i0"]);
    expect(await provider.admin.listInstancesByStatus("Running")).toHaveLength(10_000);
    expect(await provider.admin.getSystemMetrics()).toEqual({
      totalInstances: 20_000,
      totalExecutions: 20_000,
      runningInstances: 10_000,
      completedInstances: 10_000,
      failedInstances: 0,
      totalEvents: 20_000,
    });

    expect(await provider.admin.deleteInstanceBulk({})).toMatchObject({ instancesDeleted: 1_000 });
    expect((await provider.admin.listInstancesByStatus("Completed")).at(-1)).toBe("i2000");
    const old = { completedBeforeMs: 4_000, limit: 20_000 };
    expect(await provider.admin.deleteInstanceBulk(old)).toMatchObject({ instancesDeleted: 1_000 });
    expect((await provider.admin.listInstancesByStatus("Completed")).at(-1)).toBe("i4000");
    const all = await provider.admin.deleteInstancesAtomic(await provider.admin.listInstances(), true);
    expect(all).toMatchObject({ instancesDeleted: 18_000, eventsDeleted: 18_000 });
    expect(await provider.admin.listInstances()).toEqual([]);
  });

  test("takes 10,000 ids in one filter", async () => {
    const file = await newFile();
    const provider = await open(file);
    await fill(file, 100);
    const instanceIds = Array.from({ length: 10_000 }, (_, n) => `i${n + 90}`);

    const pruned = await provider.admin.pruneExecutionsBulk({ instanceIds }, { keepLast: 1 });
    expect(pruned).toEqual({ instancesProcessed: 0, executionsDeleted: 0, eventsDeleted: 0 });
    expect(await provider.admin.deleteInstanceBulk({ instanceIds })).toMatchObject({ instancesDeleted: 5 });
    expect(await provider.admin.deleteInstancesAtomic(instanceIds, true)).toMatchObject({ instancesDeleted: 5 });
    expect(await provider.admin.listInstances()).toHaveLength(90);
  });
});

describe("the statements of management", () => {
  const statements = [admin, deletion].flatMap((module) =>
    Object.entries(module).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );

  /** By design: a list of all walks the index by age, a search by status or by end the executions. */
  const allowed = [
    "SCAN duroxide_instances USING COVERING INDEX duroxide_instances_by_age",
    "SCAN e",
    "SCAN json_each VIRTUAL TABLE INDEX 1:",
  ];

  test.each(statements)("%s reads nothing that it need not", async (_, sql) => {
    const file = await newFile();
    await (await open(file)).close();
    const connection = await openConnection(file);
    onTestFinished(() => connection.close());

    const plan = connection.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { readonly detail: string }[];

    const scans = plan.map((step) => step.detail).filter((detail) => detail.startsWith("SCAN"));
    expect(scans.filter((detail) => !allowed.includes(detail))).toEqual([]);
  });
});
