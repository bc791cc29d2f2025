// runtime/unregistered-backoff.ts — how long work waits that nobody here can run: a newer version may be on its way.

export interface UnregisteredBackoff {
  readonly baseMs: number;
  readonly maxMs: number;
}

const LARGEST_EXPONENT = 6;

/** base, 2·base, 4·base … up to 64·base, never more than max. Attempts count from 1. */
export function unregisteredDelayMs({ baseMs, maxMs }: UnregisteredBackoff, attempt: number): number {
  const exponent = Math.min(Math.max(attempt - 1, 0), LARGEST_EXPONENT);
  return Math.min(baseMs * 2 ** exponent, maxMs);
}
