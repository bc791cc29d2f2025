// Whoever owns the server: makes databases and roles, and looks at what others do there.

import { randomBytes } from "node:crypto";
import pg from "pg";
import { expect, onTestFinished } from "vitest";
import { act, completed, done, kvSet, NAMED, start, started, turn } from "../../src/provider-tests/builders.js";
import type { PostgresProvider } from "../../src/providers/postgres/index.js";

/** A name that nobody else has. */
export function uniqueName(prefix: string): string {
  return `${prefix}_${randomBytes(6).toString("hex")}`;
}

export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** Rows and rights behind everybody's back, in one database. */
export class Owner {
  private constructor(
    readonly url: string,
    readonly pool: pg.Pool,
  ) {}

  /** Of the database that the URL names. Ends with the test. */
  static of(url: string): Owner {
    const pool = new pg.Pool({ connectionString: url, max: 2, application_name: "owner" });
    pool.on("error", () => {}); // Its database may go before its last connection does.
    onTestFinished(() => pool.end());
    return new Owner(url, pool);
  }

  /** Of a new database, which ends with the test. */
  static async ofNewDatabase(serverUrl: string): Promise<Owner> {
    const server = Owner.of(serverUrl);
    const name = uniqueName("db");
    await server.run(`CREATE DATABASE ${name}`);
    onTestFinished(() => server.run(`DROP DATABASE ${name} WITH (FORCE)`));
    return Owner.of(Object.assign(new URL(serverUrl), { pathname: `/${name}` }).href);
  }

  async run(text: string): Promise<void> {
    await this.pool.query(text);
  }

  async rows<Row>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    return (await this.pool.query(text, [...values])).rows as Row[];
  }

  /** Somebody without rights, who ends with the test. */
  async newRole(): Promise<{ readonly role: string; readonly url: string }> {
    const role = uniqueName("role");
    await this.run(`CREATE ROLE ${role} LOGIN PASSWORD 'secret'`);
    onTestFinished(async () => {
      await this.run(`DROP OWNED BY ${role} CASCADE`);
      await this.run(`DROP ROLE ${role}`);
    });
    return { role, url: Object.assign(new URL(this.url), { username: role, password: "secret" }).href };
  }

  /** Everything that somebody has made in this database, as `kind schema.name`. */
  async objects(): Promise<readonly string[]> {
    const found = await this.rows<{ readonly object: string }>(`
      SELECT 'schema ' || nspname AS object FROM pg_namespace WHERE nspname !~ '^pg_(temp|toast)'
      UNION ALL SELECT 'relation ' || relnamespace::regnamespace || '.' || relname FROM pg_class WHERE oid >= 16384
      UNION ALL SELECT 'function ' || oid::regprocedure FROM pg_proc WHERE oid >= 16384
      UNION ALL SELECT 'type ' || typnamespace::regnamespace || '.' || typname FROM pg_type WHERE oid >= 16384
      UNION ALL SELECT 'operator ' || oid::regoperator FROM pg_operator WHERE oid >= 16384
      UNION ALL SELECT 'cast ' || oid FROM pg_cast WHERE oid >= 16384
      UNION ALL SELECT 'extension ' || extname FROM pg_extension
      UNION ALL SELECT 'trigger ' || evtname FROM pg_event_trigger
      ORDER BY 1`);
    return found.map(({ object }) => object).filter((object) => !object.includes("pg_toast"));
  }

  /** The connection that waits for a lock, as soon as there is one; not this one. */
  async waitingPid(applicationName: string, not = 0): Promise<number> {
    const waiting = `SELECT pid FROM pg_stat_activity
      WHERE application_name = $1 AND wait_event_type = 'Lock' AND pid <> $2`;
    for (;;) {
      const [row] = await this.rows<{ readonly pid: number }>(waiting, [applicationName, not]);
      if (row !== undefined) return row.pid;
    }
  }
}

/** One that is stored escaped. */
const VALUE = '"value"';

/** Something of everything that a provider does; throws where it is not as it should be. Leaves nothing behind. */
export async function useEverything(provider: PostgresProvider, instance = "order-1"): Promise<void> {
  const session = { ownerId: "me", lockTimeoutMs: 60_000 };
  const child = `${instance}-child`;
  await provider.enqueueForOrchestrator(start(instance));
  const first = await provider.fetchOrchestrationItem({ lockTimeoutMs: 60_000 });
  await provider.renewOrchestrationItemLock(first!.lockToken, 60_000);
  expect(await provider.admin.getQueueDepths()).toMatchObject({ orchestratorQueue: 0 });
  await provider.ackOrchestrationItem(
    first!.lockToken,
    turn({
      events: [started(instance), kvSet(instance, 2, "key", VALUE)],
      workerItems: [act(instance, 3), act(instance, 4, { sessionId: `${instance}-session` })],
      orchestratorItems: [start(child, { parentInstance: instance, parentId: 5 })],
      metadata: NAMED,
    }),
  );
  for (const id of [3, 4]) {
    const work = await provider.fetchWorkItem({ lockTimeoutMs: 60_000, session });
    expect(work?.item.id).toEqual(id);
    await provider.renewWorkItemLock(work!.lockToken, 60_000);
    if (id === 3) await provider.ackWorkItem(work!.lockToken, done(instance, id));
    else await provider.abandonWorkItem(work!.lockToken);
  }
  await provider.renewSessionLock(["me"], { extendForMs: 60_000, idleTimeoutMs: 60_000 });
  const again = await provider.fetchOrchestrationItem({ lockTimeoutMs: 60_000 });
  await provider.abandonOrchestrationItem(again!.lockToken);
  const last = await provider.fetchOrchestrationItem({ lockTimeoutMs: 60_000 });
  expect(last?.item.instance).toEqual(child);
  await provider.abandonOrchestrationItem(last!.lockToken, { delayMs: 60_000 });
  const end = await provider.fetchOrchestrationItem({ lockTimeoutMs: 60_000 });
  expect(end?.item.instance).toEqual(instance);
  await provider.ackOrchestrationItem(
    end!.lockToken,
    turn({ events: [completed(instance, 6)], metadata: { status: "Completed", output: "done" } }),
  );
  await readEverything(provider, instance);
  const { admin } = provider;
  await admin.pruneExecutions(instance, { keepLast: 1 });
  await admin.pruneExecutionsBulk({ limit: 10 }, { keepLast: 1 });
  expect((await admin.deleteInstance(instance, false)).instancesDeleted).toEqual(1);
  await provider.cleanupOrphanedSessions({ idleTimeoutMs: 0 });
  expect(await admin.getQueueDepths()).toEqual({ orchestratorQueue: 0, workerQueue: 0, timerQueue: 0 });
}

async function readEverything(provider: PostgresProvider, instance: string): Promise<void> {
  const { admin } = provider;
  expect((await provider.read(instance)).length).toEqual(3);
  expect((await provider.readWithExecution(instance, 1)).length).toEqual(3);
  expect((await provider.getInstanceStatus(instance))?.output).toEqual("done");
  expect(await provider.getCustomStatus(instance, 0)).toEqual(null);
  expect(await provider.getKvValue(instance, "key")).toEqual(VALUE);
  expect([...(await provider.getKvAllValues(instance))]).toEqual([["key", VALUE]]);
  expect(await provider.getInstanceStats(instance)).toMatchObject({ historyEventCount: 3, kvTotalValueBytes: 7 });
  expect(await admin.listInstances()).toEqual([instance]);
  expect(await admin.listInstancesByStatus("Completed")).toEqual([instance]);
  expect(await admin.listExecutions(instance)).toEqual([1]);
  expect(await admin.listChildren(instance)).toEqual([]);
  expect(await admin.getParentId(instance)).toEqual(null);
  expect(await admin.latestExecutionId(instance)).toEqual(1);
  expect((await admin.getInstanceInfo(instance)).status).toEqual("Completed");
  expect((await admin.getExecutionInfo(instance, 1)).eventCount).toEqual(3);
  expect((await admin.getSystemMetrics()).totalInstances).toEqual(1);
  expect((await admin.getInstanceTree(instance)).rootId).toEqual(instance);
}
