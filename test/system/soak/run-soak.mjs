// soak/run-soak.mjs — the driver: a mixed load for minutes, chores beside it, and workers that are killed all along. One of
// them never is, so that its heap can be judged. Run with --expose-gc. Answers with a report.
//
//   S1. Nothing of the driver grows with the number of instances, or its own heap could not be judged.
//   S2. At the end everything is deleted: whatever is left in any table then is a problem.
//   S3. Whatever happens, no process and no file is left behind.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { failedCallsIn, faultsIn, readJournal } from "../fleet/journal.mjs";
import { randomNumbers } from "../fleet/random-numbers.mjs";
import { ServerLog } from "../fleet/server-log.mjs";
import { lookInto, openProvider, startStore, tableIn } from "../fleet/store.mjs";
import { checkTables } from "../fleet/tables.mjs";
import { WORKER_OPTIONS, workerOptionsAt } from "../fleet/worker-options.mjs";
import { Workers } from "../fleet/workers.mjs";
import { randomAim } from "../kills/aim.mjs";
import { LoadRun } from "../kills/load-run.mjs";
import { asProblems, problemsOf } from "../kills/oracles.mjs";
import { untilAtRest } from "../kills/rest.mjs";
import { deleteEnded, doom, keepEternals, passes, sweep } from "./chores.mjs";
import { healthOfProcess } from "./health.mjs";
import { growth, summaryOf, whyNotJudged } from "./judge.mjs";
import * as load from "./soak-load.mjs";
import { sizeOf } from "./store-size.mjs";

const LOAD = new URL("soak-load.mjs", import.meta.url).href;
const APPLICATION = "soak";

/** Its place in the fleet. */
const LONG_LIVED = 0;
/**
 * An instance that goes on elsewhere stays in the cache of warm ones until others take its room. With the default of 64 MiB
 * that would be growth for longer than a soak; so much is full within the first minute.
 */
const WARM_CACHE_BYTES = 524_288;

const KILL_AFTER_MS = { least: 2_000, most: 5_000 };
const AIM_PATIENCE_MS = 1_500;
const SAMPLES_PER_MINUTE = 12;
/** Every third instance is deleted by whoever started it, the others are swept. */
const DELETED_AT_ONCE = 3;
const KEPT_TABLES = ["instances", "executions", "history", "kv_store"];

/**
 * options: `store` (its kind), `minutes`, `minuteMs`, `workers`, `inFlight`, `seed`; and `onMinute(minute)`, told of each.
 */
export async function runSoak(options) {
  if (globalThis.gc === undefined) throw new Error("run this with node --expose-gc");
  const store = await startStore(options.store, APPLICATION);
  try {
    const journal = join(store.folder, "journal.jsonl"); // S3
    writeFileSync(journal, "");
    return await runOn(store, journal, options);
  } finally {
    await store.close();
  }
}

async function runOn({ spec, server }, journal, options) {
  const log = server === null ? null : new ServerLog(server);
  const provider = await openProvider(spec);
  const startOf = (place) => ({
    store: spec,
    journal,
    options: { ...workerOptionsAt(place, load.tags), warmCacheBytes: WARM_CACHE_BYTES },
  });
  const workers = await Workers.start(options.workers, { load: LOAD, startOf, execArgv: ["--expose-gc"] });
  try {
    const { run, minutes, problems } = await soak({ spec, provider, workers }, options);
    await untilAtRest(provider);
    const stops = await workers.stop();
    await deleteEnded(run.client, Date.now() + 1);
    const left = [
      ...(await checkTables(provider, spec, WORKER_OPTIONS.sessionLockTimeoutMs)),
      ...(await checkEmpty(spec)),
    ];
    const seen = readJournal(journal);
    const faults = [
      ...stops.filter((stop) => stop !== "drained, code 0").map((stop) => `a worker stopped: ${stop}`),
      ...workers.problems,
      ...(log?.complaints.map((line) => `PostgreSQL: ${line}`) ?? []),
      ...faultsIn(seen),
    ];
    return {
      errors: [...problems, ...asProblems("left", left), ...asProblems("fault", faults)],
      growth: growth(minutes.map(({ processes }) => processes)),
      notJudged: whyNotJudged(minutes),
      minutes,
      kills: workers.kills,
      ended: run.ended,
      failedCalls: failedCallsIn(seen),
    };
  } finally {
    await workers.close(); // S3
    await provider.close();
    log?.close();
  }
}

/** The minutes themselves, until all that was started has ended. */
async function soak({ spec, provider, workers }, options) {
  const over = new AbortController();
  const seen = [];
  const run = new LoadRun(load, provider, {
    first: 0,
    inFlight: options.inFlight,
    onEnded: (n, instanceId, client) => lookAt(n, instanceId, client).finally(() => seen.push(instanceId)),
  });
  const fault = (error) => asProblems("fault", [error.stack]);
  const takeSeen = () => seen.splice(0);
  const chores = [sweep, keepEternals, doom].map((chore) => chore(run.client, over.signal, takeSeen).catch(fault));
  const killing = killWorkers(workers, options.seed, over.signal);
  const loading = run.run(() => !over.signal.aborted);
  const errors = () => [...run.problems, ...asProblems("fault", workers.problems)];
  const minutes = await watchMinutes({ spec, workers, run, errors }, options);
  over.abort();
  await killing;
  await loading;
  const found = await Promise.all(chores);
  return { run, minutes, problems: [...run.problems, ...found.flat()] };
}

/** Looks at the history of every execution, while it is still there. */
async function lookAt(n, instanceId, client) {
  const problems = [];
  for (const execution of await client.listExecutions(instanceId)) {
    const found = problemsOf(await client.readHistory(instanceId, execution));
    problems.push(...found.map(({ kind, message }) => ({ kind, message: `${instanceId}, ${execution}: ${message}` })));
  }
  const isWhole = load.expected(n).status === "Completed"; // A cancelled one may end before its children do.
  if (isWhole && n % DELETED_AT_ONCE === 0) await client.deleteInstance(instanceId);
  return problems;
}

async function killWorkers(workers, seed, signal) {
  const random = randomNumbers(seed);
  const { least, most } = KILL_AFTER_MS;
  while (await passes(least + random() * (most - least), signal)) {
    const place = LONG_LIVED + 1 + Math.floor(random() * (workers.count - 1));
    if (random() < 0.5) await workers.kill(place);
    else await workers.killAt(place, randomAim(random), AIM_PATIENCE_MS);
  }
}

async function watchMinutes({ spec, workers, run, errors }, { minutes, minuteMs, onMinute }) {
  const watched = [];
  const beganAt = Date.now();
  let before = { at: beganAt, ended: 0 };
  for (let minute = 1; minute <= minutes && !run.isGivenUp; minute += 1) {
    const samples = await sampleMinute(workers, beganAt + (minute - 1) * minuteMs, minuteMs);
    const now = { at: Date.now(), ended: run.ended };
    watched.push({
      minute,
      endedPerSecond: ((now.ended - before.ended) * 1_000) / (now.at - before.at),
      errors: errors(),
      kills: workers.kills,
      processes: samples,
      ...(await sizeOf(spec)),
    });
    onMinute?.(watched.at(-1));
    before = now;
  }
  return watched;
}

/** By process, what the samples of one minute come to. */
async function sampleMinute(workers, beganAt, minuteMs) {
  const samples = { "long-lived worker": [], driver: [] };
  for (let n = 1; n <= SAMPLES_PER_MINUTE; n += 1) {
    await passes(Math.max(0, beganAt + (n * minuteMs) / SAMPLES_PER_MINUTE - Date.now()));
    const health = await workers.health(LONG_LIVED);
    if (health === null) throw new Error("the worker that is never killed has ended");
    samples["long-lived worker"].push(health);
    samples.driver.push(healthOfProcess());
  }
  return Object.fromEntries(Object.entries(samples).map(([process, list]) => [process, summaryOf(list)]));
}

/** S2 */
async function checkEmpty(spec) {
  return lookInto(spec, async (query) => {
    const problems = [];
    for (const table of KEPT_TABLES) {
      const rows = await query(`SELECT * FROM ${tableIn(spec, table)} LIMIT 5`);
      problems.push(...rows.map((row) => `left in ${table}: ${JSON.stringify(row)}`));
    }
    return problems;
  });
}
