// provider-tests/own-stores.ts — the providers of this package, as the suite needs them: for our tests and our commands.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Provider } from "../provider/provider.js";
import { MemoryProvider } from "../providers/memory/memory-provider.js";
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
