// Retry and timeout — what to do about a service that fails, refuses, or does not answer.
//
//   npx tsx node_modules/duroxide-ts/examples/retry-and-timeout.ts
//   npm run example -- retry-and-timeout   (in a checkout of the repository)
//
// Retrying is a decision of the orchestration, so it stands in the history: the pauses are durable timers, and a process
// that dies between two attempts does not begin to count anew.

import { setTimeout as pause } from "node:timers/promises";
import {
  ActivityFailedError,
  ActivityTimeoutError,
  activity,
  Client,
  orchestration,
  type RetryPolicy,
  Runtime,
} from "duroxide-ts";
import { MemoryProvider } from "duroxide-ts/memory";

export interface Invoice {
  readonly id: string;
  readonly amount: number;
}

export type Payment =
  | { readonly status: "paid"; readonly receipt: string }
  | { readonly status: "refused"; readonly reason: string }
  /** The gateway may have charged the card or not. A person has to look. */
  | { readonly status: "unclear" };

/** Stands in for the client library of a payment gateway. */
const gateway = {
  failuresLeft: 2,
  async charge({ id, amount }: Invoice, options: { readonly idempotencyKey: string; readonly signal: AbortSignal }) {
    if (id === "stolen-card") throw new Error("declined: the card is blocked");
    if (id === "black-hole") await pause(3_600_000, undefined, { signal: options.signal });
    if (gateway.failuresLeft-- > 0) throw new Error("503, try again later");
    return `receipt for ${amount} EUR`;
  },
};

export const chargeCard = activity("ChargeCard", async (ctx, invoice: Invoice): Promise<string> => {
  console.log(`charging for ${invoice.id}`);
  return gateway.charge(invoice, {
    // Tells the gateway that all attempts mean one payment: the key is the same for every retry, and after a crash.
    idempotencyKey: ctx.idempotencyKey,
    signal: ctx.signal, // aborted when the attempt has timed out
  });
});

const POLICY: RetryPolicy = {
  maxAttempts: 5,
  backoff: { kind: "exponential", base: "100ms", max: "10s" },
  timeout: "2s",
  // Must be deterministic, as all that an orchestration does: it is asked again on replay.
  shouldRetry: (error) => !error.message.startsWith("declined"),
};

export const payInvoice = orchestration("PayInvoice", async (ctx, invoice: Invoice): Promise<Payment> => {
  try {
    return { status: "paid", receipt: await ctx.scheduleActivity(chargeCard, invoice, { retry: POLICY }) };
  } catch (error) {
    // A timeout is not retried unless the policy says `retryOnTimeout`: what hangs once tends to hang again.
    if (error instanceof ActivityTimeoutError) return { status: "unclear" };
    if (error instanceof ActivityFailedError) return { status: "refused", reason: error.message };
    throw error;
  }
});

export async function main(): Promise<void> {
  await using provider = new MemoryProvider();
  await using _runtime = await Runtime.start({ provider, orchestrations: [payInvoice], activities: [chargeCard] });
  const client = new Client(provider);

  for (const id of ["flaky-gateway", "stolen-card", "black-hole"]) {
    const handle = await client.start(payInvoice, { instanceId: id, input: { id, amount: 12 } });
    console.log(id, await handle.result());
  }
}

if (process.argv[1] === import.meta.filename) await main();
