// provider/kit/given-back.ts — how often work was given back that cannot be handled here, and how long it is left alone for it.

/** `baseMs` at first, doubled each time, at most `maxMs`. */
export interface GrowingDelay {
  readonly baseMs: number;
  readonly maxMs: number;
}

const LARGEST_EXPONENT = 6;

/** base, 2·base, 4·base … up to 64·base, never more than max. Times count from 1. */
export function growingDelayMs({ baseMs, maxMs }: GrowingDelay, times: number): number {
  const exponent = Math.min(Math.max(times - 1, 0), LARGEST_EXPONENT);
  return Math.min(baseMs * 2 ** exponent, maxMs);
}

/** The most pieces of work that are remembered; of more, the oldest are counted anew. */
const MOST_REMEMBERED = 10_000;

/** How often each piece of work was given back. */
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

  /** It is over, or goes on. Whatever comes under its name later is counted anew. */
  forget(work: string): void {
    this.#counts.delete(work);
  }
}
