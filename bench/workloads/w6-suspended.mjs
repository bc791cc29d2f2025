// bench/workloads/w6-suspended.mjs — W6: what instances cost in memory that wait for an event. Run with --expose-gc.
//
//   H1. Heap is what is left after garbage collection, less what was left before the instances were started.
//   H2. Nothing here remembers an instance: ids are reckoned, handles dropped.
//   H3. The size of the process is told too, but it tells little: freed memory stays with the process.

import { setTimeout as pause } from "node:timers/promises";
import { countFacts, doAll } from "../lib/load.mjs";
import { expectEqual, metric, runMeasured } from "../lib/measured-process.mjs";
import { waiter } from "../lib/orchestrations.mjs";
import { RUNTIME_OPTIONS } from "../lib/settings.mjs";
import { withRuntime } from "../lib/store.mjs";

const IN_FLIGHT = 100;
const MiB = 1_048_576;

/** Resolves when each has taken its first turn, and waits. */
async function suspend({ client, runtime }, prefix, count) {
  const turned = countFacts(runtime, "turn-committed", count);
  await doAll(count, IN_FLIGHT, async (index) => {
    await client.start(waiter, { instanceId: `${prefix}-${index}` }); // H2
  });
  await turned;
}

async function wake({ client }, prefix, count) {
  await doAll(count, IN_FLIGHT, async (index) => {
    const handle = client.getHandle(waiter, `${prefix}-${index}`);
    await handle.raiseEvent("go", index);
    expectEqual(await handle.result(), index, "the answer of a waiter");
  });
}

/** What was used last may be held by a callback that is still to come. */
async function memoryAfterGc() {
  for (let n = 0; n < 3; n += 1) {
    await pause(100);
    globalThis.gc();
  }
  return process.memoryUsage();
}

await runMeasured(({ store, cache = "warm", count = 10_000, warmupCount = 500, wakeCount = 200 }) => {
  if (globalThis.gc === undefined) throw new Error("run this with node --expose-gc");
  const contents = { orchestrations: [waiter], ...RUNTIME_OPTIONS[`W6-${cache}`] };
  return withRuntime(store, contents, async (opened) => {
    await suspend(opened, "warm-up", warmupCount);
    await wake(opened, "warm-up", warmupCount);
    const before = await memoryAfterGc(); // H1
    await suspend(opened, "waiter", count);
    const after = await memoryAfterGc();
    const { runningInstances } = await opened.client.getSystemMetrics();
    expectEqual(runningInstances, count, "the number of suspended instances");
    await wake(opened, "waiter", Math.min(count, wakeCount));
    return [
      metric("heap-per-instance", (after.heapUsed - before.heapUsed) / count, "bytes"),
      metric("rss-per-instance", (after.rss - before.rss) / count, "bytes"), // H3
      metric("rss", after.rss / MiB, "MiB"),
    ];
  });
});
