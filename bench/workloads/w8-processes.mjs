// bench/workloads/w8-processes.mjs — W8: W1's load on one, two or four worker processes that share one PostgreSQL.
//
//   P1. The load is the same whatever the number of workers: 100 chains in flight in all, from this process, which is
//       client only. So one worker here is not W1, where client and worker are one process.
//   P2. Each worker is warmed up by as many chains, however many there are: those who share the load share its warm-up, too.

import { measureChains } from "../lib/chains.mjs";
import { runMeasured } from "../lib/measured-process.mjs";
import { RUNTIME_OPTIONS } from "../lib/settings.mjs";
import { withClient } from "../lib/store.mjs";
import { startWorkloadWorker } from "../worker-process.mjs";

await runMeasured(({ store, workers: count = 2, seconds = 4, warmupSeconds = 2 * count, inFlight = 100 }) =>
  withClient(store, async ({ client }) => {
    const start = () => startWorkloadWorker({ store, runtime: RUNTIME_OPTIONS.W8 });
    const workers = await Promise.all(Array.from({ length: count }, start));
    try {
      return await measureChains(client, { inFlight, warmupSeconds, seconds }); // P1
    } finally {
      await Promise.all(workers.map((worker) => worker.stop()));
    }
  }),
);
