// The server plans by what it knows of the tables; and of a queue that was empty when it last looked, it knows that it is empty.

import pg from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { act, done, kvSet, raised, start, statusSet, timer } from "../../src/provider-tests/builders.js";
import { TestSchemas } from "../../src/provider-tests/own-stores.js";
import { create, fetchTurn, runTurn, takeTurn, takeWork } from "../../src/provider-tests/steps.js";
import { PostgresProvider } from "../../src/providers/postgres/index.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";

const URL = process.env.DUROXIDE_TEST_PG_URL ?? "";
const BYSTANDERS = 2_000;
/** Who takes a session on looks through those that others have. */
const SESSIONS = 20;
const FAR = 9_000_000_000_000;
const LOCK_MS = 5_000;

/** Work that others hold, and that nobody here ever asks for. */
const addBystanders = `
  INSERT INTO {schema}.instances (instance_id, orchestration_name, orchestration_version, current_execution_id, created_at, updated_at)
    SELECT 'other-' || g, 'Other', '1.0.0', 1, g, g FROM generate_series(1, ${BYSTANDERS}) AS g;
  INSERT INTO {schema}.executions (instance_id, execution_id, started_at)
    SELECT 'other-' || g, 1, g FROM generate_series(1, ${BYSTANDERS}) AS g;
  INSERT INTO {schema}.history (instance_id, execution_id, event_id, event_type, event_data)
    SELECT 'other-' || g, 1, 1, 'OrchestrationStarted', '{}' FROM generate_series(1, ${BYSTANDERS}) AS g;
  INSERT INTO {schema}.schedule (instance_id, ready_at, place, place_order, lock_token, locked_until)
    SELECT 'other-' || g, ${FAR}, ${FAR}, g, 'turn-' || g, ${FAR} FROM generate_series(1, ${BYSTANDERS}) AS g;
  INSERT INTO {schema}.messages (instance_id, due_at, visible_at, kind, timer_execution_id, timer_id, work_item)
    SELECT 'other-' || g, ${FAR}, ${FAR}, 'timer', 1, g, '{}' FROM generate_series(1, ${BYSTANDERS}) AS g;
  INSERT INTO {schema}.activities
    (instance_id, execution_id, activity_id, tag, session_id, ready_at, is_held, lock_token, enqueued_at, work_item)
    SELECT 'other-' || g, 1, g, '', 'other-' || g, ${FAR}, true, 'work-' || g, 1, '{}' FROM generate_series(1, ${BYSTANDERS}) AS g;
  INSERT INTO {schema}.sessions (session_id, owner_id, locked_until, last_activity_at)
    SELECT 'other-' || g, 'somebody', ${FAR}, 1 FROM generate_series(1, ${SESSIONS}) AS g;
  INSERT INTO {schema}.kv_store (instance_id, key, value, last_updated_at)
    SELECT 'other-' || g, 'key', 'value', 1 FROM generate_series(1, ${BYSTANDERS}) AS g;
`;

/** As after a vacuum at a quiet moment: the tables have pages, and nothing is in them. The next one is kept from looking. */
const believeEmpty = `
  DO $$ DECLARE name regclass; BEGIN
    FOR name IN SELECT oid FROM pg_catalog.pg_class WHERE relkind = 'r' AND relnamespace = '{schema}'::regnamespace LOOP
      EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = off)', name);
    END LOOP;
  END $$;
  UPDATE pg_catalog.pg_class SET relpages = 7, reltuples = 0
  WHERE relkind = 'r' AND relnamespace = '{schema}'::regnamespace;
`;

const selectRead = `
  SELECT relname AS name, COALESCE(seq_tup_read, 0)::int AS read FROM pg_stat_user_tables WHERE schemaname = $1
  UNION ALL
  SELECT indexrelname, idx_tup_read::int FROM pg_stat_user_indexes WHERE schemaname = $1
`;

type Reads = ReadonlyMap<string, number>;

async function openAmongOthers() {
  const schemas = new TestSchemas(URL);
  const schema = schemas.take();
  const run = (script: string) => onceOnly(schema, (client) => client.query(script.replaceAll("{schema}", schema)));
  const open = (): Promise<PostgresProvider> =>
    PostgresProvider.open(URL, { schema, clock: new VirtualClock(), wakeUps: "local", applicationName: schema });
  await (await open()).close();
  onTestFinished(async () => void (await schemas.run(schema, "DROP SCHEMA {schema} CASCADE")));
  await run(addBystanders);
  await run(believeEmpty);
  return { open, reads: () => onceOnly("counts what others have read", (client) => readsOf(client, schema)) };
}

async function onceOnly<T>(applicationName: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: URL, application_name: applicationName });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

/** What a connection has read is counted when it ends: all of them must have. */
async function readsOf(client: pg.Client, schema: string): Promise<Reads> {
  const connected = "SELECT 1 FROM pg_stat_activity WHERE application_name = $1";
  while ((await client.query(connected, [schema])).rows.length > 0);
  const { rows } = await client.query<{ readonly name: string; readonly read: number }>(selectRead, [schema]);
  return new Map(rows.map(({ name, read }) => [name, read]));
}

describe.skipIf(URL === "")("a queue that the server believes to be empty", () => {
  test("is never read as a whole: every row is found by index", async () => {
    const { open, reads } = await openAmongOthers();
    const before = await reads();
    const provider = await open();

    await useEverything(provider);
    await provider.close();

    const after = await reads();
    const wholes = [...after].filter(([name, read]) => read - (before.get(name) ?? 0) >= BYSTANDERS);
    expect(wholes).toEqual([]);
  });

  async function useEverything(provider: PostgresProvider): Promise<void> {
    const session = { ownerId: "us", lockTimeoutMs: LOCK_MS };
    const workerItems = [act("a", 2), act("a", 3), act("a", 4, { sessionId: "s" }), act("a", 5)];
    await create(provider, "a", { workerItems, orchestratorItems: [timer("a", 6, FAR), raised("b")] });
    await provider.enqueueForOrchestrator(start("a"), { ifAbsent: true });
    const { lockToken } = await takeWork(provider);
    await provider.renewWorkItemLock(lockToken, LOCK_MS);
    await provider.ackWorkItem(lockToken, done("a", 2));
    await provider.abandonWorkItem((await takeWork(provider)).lockToken);
    await Promise.all([takeWork(provider, { session }), takeWork(provider, { session })]);
    await provider.renewSessionLock(["us"], { extendForMs: LOCK_MS, idleTimeoutMs: LOCK_MS });
    await provider.cleanupOrphanedSessions({ idleTimeoutMs: LOCK_MS });

    const turnOfA = await takeTurn(provider);
    await provider.renewOrchestrationItemLock(turnOfA.lockToken, LOCK_MS);
    await provider.abandonOrchestrationItem(turnOfA.lockToken);
    await runTurn(provider, "a", {
      events: [statusSet("a", 10, "busy"), kvSet("a", 11, "key", "value")],
      orchestratorItems: [start("c")],
      cancelledActivities: [3, 5].map((id) => ({ instance: "a", executionId: 1, id })),
      cancelledTimers: [{ instance: "a", executionId: 1, id: 6 }],
    });
    expect((await takeTurn(provider)).item.instance).toBe("c");
    expect(await fetchTurn(provider)).toBeNull();
    await Promise.all(["a", "c", "nobody"].map((id) => provider.getInstanceStatus(id)));
    await provider.admin.deleteInstance("a", true);
    expect(await provider.enqueueForOrchestrator(start("a"), { ifAbsent: true })).toBe("enqueued");
  }
});
