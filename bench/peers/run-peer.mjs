// bench/peers/run-peer.mjs — the workloads as a peer meets them: the same loads, counted by the same code as ours.
//
//   P1. PostgreSQL keeps the plan of a prepared statement, and one that was made for an empty table is a bad one. A real
//       server analyzes new tables within a minute and plans anew. Nobody measures for a minute here, so there is a
//       first, unmeasured run of the same load, and then the tables are analyzed.

import { keepInFlight } from "../lib/load.mjs";
import { expectEqual, latencyMetrics, metric, runMeasured } from "../lib/measured-process.mjs";

/**
 * @typedef {object} Peer
 * @property {(steps: number, input: number) => Promise<number>} run   starts a workflow of so many steps, each of which
 *   adds one to what it is given; resolves with its output when that is durable
 * @property {(input: number) => Promise<unknown>} start   resolves when the start of a workflow that nobody runs is durable
 * @property {() => Promise<number>} started   how many starts the store has
 * @property {() => Promise<void>} [analyze]   P1
 * @property {() => Promise<unknown>} close
 */

const CHAIN_STEPS = 5;
const FIRST_RUN_SECONDS = 3;

/** Of both runs. */
let acknowledged = 0;

const LOADS = Object.freeze({
  W1: Object.freeze({ inFlight: 100, measure: chains }),
  W3: Object.freeze({ inFlight: 1, measure: oneAtATime }),
  W7: Object.freeze({ inFlight: 32, measure: starts }),
});

/**
 * argv: `{ workload, store, seconds, warmupSeconds, inFlight, settings }`; only the first two are needed. The last one is
 * for trying others than those of settings.mjs.
 *
 * @type {(open: (args: object) => Promise<Peer>) => Promise<never>}
 */
export async function runPeer(open) {
  await runMeasured(async (args) => {
    const { inFlight, measure } = LOADS[args.workload] ?? {};
    if (measure === undefined) throw new Error(`the peers do not know the workload ${args.workload}`);
    const load = { inFlight, seconds: 4, warmupSeconds: 1, ...args };
    const peer = await open(args);
    try {
      if (peer.analyze !== undefined) {
        await measure(peer, { ...load, seconds: FIRST_RUN_SECONDS, warmupSeconds: 0 }); // P1
        await peer.analyze();
      }
      return await measure(peer, load);
    } finally {
      await peer.close();
    }
  });
}

async function chains(peer, load) {
  const { perSecond, latenciesMs } = await keepInFlight(load, (nr) => runToEnd(peer, CHAIN_STEPS, nr));
  return [metric("chains-per-second", perSecond, "1/s"), ...latencyMetrics(latenciesMs)];
}

async function oneAtATime(peer, load) {
  const { latenciesMs } = await keepInFlight(load, (nr) => runToEnd(peer, 1, nr));
  return latencyMetrics(latenciesMs);
}

async function runToEnd(peer, steps, input) {
  expectEqual(await peer.run(steps, input), input + steps, `the result of ${steps} steps`);
}

async function starts(peer, load) {
  const { perSecond, latenciesMs } = await keepInFlight(load, async (nr) => {
    await peer.start(nr);
    acknowledged += 1;
  });
  expectEqual(await peer.started(), acknowledged, "the number of starts in the store");
  return [metric("starts-per-second", perSecond, "1/s"), ...latencyMetrics(latenciesMs)];
}
