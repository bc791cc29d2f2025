// bench/workloads/w7-starts.mjs — W7: durable starts, 32 in flight, while no runtime runs.

import { keepInFlight } from "../lib/load.mjs";
import { expectEqual, latencyMetrics, metric, runMeasured } from "../lib/measured-process.mjs";
import { chain } from "../lib/orchestrations.mjs";
import { withClient } from "../lib/store.mjs";

await runMeasured(({ store, seconds = 4, warmupSeconds = 1, inFlight = 32 }) =>
  withClient(store, async ({ client }) => {
    let started = 0;
    const { perSecond, latenciesMs } = await keepInFlight({ inFlight, warmupSeconds, seconds }, async (nr) => {
      await client.start(chain, { input: nr });
      started += 1;
    });
    const { orchestratorQueue } = await client.getQueueDepths();
    expectEqual(orchestratorQueue, started, "the number of starts in the queue");
    return [metric("starts-per-second", perSecond, "1/s"), ...latencyMetrics(latenciesMs)];
  }),
);
