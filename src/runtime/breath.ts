// runtime/breath.ts — lets the event loop turn while there is always more to do.
//
// A store that answers without I/O of its own keeps every loop of the runtime within microtasks: as long as there is work,
// no timer fires, no request is served and no lock is renewed. So, before each call of the store:
//
//   B1. Once the event loop has not turned for a while, everybody waits until it has.
//   B2. Measured in time, not in calls: a single sync of a slow disk may take all of it.

import type { Clock } from "../clock.js";

/** Short enough for whatever else the process does, long enough that turning costs nothing to speak of. */
const LONGEST_STRETCH_MS = 10;

const immediate = setImmediate;

export class Breath {
  readonly #clock: Clock;
  #turnedAt: number;
  #turning: Promise<void> | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#turnedAt = clock.now();
  }

  /** Null: go on. Otherwise wait for it first. */
  take(): Promise<void> | null {
    if (this.#turning !== null) return this.#turning; // B1
    if (this.#clock.now() - this.#turnedAt < LONGEST_STRETCH_MS) return null; // B2
    this.#turning = new Promise((resolve) => {
      immediate(() => {
        this.#turnedAt = this.#clock.now();
        this.#turning = null;
        resolve();
      });
    });
    return this.#turning;
  }
}
