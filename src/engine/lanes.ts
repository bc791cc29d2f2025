// engine/lanes.ts — who gets which arrival: mailboxes (queues) and positional events, one lane for each name.
//
//   Q1. A mailbox gives its first unassigned arrival to its first live wait, whichever comes first.
//   Q2. Once a value was handed to code that listens, arrival and wait leave the lane for good.
//   Q3. A wait that is dropped before that gives its arrival back, at its original place.
//   Q4. A positional arrival fills the first open wait; with none open it is lost. A dropped filled wait takes its
//       value with it.

/** What a lane knows of a wait. `accept` makes it resolvable with that data. */
export interface LaneWait {
  accept(data: string): void;
}

export interface Arrival {
  /** Order over all mailboxes of the execution. */
  readonly order: number;
  readonly name: string;
  readonly data: string;
}

export class QueueLane {
  /** Unassigned arrivals from `#head` on, in order. */
  #arrivals: Arrival[] = [];
  #head = 0;
  readonly #waits = new Set<LaneWait>();
  readonly #assigned = new Map<LaneWait, Arrival>();

  arrive(arrival: Arrival): void {
    this.#arrivals.push(arrival);
    this.#match();
  }

  bind(wait: LaneWait): void {
    this.#waits.add(wait);
    this.#match();
  }

  /** The value was handed to code that listens. Q2 */
  consume(wait: LaneWait): void {
    this.#assigned.delete(wait);
  }

  drop(wait: LaneWait): void {
    if (this.#waits.delete(wait)) return;
    const arrival = this.#assigned.get(wait);
    if (arrival === undefined) return;
    this.#assigned.delete(wait);
    this.#putBack(arrival); // Q3
    this.#match();
  }

  /** Every arrival that no code has seen. */
  unconsumed(): Arrival[] {
    return [...this.#assigned.values(), ...this.#arrivals.slice(this.#head)];
  }

  #match(): void {
    for (const wait of this.#waits) {
      const arrival = this.#arrivals[this.#head];
      if (arrival === undefined) return;
      this.#head += 1;
      this.#compact();
      this.#waits.delete(wait);
      this.#assigned.set(wait, arrival);
      wait.accept(arrival.data);
    }
  }

  #putBack(arrival: Arrival): void {
    let [low, high] = [this.#head, this.#arrivals.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#arrivals[middle]!.order < arrival.order) low = middle + 1;
      else high = middle;
    }
    if (low === this.#head && low > 0) {
      this.#head -= 1;
      this.#arrivals[this.#head] = arrival;
    } else this.#arrivals.splice(low, 0, arrival);
  }

  /** Forgets what lies before the head once it is most of the list: amortised O(1). */
  #compact(): void {
    if (this.#head < 64 || this.#head * 2 < this.#arrivals.length) return;
    this.#arrivals = this.#arrivals.slice(this.#head);
    this.#head = 0;
  }
}

export class PositionalLane {
  readonly #open = new Set<LaneWait>();

  bind(wait: LaneWait): void {
    this.#open.add(wait);
  }

  /** Whether somebody was waiting. Q4 */
  arrive(data: string): boolean {
    for (const wait of this.#open) {
      this.#open.delete(wait);
      wait.accept(data);
      return true;
    }
    return false;
  }

  drop(wait: LaneWait): void {
    this.#open.delete(wait);
  }
}
