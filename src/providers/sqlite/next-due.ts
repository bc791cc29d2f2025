// providers/sqlite/next-due.ts — remembers when the passing of time alone will bring work, so that not every wait asks.
//
// What this process writes tells when it falls due. Only what was there before, or comes from other processes, must be
// looked for.
//
//   D1. What has fallen due stays the next until a transaction has seen to it and says what comes after. That time goes by, or that
//       somebody else looked a moment later, is no reason to forget it: a commit may be told of after the next one has looked.
//   D2. What a transaction found when it saw to everything is of use to whoever looked then or later. Whoever looked before it may have
//       missed what fell due in between, and asks for himself.

export class NextDue {
  /** Null: nobody knows. It may be earlier than the truth, never later; but for what those who look just now will find. */
  #at: number | null = null;
  /** What had fallen due by then was seen to. */
  #seenToAt = Number.NEGATIVE_INFINITY;
  /** How many look just now. */
  #looks = 0;
  /** Where nobody knows: the one who looks for all, and since when. */
  #finding: { readonly since: number; readonly at: Promise<number | null> } | null = null;
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

  /** All that had fallen due by `now` was seen to, and this comes next. Null: nothing ever falls due. */
  seenTo(now: number, nextAt: number | null): void {
    this.#seenToAt = now;
    this.#at = nextAt ?? Number.POSITIVE_INFINITY;
  }

  /** Somebody else has written something. */
  forget(): void {
    this.#at = null;
    this.#finding = null;
  }

  /** Whether nothing falls due until then, for sure. */
  isAfter(timeMs: number): boolean {
    return this.#looks === 0 && this.#at !== null && this.#at > timeMs;
  }

  /**
   * When somebody who looked at `since` has to look again; it may be at once. `look` finds the first that falls due after that, where it is
   * not known. Null: never.
   */
  after(since: number, look: () => Promise<number | null>): Promise<number | null> | number | null {
    if (this.#finding !== null && this.#finding.since <= since) return this.#finding.at;
    if (this.#at !== null && this.#seenToAt <= since) return finite(this.#at); // D1
    if (this.#at !== null) return this.#look(look); // D2
    this.seenTo(since, null);
    const at = this.#look(look).finally(() => {
      if (this.#finding === finding) this.#finding = null;
    });
    const finding = { since, at };
    this.#finding = finding;
    return at;
  }

  #look(look: () => Promise<number | null>): Promise<number | null> {
    this.#looks += 1;
    return look().then(
      (found) => {
        this.#looks -= 1;
        if (this.#at === null) return found;
        const at = Math.min(this.#at, found ?? Number.POSITIVE_INFINITY);
        if (this.#finding !== null) this.#at = at;
        return finite(at);
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
