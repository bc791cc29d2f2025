// bench/workloads/w1-chain.mjs — W1: chains of five activities that do nothing, 100 in flight. Throughput and latency.

import { measureChains } from "../lib/chains.mjs";
import { runMeasured } from "../lib/measured-process.mjs";
import { CONTENTS } from "../lib/orchestrations.mjs";
import { RUNTIME_OPTIONS } from "../lib/settings.mjs";
import { withRuntime } from "../lib/store.mjs";

await runMeasured(({ store, seconds = 4, warmupSeconds = 1, inFlight = 100 }) =>
  withRuntime(store, { ...CONTENTS, ...RUNTIME_OPTIONS.W1 }, ({ client }) =>
    measureChains(client, { inFlight, warmupSeconds, seconds }),
  ),
);
