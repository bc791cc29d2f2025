// providers/sqlite/change-poller.ts — notices what other processes commit to the same file, while somebody waits for it.
//
//   C1. Nobody waits: nothing runs.
//   C2. Whoever enters and then looks misses no later commit: the version is read on entering.

import type { Clock, Timer } from "../../clock.js";

export class ChangePoller {
  readonly #clock: Clock;
  readonly #intervalMs: number;
  readonly #readVersion: () => number;
  readonly #onChange: () => void;
  #waiting = 0;
  #version = 0;
  #timer: Timer | null = null;
  #isClosed = false;

  /** `readVersion` must be cheap: a number that changes with every commit of somebody else. */
  constructor(clock: Clock, intervalMs: number, readVersion: () => number, onChange: () => void) {
    this.#clock = clock;
    this.#intervalMs = intervalMs;
    this.#readVersion = readVersion;
    this.#onChange = onChange;
  }

  /** Somebody begins to wait, and says when that is over: once. */
  enter(): void {
    this.#waiting += 1;
    if (this.#timer !== null || this.#isClosed) return;
    this.#hasChanged(); // C2
    this.#arm();
  }

  leave(): void {
    this.#waiting -= 1;
    if (this.#waiting === 0) this.#disarm(); // C1
  }

  close(): void {
    this.#isClosed = true;
    this.#disarm();
  }

  #arm(): void {
    this.#timer = this.#clock.setTimer(this.#intervalMs, () => {
      this.#arm();
      if (this.#hasChanged()) this.#onChange();
    });
  }

  #disarm(): void {
    this.#timer?.clear();
    this.#timer = null;
  }

  /** Since the last look. */
  #hasChanged(): boolean {
    try {
      const version = this.#readVersion();
      const hasChanged = version !== this.#version;
      this.#version = version;
      return hasChanged;
    } catch {
      return true; // Those who wait look for themselves, and report what is wrong.
    }
  }
}
