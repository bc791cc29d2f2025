// test/providers/postgres-rivals.ts — a database of its own, providers in it, and transactions that stay open in their way.

import { randomUUID } from "node:crypto";
import pg from "pg";
import { onTestFinished } from "vitest";
import { inSchema } from "../../src/providers/postgres/migrate.js";
import type { PostgresOptions } from "../../src/providers/postgres/options.js";
import { PostgresProvider } from "../../src/providers/postgres/postgres-provider.js";

/** A transaction that is open until it ends. */
export interface Rival {
  readonly pid: number;
  /** `{schema}` stands for the schema. */
  query<Row>(text: string, values?: readonly unknown[]): Promise<readonly Row[]>;
  commit(): Promise<void>;
  rollback(): Promise<void>;
}

const SCHEMA = "duroxide";
const INT8 = 20;

/** Nobody else is in it, so that its counters are about us. */
export class OwnDatabase {
  readonly #pool: pg.Pool;
  readonly #providers: PostgresProvider[] = [];
  readonly #rivals = new Set<pg.PoolClient>();

  private constructor(readonly url: string) {
    const types = {
      getTypeParser: (oid: number, format?: "text") => (oid === INT8 ? Number : pg.types.getTypeParser(oid, format)),
    };
    this.#pool = new pg.Pool({ connectionString: url, max: 10, types: types as pg.CustomTypesConfig });
    this.#pool.on("error", () => {}); // Who is still saying goodbye when the database goes is cut off.
  }

  /** It goes with the test. */
  static async open(serverUrl: string): Promise<OwnDatabase> {
    const name = `duroxide_test_${randomUUID().replaceAll("-", "")}`;
    const server = new pg.Client(serverUrl);
    await server.connect();
    await server.query(`CREATE DATABASE ${name}`);
    const url = new URL(serverUrl);
    url.pathname = `/${name}`;
    const database = new OwnDatabase(url.href);
    onTestFinished(async () => {
      await database.#close();
      await server.query(`DROP DATABASE ${name} WITH (FORCE)`);
      await server.end();
    });
    return database;
  }

  /** Closed when the test ends. */
  async provider(options: PostgresOptions = {}): Promise<PostgresProvider> {
    const provider = await PostgresProvider.open(this.url, { wakeUps: "local", schema: SCHEMA, ...options });
    this.#providers.push(provider);
    return provider;
  }

  /** `{schema}` stands for the schema. */
  async query<Row>(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    return (await this.#pool.query(inSchema(text, SCHEMA), values.length === 0 ? undefined : [...values]))
      .rows as readonly Row[];
  }

  async rival(): Promise<Rival> {
    const client = await this.#pool.connect();
    this.#rivals.add(client);
    await client.query("BEGIN");
    const end = (word: "COMMIT" | "ROLLBACK") => async (): Promise<void> => {
      await client.query(word);
      this.#rivals.delete(client);
      client.release();
    };
    const { rows } = await client.query<{ readonly pid: number }>("SELECT pg_backend_pid() AS pid");
    return {
      pid: rows[0]!.pid,
      query: async <Row>(text: string, values: readonly unknown[] = []) =>
        (await client.query(inSchema(text, SCHEMA), [...values])).rows as readonly Row[],
      commit: end("COMMIT"),
      rollback: end("ROLLBACK"),
    };
  }

  /** Resolves when so many wait for rows that others have locked. */
  async untilWaiting(count: number): Promise<void> {
    const waiting = `
      SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    for (;;) {
      const [row] = await this.query<{ readonly count: number }>(waiting);
      if (row!.count >= count) return;
    }
  }

  /** Resolves when somebody waits for what this one has locked. */
  async untilBlockedBy({ pid }: Rival): Promise<void> {
    const blocked = `
      SELECT 1 FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock' AND $1 = ANY (pg_blocking_pids(pid))`;
    while ((await this.query(blocked, [pid])).length === 0);
  }

  /** How often somebody had to be undone because all waited in a circle. */
  async deadlocks(): Promise<number> {
    const [row] = await this.query<{ readonly deadlocks: number }>(
      "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()",
    );
    return row!.deadlocks;
  }

  /** Rivals of a test that failed are in nobody's way any more. */
  async #close(): Promise<void> {
    for (const client of this.#rivals) client.release(true);
    await Promise.all(this.#providers.map((provider) => provider.close()));
    await this.#pool.end();
  }
}
