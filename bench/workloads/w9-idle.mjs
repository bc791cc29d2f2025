// bench/workloads/w9-idle.mjs — W9: what one worker process costs that has nothing to do. Linux only: it reads /proc.
//
//   I1. What a process does when it begins to wait is not counted: the measuring begins after a settling time.
//   I2. On PostgreSQL the statements are counted by the server's own log. It is not written for anybody else's
//       benchmark, so the server is one of our own, started here.

import { setTimeout as pause } from "node:timers/promises";
import { startPostgres } from "../../scripts/postgres-server.mjs";
import { metric, runMeasured } from "../lib/measured-process.mjs";
import { RUNTIME_OPTIONS } from "../lib/settings.mjs";
import { cpuOf } from "../process-cpu.mjs";
import { LOG_SETTINGS, StatementLog } from "../statement-log.mjs";
import { startWorkloadWorker } from "../worker-process.mjs";

/** What a worker is called in the server's log: the provider's default. */
const WORKER = "duroxide-ts";

async function measureIdle(store, { settleSeconds, seconds, log }) {
  const worker = await startWorkloadWorker({ store, runtime: RUNTIME_OPTIONS.W9 });
  try {
    await pause(settleSeconds * 1_000); // I1
    log?.reset();
    const before = cpuOf(worker.pid);
    const startedAt = performance.now();
    await pause(seconds * 1_000);
    const elapsedMs = performance.now() - startedAt;
    const cpu = metric("cpu", (100 * (cpuOf(worker.pid).ms - before.ms)) / elapsedMs, "%");
    return log === null ? [cpu] : [cpu, metric("statements-per-second", countedBy(log) / (elapsedMs / 1_000), "1/s")];
  } finally {
    await worker.stop();
  }
}

function countedBy(log) {
  const { counts, missed } = log.counts();
  if (missed > 0) throw new Error(`${missed} lines of the server's log were missed`);
  return counts.reduce((sum, [, count]) => sum + count, 0);
}

/** I2 */
async function measureOnOwnServer(store, times) {
  const server = await startPostgres({ durable: true, settings: LOG_SETTINGS });
  const log = new StatementLog(server, WORKER);
  try {
    return await measureIdle({ ...store, url: server.url }, { ...times, log });
  } finally {
    log.close();
    await server.close();
  }
}

await runMeasured(({ store, seconds = 60, settleSeconds = 35 }) => {
  const times = { seconds, settleSeconds };
  return store.kind === "postgres" ? measureOnOwnServer(store, times) : measureIdle(store, { ...times, log: null });
});
