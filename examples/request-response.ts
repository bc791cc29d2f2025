// Request and response — ask a running instance something, and get the answer.
//
//   npx tsx node_modules/duroxide-ts/examples/request-response.ts
//   npm run example -- request-response   (in a checkout of the repository)
//
// A question is a message in the instance's mailbox, the answer a value in its key-value store, under a key that the
// asker chose. Both are durable: neither side loses the other when one of them restarts.

import { Client, event, orchestration, Runtime } from "duroxide-ts";
import { MemoryProvider } from "duroxide-ts/memory";

export interface Reservation {
  readonly orderId: string;
  readonly quantity: number;
}

export type Answer = { readonly isReserved: true } | { readonly isReserved: false; readonly reason: string };

const reservations = event<Reservation>("reservations");
const answerKey = (orderId: string): string => `answer:${orderId}`;

/** The asker's side: to callers it is one call. After a timeout the same question may be asked again. */
export async function reserve(client: Client, product: string, reservation: Reservation): Promise<Answer> {
  await client.enqueueEvent(product, reservations, reservation);
  return client.waitForKvValue<Answer>(product, answerKey(reservation.orderId), { timeoutMs: 10_000 });
}

/** An instance keeps at most 150 keys: so many answers of this execution, and as many of the one before. */
const ANSWERS_PER_EXECUTION = 70;

/** One instance for each product. It takes one question at a time, so the last piece is never sold twice. */
export const stockDesk = orchestration("StockDesk", async (ctx, inStock: number): Promise<never> => {
  const earlierAnswers = ctx.kv.keys();
  let left = inStock;
  for (let given = 0; given < ANSWERS_PER_EXECUTION; given += 1) {
    const { orderId, quantity } = await ctx.dequeueEvent(reservations);
    if (ctx.kv.has(answerKey(orderId))) continue; // asked again: the answer stands
    const answer: Answer =
      quantity <= left ? { isReserved: true } : { isReserved: false, reason: `${left} left of ${ctx.instanceId}` };
    if (answer.isReserved) left -= quantity;
    ctx.kv.set(answerKey(orderId), answer);
  }
  for (const key of earlierAnswers) ctx.kv.delete(key); // Whoever asked has long read them.
  return ctx.continueAsNew(left); // The key-value store goes along.
});

export async function main(): Promise<void> {
  await using provider = new MemoryProvider();
  await using _runtime = await Runtime.start({ provider, orchestrations: [stockDesk] });
  const client = new Client(provider);
  await client.start(stockDesk, { instanceId: "red-bicycle", input: 3 });

  const wanted = { ada: 2, grace: 2, edsger: 1 };
  for (const [orderId, quantity] of Object.entries(wanted)) {
    console.log(orderId, await reserve(client, "red-bicycle", { orderId, quantity }));
  }
  console.log("ada, once more", await reserve(client, "red-bicycle", { orderId: "ada", quantity: 2 }));
}

if (process.argv[1] === import.meta.filename) await main();
