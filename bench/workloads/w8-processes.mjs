// bench/workloads/w8-processes.mjs — W8: W1's load on one, two or four worker processes that share one PostgreSQL.
//
//   P1. The load is the same whatever the number of workers: 100 chains in flight in all, from this process, which is
//       client only. So one worker here is not W1, where client and worker are one process.
//   P2. Each worker is warmed up by as many chains, however many there are: those who share the load share its warm-up, too. By
//       chains, not by time: those who share two cores take longer to be compiled.

import { measureChains, runChain } from "../lib/chains.mjs";
import { doAll } from "../lib/load.mjs";
import { runMeasured } from "../lib/measured-process.mjs";
import { RUNTIME_OPTIONS } from "../lib/settings.mjs";
import { withClient } from "../lib/store.mjs";
import { startWorkloadWorker } from "../worker-process.mjs";

const DEFAULTS = { workers: 2, seconds: 4, warmupSeconds: 1, inFlight: 100 };

await runMeasured(({ store, ...given }) =>
  withClient(store, async ({ client }) => {
    const { workers: count, seconds, warmupSeconds, inFlight } = { ...DEFAULTS, ...given };
    const { warmupChains = 6_000 * count } = given;
    const start = () => startWorkloadWorker({ store, runtime: RUNTIME_OPTIONS.W8 });
    const workers = await Promise.all(Array.from({ length: count }, start));
    try {
      await doAll(warmupChains, inFlight, (nr) => runChain(client, nr)); // P2
      return await measureChains(client, { inFlight, warmupSeconds, seconds }); // P1
    } finally {
      await Promise.all(workers.map((worker) => worker.stop()));
    }
  }),
);
