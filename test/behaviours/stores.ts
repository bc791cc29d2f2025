// test/behaviours/stores.ts — the stores on which every behaviour that a store could spoil is shown.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe } from "vitest";
import { checkHistory } from "../../src/history/valid-history.js";
import { ProviderWrapper } from "../../src/provider/kit/provider-wrapper.js";
import type { Provider } from "../../src/provider/provider.js";
import { postgresStore } from "../../src/provider-tests/own-stores.js";
import { MemoryProvider } from "../../src/providers/memory/index.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";
import { type StoreTools, TestWorld } from "../../src/testing/test-world.js";

export interface Store {
  readonly name: string;
  /** A new world on an empty store of this kind. When it ends, all histories in it must be valid, unless it is said not to be. */
  world(options?: { readonly hasBrokenHistories?: boolean }): Promise<TestWorld>;
}

/** An empty store, and how to get rid of it once its provider is closed. */
interface Opened {
  readonly provider: Provider;
  readonly cleanUp?: () => Promise<void>;
}

type OpenStore = (tools: StoreTools) => Opened | Promise<Opened>;

/** Set by the test run where it has a PostgreSQL. */
const PG_URL = process.env.DUROXIDE_TEST_PG_URL;

const OPENERS: Readonly<Record<string, OpenStore>> = {
  memory: (tools) => ({ provider: new MemoryProvider(tools) }),
  sqlite: async (tools) => {
    const folder = mkdtempSync(join(tmpdir(), "duroxide-behaviour-"));
    return {
      provider: await SqliteProvider.open(join(folder, "store.db"), { ...tools, ...SQLITE_FOR_TESTS }),
      cleanUp: async () => rmSync(folder, { recursive: true }),
    };
  },
  ...(PG_URL === undefined ? {} : { postgres: openPostgres(PG_URL) }),
};

/** What nobody but this test uses: no other process commits, and nothing needs to survive the machine. */
const SQLITE_FOR_TESTS = { durability: "process-crash", crossProcessPollMs: 0 } as const;

function openPostgres(url: string): OpenStore {
  const factory = postgresStore(url, { wakeUps: "local" });
  return async (tools) => {
    const { provider, close } = await factory.open(tools);
    return { provider, ...(close === undefined ? {} : { cleanUp: close }) };
  };
}

/** Looks at everything that was written, when it is closed. */
class InspectedProvider extends ProviderWrapper {
  readonly #hasBrokenHistories: boolean;
  readonly #cleanUp: (() => Promise<void>) | undefined;

  constructor({ provider, cleanUp }: Opened, hasBrokenHistories: boolean) {
    super(provider);
    this.#hasBrokenHistories = hasBrokenHistories;
    this.#cleanUp = cleanUp;
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    try {
      if (!this.#hasBrokenHistories) await inspect(this.inner);
    } finally {
      await super[Symbol.asyncDispose]();
      await this.#cleanUp?.();
    }
  }
}

async function inspect(provider: Provider): Promise<void> {
  for (const instance of (await provider.admin?.listInstances()) ?? []) {
    for (const executionId of (await provider.admin?.listExecutions(instance)) ?? []) {
      checkHistory(await provider.readWithExecution(instance, executionId));
    }
  }
}

export const STORES: readonly Store[] = Object.entries(OPENERS).map(([name, open]) => ({
  name,
  world: ({ hasBrokenHistories = false } = {}) =>
    TestWorld.open({
      patienceMs: 0,
      provider: async (tools) => new InspectedProvider(await open(tools), hasBrokenHistories),
    }),
}));

/** Writes the same tests down for every store, under `on <store>`. */
export function onEveryStore(tests: (store: Store) => void): void {
  for (const store of STORES) describe(`on ${store.name}`, () => tests(store));
}
