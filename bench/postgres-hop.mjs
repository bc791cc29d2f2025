// bench/postgres-hop.mjs — how long it takes from one activity to the next, when another process decides what is next.
//
//   H1. A hop is the time from the end of one activity to the beginning of the next. Both are told by the process that
//       runs them, by one clock: outcome committed, orchestration woken, its turn fetched, run and committed, the worker
//       woken, the activity fetched.
//   H2. One orchestration at a time, on a server with nothing else to do.
//   H3. The cases take turns, so that whatever else the machine does meets all of them. It makes every hop longer, but not
//       the CPU time of one, which is that of the workers and of the whole server.
//
// What it measures and what not: bench/README.md.

import { parseArgs } from "node:util";
import { Client } from "duroxide-ts";
import { PostgresProvider } from "duroxide-ts/postgres";
import pg from "pg";
import { startPostgres } from "../scripts/postgres-server.mjs";
import { cpuOf, cpuOfTree } from "./process-cpu.mjs";
import { environment, printTable, quantile } from "./report.mjs";
import { startWorker } from "./worker-process.mjs";

const usage = `usage: node bench/postgres-hop.mjs [--rounds 5] [--steps 100] [--slow-steps 4] [--slow-ms 1500]

After npm run build. On Linux, with a server of its own, which waits for the disk.`;

const { values: flags } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    steps: { type: "string", default: "100" },
    "slow-steps": { type: "string", default: "4" },
    "slow-ms": { type: "string", default: "1500" },
    help: { type: "boolean", default: false },
  },
});
if (flags.help) {
  console.log(usage);
  process.exit(0);
}
const rounds = Number(flags.rounds);
const quick = { steps: Number(flags.steps), durationMs: 0 };
const slow = { steps: Number(flags["slow-steps"]) + 1, durationMs: Number(flags["slow-ms"]) };

const orchestrates = { workerConcurrency: 0 };
const works = { orchestrationConcurrency: 0 };
const both = {};

/** Each in a schema of its own. */
const CASES = [
  { label: "two processes, LISTEN", schema: "listen", wakeUps: "listen", runtimes: [orchestrates, works] },
  { label: "two processes, poll", schema: "poll", wakeUps: "poll", runtimes: [orchestrates, works] },
  { label: "one process, LISTEN", schema: "one", wakeUps: "listen", runtimes: [both] },
];

const server = await startPostgres({ durable: true });
const meter = new pg.Client({ connectionString: server.url });
await meter.connect();
const query = async (text, values) => (await meter.query(text, values)).rows;
const settings = { rounds, quick, slow, options: "defaults" };
const opened = [];

try {
  console.log(await environment(query, settings));
  printTable("One commit of one row, for comparison (ms)", [quantiles(await measureCommits(200))]);
  for (const each of CASES) opened.push(await open(each));
  for (let round = 0; round < rounds; round += 1) {
    for (let turn = 0; turn < opened.length; turn += 1) {
      const each = opened[(round + turn) % opened.length]; // H3
      const before = cpuTimes(each);
      each.quickHops.push(...(await hopsOf(each, quick)));
      const after = cpuTimes(each);
      each.workersMs += after.workers - before.workers;
      each.serverMs += after.server - before.server;
      each.slowHops.push(...(await hopsOf(each, slow)));
    }
  }
  printTable("One hop between activities that do nothing (ms)", opened.map(rowOf("quickHops")));
  printTable("CPU time of such a hop (ms)", opened.map(cpuRowOf));
  printTable(
    `One hop after an activity of ${slow.durationMs} ms, when polling has slowed down (ms)`,
    opened.map(rowOf("slowHops")),
  );
} finally {
  for (const { close } of opened) await close();
  await meter.end();
  await server.close();
}

/** The workers of one case, and a client. One chain has run when it resolves. */
async function open({ label, schema, wakeUps, runtimes }) {
  const options = { schema, wakeUps };
  const provider = await PostgresProvider.open(server.url, options);
  const workers = [];
  for (const runtime of runtimes) workers.push(await startWorker({ url: server.url, provider: options, runtime }));
  const results = { quickHops: [], slowHops: [], workersMs: 0, serverMs: 0 };
  const opened = { label, client: new Client(provider), workers, ...results };
  await hopsOf(opened, quick);
  const close = async () => {
    for (const worker of workers) await worker.stop();
    await provider.close();
  };
  return { ...opened, close };
}

/** H1 */
async function hopsOf({ client }, input) {
  const handle = await client.start("Chain", { input });
  const times = await handle.result();
  return times.slice(1).map(({ beganAt }, index) => beganAt - times[index].endedAt);
}

function cpuTimes({ workers }) {
  return { workers: workers.reduce((sum, { pid }) => sum + cpuOf(pid).ms, 0), server: cpuOfTree(server.pid) };
}

/** What the disk takes: four of these are in every hop. */
async function measureCommits(count) {
  await query("CREATE TABLE public.commits (n int)");
  const latencies = [];
  for (let n = 0; n < count; n += 1) {
    const startedAt = performance.now();
    await query("INSERT INTO public.commits VALUES ($1)", [n]);
    latencies.push(performance.now() - startedAt);
  }
  return latencies;
}

function rowOf(hops) {
  return (each) => ({ case: each.label, ...quantiles(each[hops]) });
}

function cpuRowOf({ label, workersMs, serverMs, quickHops }) {
  const perHop = (ms) => (ms / quickHops.length).toFixed(1);
  return { case: label, "the workers": perHop(workersMs), "the server": perHop(serverMs) };
}

function quantiles(latencies) {
  const at = (share) => quantile(latencies, share).toFixed(1);
  return { p10: at(0.1), p50: at(0.5), p90: at(0.9), p99: at(0.99), samples: latencies.length };
}
