// test/providers/delivery-ledger.ts — what was sent to a store, and what must have become of it, whatever order things took.
//
//   D1. A message or an activity is acked once at most; and once, unless it was taken back, or is still there.
//   D2. Two owners never hold the same thing at the same time: as far as that can be proved from outside.
//   D3. What may be gone (its instance was deleted, it was cancelled, it was dropped) may still be acked, but not twice.

/** One thing that was sent. It is entered before the call that sends it: others may see it before that call answers. */
interface Entry {
  readonly instance: string;
  acks: number;
  mayBeGone: boolean;
}

/** From when until when somebody certainly held something. */
interface Holding {
  readonly owner: string;
  readonly from: number;
  until: number;
}

export class DeliveryLedger {
  readonly #entries = new Map<string, Entry>();
  readonly #holdings = new Map<string, Map<string, Holding>>();
  readonly faults: string[] = [];

  enter(mark: string, instance: string): void {
    this.#entries.set(mark, { instance, acks: 0, mayBeGone: false });
  }

  /** The call that was to send it says that it did not. */
  strike(mark: string): void {
    if (this.#entries.get(mark)?.acks !== 0) this.faults.push(`${mark} was acked, but never sent`);
    this.#entries.delete(mark);
  }

  acked(mark: string): void {
    const entry = this.#entries.get(mark);
    if (entry === undefined) return void this.faults.push(`${mark} was acked, and nobody knows it`);
    entry.acks += 1;
    if (entry.acks > 1) this.faults.push(`${mark} was acked ${entry.acks} times`); // D1
  }

  /** D3 */
  mayBeGone(isIt: (mark: string, instance: string) => boolean): void {
    for (const [mark, entry] of this.#entries) if (isIt(mark, entry.instance)) entry.mayBeGone = true;
  }

  /** Marks of these instances that are neither acked nor given up. */
  open(instance: string): readonly string[] {
    return [...this.#entries].flatMap(([mark, entry]) =>
      entry.instance === instance && entry.acks === 0 && !entry.mayBeGone ? [mark] : [],
    );
  }

  /** D2: `owner` has `what` at `from`, and keeps it until `until` unless he lets it go. */
  holds(what: string, owner: string, from: number, until: number): void {
    const holdings = this.#holdings.get(what) ?? new Map<string, Holding>();
    this.#holdings.set(what, holdings);
    for (const [key, other] of holdings) {
      if (other.until <= from && until > other.until) holdings.delete(key);
      else if (other.owner !== owner && Math.max(other.from, from) < Math.min(other.until, until)) {
        this.faults.push(`${what} is ${owner}'s from ${from} to ${until}, and ${other.owner}'s to ${other.until}`);
      }
    }
    holdings.set(owner, { owner, from, until });
  }

  /** From then on nothing is certain any more: he gives it back, or asks for another time, which may be shorter. */
  letsGo(what: string, owner: string, at: number): void {
    const holding = this.#holdings.get(what)?.get(owner);
    if (holding !== undefined) holding.until = Math.min(holding.until, at);
  }

  /** Whatever begins with this. */
  allLetGo(prefix: string, now: number): void {
    for (const [what, holdings] of this.#holdings) {
      if (!what.startsWith(prefix)) continue;
      for (const holding of holdings.values()) holding.until = Math.min(holding.until, now);
    }
  }

  /** D1, when nobody sends or acks any more. `left`: what is still in the store. */
  settle(left: readonly string[]): readonly string[] {
    const isLeft = new Set(left);
    if (isLeft.size < left.length) this.faults.push("something is in the store twice");
    for (const mark of left) {
      const entry = this.#entries.get(mark);
      if (entry === undefined) this.faults.push(`${mark} is in the store, and nobody sent it`);
      else if (entry.acks > 0) this.faults.push(`${mark} was acked and is still in the store`);
    }
    for (const [mark, { acks, mayBeGone, instance }] of this.#entries) {
      if (acks === 0 && !mayBeGone && !isLeft.has(mark)) this.faults.push(`${mark} to ${instance} is lost`);
    }
    return this.faults;
  }
}
