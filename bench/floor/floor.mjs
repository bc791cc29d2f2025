// bench/floor/floor.mjs — how many chains of W1 a second the store could take, if nothing but its rows had to be written.
//
//   node bench/floor/floor.mjs '{ "store": { "kind": "sqlite", "durability": "full", "folder": "/tmp/floor" }, "seconds": 4 }'
//
// What it writes and what it leaves out stands in README.md.

import { metric, runMeasured } from "../lib/measured-process.mjs";
import { checkChains, openFloor } from "./open-floor.mjs";

/** Chains a commit. */
const SIZES = [20, 100, 500];
/** All cases are measured in turns, so that all of them meet the same machine. */
const TURNS = 2;

await runMeasured(async ({ store, seconds = 4 }) => {
  const floor = await openFloor(store);
  const cases = floor.manners.flatMap((manner) =>
    SIZES.flatMap((size) => floor.connections.map((connections) => ({ manner, size, connections, chains: 0, ms: 0 }))),
  );
  let written = 0;
  for (const { size, connections, manner } of cases) {
    written += (await floor.write(size, connections, manner)).chains; // Statements are prepared, code is compiled.
  }
  for (let turn = 1; turn <= TURNS; turn += 1) {
    for (const one of cases) await writeUntil(floor, one, (seconds * 1_000 * turn) / TURNS / cases.length);
  }
  written += cases.reduce((sum, { chains }) => sum + chains, 0);
  await floor.close();
  await checkChains(store, written);
  return metricsOf(cases);
});

/** Until the case has been measured for so long in all. The clock runs only while the store is at work. */
async function writeUntil(floor, one, ms) {
  while (one.ms < ms) {
    const done = await floor.write(one.size, one.connections, one.manner);
    one.chains += done.chains;
    one.ms += done.ms;
  }
}

/** The fastest counts: of all numbers of connections, then of all sizes. */
function metricsOf(cases) {
  const twelve = cases.filter(({ manner }) => manner === "twelve");
  const six = cases.filter(({ manner }) => manner === "six");
  const bySize = SIZES.map((size) => fastestOf(twelve.filter((one) => one.size === size)));
  return [
    metric("chains-per-second", rateOf(fastestOf(bySize)), "1/s"),
    ...bySize.map((one) => metric(`chains-per-second-${one.size}`, rateOf(one), "1/s")),
    ...(six.length === 0 ? [] : [metric("chains-per-second-in-six", rateOf(fastestOf(six)), "1/s")]),
  ];
}

function fastestOf(cases) {
  return cases.reduce((fastest, one) => (rateOf(one) > rateOf(fastest) ? one : fastest));
}

/** Chains a second. */
function rateOf({ chains, ms }) {
  return (chains / ms) * 1_000;
}
