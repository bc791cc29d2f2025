// kills/run-kills.mjs — the driver: a store, a fleet of workers, a load, and kills; then the oracles. Answers with a report.
//
//   D1. Instances are started as long as workers are killed, so that starts meet trouble as well.
//   D2. Afterwards the workers are left alone: what is not done then will never be.
//   D3. Whatever happens, no process and no file is left behind.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { failedCallsIn, faultsIn, readJournal } from "../fleet/journal.mjs";
import { standstill } from "../fleet/oracles.mjs";
import { ServerLog } from "../fleet/server-log.mjs";
import { openProvider, startStore } from "../fleet/store.mjs";
import { checkTables } from "../fleet/tables.mjs";
import { APPLICATION, Trouble } from "../fleet/trouble.mjs";
import { WORKER_OPTIONS, workerOptionsAt } from "../fleet/worker-options.mjs";
import { Workers } from "../fleet/workers.mjs";
import { Kills } from "./kills.mjs";
import { readLedger } from "./ledger.mjs";
import { LoadRun } from "./load-run.mjs";
import { asProblems, checkInstances } from "./oracles.mjs";
import { untilAtRest } from "./rest.mjs";

export const RICH_LOAD = new URL("rich-load.mjs", import.meta.url).href;

/** Whoever is killed has made an attempt of all that it held. */
const MOST_ATTEMPTS = 1_000;
/** By the seed, the load begins with another number. */
const NUMBERS_PER_SEED = 1_000_000;

/**
 * options: `store` (its kind), `load` (the address of a module), `kills`, `everyMs`, `restarts` of the server, `workers`,
 * `inFlight`, `seed`; and `onProgress(done, ended)`, told after each kill.
 */
export async function runKills(options) {
  const store = await startStore(options.store, APPLICATION);
  try {
    const files = { journal: join(store.folder, "journal.jsonl"), ledger: join(store.folder, "ledger.jsonl") }; // D3
    for (const file of Object.values(files)) writeFileSync(file, "");
    return await runOn(store, files, options);
  } finally {
    await store.close();
  }
}

async function runOn({ spec, server }, files, options) {
  const load = await import(options.load);
  const log = server === null ? null : new ServerLog(server);
  const provider = await openProvider(spec);
  const startOf = (place) => ({
    store: spec,
    ...files,
    options: { ...workerOptionsAt(place, load.tags), maxAttempts: MOST_ATTEMPTS },
  });
  const workers = await Workers.start(options.workers, { load: options.load, startOf });
  const trouble = server === null ? null : new Trouble(server, workers);
  try {
    const startedAt = Date.now();
    const { run, kills } = await kill({ load, provider, workers, trouble }, options);
    await untilAtRest(provider);
    const wallMs = Date.now() - startedAt;
    const stood = run.isGivenUp && server !== null ? await standstill(server.url) : [];
    const stops = await workers.stop();
    const faults = [
      ...stops.filter((stop) => stop !== "drained, code 0").map((stop) => `a worker stopped: ${stop}`),
      ...workers.problems,
      ...(log?.complaints.map((line) => `PostgreSQL: ${line}`) ?? []),
      ...stood,
    ];
    const { problems, ...found } = await lookBack({ load, provider, spec, files });
    return {
      problems: [...run.problems, ...problems, ...asProblems("fault", faults)],
      kills: workers.kills,
      aimed: kills.aimed,
      restarts: trouble?.restarts.length ?? 0,
      wallMs,
      started: run.started,
      ended: run.ended,
      driverRetries: run.retries,
      ...found,
    };
  } finally {
    await trouble?.end(); // D3
    await workers.close();
    await provider.close();
    log?.close();
  }
}

/** What the store, the ledger and the journal tell when all is over. */
async function lookBack({ load, provider, spec, files }) {
  const ledger = readLedger(files.ledger);
  const journal = readJournal(files.journal);
  const { problems, found } = await checkInstances(provider, ledger.calls);
  return {
    problems: [
      ...problems,
      ...asProblems("doubled", ledger.problems),
      ...asProblems("wrong", (await load.check?.(provider)) ?? []),
      ...asProblems("left", await checkTables(provider, spec, WORKER_OPTIONS.sessionLockTimeoutMs)),
      ...asProblems("fault", faultsIn(journal)),
    ],
    ...found,
    runs: [...ledger.calls.values()].reduce((sum, { runs }) => sum + runs, 0),
    calls: ledger.calls.size,
    turns: journal.filter(({ line }) => line === "turn").length,
    failedCalls: failedCallsIn(journal),
  };
}

/** Resolves when all kills are done, and all instances have ended. */
async function kill({ load, provider, workers, trouble }, options) {
  const run = new LoadRun(load, provider, {
    first: options.seed * NUMBERS_PER_SEED,
    inFlight: options.inFlight,
  });
  const killsPerRestart = Math.ceil(options.kills / (options.restarts + 1));
  const kills = new Kills(workers, {
    ...options,
    needsPause: () => run.needsPause,
    onKill: (done) => {
      if (done % killsPerRestart === 0 && done < options.kills) trouble?.restart("immediate", 0);
      options.onProgress?.(done, run.ended);
    },
  });
  const loading = run.run(() => !kills.isDone).finally(() => kills.end()); // D1; and no kills where the run was given up.
  await kills.run();
  await trouble?.end(); // D2
  await loading;
  return { run, kills };
}
