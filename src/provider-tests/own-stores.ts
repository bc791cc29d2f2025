// provider-tests/own-stores.ts — the providers of this package, as the suite needs them: for our tests and our commands.

import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Provider } from "../provider/provider.js";
import { MemoryProvider } from "../providers/memory/memory-provider.js";
import { Connections } from "../providers/postgres/connections.js";
import { type PostgresOptions, resolveOptions } from "../providers/postgres/options.js";
import { PostgresProvider } from "../providers/postgres/postgres-provider.js";
import { loadDriver, type SqliteConnection } from "../providers/sqlite/driver.js";
import type { SqliteOptions } from "../providers/sqlite/options.js";
import { SqliteProvider } from "../providers/sqlite/sqlite-provider.js";
import type { ProviderFactory } from "./provider-case.js";

export const memoryStore: ProviderFactory = {
  open: async ({ clock }) => ({ provider: new MemoryProvider({ clock }) }),
};

/** A file of its own for every case. */
export function sqliteFileStore(
  options: SqliteOptions = {},
  open: (file: string, options: SqliteOptions) => Promise<Provider> = SqliteProvider.open,
): ProviderFactory {
  return {
    async open({ clock }) {
      const folder = await mkdtemp(join(tmpdir(), "duroxide-sqlite-"));
      const file = join(folder, "store.db");
      return {
        provider: await open(file, { ...options, clock }),
        openAnother: () => open(file, { ...options, clock }),
        async corruptHistory(instance) {
          await onConnection(file, (db) => db.prepare(corruptEvents).run(instance));
        },
        async corruptQueues(instance) {
          await onConnection(file, (db) => {
            db.prepare(corruptMessages).run(instance);
            db.prepare(corruptActivities).run(instance);
          });
        },
        async maxAttemptCount(instance) {
          const row = await onConnection(file, (db) => db.prepare(selectMostAttempts).get(instance));
          return (row as { readonly most: number | null }).most ?? 0;
        },
        close: () => rm(folder, { recursive: true }),
      };
    },
  };
}

/** In memory: the same SQL without the file. */
export const sqliteMemoryStore: ProviderFactory = {
  open: async ({ clock }) => ({ provider: await SqliteProvider.open(":memory:", { clock }) }),
};

/** A schema of its own for every case. Whoever brings the schemas may remove them afterwards. */
export function postgresStore(
  url: string,
  options: PostgresOptions = {},
  schemas: TestSchemas = new TestSchemas(url),
): ProviderFactory {
  return {
    async open(tools) {
      const schema = schemas.take();
      const open = (): Promise<Provider> => PostgresProvider.open(url, { ...options, ...tools, schema });
      return {
        provider: await open(),
        openAnother: open,
        async corruptHistory(instance) {
          await schemas.run(schema, "UPDATE {schema}.history SET event_data = '{' WHERE instance_id = $1", [instance]);
        },
        async corruptQueues(instance) {
          await schemas.run(schema, "UPDATE {schema}.messages SET work_item = '{' WHERE instance_id = $1", [instance]);
          await schemas.run(schema, "UPDATE {schema}.activities SET work_item = '{' WHERE instance_id = $1", [
            instance,
          ]);
        },
        async maxAttemptCount(instance) {
          const select = "SELECT attempts FROM {schema}.schedule WHERE instance_id = $1";
          const [row] = await schemas.run<{ readonly attempts: number }>(schema, select, [instance]);
          return row?.attempts ?? 0;
        },
        async close() {
          await schemas.empty(schema);
          schemas.giveBack(schema);
        },
      };
    },
  };
}

/** What the schemas of tests are called, and nothing else is: whoever cleans up removes them. */
export const TEST_SCHEMA_PREFIX = "duroxide_test_";

/**
 * Schemas for tests. Making one takes far longer than emptying it, so that what is given back is used again.
 */
export class TestSchemas {
  readonly #url: string;
  readonly #free: string[] = [];
  readonly #made: string[] = [];
  #operator: Promise<Connections> | null = null;

  constructor(url: string) {
    this.#url = url;
  }

  take(): string {
    return this.#free.pop() ?? this.#make();
  }

  /** It must be empty, and nobody may use it any more. */
  giveBack(schema: string): void {
    this.#free.push(schema);
  }

  /** All that were taken. Nobody may use them any more. */
  async remove(): Promise<void> {
    for (const schema of this.#made.splice(0)) await this.run(schema, "DROP SCHEMA IF EXISTS {schema} CASCADE");
    await (await this.#operator)?.close();
    this.#operator = null;
  }

  async empty(schema: string): Promise<void> {
    await this.run(schema, emptySchema);
  }

  #make(): string {
    const schema = `${TEST_SCHEMA_PREFIX}${randomUUID().replaceAll("-", "")}`;
    this.#made.push(schema);
    return schema;
  }

  /** `{schema}` stands for the schema. */
  async run<Row>(schema: string, script: string, values?: readonly string[]): Promise<readonly Row[]> {
    this.#operator ??= Connections.open(resolveOptions(this.#url, { maxConnections: 1 }));
    return (await this.#operator).query<Row>("test", script.replaceAll("{schema}", schema), values);
  }
}

const emptySchema = `
  DELETE FROM {schema}.instances; DELETE FROM {schema}.executions; DELETE FROM {schema}.history;
  DELETE FROM {schema}.schedule; DELETE FROM {schema}.messages; DELETE FROM {schema}.activities;
  DELETE FROM {schema}.sessions; DELETE FROM {schema}.kv_store; DELETE FROM {schema}.kv_delta;
`;

const corruptEvents = "UPDATE duroxide_history SET event_data = '{' WHERE instance_id = ?";
const corruptMessages = "UPDATE duroxide_orchestrator_queue SET work_item = '{' WHERE instance_id = ?";
const corruptActivities = "UPDATE duroxide_worker_queue SET work_item = '{' WHERE instance_id = ?";

const selectMostAttempts = `
  SELECT max(attempt_count) AS most FROM duroxide_orchestrator_queue WHERE instance_id = ?`;

async function onConnection<T>(file: string, work: (db: SqliteConnection) => T): Promise<T> {
  const db = (await loadDriver()).open(file);
  try {
    return work(db);
  } finally {
    db.close();
  }
}
