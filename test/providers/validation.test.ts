// The validation suite on every provider of this package, and on the wrappers that we put around them.

import type { Clock } from "../../src/clock.js";
import { instrument } from "../../src/provider/kit/instrumented-provider.js";
import type { Provider } from "../../src/provider/provider.js";
import { memoryStore, postgresStore, sqliteFileStore, sqliteMemoryStore } from "../../src/provider-tests/own-stores.js";
import type { ProviderFactory } from "../../src/provider-tests/provider-case.js";
import { describeProvider } from "../../src/provider-tests/vitest.js";
import { ControlledProvider } from "../../src/testing/index.js";

function wrapped(wrap: (provider: Provider, clock: Clock) => Provider): ProviderFactory {
  return {
    async open(options) {
      const store = await memoryStore.open(options);
      return { ...store, provider: wrap(store.provider, options.clock) };
    },
  };
}

const instrumented = wrapped((provider, clock) => instrument(provider, clock, () => {}));
const controlled = wrapped((provider, clock) => new ControlledProvider(provider, { clock }));

describeProvider("MemoryProvider", memoryStore);
describeProvider("SqliteProvider in memory", sqliteMemoryStore);
// Hundreds of files in a row: the contract is the same with fewer syncs.
describeProvider("SqliteProvider on a file", sqliteFileStore({ durability: "process-crash" }));
const { DUROXIDE_TEST_PG_URL } = process.env;
if (DUROXIDE_TEST_PG_URL !== undefined) describeProvider("PostgresProvider", postgresStore(DUROXIDE_TEST_PG_URL));
describeProvider("an instrumented provider", instrumented);
describeProvider("a ControlledProvider that controls nothing", controlled);
