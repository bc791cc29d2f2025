// test/behaviours/stores.ts — the stores on which every behaviour that a store could spoil is shown.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe } from "vitest";
import { type Clock, holding } from "../../src/clock.js";
import { ProviderError } from "../../src/errors.js";
import { checkHistory } from "../../src/history/valid-history.js";
import { type ProviderOperation, ProviderWrapper } from "../../src/provider/kit/provider-wrapper.js";
import type { Provider } from "../../src/provider/provider.js";
import { TestSchemas } from "../../src/provider-tests/own-stores.js";
import { MemoryProvider } from "../../src/providers/memory/index.js";
import { PostgresProvider } from "../../src/providers/postgres/index.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";
import { type StoreTools, TestWorld } from "../../src/testing/test-world.js";

export interface Store {
  readonly name: string;
  /** A new world on an empty store of this kind. When it ends, all histories in it must be valid, unless it is said not to be. */
  world(options?: { readonly hasBrokenHistories?: boolean }): Promise<TestWorld>;
}

/** An empty store, and what becomes of it when its world ends. */
interface Opened {
  readonly provider: Provider;
  readonly end: () => Promise<void>;
}

type OpenStore = (tools: StoreTools) => Promise<Opened>;

const OPENERS: Readonly<Record<string, OpenStore>> = {
  memory: async (tools) => {
    const provider = new MemoryProvider(tools);
    return { provider, end: async () => provider[Symbol.asyncDispose]() };
  },
  sqlite: async (tools) => {
    const folder = mkdtempSync(join(tmpdir(), "duroxide-behaviour-"));
    const provider = await SqliteProvider.open(join(folder, "store.db"), {
      ...tools,
      ...SQLITE_FOR_TESTS,
      startsGoAhead,
      writerThread,
    });
    return {
      provider,
      async end() {
        await provider.close();
        rmSync(folder, { recursive: true });
      },
    };
  },
  ...postgresWhereThereIsOne(),
};

/** What nobody but this test uses: no other process commits, and nothing needs to survive the machine. */
const SQLITE_FOR_TESTS = { durability: "process-crash", crossProcessPollMs: 0 } as const;

/**
 * Whether starts go ahead of their commits: in one run all of them, in another none, whatever was proven in the worlds before.
 * CI does both.
 */
const startsGoAhead = process.env.DUROXIDE_TEST_STARTS === "always" ? "always" : "never";

/** Whether SQLite's thread writes everything that it can, or nothing. CI does both. */
const writerThread = process.env.DUROXIDE_TEST_WRITER === "always" ? "always" : "never";

/** The test run says where. */
function postgresWhereThereIsOne(): Record<string, OpenStore> {
  const url = process.env.DUROXIDE_TEST_PG_URL;
  return url === undefined ? {} : { postgres: reusedProviders(url) };
}

/**
 * Every new connection must learn the functions of the schema, which takes longer than most tests. So providers stay open,
 * and live in one world after the other, by its time and its ids.
 */
function reusedProviders(url: string): OpenStore {
  const schemas = new TestSchemas(url);
  const free: { readonly tools: BorrowedTools; readonly provider: Provider; readonly schema: string }[] = [];
  const make = async (tools: BorrowedTools) => {
    const schema = schemas.take();
    const { clock, newId } = tools;
    const options = { clock, newId, schema, wakeUps: "local", startsGoAhead } as const;
    return { tools, schema, provider: await PostgresProvider.open(url, options) };
  };
  return async (lent) => {
    const reused = free.pop();
    if (reused !== undefined) reused.tools.lender = lent;
    const one = reused ?? (await make(new BorrowedTools(lent)));
    return {
      provider: one.provider,
      async end() {
        await schemas.empty(one.schema);
        free.push(one);
      },
    };
  };
}

/** Those of the world in which the provider lives now. */
class BorrowedTools implements StoreTools {
  lender: StoreTools;

  constructor(lender: StoreTools) {
    this.lender = lender;
  }

  readonly clock: Clock = {
    now: () => this.lender.clock.now(),
    setTimer: (delayMs, callback) => this.lender.clock.setTimer(delayMs, callback),
    holdWhile: (work) => holding(this.lender.clock, work),
  };

  readonly newId = (): string => this.lender.newId();
}

/** Looks at everything that was written, when its world ends; from then on, it is closed. */
class InspectedProvider extends ProviderWrapper {
  readonly #hasBrokenHistories: boolean;
  readonly #end: () => Promise<void>;
  #isClosed = false;

  constructor({ provider, end }: Opened, hasBrokenHistories: boolean) {
    super(provider);
    this.#hasBrokenHistories = hasBrokenHistories;
    this.#end = end;
  }

  protected override around<T>(operation: ProviderOperation, call: () => Promise<T>): Promise<T> {
    if (this.#isClosed) return Promise.reject(new ProviderError("invalid", operation, "the provider is closed"));
    return super.around(operation, call);
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    try {
      if (!this.#hasBrokenHistories) await inspect(this.inner);
    } finally {
      await this.#end();
    }
  }
}

/** All histories must be valid. */
export async function inspect(provider: Provider): Promise<void> {
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
