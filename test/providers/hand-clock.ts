// providers/hand-clock.ts — a clock that goes on when a test says so: also while a transaction is open, or between two of them.

import type { Clock, Timer } from "../../src/clock.js";

interface Pending {
  readonly at: number;
  readonly callback: () => void;
}

export class HandClock implements Clock {
  time = 1_000_000;
  /** Told how often the time was asked for, before the answer. */
  onRead: (reads: number) => void = () => {};
  reads = 0;
  readonly #timers = new Set<Pending>();

  now(): number {
    this.reads += 1;
    this.onRead(this.reads);
    return this.time;
  }

  setTimer(delayMs: number, callback: () => void): Timer {
    const pending = { at: this.time + Math.max(0, delayMs), callback };
    this.#timers.add(pending);
    return { clear: () => this.#timers.delete(pending) };
  }

  /** Rounds of the event loop, after each of which the timers ring whose time has come. */
  async rounds(count = 10): Promise<void> {
    for (let round = 0; round < count; round += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      for (const pending of [...this.#timers])
        if (pending.at <= this.time && this.#timers.delete(pending)) pending.callback();
    }
  }

  /** So many seconds, one after the other. */
  async seconds(count: number): Promise<void> {
    for (let second = 0; second < count; second += 1) {
      this.time += 1_000;
      await this.rounds(2);
    }
  }
}
