// bench/workloads/overload.mjs — 2,000 chains at once on a runtime with default slots, while one instance is always busy
// and another fans out without end. How long does the unluckiest wait?
//
//   O1. A wait begins when `client.start` is called: a start that is acknowledged late has waited, too.
//   O2. The backlog is the time in which all of them are done. Who waits for his first turn as long as all others together
//       need to end has been starved: max ÷ backlog is near 1 then.
//   O3. Behind first come, first served: how much later an instance was served than it would have been if, at the very
//       same instants, instances had been served in the order in which they were started.

import { setTimeout as pause } from "node:timers/promises";
import { activity, orchestration } from "duroxide-ts";
import { expectEqual, latencyMetrics, metric, runMeasured } from "../lib/measured-process.mjs";
import { CHAIN_STEPS, step } from "../lib/orchestrations.mjs";
import { RUNTIME_OPTIONS } from "../lib/settings.mjs";
import { withRuntime } from "../lib/store.mjs";

const BUSY_STEPS = 200;
const SETTLE_MS = 1_000;

const firstTurnAt = [];
const queuedChain = orchestration("QueuedChain", async (ctx, index) => {
  firstTurnAt[index] ??= performance.now();
  let n = index;
  for (let done = 0; done < CHAIN_STEPS; done += 1) n = await ctx.scheduleActivity(step, n);
  return n;
});

const busyStepsAt = [];
const busyStep = activity("BusyStep", async () => void busyStepsAt.push(performance.now()));

/** Never without something to do. */
const busy = orchestration("Busy", async (ctx) => {
  for (let done = 0; done < BUSY_STEPS; done += 1) await ctx.scheduleActivity(busyStep);
  return ctx.continueAsNew();
});

/** Fills the queue of the workers, again and again. */
const wide = orchestration("Wide", async (ctx, branches) => {
  await ctx.all(Array.from({ length: branches }, (_, branch) => ctx.scheduleActivity(step, branch)));
  return ctx.continueAsNew(branches);
});

async function runBacklog(client, count) {
  const startedAt = [];
  const endedAt = [];
  const run = async (index) => {
    startedAt[index] = performance.now(); // O1
    const handle = await client.start(queuedChain, { input: index });
    expectEqual(await handle.result(), index + CHAIN_STEPS, "the result of a chain");
    endedAt[index] = performance.now();
  };
  await Promise.all(Array.from({ length: count }, (_, index) => run(index)));
  return { startedAt, endedAt };
}

function waits(from, to) {
  return to.map((at, index) => at - from[index]);
}

/** O3. Both in the order of the starts. */
function behindFcfsMs(servedAt) {
  const inOrder = servedAt.toSorted((one, other) => one - other);
  return Math.max(...servedAt.map((at, index) => at - inOrder[index]));
}

function metricsOf(name, startedAt, servedAt, backlogMs) {
  const waitsMs = waits(startedAt, servedAt);
  return [
    ...latencyMetrics(waitsMs, name),
    metric(`${name}-max-to-backlog`, Math.max(...waitsMs) / backlogMs, "×"),
    metric(`${name}-behind-fcfs-max`, behindFcfsMs(servedAt), "ms"),
  ];
}

/** The longest time that the busy instance went without a step, and how many it took a second. */
function busyMetrics(from, to) {
  const at = [from, ...busyStepsAt.filter((time) => time > from && time < to), to];
  const gaps = at.slice(1).map((time, index) => time - at[index]);
  return [
    metric("busy-gap-max", Math.max(...gaps), "ms"),
    metric("busy-steps-per-second", ((at.length - 2) * 1_000) / (to - from), "1/s"),
  ];
}

await runMeasured(({ store, count = 2_000, branches = 500 }) => {
  const orchestrations = [queuedChain, busy, wide];
  const contents = { orchestrations, activities: [step, busyStep], ...RUNTIME_OPTIONS.overload };
  return withRuntime(store, contents, async ({ client }) => {
    const others = [await client.start(busy), await client.start(wide, { input: branches })];
    await pause(SETTLE_MS);
    const { startedAt, endedAt } = await runBacklog(client, count);
    const from = startedAt[0];
    const to = Math.max(...endedAt);
    const metrics = [
      metric("backlog", to - from, "ms"), // O2
      ...metricsOf("first-turn", startedAt, firstTurnAt, to - from),
      ...metricsOf("completion", startedAt, endedAt, to - from),
      ...busyMetrics(from, to),
    ];
    for (const handle of others) await handle.cancel();
    for (const { instanceId } of others) await client.waitForOrchestration(instanceId);
    return metrics;
  });
});
