// bench/determinism-guard.mjs — what the determinism guard costs: the calls that it watches, in everybody else's code, and
// W1's chains on SQLite. Without it (NODE_ENV=production) and with it, in turns, a process for every round.
//
// What it measures and what not: bench/README.md.

import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { FreshStores } from "./lib/fresh-stores.mjs";
import { describeLoad } from "./lib/machine.mjs";
import { measure } from "./lib/measure.mjs";
import { printTable, quantile } from "./report.mjs";

const LIMIT_SECONDS = 300;
const STORE = "sqlite-process-crash"; // Nobody waits for a disk.
const PROGRAM = fileURLToPath(new URL("lib/guard-cost.mjs", import.meta.url));
const ENVIRONMENTS = { off: "production", on: "development" };

const { values: flags } = parseArgs({ options: { rounds: { type: "string", default: "7" } } });
const stores = new FreshStores();
const neverAborted = new AbortController().signal;
/** By metric, then by guard: the values of the rounds. */
const found = new Map();

for (let round = 0; round < Number(flags.rounds); round += 1) {
  const turns = Object.keys(ENVIRONMENTS);
  for (const guard of round % 2 === 0 ? turns : turns.toReversed()) note(guard, await measured(guard));
  console.error(`round ${round + 1} of ${flags.rounds}; load: ${describeLoad()}`);
}
printTable(`CPU time without and with the guard, medians of ${flags.rounds} rounds`, [...found].map(rowOf));

async function measured(guard) {
  const store = stores.make(STORE);
  try {
    const env = { NODE_ENV: ENVIRONMENTS[guard] };
    const command = { file: process.execPath, argv: [PROGRAM, JSON.stringify({ store })], env };
    return await measure(command, LIMIT_SECONDS, neverAborted);
  } finally {
    await stores.remove(store);
  }
}

function note(guard, metrics) {
  for (const { metric, value, unit } of metrics) {
    const name = `${metric} (${unit})`;
    if (!found.has(name)) found.set(name, { off: [], on: [] });
    found.get(name)[guard].push(value);
  }
}

function rowOf([metric, values]) {
  const [off, on] = [quantile(values.off, 0.5), quantile(values.on, 0.5)];
  const shown = (value) => Number(value.toPrecision(3)).toLocaleString("en-US");
  return { metric, "guard off": shown(off), "guard on": shown(on), "on / off": (on / off).toFixed(2) };
}
