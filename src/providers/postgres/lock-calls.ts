// providers/postgres/lock-calls.ts — calls that prove a lock by its token, as rows of JSON, and what becomes of each.

import type { Outcome } from "../../provider/kit/batcher.js";
import { lockLost } from "../../provider/kit/refusals.js";
import type { AbandonOptions } from "../../provider/provider.js";
import { timeIn } from "./work-rows.js";

export interface Abandoning {
  readonly lockToken: string;
  readonly options: AbandonOptions;
}

export interface Renewing {
  readonly lockToken: string;
  readonly extendForMs: number;
}

interface AbandonRow {
  readonly call: number;
  readonly token: string;
  /** Null: at once. */
  readonly until: number | null;
  readonly taken_back: number;
}

export function abandonRows(calls: readonly Abandoning[], now: number): readonly AbandonRow[] {
  return calls.map(({ lockToken, options: { delayMs = 0, ignoreAttempt = false } }, call) => ({
    call,
    token: lockToken,
    until: delayMs > 0 ? timeIn(now, delayMs) : null,
    taken_back: ignoreAttempt ? 1 : 0,
  }));
}

export function renewRows(calls: readonly Renewing[], now: number): readonly object[] {
  return calls.map(({ lockToken, extendForMs }, call) => ({ call, token: lockToken, until: timeIn(now, extendForMs) }));
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
