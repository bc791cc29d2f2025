// bench/workloads/w10-cold-replay.mjs — W10: a long history meets a process that has never seen it.
//
//   C1. Another process makes the history and is gone before the clock starts. In this one nothing is warm: neither the
//       instance, nor the statements, nor the compiled code of the engine.

import { setTimeout as pause } from "node:timers/promises";
import { expectEqual, metric, runMeasured } from "../lib/measured-process.mjs";
import { CONTENTS, longWaiter } from "../lib/orchestrations.mjs";
import { RUNTIME_OPTIONS } from "../lib/settings.mjs";
import { withClient, withRuntime } from "../lib/store.mjs";
import { startWorkloadWorker } from "../worker-process.mjs";

const INSTANCE = "long";
const EVENTS_PER_STEP = 2; // Scheduled, completed.

/** C1. How many events there are now. */
async function makeHistory(store, steps) {
  const worker = await startWorkloadWorker({ store, runtime: RUNTIME_OPTIONS.W10 });
  try {
    return await withClient(store, async ({ client }) => {
      await client.start(longWaiter, { instanceId: INSTANCE, input: steps });
      const { customStatus } = await client.waitForStatusChange(INSTANCE);
      expectEqual(customStatus, "waiting", "the status of the long instance");
      return (await client.getInstanceStats(INSTANCE)).historyEventCount;
    });
  } finally {
    await worker.stop();
  }
}

await runMeasured(async ({ store, events = 10_000 }) => {
  const steps = Math.ceil(events / EVENTS_PER_STEP);
  const made = await makeHistory(store, steps);
  await pause(500); // What the other process leaves the disk and the server to do.
  const openedAt = performance.now();
  return withRuntime(store, { ...CONTENTS, ...RUNTIME_OPTIONS.W10 }, async ({ client }) => {
    const sentAt = performance.now();
    const handle = client.getHandle(longWaiter, INSTANCE);
    await handle.raiseEvent("go");
    expectEqual(await handle.result(), steps, "the result of the long instance");
    const endedAt = performance.now();
    return [
      metric("event-to-end", endedAt - sentAt, "ms"),
      metric("open-to-end", endedAt - openedAt, "ms"),
      metric("history-events", made, "events"),
    ];
  });
});
