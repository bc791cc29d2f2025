// bench/worker-process.mjs — starts worker processes and stops them.

import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const PROGRAM = fileURLToPath(new URL("postgres-worker.mjs", import.meta.url));

/** `settings` as in postgres-worker.mjs. Resolves when its runtime runs. */
export async function startWorker(settings) {
  const child = fork(PROGRAM, [JSON.stringify(settings)]);
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
