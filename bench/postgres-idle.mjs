// bench/postgres-idle.mjs — what worker processes on PostgreSQL cost that have nothing to do.
//
//   I1. What a process does when it begins to wait is not counted: the measuring begins after a settling time.
//   I2. Statements are those of the workers, by the server's own log; the meter's are left out.
//   I3. CPU is that of the worker processes, of their backends that lived through the measuring, and of the whole server
//       with all that it ever started.
//
// What it measures and what not: bench/README.md.

import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import pg from "pg";
import { startPostgres } from "../scripts/postgres-server.mjs";
import { cpuOf, cpuOfTree } from "./process-cpu.mjs";
import { environment, printTable } from "./report.mjs";
import { LOG_SETTINGS, StatementLog } from "./statement-log.mjs";
import { startWorker } from "./worker-process.mjs";

const usage = `usage: node bench/postgres-idle.mjs [--workers 4] [--seconds 30] [--settle-seconds 35]

After npm run build. On Linux, with a server of its own: it reads that server's log, and /proc.`;

const { values: flags } = parseArgs({
  options: {
    workers: { type: "string", default: "4" },
    seconds: { type: "string", default: "30" },
    "settle-seconds": { type: "string", default: "35" },
    help: { type: "boolean", default: false },
  },
});
if (flags.help) {
  console.log(usage);
  process.exit(0);
}
const workerCount = Number(flags.workers);
const measureMs = Number(flags.seconds) * 1_000;
const settleMs = Number(flags["settle-seconds"]) * 1_000;

/** What the workers are called in the server's log: the provider's default. */
const WORKERS = "duroxide-ts";

const server = await startPostgres({ durable: true, settings: LOG_SETTINGS });
const meter = new pg.Client({ connectionString: server.url, application_name: "meter" });
await meter.connect();
const query = async (text, values) => (await meter.query(text, values)).rows;
const log = new StatementLog(server, WORKERS);

try {
  console.log(await environment(query, { workers: workerCount, measureMs, settleMs, options: "defaults" }));
  const results = [];
  await withWorkers({}, async (workers) => {
    results.push(await measure("LISTEN", workers));
    await cutListeners();
    results.push(await measure("LISTEN, after it was cut once", workers));
  });
  await withWorkers({ wakeUps: "poll" }, async (workers) => {
    results.push(await measure('wakeUps: "poll"', workers));
  });
  print(results);
} finally {
  log.close();
  await meter.end();
  await server.close();
}

async function withWorkers(provider, work) {
  const workers = [];
  try {
    for (let n = 0; n < workerCount; n += 1) workers.push(await startWorker({ url: server.url, provider }));
    await work(workers);
  } finally {
    for (const worker of workers) await worker.stop();
  }
}

async function measure(label, workers) {
  await pause(settleMs); // I1
  log.reset();
  const before = await readCpu(workers);
  const startedAt = performance.now();
  await pause(measureMs);
  const elapsedMs = performance.now() - startedAt;
  const after = await readCpu(workers);
  const { counts, missed } = log.counts();
  const percent = (ms) => (100 * ms) / elapsedMs;
  return {
    label,
    seconds: elapsedMs / 1_000,
    counts,
    missed,
    backends: after.backends.size,
    workersPercent: percent(after.workers - before.workers),
    backendsPercent: percent(grown(before.backends, after.backends)),
    serverPercent: percent(after.server - before.server),
    warnings: workers.flatMap((worker) => worker.warnings),
  };
}

/** I3 */
async function readCpu(workers) {
  const rows = await query("SELECT pid FROM pg_stat_activity WHERE application_name = $1", [WORKERS]);
  return {
    workers: workers.reduce((sum, { pid }) => sum + cpuOf(pid).ms, 0),
    backends: new Map(rows.map(({ pid }) => [pid, cpuOf(pid)?.ms ?? 0])),
    server: cpuOfTree(server.pid),
  };
}

function grown(before, after) {
  let ms = 0;
  for (const [pid, atEnd] of after) ms += atEnd - (before.get(pid) ?? 0);
  return ms;
}

/** As a network or an administrator might. A listening backend is known by what it was asked last. */
async function cutListeners() {
  const cut = await query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE application_name = $1 AND (query = 'SELECT 1' OR query LIKE 'LISTEN %')`,
    [WORKERS],
  );
  if (cut.length !== workerCount) throw new Error(`${cut.length} listening connections, not ${workerCount}`);
}

function print(results) {
  printTable(
    `${workerCount} idle worker processes`,
    results.map((result) => ({
      "wake-ups": result.label,
      "statements/s": (sum(result.counts) / result.seconds).toFixed(2),
      "CPU of the workers": `${result.workersPercent.toFixed(2)} %`,
      "of their backends": `${result.backendsPercent.toFixed(2)} %`,
      "of the whole server": `${result.serverPercent.toFixed(2)} %`,
      connections: result.backends,
    })),
  );
  printTable(
    `Statements of all of them, in ${(measureMs / 1_000).toFixed(0)} s`,
    results.flatMap(({ label, counts, seconds }) =>
      counts.map(([statement, count]) => ({
        "wake-ups": label,
        statement,
        count,
        "per s": (count / seconds).toFixed(2),
      })),
    ),
  );
  for (const { label, missed, warnings } of results) {
    if (missed > 0) console.log(`\n${label}: ${missed} lines of the log were missed`);
    for (const warning of new Set(warnings)) console.log(`\n${label}, a worker says: ${warning}`);
  }
}

function sum(counts) {
  return counts.reduce((total, [, count]) => total + count, 0);
}
