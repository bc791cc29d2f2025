// bench/workloads/steady.mjs — minutes of W1 while finished instances are deleted: does it stay as fast, and as small?
// Run with --expose-gc.
//
//   Y1. The first minute warms up; the last one is compared with the second.
//   Y2. The heap is read at the end of each minute, after garbage collection, under full load. Nothing here grows with the number of chains.

import { existsSync, statSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { runChain } from "../lib/chains.mjs";
import { keepGoing } from "../lib/load.mjs";
import { metric, runMeasured } from "../lib/measured-process.mjs";
import { CONTENTS } from "../lib/orchestrations.mjs";
import { RUNTIME_OPTIONS } from "../lib/settings.mjs";
import { databaseFile, withRuntime } from "../lib/store.mjs";

const MiB = 1_048_576;
const DELETE_AT_ONCE = 1_000;
/** Whoever waits for a result has it by then. */
const KEPT_MS = 2_000;

/** Deletes what has ended, until it is told to stop. How many these were. */
async function deleteFinished(client, everySeconds, signal) {
  let deleted = 0;
  while (!signal.aborted) {
    await pause(everySeconds * 1_000, undefined, { signal }).catch(() => {});
    for (let last = DELETE_AT_ONCE; last === DELETE_AT_ONCE && !signal.aborted; ) {
      const filter = { completedBeforeMs: Date.now() - KEPT_MS, limit: DELETE_AT_ONCE };
      last = (await client.deleteInstanceBulk(filter)).instancesDeleted;
      deleted += last;
    }
  }
  return deleted;
}

/** Y2. One entry for each minute. */
async function watchMinutes(minutes, minuteMs, ended, store) {
  const watched = [];
  const beganAt = performance.now();
  let previous = { at: beganAt, ended: 0 };
  for (let minute = 1; minute <= minutes; minute += 1) {
    await pause(beganAt + minute * minuteMs - performance.now());
    const now = { at: performance.now(), ended: ended() };
    globalThis.gc();
    watched.push({
      perSecond: ((now.ended - previous.ended) * 1_000) / (now.at - previous.at),
      heapMiB: process.memoryUsage().heapUsed / MiB,
      fileMiB: fileBytes(store) / MiB,
    });
    console.error(`minute ${minute}: ${JSON.stringify(watched.at(-1))}`);
    previous = now;
  }
  return watched;
}

/** With what SQLite keeps beside it. */
function fileBytes(store) {
  const files = [databaseFile(store), `${databaseFile(store)}-wal`];
  return files.reduce((sum, file) => sum + (existsSync(file) ? statSync(file).size : 0), 0);
}

/** `left`: what had ended and was not deleted yet, at the end. If that is much, deleting did not keep up. */
function metricsOf(watched, deleted, left) {
  const [, second] = watched; // Y1
  const last = watched.at(-1);
  const nr = (index) => String(index + 1).padStart(2, "0");
  return [
    metric("throughput-last-to-second", last.perSecond / second.perSecond, "×"),
    metric("heap-last-to-second", last.heapMiB / second.heapMiB, "×"),
    metric("file-last-to-second", last.fileMiB / second.fileMiB, "×"),
    metric("instances-deleted", deleted, "instances"),
    metric("instances-left", left, "instances"),
    ...watched.map(({ perSecond }, index) => metric(`chains-per-second-${nr(index)}`, perSecond, "1/s")),
    ...watched.map(({ heapMiB }, index) => metric(`heap-${nr(index)}`, heapMiB, "MiB")),
    ...watched.map(({ fileMiB }, index) => metric(`file-${nr(index)}`, fileMiB, "MiB")),
  ];
}

await runMeasured(({ store, minutes = 10, minuteSeconds = 60, inFlight = 100, deleteEverySeconds = 3 }) => {
  if (globalThis.gc === undefined) throw new Error("run this with node --expose-gc");
  if (minutes < 3) throw new Error("at least 3 minutes are needed: the last one is compared with the second");
  if (store.kind !== "sqlite") throw new Error("only SQLite can tell how large its file is");
  return withRuntime(store, { ...CONTENTS, ...RUNTIME_OPTIONS.steady }, async ({ client }) => {
    let ended = 0;
    const stopping = new AbortController();
    const deleting = deleteFinished(client, deleteEverySeconds, stopping.signal);
    const watching = watchMinutes(minutes, minuteSeconds * 1_000, () => ended, store);
    const loading = keepGoing(inFlight, performance.now() + minutes * minuteSeconds * 1_000, async () => {
      await runChain(client, ended);
      ended += 1;
    });
    const [watched] = await Promise.all([watching, loading]);
    const { completedInstances } = await client.getSystemMetrics();
    stopping.abort();
    return metricsOf(watched, await deleting, completedInstances);
  });
});
