// Scheduled job — something that is done every night, for as long as anybody wants it.
//
//   npx tsx node_modules/duroxide-ts/examples/scheduled-job.ts
//   npm run example -- scheduled-job   (in a checkout of the repository)
//
// One instance is one job. Its id makes it unique: every process of a service may start it at its own start, and there is
// still one. Each run is an execution of its own (continue-as-new), so the history does not grow.

import { setTimeout as pause } from "node:timers/promises";
import { ActivityFailedError, activity, Client, orchestration, Runtime } from "duroxide-ts";
import { MemoryProvider } from "duroxide-ts/memory";

export interface Schedule {
  /** When the next run is due, in milliseconds since the epoch. */
  readonly dueMs: number;
  readonly everyMs: number;
}

export const sendReport = activity("SendReport", async (_ctx, dueMs: number): Promise<void> => {
  console.log(`report of ${new Date(dueMs).toISOString()}`);
});

export const reportJob = orchestration("ReportJob", async (ctx, schedule: Schedule): Promise<never> => {
  const { dueMs, everyMs } = schedule;
  await ctx.scheduleTimer(Math.max(0, dueMs - (await ctx.utcNow())));
  try {
    await ctx.scheduleActivity(sendReport, dueMs, { retry: { maxAttempts: 5 } });
  } catch (error) {
    // One report that cannot be sent must not end the job.
    if (!(error instanceof ActivityFailedError)) throw error;
    ctx.trace.error(`the report due at ${dueMs} was not sent: ${error.message}`);
  }
  return ctx.continueAsNew({ dueMs: nextRun(schedule, await ctx.utcNow()), everyMs } satisfies Schedule);
});

/**
 * Counted from the last due time, not from the end of the last run: so the job does not drift. What fell due while no
 * process was up is skipped: nobody wants last week's reports all at once.
 */
export function nextRun({ dueMs, everyMs }: Schedule, nowMs: number): number {
  const missed = Math.max(0, Math.floor((nowMs - dueMs) / everyMs));
  return dueMs + (missed + 1) * everyMs;
}

export async function main(): Promise<void> {
  await using provider = new MemoryProvider();
  await using _runtime = await Runtime.start({ provider, orchestrations: [reportJob], activities: [sendReport] });
  const client = new Client(provider);

  const everyMs = 200; // a day, in real life
  const handle = await client.start(reportJob, {
    instanceId: "nightly-report",
    input: { dueMs: Date.now() + everyMs, everyMs },
  });

  await pause(4 * everyMs);
  await handle.cancel("nobody reads it");
  const ended = await client.waitForOrchestration(handle.instanceId);
  console.log(`the job has ended, ${ended.status === "Failed" ? ended.error : "which it never does by itself"}`);
}

if (process.argv[1] === import.meta.filename) await main();
