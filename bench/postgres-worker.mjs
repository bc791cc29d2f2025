// bench/postgres-worker.mjs — one worker process of the PostgreSQL benchmarks, until it is told to stop or left alone.
//
// argv: { url, provider, runtime } as JSON; the last two are options. It says "ready" when its runtime runs, and later
// what the provider warns of.

import { setTimeout as pause } from "node:timers/promises";
import { activity, orchestration, Runtime } from "duroxide-ts";
import { PostgresProvider } from "duroxide-ts/postgres";
import { runUntilStopped } from "./worker-process.mjs";

const settings = JSON.parse(process.argv[2]);

/** When it began and when it ended, in fractions of a millisecond. */
const step = activity("Step", async (_ctx, durationMs) => {
  const beganAt = performance.timeOrigin + performance.now();
  if (durationMs > 0) await pause(durationMs);
  return { beganAt, endedAt: performance.timeOrigin + performance.now() };
});

const chain = orchestration("Chain", async (ctx, { steps, durationMs }) => {
  const times = [];
  for (let n = 0; n < steps; n += 1) times.push(await ctx.scheduleActivity(step, durationMs));
  return times;
});

const echo = activity("Echo", async (_ctx, value) => value);
const waiter = orchestration("Waiter", async (ctx) => ctx.waitForEvent("go"));

const onWarning = (warning) => process.send?.({ warning });
const provider = await PostgresProvider.open(settings.url, { onWarning, ...settings.provider });
const runtime = await Runtime.start({
  provider,
  orchestrations: [chain, waiter],
  activities: [step, echo],
  ...settings.runtime,
});
runUntilStopped(provider, runtime);
