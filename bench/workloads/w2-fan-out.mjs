// bench/workloads/w2-fan-out.mjs — W2: five activities that do nothing, all at once, 100 instances in flight.

import { orchestration } from "duroxide-ts";
import { keepInFlight } from "../lib/load.mjs";
import { expectEqual, latencyMetrics, metric, runMeasured } from "../lib/measured-process.mjs";
import { step } from "../lib/orchestrations.mjs";
import { RUNTIME_OPTIONS } from "../lib/settings.mjs";
import { withRuntime } from "../lib/store.mjs";

const BRANCHES = [0, 1, 2, 3, 4];

const fanOut = orchestration("FanOut", async (ctx, n) => {
  const results = await ctx.all(BRANCHES.map((branch) => ctx.scheduleActivity(step, n + branch)));
  return results.reduce((sum, result) => sum + result, 0);
});

async function runFanOut(client, nr) {
  const handle = await client.start(fanOut, { input: nr });
  const expected = BRANCHES.reduce((sum, branch) => sum + nr + branch + 1, 0);
  expectEqual(await handle.result(), expected, "the result of a fan-out");
}

await runMeasured(({ store, seconds = 4, warmupSeconds = 1, inFlight = 100 }) => {
  const contents = { orchestrations: [fanOut], activities: [step], ...RUNTIME_OPTIONS.W2 };
  return withRuntime(store, contents, async ({ client }) => {
    const load = { inFlight, warmupSeconds, seconds };
    const { perSecond, latenciesMs } = await keepInFlight(load, (nr) => runFanOut(client, nr));
    return [metric("fan-outs-per-second", perSecond, "1/s"), ...latencyMetrics(latenciesMs)];
  });
});
