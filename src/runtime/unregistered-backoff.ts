// runtime/unregistered-backoff.ts — how long work waits that nobody here can run: a newer version may be on its way.
//
//   U1. Giving back what one cannot run is no attempt at it: it never brings work closer to being poison for those who can.
//   U2. What this runtime has given back too often, over minutes, and nobody has moved on since, nobody can run: only then
//       is it failed, naming what is missing.

/** How long work is left alone that nobody here can run: `baseMs` at first, doubled each time, at most `maxMs`. */
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

/** The most pieces of work that are remembered; of more, the oldest are counted anew. */
const MOST_REMEMBERED = 10_000;

/** How often this runtime has given back what it cannot run. */
export class GivenBack {
  readonly #counts = new Map<string, number>();

  /** Counts one more, and answers how many that makes. `work` names the work at the point where it stands. */
  count(work: string): number {
    const count = (this.#counts.get(work) ?? 0) + 1;
    this.#counts.delete(work);
    this.#counts.set(work, count);
    for (const oldest of this.#counts.keys()) {
      if (this.#counts.size <= MOST_REMEMBERED) break;
      this.#counts.delete(oldest);
    }
    return count;
  }

  /** The work has been failed. Whatever comes under its name later is counted anew. */
  forget(work: string): void {
    this.#counts.delete(work);
  }
}
