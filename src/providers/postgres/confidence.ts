// providers/postgres/confidence.ts — whether it is worth while to guess: what is wrong too often is not tried for a while.

import type { Clock } from "../../clock.js";

/** How many may be wrong, more or less in a row. */
const MOST_WRONG = 8;
/** How many right ones make up for a wrong one. */
const RIGHT_FOR_WRONG = 4;
const PAUSE_MS = 500;

export class Confidence {
  readonly #clock: Clock;
  #wrong = 0;
  #pausedUntil = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get isPaused(): boolean {
    const leftMs = this.#pausedUntil - this.#clock.now();
    return leftMs > 0 && leftMs <= PAUSE_MS; // A clock may be set back.
  }

  learn(right: number, wrong: number): void {
    this.#wrong = Math.max(this.#wrong + wrong - right / RIGHT_FOR_WRONG, 0);
    if (this.#wrong > MOST_WRONG) this.pause();
  }

  pause(): void {
    this.#wrong = 0;
    this.#pausedUntil = this.#clock.now() + PAUSE_MS;
  }
}
