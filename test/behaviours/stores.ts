// test/behaviours/stores.ts — the stores on which every behaviour that a store could spoil is shown.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe } from "vitest";
import { checkHistory } from "../../src/history/valid-history.js";
import { ProviderWrapper } from "../../src/provider/kit/provider-wrapper.js";
import type { Provider } from "../../src/provider/provider.js";
import { MemoryProvider } from "../../src/providers/memory/index.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";
import { type StoreTools, TestWorld } from "../../src/testing/test-world.js";

export interface Store {
  readonly name: string;
  /** A new world on an empty store of this kind. When it ends, all histories in it must be valid, unless it is said not to be. */
  world(options?: { readonly hasBrokenHistories?: boolean }): Promise<TestWorld>;
}

type OpenStore = (tools: StoreTools) => Provider | Promise<Provider>;

const OPENERS: Readonly<Record<string, OpenStore>> = {
  memory: (tools) => new MemoryProvider(tools),
  sqlite: (tools) => SqliteProvider.open(join(newFolder(), "store.db"), { ...tools, ...SQLITE_FOR_TESTS }),
};

/** What nobody but this test uses: no other process commits, and nothing needs to survive the machine. */
const SQLITE_FOR_TESTS = { durability: "process-crash", crossProcessPollMs: 0 } as const;

const folders: string[] = [];

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "duroxide-behaviour-"));
  folders.push(folder);
  return folder;
}

process.once("exit", () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** Looks at everything that was written, when it is closed. */
class InspectedProvider extends ProviderWrapper {
  override async [Symbol.asyncDispose](): Promise<void> {
    await inspect(this.inner);
    await super[Symbol.asyncDispose]();
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
      provider: hasBrokenHistories ? open : async (tools) => new InspectedProvider(await open(tools)),
    }),
}));

/** Writes the same tests down for every store, under `on <store>`. */
export function onEveryStore(tests: (store: Store) => void): void {
  for (const store of STORES) describe(`on ${store.name}`, () => tests(store));
}
