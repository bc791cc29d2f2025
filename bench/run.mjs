// bench/run.mjs — `npm run bench`: all workloads, the floor beneath us and the systems beside us, in one run.
//
//   R1. Every measured thing is a process of its own, on a store of its own; only one of them runs at a time.
//   R2. Rounds go over everything in turn, and at each workload the systems follow each other, so that whatever else the
//       machine does meets all of them alike. What is told is the median of the rounds.
//   R3. Nothing is asserted. The exit code says only whether all programs did their work: 1 if one of them failed.
//
// What it measures and what not: bench/README.md.

import { writeFileSync } from "node:fs";
import { readFlags, USAGE, UsageError } from "./lib/flags.mjs";
import { FreshStores } from "./lib/fresh-stores.mjs";
import { describeLoad, describeMachine } from "./lib/machine.mjs";
import { measure } from "./lib/measure.mjs";
import { makePlan } from "./lib/plan.mjs";
import { Results } from "./lib/results.mjs";
import { PROVIDER_OPTIONS, RUNTIME_OPTIONS } from "./lib/settings.mjs";
import { printResults, printTargets } from "./lib/tables.mjs";
import { targetsOf } from "./lib/targets.mjs";
import { familyOf } from "./lib/workloads.mjs";

/** What is promised of --quick, less what building, and a round that is longer than the others, may take. */
const QUICK_BUDGET_MS = 160_000;
/** What takes longer is measured once in a quick run, so that the rest gets its rounds. */
const QUICK_REPEAT_MS = 12_000;

const startedAt = performance.now();
const flags = flagsOrExit();
const stopping = new AbortController();
process.once("SIGINT", () => stopping.abort());

const stores = new FreshStores(flags.folder);
const results = new Results();
/** What has failed once is not tried again. */
const failed = new Set();
const lastTookMs = new Map();
try {
  await openStores();
  const plan = await makePlan(flags);
  await printBeginning(plan);
  await runRounds(plan.experiments);
  printEnd();
} finally {
  await stores.close();
}
process.exitCode = stopping.signal.aborted ? 130 : failed.size > 0 ? 1 : 0; // R3

function flagsOrExit() {
  try {
    const read = readFlags(process.argv.slice(2));
    if (!read.isHelp) return read;
    console.log(USAGE);
    return process.exit(0);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    console.error(`${error.message}\n\n${USAGE}`);
    return process.exit(2);
  }
}

/** A store that there is not is left out, and that is said. */
async function openStores() {
  if (!flags.stores.includes("postgres")) return;
  const reason = await stores.openPostgres();
  if (reason === null) return;
  console.log(`postgres is left out: ${reason}`);
  flags.stores = flags.stores.filter((store) => store !== "postgres");
}

/** R2 */
async function runRounds(experiments) {
  const most = Math.max(0, ...experiments.map(({ rounds }) => rounds));
  for (let round = 1; round <= most; round += 1) {
    const due = experiments.filter((experiment) => isDue(experiment, round));
    if (round > 1 && !hasTimeFor(due)) {
      console.log(`\n${round - 1} of ${most} rounds: there is no time for more in three minutes.`);
      return;
    }
    for (const experiment of due) {
      if (stopping.signal.aborted) return;
      const beganAt = performance.now();
      await runOnce(experiment);
      const tookMs = performance.now() - beganAt;
      lastTookMs.set(experiment, tookMs);
      console.error(`${labelOf(experiment)}: round ${round}, ${(tookMs / 1_000).toFixed(1)} s`);
    }
  }
}

function isDue(experiment, round) {
  if (round > experiment.rounds || failed.has(experiment)) return false;
  return !flags.isQuick || round === 1 || lastTookMs.get(experiment) <= QUICK_REPEAT_MS;
}

/** If all of it takes as long as it took in the round before. */
function hasTimeFor(due) {
  const neededMs = due.reduce((sum, experiment) => sum + lastTookMs.get(experiment), 0);
  return !flags.isQuick || performance.now() - startedAt + neededMs <= QUICK_BUDGET_MS;
}

/** R1 */
async function runOnce(experiment) {
  const store = stores.make(experiment.store);
  try {
    results.add(
      experiment,
      await measure(experiment.command(store), experiment.workload.limitSeconds, stopping.signal),
    );
  } catch (error) {
    if (stopping.signal.aborted) return;
    failed.add(experiment);
    console.log(`\nFAILED: ${labelOf(experiment)}: ${error.message}\n`);
  } finally {
    await stores.remove(store);
  }
}

function labelOf({ workload, store, system }) {
  return `${workload.name}, ${store}, ${system}`;
}

async function printBeginning({ peers, node }) {
  printLines("The machine", await describeMachine(stores, node));
  const names = new Set(flags.workloads.flatMap((workload) => [workload.name, familyOf(workload)]));
  const runtimes = Object.entries(RUNTIME_OPTIONS).filter(([name]) => names.has(name));
  printLines("duroxide-ts: what differs from the defaults", {
    ...Object.fromEntries(Object.entries(PROVIDER_OPTIONS).map(([kind, options]) => [`${kind} provider`, options])),
    ...Object.fromEntries(runtimes.map(([name, options]) => [`runtime, ${name}`, options])),
  });
  for (const { system, version, settings, missing } of peers) {
    if (missing === null) printLines(`${system} ${version}`, settings);
    else console.log(`\n${system} is left out: ${missing}`);
  }
}

function printLines(title, values) {
  console.log(`\n${title}`);
  const width = Math.max(...Object.keys(values).map((name) => name.length));
  for (const [name, value] of Object.entries(values)) {
    console.log(`  ${name.padEnd(width)}  ${typeof value === "string" ? value : JSON.stringify(value)}`);
  }
}

function printEnd() {
  printResults(results, flags.workloads);
  printTargets(targetsOf(results, flags.stores));
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  console.log(`\nAfter ${seconds} s. Load at the end: ${describeLoad()}`);
  for (const experiment of failed) console.log(`FAILED: ${labelOf(experiment)}; why stands above.`);
  if (flags.json !== undefined) writeFileSync(flags.json, `${JSON.stringify(results.all(), undefined, 2)}\n`);
}
