// providers/postgres/lock-calls.ts — calls that prove a lock by its token, as rows of JSON, and what becomes of each.

import type { Outcome } from "../../provider/kit/batcher.js";
import { lockLost } from "../../provider/kit/refusals.js";
import type { AbandonOptions } from "../../provider/provider.js";
import { timeIn } from "./work-rows.js";

/** The row that a token is about, and the secret that proves it. */
export interface Lock<Id> {
  readonly id: Id;
  readonly secret: string;
}

export interface Abandoning<Id> {
  readonly lockToken: string;
  readonly lock: Lock<Id>;
  readonly options: AbandonOptions;
}

export interface Renewing<Id> {
  readonly lockToken: string;
  readonly lock: Lock<Id>;
  readonly extendForMs: number;
}

interface AbandonRow {
  readonly call: number;
  readonly id: unknown;
  readonly token: string;
  /** Null: at once. */
  readonly until: number | null;
  readonly taken_back: number;
}

/** Calls about one row never share a statement. */
export function rowOf({ lock }: { readonly lock: Lock<unknown> }): string {
  return String(lock.id);
}

export function abandonRows(calls: readonly Abandoning<unknown>[], now: number): readonly AbandonRow[] {
  return calls.map(({ lock, options: { delayMs = 0, ignoreAttempt = false } }, call) => ({
    call,
    id: lock.id,
    token: lock.secret,
    until: delayMs > 0 ? timeIn(now, delayMs) : null,
    taken_back: ignoreAttempt ? 1 : 0,
  }));
}

export function renewRows(calls: readonly Renewing<unknown>[], now: number): readonly object[] {
  return calls.map(({ lock, extendForMs }, call) => ({
    call,
    id: lock.id,
    token: lock.secret,
    until: timeIn(now, extendForMs),
  }));
}

/** Of calls that need a live lock: whoever is not among those that were answered had none. */
export function outcomes<R>(
  operation: string,
  calls: readonly { readonly lockToken: string }[],
  answered: ReadonlyMap<number, R>,
): readonly Outcome<R>[] {
  return calls.map(({ lockToken }, call) =>
    answered.has(call) ? { value: answered.get(call) as R } : { error: lockLost(operation, lockToken) },
  );
}
