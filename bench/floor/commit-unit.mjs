// bench/floor/commit-unit.mjs — how long one commit of six rows takes in our schema in SQLite: the unit for latencies.
//
//   node bench/floor/commit-unit.mjs '{ "store": { "kind": "sqlite", "durability": "full", "folder": "/tmp/unit" } }'
//
// The six rows are those of a middle turn of W1: the lock and the message that go, the instance that moves on, two events,
// and the activity that is queued. One chain at a time, nobody else; of each chain its middle turns count.

import { metric, runMeasured } from "../lib/measured-process.mjs";
import { quantile } from "../report.mjs";
import { STAGES } from "./chain.mjs";
import { checkChains, openFloor } from "./open-floor.mjs";

const WARM_UP_MS = 500;

await runMeasured(async ({ store, seconds = 2 }) => {
  if (store.kind !== "sqlite") throw new Error(`there is no such unit for the store '${store.kind}'`);
  const floor = await openFloor(store);
  const warmUp = writeChains(floor, WARM_UP_MS);
  const { chains, turnsMs } = writeChains(floor, seconds * 1_000);
  await floor.close();
  await checkChains(store, warmUp.chains + chains);
  return [metric("commit-ms", quantile(turnsMs, 0.5), "ms")];
});

/** One chain after the other. `turnsMs`: what each middle turn took. */
function writeChains(floor, forMs) {
  const end = performance.now() + forMs;
  const turnsMs = [];
  let chains = 0;
  for (; performance.now() < end; chains += 1) {
    floor.prepare(1).forEach((transaction, stage) => {
      const startedAt = performance.now();
      floor.commit(transaction);
      if (STAGES[stage].kind === "turn") turnsMs.push(performance.now() - startedAt);
    });
  }
  return { chains, turnsMs };
}
