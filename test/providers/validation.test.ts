// The validation suite on the providers of this package that live in this process, and on the wrappers that we put around
// them. PostgreSQL has a file of its own, which runs beside this one.

import type { Clock } from "../../src/clock.js";
import { instrument } from "../../src/provider/kit/instrumented-provider.js";
import { withPayloadCodec } from "../../src/provider/payload-codec.js";
import type { Provider } from "../../src/provider/provider.js";
import { memoryStore, sqliteFileStore, sqliteMemoryStore } from "../../src/provider-tests/own-stores.js";
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
// Of any text, but as long as it was: statistics count bytes.
const reversed = (text: string): string => [...text].reverse().join("");
const encoded = wrapped((provider) => withPayloadCodec(provider, { encode: reversed, decode: reversed }));

const writtenByThread = sqliteFileStore({ durability: "process-crash", writerThread: "always" });

describeProvider("MemoryProvider", memoryStore);
describeProvider("SqliteProvider in memory", sqliteMemoryStore);
// Hundreds of files in a row: the contract is the same with fewer syncs.
describeProvider("SqliteProvider on a file", sqliteFileStore({ durability: "process-crash" }));
describeProvider("SqliteProvider whose thread writes", writtenByThread);
describeProvider("an instrumented provider", instrumented);
describeProvider("a ControlledProvider that controls nothing", controlled);
describeProvider("a provider behind a payload codec", encoded);
