// bench/workloads/w4-long-chain.mjs — W4: one orchestration of many activities, one after the other. Is the last step as
// cheap as the first?
//
//   L1. When a step begins is told by its activity, in this process, so telling it costs nothing.
//   L2. The first steps of a process are slow because V8 has not compiled the code yet: a short chain runs before.

import { activity, orchestration } from "duroxide-ts";
import { expectEqual, metric, runMeasured } from "../lib/measured-process.mjs";
import { RUNTIME_OPTIONS } from "../lib/settings.mjs";
import { withRuntime } from "../lib/store.mjs";

const WINDOW = 100;
/** Where a step is neither among the first nor the history long. */
const EARLY = 1_000;

let beganAt = [];

const timedStep = activity("TimedStep", async (_ctx, n) => {
  beganAt[n] = performance.now(); // L1
  return n + 1;
});

const longChain = orchestration("LongChain", async (ctx, steps) => {
  let n = 0;
  while (n < steps) n = await ctx.scheduleActivity(timedStep, n);
  return n;
});

async function runLongChain(client, steps) {
  beganAt = [];
  const startedAt = performance.now();
  const handle = await client.start(longChain, { input: steps });
  expectEqual(await handle.result(), steps, "the result of a long chain");
  return performance.now() - startedAt;
}

/** From the beginning of step `first`, counted from 0, to that of the step a window later. */
function windowMs(first) {
  return beganAt[first + WINDOW] - beganAt[first];
}

await runMeasured(({ store, steps = 1_000, warmupSteps = 200 }) => {
  if (steps <= WINDOW) throw new Error(`${steps} steps are too few: more than ${WINDOW} are needed`);
  const contents = { orchestrations: [longChain], activities: [timedStep], ...RUNTIME_OPTIONS.W4 };
  return withRuntime(store, contents, async ({ client }) => {
    await runLongChain(client, warmupSteps); // L2
    const totalMs = await runLongChain(client, steps);
    const lastMs = windowMs(steps - 1 - WINDOW);
    const metrics = [
      metric("total", totalMs, "ms"),
      metric("step-mean", totalMs / steps, "ms"),
      metric("first-100", windowMs(0), "ms"),
      metric("last-100", lastMs, "ms"),
    ];
    if (steps < EARLY + 2 * WINDOW) return metrics;
    const earlyMs = windowMs(EARLY);
    return [...metrics, metric("steps-1000-1100", earlyMs, "ms"), metric("last-to-1000", lastMs / earlyMs, "×")];
  });
});
