// test/simulation/store.ts — the stores that a simulation can run on. Both answer within the process and without waiting for
// anything real, or no seed would give the same run twice.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../src/clock.js";
import type { Provider } from "../../src/provider/provider.js";
import { MemoryProvider } from "../../src/providers/memory/memory-provider.js";
import { SqliteProvider } from "../../src/providers/sqlite/sqlite-provider.js";

/** How often a connection looks whether others have written. Every look is a step. */
const LOOK_MS = 500;

export const STORES = ["memory", "sqlite", "sqlite-shared"] as const;
/** `sqlite`: every process has a connection of its own to one file. `sqlite-shared`: all of them share one. */
export type StoreKind = (typeof STORES)[number];

export interface SimulatedStore {
  /** For whoever watches. */
  readonly provider: Provider;
  /** For one life of a process. */
  connect(): Promise<Provider>;
  /** Whether those who wait are woken at once by everybody else. */
  readonly wakesAll: boolean;
  /** Whether the store has one clock for all, whatever those of its users say. */
  readonly hasOwnClock: boolean;
  close(): Promise<void>;
}

/** What a store is made of. */
export interface StoreParts {
  readonly clock: Clock;
  readonly newId: () => string;
  /** What SQLite does with starts. */
  readonly startsGoAhead: "always" | "never";
}

export async function openStore(kind: StoreKind, parts: StoreParts): Promise<SimulatedStore> {
  switch (kind) {
    case "memory":
      return shared(new MemoryProvider({ clock: parts.clock, newId: parts.newId }), async () => {});
    case "sqlite-shared": {
      const provider = await SqliteProvider.open(":memory:", parts);
      return shared(provider, () => provider[Symbol.asyncDispose]());
    }
    case "sqlite":
      return openFile(parts);
  }
}

function shared(provider: Provider, close: () => Promise<void>): SimulatedStore {
  return { provider, connect: async () => provider, wakesAll: true, hasOwnClock: true, close };
}

async function openFile(parts: StoreParts): Promise<SimulatedStore> {
  const folder = await mkdtemp(join(tmpdir(), "duroxide-simulation-"));
  const connections: SqliteProvider[] = [];
  const connect = async (): Promise<Provider> => {
    const options = { ...parts, durability: "process-crash", crossProcessPollMs: LOOK_MS } as const;
    const connection = await SqliteProvider.open(join(folder, "store.db"), options);
    connections.push(connection);
    return connection;
  };
  return {
    provider: await connect(),
    connect,
    wakesAll: false,
    hasOwnClock: false,
    async close() {
      for (const connection of connections) await connection[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
