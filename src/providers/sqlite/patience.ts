// providers/sqlite/patience.ts — the wait for another process that keeps the file.
//
//   B1. While it does, the event loop runs: the library waits for moments only, the rest of the waiting is asynchronous, and one of
//       those who wait tries for all of them.
//   B2. Once the connection is closing everybody has one last try.

import { type Clock, sleep } from "../../clock.js";
import { isBusy } from "./driver-errors.js";

const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 100;

/** Why no transaction came about. Whoever wanted one is told in the words of its operation. */
export class NoTransaction extends Error {
  constructor(readonly reason: "busy" | "closed") {
    super(`No transaction: ${reason}.`);
  }
}

export class Patience {
  readonly #clock: Clock;
  readonly #busyTimeoutMs: number;
  readonly #closing: AbortSignal;
  /** Of whoever tries for all. Null: nobody waits. */
  #pause: Promise<void> | null = null;
  #isEnded = false;

  constructor(clock: Clock, busyTimeoutMs: number, closing: AbortSignal) {
    this.#clock = clock;
    this.#busyTimeoutMs = busyTimeoutMs;
    this.#closing = closing;
  }

  /** Nobody can try any more. */
  end(): void {
    this.#isEnded = true;
  }

  /**
   * As `attempt` answers, once the file is not locked; at once, if it is not. `before`: what must have ended first, each time that it is
   * tried.
   *
   * @throws NoTransaction
   */
  async whenUnlocked<T>(attempt: () => T, before: () => Promise<void> | null = () => null): Promise<T> {
    const deadline = this.#clock.now() + this.#busyTimeoutMs;
    for (let tries = 0; ; tries += 1) {
      for (let ended = before(); ended !== null; ended = before()) await ended;
      if (this.#isEnded) throw new NoTransaction("closed");
      try {
        if (this.#pause === null) return attempt();
      } catch (error) {
        if (!isBusy(error)) throw error;
      }
      if (this.#closing.aborted) throw new NoTransaction("closed"); // B2
      const leftMs = deadline - this.#clock.now();
      if (leftMs <= 0) throw new NoTransaction("busy");
      this.#pause ??= this.#sleep(Math.min(FIRST_PAUSE_MS * 2 ** tries, LONGEST_PAUSE_MS, leftMs));
      await this.#pause; // B1
    }
  }

  async #sleep(delayMs: number): Promise<void> {
    await sleep(this.#clock, delayMs, this.#closing);
    this.#pause = null;
  }
}
