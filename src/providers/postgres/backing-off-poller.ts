// providers/postgres/backing-off-poller.ts — a tick now and then, for as long as nobody says what happens elsewhere.
//
//   B1. The intervals grow while nothing happens, up to the longest. `hurry` makes them short again.
//   B2. However often somebody hurries, the next tick is put off by nobody.

import type { Clock, Timer } from "../../clock.js";

/** Not noticeable, and no load for a server. */
const SHORTEST_INTERVAL_MS = 50;

export class BackingOffPoller {
  readonly #clock: Clock;
  readonly #longestMs: number;
  readonly #onTick: () => void;
  #intervalMs = 0;
  #timer: Timer | null = null;
  #timerAt = 0;

  constructor(clock: Clock, longestMs: number, onTick: () => void) {
    this.#clock = clock;
    this.#longestMs = longestMs;
    this.#onTick = onTick;
  }

  /** Does nothing if it runs. */
  start(): void {
    if (this.#timer === null) this.#arm(this.#shortestMs);
  }

  /** Something happens: more may. Does nothing unless it runs. */
  hurry(): void {
    if (this.#timer === null) return;
    this.#intervalMs = this.#shortestMs;
    if (this.#timerAt > this.#clock.now() + this.#intervalMs) this.#arm(this.#intervalMs); // B2
  }

  stop(): void {
    this.#timer?.clear();
    this.#timer = null;
  }

  get #shortestMs(): number {
    return Math.min(SHORTEST_INTERVAL_MS, this.#longestMs);
  }

  #arm(intervalMs: number): void {
    this.#timer?.clear();
    this.#intervalMs = intervalMs;
    this.#timerAt = this.#clock.now() + intervalMs;
    this.#timer = this.#clock.setTimer(intervalMs, () => {
      this.#arm(Math.min(2 * this.#intervalMs, this.#longestMs)); // B1
      this.#onTick();
    });
  }
}
