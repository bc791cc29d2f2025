// runtime/shared-timers.ts — many timers of the same length cost one.
//
// Every lock has a timer for its renewal, and nearly every lock is gone long before. Those of the same length fall due in
// the order in which they were set: one timer of the clock, for the first of them, is enough.
//
//   S1. A callback comes when its own timer would have come, in the same order.
//   S2. Where nobody waits there is no timer: nothing keeps a process alive.

import type { Clock, Timer } from "../clock.js";

interface Entry {
  readonly at: number;
  readonly callback: () => void;
}

/** All timers of one length. */
class Queue {
  readonly #clock: Clock;
  readonly #delayMs: number;
  readonly #entries = new Set<Entry>();
  #timer: Timer | null = null;

  constructor(clock: Clock, delayMs: number) {
    this.#clock = clock;
    this.#delayMs = delayMs;
  }

  set(callback: () => void): Timer {
    const entry: Entry = { at: this.#clock.now() + this.#delayMs, callback };
    this.#entries.add(entry);
    this.#timer ??= this.#clock.setTimer(this.#delayMs, this.#fire);
    return { clear: () => this.#remove(entry) };
  }

  #remove(entry: Entry): void {
    this.#entries.delete(entry);
    if (this.#entries.size > 0) return;
    this.#timer?.clear(); // S2
    this.#timer = null;
  }

  readonly #fire = (): void => {
    const now = this.#clock.now();
    const due: Entry[] = [];
    for (const entry of this.#entries) {
      if (entry.at > now) break;
      due.push(entry);
    }
    this.#timer = null;
    try {
      for (const entry of due) {
        if (this.#entries.delete(entry)) entry.callback(); // S1: one that another has cleared does not come.
      }
    } finally {
      this.#arm(now); // Also where a callback threw: the others still come.
    }
  };

  #arm(now: number): void {
    if (this.#timer !== null) return;
    for (const { at } of this.#entries) {
      this.#timer = this.#clock.setTimer(Math.max(0, at - now), this.#fire);
      return;
    }
  }
}

/** By clock, and by length: a runtime has a handful of lengths. */
const queues = new WeakMap<Clock, Map<number, Queue>>();

/** As `clock.setTimer`, for lengths that are used again and again. */
export function setSharedTimer(clock: Clock, delayMs: number, callback: () => void): Timer {
  const byDelay = queues.get(clock) ?? new Map<number, Queue>();
  queues.set(clock, byDelay);
  const queue = byDelay.get(delayMs) ?? new Queue(clock, delayMs);
  byDelay.set(delayMs, queue);
  return queue.set(callback);
}
