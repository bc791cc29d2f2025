// bench/worker-process.mjs — starts worker processes and stops them; and, in such a process, how it stops.

import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const POSTGRES_WORKER = new URL("postgres-worker.mjs", import.meta.url);
const WORKLOAD_WORKER = new URL("lib/worker.mjs", import.meta.url);

/** `settings` as in postgres-worker.mjs. Resolves when its runtime runs. */
export function startWorker(settings) {
  return startProcess(POSTGRES_WORKER, settings);
}

/** `settings` as in lib/worker.mjs. Resolves when its runtime runs. */
export function startWorkloadWorker(settings) {
  return startProcess(WORKLOAD_WORKER, settings);
}

async function startProcess(program, settings) {
  const child = fork(fileURLToPath(program), [JSON.stringify(settings)], {
    stdio: ["ignore", process.stderr, process.stderr, "ipc"], // The stdout of a measured process is for its metrics.
    env: { NODE_ENV: "production", ...process.env },
  });
  const ended = once(child, "exit");
  const warnings = [];
  child.on("message", ({ warning }) => {
    if (warning !== undefined) warnings.push(warning);
  });
  const isReady = await Promise.race([once(child, "message").then(() => true), ended.then(() => false)]);
  if (!isReady) throw new Error("a worker process ended before it was ready");
  return {
    pid: child.pid,
    warnings,
    async stop() {
      if (child.connected) child.send("stop");
      await ended;
    },
  };
}

/** In a worker process: says that it is ready, and ends it when it is told to stop or left alone. */
export function runUntilStopped(provider, runtime) {
  let isStopping = false;
  const stop = async () => {
    if (isStopping) return;
    isStopping = true;
    await runtime.shutdown();
    await provider.close();
    process.exit();
  };
  process.once("message", stop);
  process.once("disconnect", stop);
  process.send?.("ready");
}
