// runtime/activity-context.ts — what an activity knows about its call, and how it learns that it is no longer wanted.

import type { Client } from "../client/client.js";

/** Writes to the log, with the call it belongs to. */
export interface ActivityTrace {
  debug(message: string): void;
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

/**
 * What an activity knows about its call.
 *
 * @example
 * const charge = activity("Charge", async (ctx, order: { amount: number }) => {
 *   const headers = { "Idempotency-Key": ctx.idempotencyKey }; // the same for every attempt
 *   const body = JSON.stringify(order);
 *   const answer = await fetch("https://pay.example", { method: "POST", headers, body, signal: ctx.signal });
 *   return answer.text();
 * });
 */
export interface ActivityContext {
  readonly instanceId: string;
  readonly executionId: number;
  readonly orchestrationName: string;
  readonly orchestrationVersion: string;
  readonly activityName: string;
  /** Names this attempt within its execution: every retry of a retry policy has its own. */
  readonly activityId: number;
  /**
   * The same for every attempt of this call, after a crash and by a retry policy alike, and for no other call: hand it
   * to whoever offers idempotency keys. `<instance>:<execution>:<activity id of the first attempt>`
   */
  readonly idempotencyKey: string;
  /** 1 for the first try; counts crashes, lost locks and abandons, not the orchestration's own retries. */
  readonly attempt: number;
  /** The slot of the runtime that runs it. */
  readonly workerId: string;
  readonly sessionId: string | null;
  readonly tag: string | null;
  /** Aborted when the result is no longer wanted. Its reason is an ActivityCancelledError that says why. */
  readonly signal: AbortSignal;
  /** A client on the same store. */
  readonly client: Client;
  readonly trace: ActivityTrace;
}
