// bench/workloads/w2b-stress.mjs — W2b: the seeds' stress test: 20 in flight, each with five parallel activities of 10 ms.
//
//   S1. A timer of 10 ms takes longer than 10 ms, so the bound is reckoned from how long the bodies of the activities
//       really took, in this very round. A busy process is late for its timers, though, which makes them longer and the
//       bound lower; so the share is told, too, of the bound by what a body takes while this process does nothing else.
//   S2. With slots for all of them an instance can take no less than one activity: the bound is in flight ÷ activity time.
//       With few worker slots: worker slots ÷ (activities of an instance × activity time).

import { setTimeout as pause } from "node:timers/promises";
import { activity, orchestration } from "duroxide-ts";
import { keepInFlight } from "../lib/load.mjs";
import { expectEqual, latencyMetrics, metric, runMeasured } from "../lib/measured-process.mjs";
import { RUNTIME_OPTIONS } from "../lib/settings.mjs";
import { withRuntime } from "../lib/store.mjs";

const BRANCHES = [0, 1, 2, 3, 4];
const ACTIVITY_MS = 10;

const IDLE_BODIES = 50;

let bodiesMs = 0;
let bodies = 0;

async function body() {
  const beganAt = performance.now();
  await pause(ACTIVITY_MS);
  return performance.now() - beganAt;
}

const work = activity("Work", async (_ctx, task) => {
  const bodyMs = await body(); // Others add to the sum meanwhile.
  bodiesMs += bodyMs;
  bodies += 1;
  return `processed: ${task}`;
});

const stress = orchestration("Stress", async (ctx) => {
  const results = await ctx.all(BRANCHES.map((branch) => ctx.scheduleActivity(work, `task-${branch}`)));
  return results.filter((result, branch) => result === `processed: task-${branch}`).length;
});

async function runStress(client) {
  const handle = await client.start(stress);
  expectEqual(await handle.result(), BRANCHES.length, "the number of right results");
}

/** S1 */
async function idleBodyMs() {
  let sumMs = 0;
  for (let n = 0; n < IDLE_BODIES; n += 1) sumMs += await body();
  return sumMs / IDLE_BODIES;
}

await runMeasured(async ({ store, slots = "ample", seconds = 4, warmupSeconds = 1, inFlight = 20 }) => {
  const options = RUNTIME_OPTIONS[`W2b-${slots}`];
  const idleMs = await idleBodyMs();
  const contents = { orchestrations: [stress], activities: [work], ...options };
  return withRuntime(store, contents, async ({ client }) => {
    const load = { inFlight, warmupSeconds, seconds };
    const { perSecond, latenciesMs } = await keepInFlight(load, () => runStress(client));
    const activityMs = bodiesMs / bodies; // S1
    const atOnce = Math.min(inFlight, options.workerConcurrency / BRANCHES.length); // S2
    const boundAt = (bodyMs) => (atOnce * 1_000) / bodyMs;
    return [
      metric("orchestrations-per-second", perSecond, "1/s"),
      metric("activity-mean", activityMs, "ms"),
      metric("activity-idle-mean", idleMs, "ms"),
      metric("share-of-bound", (100 * perSecond) / boundAt(activityMs), "%"),
      metric("share-of-idle-bound", (100 * perSecond) / boundAt(idleMs), "%"),
      ...latencyMetrics(latenciesMs),
    ];
  });
});
