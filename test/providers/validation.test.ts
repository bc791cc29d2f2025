// The validation suite on every provider of this package, and on the wrapper that the runtime puts around them.

import { instrument } from "../../src/provider/kit/instrumented-provider.js";
import { memoryStore, sqliteFileStore, sqliteMemoryStore } from "../../src/provider-tests/own-stores.js";
import type { ProviderFactory } from "../../src/provider-tests/provider-case.js";
import { describeProvider } from "../../src/provider-tests/vitest.js";

const instrumented: ProviderFactory = {
  async open(options) {
    const store = await memoryStore.open(options);
    return { ...store, provider: instrument(store.provider, options.clock, () => {}) };
  },
};

describeProvider("MemoryProvider", memoryStore);
describeProvider("SqliteProvider in memory", sqliteMemoryStore);
// Hundreds of files in a row: the contract is the same with fewer syncs.
describeProvider("SqliteProvider on a file", sqliteFileStore({ durability: "process-crash" }));
describeProvider("an instrumented provider", instrumented);
