// bench/lib/orchestrations.mjs — the orchestrations that more than one workload runs.

import { activity, orchestration } from "duroxide-ts";

/** Does nothing; that it ran shows in the sum. */
export const step = activity("Step", async (_ctx, n) => n + 1);

export const CHAIN_STEPS = 5;

/** Five steps, one after the other: its input plus five. */
export const chain = orchestration("Chain", async (ctx, input) => {
  let n = input;
  for (let done = 0; done < CHAIN_STEPS; done += 1) n = await ctx.scheduleActivity(step, n);
  return n;
});

/** Waits for one event, and answers with what it carries. */
export const waiter = orchestration("Waiter", async (ctx) => ctx.waitForEvent("go"));

/** So many steps, then a wait for one event. The custom status tells when it waits. */
export const longWaiter = orchestration("LongWaiter", async (ctx, steps) => {
  let n = 0;
  while (n < steps) n = await ctx.scheduleActivity(step, n);
  ctx.setCustomStatus("waiting");
  await ctx.waitForEvent("go");
  return n;
});

/** What every worker process of these benchmarks can run. */
export const CONTENTS = { orchestrations: [chain, waiter, longWaiter], activities: [step] };
