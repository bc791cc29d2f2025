// What is special to PostgreSQL in reading and management: operations that meet in the same rows, damaged rows, odd text.
// What every provider must do is the contract's business. Everything runs in a schema with quotation marks in its name, and
// on connections that try nothing twice: a deadlock fails the test.

import { randomUUID } from "node:crypto";
import pg from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { encodeEvent, encodeWorkItem } from "../../src/history/codec.js";
import type { AdminStore } from "../../src/provider/admin.js";
import { completeAdmin } from "../../src/provider/kit/complete-admin.js";
import { toColumn, toNullableColumn } from "../../src/provider/kit/text-column.js";
import { kvSet, start, started } from "../../src/provider-tests/builders.js";
import type { SqlValue } from "../../src/providers/postgres/connections.js";
import { adminStore, type DeletionEffects } from "../../src/providers/postgres/management.js";
import { inSchema } from "../../src/providers/postgres/migrate.js";
import { MIGRATIONS } from "../../src/providers/postgres/migrations/index.js";
import { Reading } from "../../src/providers/postgres/reading.js";

const URL = process.env.DUROXIDE_TEST_PG_URL;

const NOW = 1_000;
const INT8 = 20;

/** What drivers and databases like to trip over. */
const ODD = [
  '"',
  "'",
  "\\",
  "{a,b}",
  "NULL",
  "",
  " ",
  "a\nb",
  "\0",
  "a\0b",
  "\ud800",
  "b\udfff",
  "😀",
  '"\\u0000"',
  "$1",
];

interface InstanceFields {
  readonly parent?: string;
  readonly status?: string;
  readonly executions?: number;
}

interface MessageFields {
  readonly kind?: "start" | "other";
  readonly parent?: string;
  readonly visibleAt?: number;
}

interface ScheduleRow {
  readonly instance_id: string;
  readonly ready_at: number | null;
  readonly lock_token: string | null;
  readonly locked_until: number | null;
  readonly attempts: number;
  readonly batch: readonly number[] | null;
}

/** A schema of its own, with the provider's functions, and the means to write behind their backs. */
class Store {
  readonly store: AdminStore;
  readonly reading: Reading;
  readonly announced: DeletionEffects[] = [];

  private constructor(
    readonly pool: pg.Pool,
    readonly schema: string,
    readonly applicationName: string,
  ) {
    const connections = {
      query: <Row>(_operation: string, text: string, values?: readonly SqlValue[]) => this.query<Row>(text, values),
    };
    this.reading = new Reading(connections, schema);
    this.store = adminStore({
      connections,
      quotedSchema: schema,
      now: () => NOW,
      announce: (effects) => this.announced.push(effects),
    });
  }

  static async open(): Promise<Store> {
    const name = `h7 ${randomUUID()}`;
    const types = {
      getTypeParser: (oid: number, format?: "text") => (oid === INT8 ? Number : pg.types.getTypeParser(oid, format)),
    };
    const pool = new pg.Pool({
      connectionString: URL,
      max: 8,
      application_name: name,
      types: types as pg.CustomTypesConfig,
    });
    const opened = new Store(pool, `"it's ""${name}"""`, name);
    await opened.query("CREATE SCHEMA {schema}");
    onTestFinished(async () => {
      await opened.query("DROP SCHEMA {schema} CASCADE");
      await pool.end();
    });
    for (const { script } of MIGRATIONS) await opened.query(script);
    return opened;
  }

  async query<Row>(text: string, values?: readonly SqlValue[]): Promise<readonly Row[]> {
    const result = await this.pool.query(inSchema(text, this.schema), values === undefined ? undefined : [...values]);
    return result.rows as readonly Row[];
  }

  async instance(id: string, { parent, status = "Completed", executions = 1 }: InstanceFields = {}): Promise<void> {
    const column = toColumn(id);
    const values = [column, executions, toNullableColumn(parent), NOW];
    await this.query(
      `INSERT INTO {schema}.instances (instance_id, orchestration_name, orchestration_version, current_execution_id,
         parent_instance_id, created_at, updated_at) VALUES ($1, 'Orch', '1.0.0', $2, $3, $4, $4)`,
      values,
    );
    for (let execution = 1; execution <= executions; execution += 1) {
      const its = execution < executions ? "ContinuedAsNew" : status;
      const completedAt = its === "Running" ? null : NOW;
      await this.query("INSERT INTO {schema}.executions VALUES ($1, $2, $3, 'output', $4, $5)", [
        column,
        execution,
        its,
        NOW,
        completedAt,
      ]);
      await this.event(id, execution, encodeEvent(started(id)));
    }
  }

  async event(id: string, execution: number, data: string): Promise<void> {
    await this.query("INSERT INTO {schema}.history VALUES ($1, $2, 1, 'OrchestrationStarted', $3)", [
      toColumn(id),
      execution,
      data,
    ]);
  }

  /** Answers its id. */
  async message(id: string, fields: MessageFields = {}, item = encodeWorkItem(start(id))): Promise<number> {
    const { kind = "start", parent, visibleAt = NOW } = fields;
    await this.query("SELECT {schema}.lock_schedule(ARRAY[$1], ARRAY[$2::bigint])", [toColumn(id), visibleAt]);
    const [row] = await this.query<{ readonly id: number }>(
      `INSERT INTO {schema}.messages (instance_id, due_at, visible_at, kind, parent_instance_id, work_item)
       VALUES ($1, $2, $2, $3, $4, $5) RETURNING id`,
      [toColumn(id), visibleAt, kind, toNullableColumn(parent), item],
    );
    return row!.id;
  }

  async activity(id: string, fields: { readonly token?: string; readonly readyAt?: number } = {}): Promise<void> {
    await this.query(
      `INSERT INTO {schema}.activities (instance_id, execution_id, activity_id, tag, ready_at, lock_token, enqueued_at,
         work_item) VALUES ($1, 1, 1, '', $2, $3, $4, 'no json')`,
      [toColumn(id), fields.readyAt ?? NOW, fields.token ?? null, NOW],
    );
  }

  /** Somebody works on these messages. */
  async lock(id: string, batch: readonly number[], until = NOW + 1): Promise<void> {
    await this.query(
      `UPDATE {schema}.schedule SET lock_token = $2, locked_until = $3, ready_at = $3, attempts = 1, batch = $4
       WHERE instance_id = $1`,
      [toColumn(id), `token of ${id}`, until, batch],
    );
  }

  schedule(): Promise<readonly ScheduleRow[]> {
    return this.query("SELECT * FROM {schema}.schedule ORDER BY instance_id");
  }

  /** How many rows each table has that tells of instances. */
  async rows(): Promise<Readonly<Record<string, number>>> {
    const counts: Record<string, number> = {};
    for (const table of ["instances", "executions", "history", "messages", "schedule", "activities"]) {
      const [row] = await this.query<{ readonly count: number }>(`SELECT count(*) FROM {schema}.${table}`);
      counts[table] = row!.count;
    }
    return counts;
  }

  /** A transaction that is open until it is committed. */
  async transaction(): Promise<{ query(text: string): Promise<unknown>; commit(): Promise<void> }> {
    const client = await this.pool.connect();
    await client.query("BEGIN");
    return {
      query: (text) => client.query(inSchema(text, this.schema)),
      commit: async () => {
        await client.query("COMMIT");
        client.release();
      },
    };
  }

  /** Resolves when somebody here waits for a row. */
  async untilSomebodyWaits(): Promise<void> {
    const waiting = `SELECT 1 FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'`;
    for (;;) {
      if ((await this.query(waiting, [this.applicationName])).length > 0) return;
    }
  }
}

async function withChildAndWork(opened: Store, id: string): Promise<void> {
  await opened.instance(id, { executions: 2 });
  await opened.activity(id);
  await opened.message(`child-${id}`, { parent: id });
  await opened.message(id, { kind: "other", visibleAt: NOW + 1 });
}

const NOTHING_LEFT = { instances: 0, executions: 0, history: 0, messages: 0, schedule: 0, activities: 0 };

describe.skipIf(URL === undefined)("operations that meet in the same rows", () => {
  test("delete overlapping trees in different order, and neither fails nor leaves anything", async () => {
    const opened = await Store.open();
    const ids = Array.from({ length: 30 }, (_, n) => `i-${String((n * 7) % 30).padStart(2, "0")}`);
    for (let round = 1; round <= 5; round += 1) {
      await Promise.all(ids.map((id) => withChildAndWork(opened, id)));

      const deletions = await Promise.all([
        opened.store.deleteInstancesAtomic(ids, false),
        opened.store.deleteInstancesAtomic(ids.toReversed(), false),
        opened.store.deleteInstancesAtomic(ids.slice(10), false),
        opened.store.deleteInstancesAtomic(ids.slice(0, 20).toReversed(), false),
        ...ids.slice(0, 4).map((id) => opened.store.pruneExecutions(id, {}).catch(() => null)),
      ]);

      const deleted = deletions.reduce(
        (sum, result) => sum + (result && "instancesDeleted" in result ? result.instancesDeleted : 0),
        0,
      );
      expect(deleted).toBe(ids.length);
      expect(await opened.rows()).toEqual(NOTHING_LEFT);
    }
  });

  test("prune one instance at the same time, each execution once", async () => {
    const opened = await Store.open();
    await opened.instance("a", { executions: 20 });

    const pruned = await Promise.all([1, 2, 3, 4].map((keepLast) => opened.store.pruneExecutions("a", { keepLast })));

    expect(pruned.reduce((sum, result) => sum + result.executionsDeleted, 0)).toBe(19);
    expect(pruned.reduce((sum, result) => sum + result.eventsDeleted, 0)).toBe(19);
    expect(await opened.store.listExecutions("a")).toEqual([20]);
  });

  test("find nothing to prune in an instance whose deletion they have waited for", async () => {
    const opened = await Store.open();
    await opened.instance("a", { executions: 2 });
    const deletion = await opened.transaction();
    await deletion.query("SELECT * FROM {schema}.delete_instances(ARRAY['a'], false, 1000)");

    const pruning = opened.store.pruneExecutions("a", {});
    pruning.catch(() => undefined);
    await opened.untilSomebodyWaits();
    await deletion.commit();

    await expect(pruning).rejects.toMatchObject({ kind: "not-found" });
  });

  test("take a child along that a turn of its parent starts while the deletion waits for that turn", async () => {
    const opened = await Store.open();
    await opened.instance("parent");
    await opened.message("parent", { kind: "other" });
    const turn = await opened.transaction();
    await turn.query("SELECT {schema}.lock_schedule(ARRAY['parent', 'child'], ARRAY[NULL, 1000]::bigint[])");
    await turn.query(
      `INSERT INTO {schema}.messages (instance_id, due_at, visible_at, kind, parent_instance_id, work_item)
       VALUES ('child', 1000, 1000, 'start', 'parent', 'no json')`,
    );

    const deletion = opened.store.deleteInstancesAtomic(["parent"], false);
    await opened.untilSomebodyWaits();
    await turn.commit();

    expect(await deletion).toMatchObject({ instancesDeleted: 1, queueMessagesDeleted: 2 });
    expect(opened.announced.map(({ changed }) => changed.toSorted())).toEqual([["child", "parent"]]);
    expect(await opened.rows()).toEqual(NOTHING_LEFT);
  });

  test("refuse to delete a parent whose child becomes known while the deletion waits for the child's turn", async () => {
    const opened = await Store.open();
    await opened.instance("parent");
    await opened.message("child", { parent: "parent" });
    const turn = await opened.transaction();
    await turn.query("SELECT {schema}.lock_schedule(ARRAY['child'], ARRAY[NULL]::bigint[])");
    await turn.query("DELETE FROM {schema}.messages WHERE instance_id = 'child'");
    await turn.query("DELETE FROM {schema}.schedule WHERE instance_id = 'child'");
    await turn.query(
      `INSERT INTO {schema}.instances (instance_id, orchestration_name, orchestration_version, current_execution_id,
         parent_instance_id, created_at, updated_at) VALUES ('child', 'Orch', '1.0.0', 1, 'parent', 1000, 1000)`,
    );

    const deletion = opened.store.deleteInstancesAtomic(["parent"], true);
    deletion.catch(() => undefined);
    await opened.untilSomebodyWaits();
    await turn.commit();

    await expect(deletion).rejects.toMatchObject({ kind: "orphans" });
    expect(await opened.rows()).toMatchObject({ instances: 2, schedule: 0 });
  });

  test("delete a child with its parent that becomes known after the deletion has looked who is", async () => {
    const opened = await Store.open();
    await opened.instance("parent");
    await opened.message("parent", { kind: "other" });
    const turn = await opened.transaction();
    await turn.query("SELECT {schema}.lock_schedule(ARRAY['parent'], ARRAY[NULL]::bigint[])");

    const deletion = opened.store.deleteInstancesAtomic(["parent", "child"], false);
    await opened.untilSomebodyWaits();
    await opened.instance("child", { parent: "parent" });
    await turn.commit();

    expect(await deletion).toMatchObject({ instancesDeleted: 2 });
    expect(await opened.rows()).toEqual(NOTHING_LEFT);
  });
});

describe.skipIf(URL === undefined)("a deletion", () => {
  test("takes the lock of whoever works on a start that it removes, and gives the other messages back", async () => {
    const opened = await Store.open();
    await opened.instance("parent");
    const mine = await opened.message("child", { parent: "parent" });
    const others = await opened.message("child", { visibleAt: NOW - 5 });
    await opened.lock("child", [mine, others]);

    expect(await opened.store.deleteInstancesAtomic(["parent"], false)).toMatchObject({ queueMessagesDeleted: 1 });

    const free = { lock_token: null, locked_until: null, batch: null };
    expect(await opened.schedule()).toMatchObject([{ instance_id: "child", ready_at: NOW - 5, attempts: 1, ...free }]);
    expect(opened.announced).toEqual([{ changed: expect.arrayContaining(["parent", "child"]), readyMessages: 1 }]);
  });

  test("counts no attempt for messages that nobody was handed", async () => {
    const opened = await Store.open();
    await opened.instance("parent");
    const mine = await opened.message("child", { parent: "parent" });
    await opened.lock("child", [mine]);
    await opened.message("child", { visibleAt: NOW + 5 });

    await opened.store.deleteInstancesAtomic(["parent"], false);

    const [row] = await opened.schedule();
    expect(row).toMatchObject({ instance_id: "child", ready_at: NOW + 5, lock_token: null, attempts: 0 });
    expect(opened.announced).toMatchObject([{ readyMessages: 0 }]);
  });

  test("that is refused changes nothing, and says who was ready meanwhile", async () => {
    const opened = await Store.open();
    await opened.instance("runs", { status: "Running" });
    await opened.instance("ended");
    await opened.message("child", { parent: "ended" });
    await opened.message("runs", { kind: "other", visibleAt: NOW + 1 });
    const before = [await opened.rows(), await opened.schedule()];

    const refused = opened.store.deleteInstancesAtomic(["ended", "runs"], false);

    await expect(refused).rejects.toMatchObject({ kind: "still-running" });
    expect([await opened.rows(), await opened.schedule()]).toEqual(before);
    expect(opened.announced).toEqual([{ changed: [], readyMessages: 1 }]);
  });

  test("leaves alone what is queued for somebody who is not known, however long its name", async () => {
    const opened = await Store.open();
    await opened.instance("ended");
    const id = await opened.message("nobody", { kind: "other" });
    await opened.lock("nobody", [id]);
    const before = await opened.schedule();

    const deletion = opened.store.deleteInstancesAtomic(["nobody", "ended", "long".repeat(10_000)], false);

    expect(await deletion).toMatchObject({ instancesDeleted: 1, queueMessagesDeleted: 0 });
    expect(await opened.schedule()).toEqual(before);
  });
});

describe.skipIf(URL === undefined)("queue depths", () => {
  test("leave out what somebody's live lock holds, and nothing else", async () => {
    const opened = await Store.open();
    const taken = await opened.message("locked");
    await opened.message("locked");
    await opened.lock("locked", [taken, taken + 1]);
    await opened.lock("expired", [await opened.message("expired")], NOW);
    await opened.lock("held", [await opened.message("held")]);
    await opened.query("UPDATE {schema}.schedule SET lock_token = NULL WHERE instance_id = 'held'");
    await opened.activity("a", { token: "live", readyAt: NOW + 1 });
    await opened.activity("a", { token: "over", readyAt: NOW });
    await opened.activity("a", { readyAt: NOW + 1 });

    expect(await opened.store.getQueueDepths()).toEqual({ orchestratorQueue: 3, workerQueue: 2, timerQueue: 0 });
  });
});

describe.skipIf(URL === undefined)("rows that cannot be decoded", () => {
  test("are an error where the history is asked for, and no obstacle elsewhere", async () => {
    const opened = await Store.open();
    await opened.instance("a");
    await opened.query("UPDATE {schema}.history SET event_data = '{ this is no event'");
    await opened.message("a", { kind: "other" }, "no json either");
    await opened.activity("a");

    const corrupt = { kind: "corrupt", message: expect.stringContaining("history of 'a', execution 1,") };
    await expect(opened.reading.read("a")).rejects.toMatchObject(corrupt);
    await expect(opened.reading.readWithExecution("a", 1)).rejects.toMatchObject(corrupt);
    await expect(opened.reading.instanceStats("a")).rejects.toMatchObject(corrupt);
    expect(await opened.reading.statusesOf(["a"])).toMatchObject([{ status: "Completed", orchestrationName: "Orch" }]);
    expect(await opened.store.listInstances()).toEqual(["a"]);
    expect(await opened.store.getExecutionInfo("a", 1)).toMatchObject({ eventCount: 1 });
    expect(await opened.store.deleteInstancesAtomic(["a"], false)).toMatchObject({ queueMessagesDeleted: 2 });
    expect(await opened.rows()).toEqual(NOTHING_LEFT);
  });

  test("leave an instance without a row known by a start that was, and unknown by one that never will be", async () => {
    const opened = await Store.open();
    await opened.event("has begun", 1, "no json");
    await opened.message("will never", {}, "no json");

    const [begun, never] = await opened.reading.statusesOf(["has begun", "will never"]);

    expect(begun).toMatchObject({ status: "Pending", orchestrationName: "unknown", executionId: 1 });
    expect(never).toBeNull();
  });
});

describe.skipIf(URL === undefined)("statuses of many at once", () => {
  test("come in the order of the question, by row, history and queued start", async () => {
    const opened = await Store.open();
    await opened.instance("by row", { executions: 3, status: "Running" });
    await opened.event("by history", 2, encodeEvent(started("by history", { name: "Second", version: "2.0.0" })));
    await opened.event("by history", 1, encodeEvent(started("by history", { name: "First" })));
    await opened.message("by start", {}, encodeWorkItem(start("by start", { orchestration: "Started" })));
    await opened.message("by start", {}, encodeWorkItem(start("by start", { orchestration: "Later" })));
    await opened.message("by nothing", { kind: "other" });

    const asked = ["by start", "by row", "by nothing", "by history", "nobody", "by row"];
    const statuses = await opened.reading.statusesOf(asked);

    const names = statuses.map(
      (status) => status && `${status.orchestrationName} ${status.status} ${status.executionId}`,
    );
    expect(names).toEqual(["Started Pending 1", "Orch Running 3", null, "Second Pending 1", null, "Orch Running 3"]);
    expect(await opened.reading.statusesOf([])).toEqual([]);
  });
});

describe.skipIf(URL === undefined)("any text", () => {
  test("is an id: found, listed, chosen and deleted as it was given", async () => {
    const opened = await Store.open();
    for (const id of ODD) await opened.instance(id, { parent: `parent of ${id}` });

    expect((await opened.store.listInstances()).toSorted()).toEqual(ODD.toSorted());
    expect(await opened.store.selectInstances({ instanceIds: ODD, limit: 100 }, { kind: "ended-roots" })).toEqual(ODD);
    for (const id of ODD) {
      expect(await opened.store.getInstanceInfo(id)).toMatchObject({
        instanceId: id,
        parentInstanceId: `parent of ${id}`,
      });
      expect(await opened.store.listChildren(`parent of ${id}`)).toEqual([id]);
      expect(await opened.reading.read(id)).toEqual([started(id)]);
    }
    expect(await opened.reading.statusesOf(ODD)).toEqual(
      ODD.map(() => expect.objectContaining({ status: "Completed" })),
    );
    expect(await opened.store.deleteInstancesAtomic(ODD, false)).toMatchObject({ instancesDeleted: ODD.length });
    expect(opened.announced[0]?.changed.toSorted()).toEqual(ODD.toSorted());
    expect(await opened.rows()).toEqual(NOTHING_LEFT);
  });

  test("is an id in a tree that is deleted by its root", async () => {
    const opened = await Store.open();
    const [root, ...children] = ODD;
    await opened.instance(root!);
    for (const child of children) await opened.instance(child, { parent: root! });
    const admin = completeAdmin(opened.store, opened.reading);

    await expect(admin.deleteInstancesAtomic(children.slice(1).concat(root!), false)).rejects.toMatchObject({
      kind: "orphans",
      message: expect.stringContaining(`'${children[0]}' is a child of '${root}'`),
    });
    expect(await admin.deleteInstance(root!, false)).toMatchObject({ instancesDeleted: ODD.length });
  });

  test("is a key and a value, measured in the bytes that it has", async () => {
    const opened = await Store.open();
    await opened.instance("a");
    for (const text of ODD) {
      const values = ["a", toColumn(text), toColumn(text), NOW];
      await opened.query("INSERT INTO {schema}.kv_store VALUES ($1, $2, $3, $4)", values);
    }
    await opened.query("INSERT INTO {schema}.kv_delta VALUES ('a', '$1', NULL, 0), ('a', 'new', '{}', 0)");

    const expected = new Map([
      ...ODD.filter((text) => text !== "$1").map((text) => [text, text] as const),
      ["new", "{}"],
    ]);
    expect(await opened.reading.kvValues("a")).toEqual(expected);
    for (const text of ODD) expect(await opened.reading.kvValue("a", text)).toBe(expected.get(text) ?? null);
    const bytes = [...expected.values()].reduce((sum, text) => sum + Buffer.byteLength(text), 0);
    expect(await opened.reading.instanceStats("a")).toEqual({
      historyEventCount: 1,
      historySizeBytes: Buffer.byteLength(encodeEvent(started("a"))),
      queuePendingCount: 0,
      kvUserKeyCount: expected.size,
      kvTotalValueBytes: bytes,
    });
  });

  test("in events and work items is no byte that PostgreSQL refuses", async () => {
    const opened = await Store.open();
    for (const [n, text] of ODD.entries()) {
      const event = kvSet(text, 1, text, text);
      const data = encodeEvent(event);
      await opened.query("INSERT INTO {schema}.history VALUES ('odd', $1, 1, 'KeyValueSet', $2)", [n, data]);
      expect(await opened.reading.readWithExecution("odd", n)).toEqual([event]);
      await opened.message("odd", {}, encodeWorkItem(start(text, { input: text, parentInstance: text })));
    }
  });
});
