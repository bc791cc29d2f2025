// demo/order.ts — the order that the demo places: what any application would have in a file of its own.

import { appendFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { type ActivityContext, activity, orchestration } from "duroxide-ts";

export interface Order {
  readonly item: string;
  readonly amount: number;
}

/** The outside world's own record of what was done to it, so that the demo can show what really ran, and how often. */
const LEDGER = process.env.DEMO_LEDGER ?? "ledger.txt";

async function work(ctx: ActivityContext, what: string, ms: number): Promise<string> {
  note(ctx, `${what} begins`);
  await pause(ms, undefined, { signal: ctx.signal });
  note(ctx, `${what} is done`);
  return `${what} (attempt ${ctx.attempt}, pid ${process.pid})`;
}

function note(ctx: ActivityContext, text: string): void {
  appendFileSync(LEDGER, `${ctx.activityName} attempt ${ctx.attempt} pid ${process.pid}: ${text}\n`);
}

export const reserve = activity("Reserve", (ctx, order: Order) => work(ctx, `${order.item} reserved`, 100));
export const charge = activity("Charge", (ctx, order: Order) => work(ctx, `${order.amount} EUR charged`, 1_500));
export const ship = activity("Ship", (ctx, order: Order) => work(ctx, `${order.item} shipped`, 100));

export const placeOrder = orchestration("PlaceOrder", async (ctx, order: Order) => {
  const reserved = await ctx.scheduleActivity(reserve, order);
  ctx.setCustomStatus("reserved");
  const charged = await ctx.scheduleActivity(charge, order);
  ctx.setCustomStatus("charged");
  await ctx.scheduleTimer("2s"); // the customer may still change their mind
  const shipped = await ctx.scheduleActivity(ship, order);
  ctx.setCustomStatus("shipped");
  return [reserved, charged, shipped];
});
