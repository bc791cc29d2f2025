// fleet/run-fleet.mjs — the driver: a server, a fleet of workers, a load, and trouble; then the oracles. Answers with a report.
//
//   D1. The driver survives what the workers survive: a call that fails in passing is made again (patient-client.mjs).
//   D2. Orchestrations are started all along, so that starts meet trouble as well.
//   D3. Whatever happens, no process and no file is left behind.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { Client } from "duroxide-ts";
import { failedCallsIn, faultsIn, readJournal } from "./journal.mjs";
import { orchestrationAt, tags } from "./load.mjs";
import { checkHistories, standstill } from "./oracles.mjs";
import { patientClient } from "./patient-client.mjs";
import { ServerLog } from "./server-log.mjs";
import { openProvider, startStore } from "./store.mjs";
import { checkTables } from "./tables.mjs";
import { APPLICATION, Trouble } from "./trouble.mjs";
import { WORKER_OPTIONS, workerOptionsAt } from "./worker-options.mjs";
import { Workers } from "./workers.mjs";

const LOAD = new URL("load.mjs", import.meta.url).href;
/** No orchestration has ended for so long: something hangs. Far longer than all locks and pauses together. */
const STANDSTILL_MS = 30_000;

/**
 * options: orchestrations, workers, inFlight, seed, killEveryMs, cutEveryMs (0: never), and restarts: a list of
 * { mode, after: a part of the work, outageMs }.
 */
export async function runFleet(options) {
  const store = await startStore("postgres", APPLICATION);
  try {
    const journal = join(store.folder, "journal.jsonl"); // D3: what lies there goes with the server.
    writeFileSync(journal, "");
    return await runOn(store, journal, options);
  } finally {
    await store.close();
  }
}

async function runOn({ spec, server }, journal, options) {
  const log = new ServerLog(server);
  const provider = await openProvider(spec);
  const startOf = (place) => ({ store: spec, journal, options: workerOptionsAt(place, tags) });
  const workers = await Workers.start(options.workers, { load: LOAD, startOf });
  const trouble = new Trouble(server, workers);
  try {
    const startedAt = Date.now();
    trouble.begin(options);
    const load = new Load(provider, trouble, options);
    const end = await Promise.race([load.run(), load.standsStill()]);
    const endedAt = Date.now();
    const problems = [...load.problems];
    await trouble.end();
    if (end === "standstill") problems.push(...(await standstill(server.url)));
    const stops = await workers.stop();
    const checked = await checkHistories(provider, options.orchestrations);
    problems.push(...checked.problems);
    problems.push(...(await checkTables(provider, spec, WORKER_OPTIONS.sessionLockTimeoutMs)));
    problems.push(...stops.filter((stop) => stop !== "drained, code 0").map((stop) => `a worker stopped: ${stop}`));
    problems.push(...workers.problems, ...log.complaints.map((line) => `PostgreSQL: ${line}`));
    const seen = summarize(readJournal(journal), startedAt, endedAt, trouble.restarts);
    return {
      problems: [...problems, ...seen.faults],
      completed: load.completed,
      wallMs: endedAt - startedAt,
      kills: workers.kills,
      cuts: trouble.cuts,
      restarts: seen.restarts,
      driverRetries: load.retries,
      runs: seen.runs,
      results: checked.results,
      turns: seen.turns,
      failedCalls: seen.failedCalls,
      longestPause: seen.longestPause,
      deadlocks: log.deadlocks,
    };
  } finally {
    await trouble.end(); // D3
    await workers.close();
    await provider.close();
    log.close();
  }
}

/** All orchestrations, from start to end. */
class Load {
  completed = 0;
  retries = 0;
  problems = [];
  #client;
  #trouble;
  #options;
  #restarts;
  #ended = 0;
  #lastEndAt = Date.now();
  #over = new AbortController();

  constructor(provider, trouble, options) {
    this.#client = patientClient(new Client(provider), {
      signal: this.#over.signal,
      onRetry: () => {
        this.retries += 1; // D1
      },
    });
    this.#trouble = trouble;
    this.#options = options;
    this.#restarts = [...options.restarts];
  }

  async run() {
    let next = 0;
    const player = async () => {
      while (next < this.#options.orchestrations) await this.#play(next++);
    };
    await Promise.all(Array.from({ length: this.#options.inFlight }, player)); // D2
    this.#over.abort();
    return "done";
  }

  async standsStill() {
    while (Date.now() - this.#lastEndAt < STANDSTILL_MS) {
      await pause(1_000, undefined, { signal: this.#over.signal }).catch(() => {});
      if (this.#over.signal.aborted) return "done";
    }
    this.#over.abort();
    this.problems.push(`nothing has ended for ${STANDSTILL_MS} ms`);
    return "standstill";
  }

  async #play(n) {
    const { name, instanceId, input, expected } = orchestrationAt(n);
    try {
      await this.#client.start(name, { instanceId, input });
      const ended = await this.#client.waitForOrchestration(instanceId, { signal: this.#over.signal });
      if (ended.status !== "Completed") this.problems.push(`${instanceId} has failed: ${ended.error}`);
      else if (isDeepStrictEqual(ended.output, expected.output)) this.completed += 1;
      else this.problems.push(`${instanceId} came to ${JSON.stringify(ended.output)}`);
    } catch (error) {
      this.problems.push(`${instanceId}: ${error.stack}`);
    }
    this.#ends();
  }

  #ends() {
    this.#ended += 1;
    this.#lastEndAt = Date.now();
    const part = this.#ended / this.#options.orchestrations;
    while (this.#restarts.length > 0 && part >= this.#restarts[0].after) {
      const { mode, outageMs } = this.#restarts.shift();
      this.#trouble.restart(mode, outageMs);
    }
  }
}

/** What the journal tells. Times are those since the start. */
function summarize(journal, startedAt, endedAt, restarts) {
  const of = (line) => journal.filter((entry) => entry.line === line);
  const turns = of("turn").map(({ at }) => at);
  return {
    turns: turns.length,
    runs: of("run").length,
    failedCalls: failedCallsIn(journal),
    longestPause: longestPause([startedAt, ...turns.filter((at) => at > startedAt && at < endedAt), endedAt]),
    restarts: restarts.map(({ mode, stoppedAt, backAt }) => {
      const next = turns.find((at) => at >= backAt);
      const turnAfterMs = next === undefined ? null : next - backAt;
      return { mode, atMs: stoppedAt - startedAt, awayMs: backAt - stoppedAt, turnAfterMs };
    }),
    faults: faultsIn(journal),
  };
}

/** Between two of these moments. */
function longestPause([first, ...moments]) {
  let longest = { atMs: 0, ms: 0 };
  let before = first;
  for (const at of moments) {
    if (at - before > longest.ms) longest = { atMs: before - first, ms: at - before };
    before = at;
  }
  return longest;
}
