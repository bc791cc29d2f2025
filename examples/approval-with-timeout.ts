// Approval with timeout — wait for a person, but not for ever.
//
//   npx tsx node_modules/duroxide-ts/examples/approval-with-timeout.ts
//   npm run example -- approval-with-timeout   (in a checkout of the repository)
//
// The wait costs nothing: no thread, no open connection, no process. The program below ends while an expense waits for its
// decision, and another one, started later on the same file, carries on.

import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { activity, Client, type Duration, event, orchestration, type Provider, Runtime } from "duroxide-ts";
import { SqliteProvider } from "duroxide-ts/sqlite";

export interface Expense {
  readonly employee: string;
  readonly amount: number;
  /** `"3d"` in real life. */
  readonly decideWithin: Duration;
}

export interface Decision {
  readonly by: string;
  readonly isApproved: boolean;
}

export const decisions = event<Decision>("decisions");

export const payOut = activity("PayOut", async (ctx, expense: Expense): Promise<string> => {
  return `transfer ${ctx.idempotencyKey}: ${expense.amount} EUR to ${expense.employee}`;
});

export const reimburse = orchestration("Reimburse", async (ctx, expense: Expense): Promise<string> => {
  const first = await ctx.race({
    // A mailbox: a decision that comes before anybody waits for it, or while no process runs, is not lost.
    decided: ctx.dequeueEvent(decisions),
    // Counts from now, however often the process restarts meanwhile.
    tooLate: ctx.scheduleTimer(expense.decideWithin),
  });
  if (first.winner === "tooLate") return `expired: nobody decided within ${expense.decideWithin}`;
  if (!first.value.isApproved) return `rejected by ${first.value.by}`;
  const transfer = await ctx.scheduleActivity(payOut, expense);
  return `approved by ${first.value.by}, ${transfer}`;
});

function startRuntime(provider: Provider): Promise<Runtime> {
  return Runtime.start({ provider, orchestrations: [reimburse], activities: [payOut] });
}

export async function main(): Promise<void> {
  const file = join(mkdtempSync(join(tmpdir(), "duroxide-approval-")), "expenses.db");
  await submitAndEnd(file);
  await decideLater(file);
}

async function submitAndEnd(file: string): Promise<void> {
  await using provider = await SqliteProvider.open(file);
  await using _runtime = await startRuntime(provider);
  const client = new Client(provider);
  await client.start(reimburse, {
    instanceId: "train",
    input: { employee: "Ada", amount: 80, decideWithin: "3d" },
  });
  await client.start(reimburse, {
    instanceId: "dinner",
    input: { employee: "Ada", amount: 300, decideWithin: "200ms" },
  });
  console.log("Two expenses are submitted. The process ends.");
}

async function decideLater(file: string): Promise<void> {
  await using provider = await SqliteProvider.open(file);
  const client = new Client(provider);
  await client.enqueueEvent("train", decisions, { by: "Grace", isApproved: true });

  console.log("Another process runs what it finds in the file.");
  await using _runtime = await startRuntime(provider);
  console.log(`train: ${await client.getHandle(reimburse, "train").result()}`);
  console.log(`dinner: ${await client.getHandle(reimburse, "dinner").result()}`);
}

if (process.argv[1] === import.meta.filename) await main();
