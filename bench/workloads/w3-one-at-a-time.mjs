// bench/workloads/w3-one-at-a-time.mjs — W3: one instance of one activity at a time, from start to result in the client.

import { orchestration } from "duroxide-ts";
import { keepInFlight } from "../lib/load.mjs";
import { expectEqual, latencyMetrics, metric, runMeasured } from "../lib/measured-process.mjs";
import { step } from "../lib/orchestrations.mjs";
import { RUNTIME_OPTIONS } from "../lib/settings.mjs";
import { withRuntime } from "../lib/store.mjs";

const single = orchestration("Single", async (ctx, n) => ctx.scheduleActivity(step, n));

async function runSingle(client, nr) {
  const handle = await client.start(single, { input: nr });
  expectEqual(await handle.result(), nr + 1, "the result of one step");
}

await runMeasured(({ store, seconds = 3, warmupSeconds = 1 }) => {
  const contents = { orchestrations: [single], activities: [step], ...RUNTIME_OPTIONS.W3 };
  return withRuntime(store, contents, async ({ client }) => {
    const load = { inFlight: 1, warmupSeconds, seconds };
    const { perSecond, latenciesMs } = await keepInFlight(load, (nr) => runSingle(client, nr));
    return [...latencyMetrics(latenciesMs), metric("orchestrations-per-second", perSecond, "1/s")];
  });
});
