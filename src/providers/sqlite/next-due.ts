// providers/sqlite/next-due.ts — remembers when the passing of time alone will bring work, so that not every wait asks.
//
// What this process writes tells when it falls due. Only what was there before, or comes from other processes, must be
// looked for.

export class NextDue {
  /** Null: nobody knows. It may be earlier than the truth, never later; but for what those who look just now will find. */
  #at: number | null = null;
  /** How many look just now. */
  #looks = 0;
  #epoch = -1;

  /**
   * Itself. What was known in an earlier epoch of the database is forgotten: what others have committed since may fall due,
   * too, also where a transaction has noticed them, and nobody waited.
   */
  in(epoch: number): this {
    if (epoch !== this.#epoch) this.forget();
    this.#epoch = epoch;
    return this;
  }

  /** Something falls due then. */
  learn(timeMs: number): void {
    if (this.#at !== null && timeMs < this.#at) this.#at = timeMs;
  }

  /** Whoever has seen to all that is due by now has looked for the next. Null: nothing ever falls due. */
  found(timeMs: number | null): void {
    this.#at = timeMs ?? Number.POSITIVE_INFINITY;
  }

  /** Somebody else has written something. */
  forget(): void {
    this.#at = null;
  }

  /** Whether nothing falls due until then, for sure. */
  isAfter(timeMs: number): boolean {
    return this.#looks === 0 && this.#at !== null && this.#at > timeMs;
  }

  /** The first that falls due after `since`. `look` finds out where that is not known; null: nothing ever does. */
  after(since: number, look: () => Promise<number | null>): Promise<number | null> | number | null {
    if (this.#at !== null && this.#at > since) return finite(this.#at);
    this.#at = Number.POSITIVE_INFINITY;
    this.#looks += 1;
    return look().then(
      (found) => {
        this.#looks -= 1;
        if (this.#at === null) return found;
        this.#at = Math.min(this.#at, found ?? Number.POSITIVE_INFINITY);
        return finite(this.#at);
      },
      (error: unknown) => {
        this.#looks -= 1;
        this.forget();
        throw error;
      },
    );
  }
}

function finite(timeMs: number): number | null {
  return timeMs === Number.POSITIVE_INFINITY ? null : timeMs;
}
