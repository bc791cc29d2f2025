// What the two tests beside this file test: an order that is charged, and cancelled unless somebody ships it in three days.

import { activity, event, orchestration } from "duroxide-ts";

export interface Order {
  readonly id: string;
  readonly amount: number;
}

export const shipped = event<{ readonly parcel: string }>("shipped");

export const charge = activity("Charge", async (ctx, order: Order): Promise<string> => {
  const response = await fetch("https://payments.example/charges", {
    method: "POST",
    headers: { "idempotency-key": ctx.idempotencyKey },
    body: JSON.stringify(order),
    signal: ctx.signal,
  });
  if (!response.ok) throw new Error(`payment refused: ${response.status}`);
  return response.text();
});

export const refund = activity("Refund", async (_ctx, receipt: string): Promise<void> => {
  await fetch(`https://payments.example/charges/${receipt}`, { method: "DELETE" });
});

export const checkout = orchestration("Checkout", async (ctx, order: Order): Promise<string> => {
  const receipt = await ctx.scheduleActivity(charge, order, { retry: { maxAttempts: 3 } });
  const first = await ctx.race({ sent: ctx.waitForEvent(shipped), late: ctx.scheduleTimer("3d") });
  if (first.winner === "sent") return `${order.id}: ${first.value.parcel}`;
  await ctx.scheduleActivity(refund, receipt);
  return `${order.id}: refunded`;
});
