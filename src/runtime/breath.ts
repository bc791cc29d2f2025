// runtime/breath.ts — lets the event loop turn while there is always more to do.
//
// A store that answers without I/O of its own keeps every loop of the runtime within microtasks: as long as there is work,
// no timer fires, no request is served and no lock is renewed. So, before each call of the store:
//
//   B1. Once the event loop has not turned for a while, everybody waits until it has.
//   B2. Measured in time, not in calls: a single sync of a slow disk may take all of it.
//   B3. Only where the store has answered a call before the event loop turned: one that never does needs no such care.

import type { Clock } from "../clock.js";

/** Short enough for whatever else the process does, long enough that turning costs nothing to speak of. */
const LONGEST_STRETCH_MS = 10;

const immediate = setImmediate;

export class Breath {
  readonly #clock: Clock;
  #turn = 0;
  #turnedAt = 0;
  #isCounting = false;
  #hasAnswered = false;
  #turning: Promise<void> | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Null: go on. Otherwise wait for it first. `now`: for whoever has just looked at the clock. */
  take(now = this.#clock.now()): Promise<void> | null {
    if (this.#turning !== null) return this.#turning; // B1
    this.#count(now);
    if (!this.#hasAnswered || now - this.#turnedAt < LONGEST_STRETCH_MS) return null; // B2, B3
    this.#turning = this.#nextTurn();
    return this.#turning;
  }

  /** Names the present turn of the event loop. */
  get turn(): number {
    return this.#turn;
  }

  /** A call has been answered that was made in that turn. B3 */
  answered(turn: number): void {
    if (turn === this.#turn) this.#hasAnswered = true;
  }

  #nextTurn(): Promise<void> {
    return new Promise((resolve) => {
      immediate(() => {
        this.#turning = null;
        resolve();
      });
    });
  }

  #count(now: number): void {
    if (this.#isCounting) return;
    this.#isCounting = true;
    this.#turnedAt = now;
    immediate(this.#hasTurned);
  }

  readonly #hasTurned = (): void => {
    this.#turn += 1;
    this.#isCounting = false;
    this.#hasAnswered = false;
  };
}
