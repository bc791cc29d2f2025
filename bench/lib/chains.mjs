// bench/lib/chains.mjs — W1's load: chains of five steps, so many in flight, from start to result in the client.

import { keepInFlight } from "./load.mjs";
import { expectEqual, latencyMetrics, metric } from "./measured-process.mjs";
import { CHAIN_STEPS, chain } from "./orchestrations.mjs";

export async function runChain(client, nr) {
  const handle = await client.start(chain, { input: nr });
  expectEqual(await handle.result(), nr + CHAIN_STEPS, "the result of a chain");
}

export async function measureChains(client, load) {
  const { perSecond, latenciesMs } = await keepInFlight(load, (nr) => runChain(client, nr));
  return [metric("chains-per-second", perSecond, "1/s"), ...latencyMetrics(latenciesMs)];
}
