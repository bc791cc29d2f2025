// testing/virtual-clock.ts — time that passes only when a test says so. Three days take a millisecond.

import type { Clock, Timer } from "../clock.js";
import { TimeoutError } from "../errors.js";

interface VirtualTimer {
  readonly at: number;
  readonly order: number;
  readonly callback: () => void;
}

/** Far more than any test needs, and a second or two for a computer. */
const MAX_STEPS = 100_000;
/** Rounds of the event loop that everything woken gets before time moves on. */
const SETTLE_ROUNDS = 12;

/**
 * A clock for tests. Hand it to the provider and the runtime, then move it: `advance` by a while, or `run` until a promise
 * settles. `TestWorld` does all that for you.
 *
 * Time does not wait for real I/O: what somebody awaits from outside may come days too late.
 *
 * @example
 * const clock = new VirtualClock();
 * const provider = new MemoryProvider({ clock });
 * await clock.advance(3 * 24 * 3_600_000);
 */
export class VirtualClock implements Clock {
  #now: number;
  #order = 0;
  readonly #timers = new Set<VirtualTimer>();

  constructor(startMs = 1_700_000_000_000) {
    this.#now = startMs;
  }

  now(): number {
    return this.#now;
  }

  setTimer(delayMs: number, callback: () => void): Timer {
    this.#order += 1;
    const timer: VirtualTimer = { at: this.#now + Math.max(0, Math.ceil(delayMs)), order: this.#order, callback };
    this.#timers.add(timer);
    return { clear: () => void this.#timers.delete(timer) };
  }

  /** How many timers are pending. */
  get pendingTimers(): number {
    return this.#timers.size;
  }

  /** Moves time forward, fires what falls due on the way in order, and lets everything woken run to rest. */
  async advance(ms: number): Promise<void> {
    const target = this.#now + ms;
    await this.rested();
    for (let next = this.#next(); next !== null && next.at <= target; next = this.#next()) {
      this.#fire(next);
      await this.rested();
    }
    this.#now = Math.max(this.#now, target);
    await this.rested();
  }

  /**
   * Moves time from timer to timer until `promise` settles, and answers as it does.
   *
   * @throws DUROXIDE_TIMEOUT after a hundred thousand timers (or as many as `maxSteps` says) that did not settle it
   */
  async run<T>(promise: PromiseLike<T>, options: { readonly maxSteps?: number } = {}): Promise<T> {
    const { maxSteps = MAX_STEPS } = options;
    const startedAt = this.#now;
    let steps = 0;
    let isSettled = false;
    const result = Promise.resolve(promise).finally(() => {
      isSettled = true;
    });
    result.catch(() => {});
    for (;;) {
      await this.rested(() => isSettled);
      if (isSettled) return result;
      const next = this.#next();
      if (next === null) continue;
      if (steps === maxSteps) throw stillPending(steps, this.#now - startedAt);
      steps += 1;
      this.#fire(next);
    }
  }

  /** Resolves when everything that was woken has come to rest, or earlier if `isDone` says so: then time may pass. */
  protected async rested(isDone: () => boolean = () => false): Promise<void> {
    for (let round = 0; round < SETTLE_ROUNDS && !isDone(); round += 1) {
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  }

  #next(): VirtualTimer | null {
    let first: VirtualTimer | null = null;
    for (const timer of this.#timers) {
      if (first === null || timer.at < first.at || (timer.at === first.at && timer.order < first.order)) first = timer;
    }
    return first;
  }

  #fire(timer: VirtualTimer): void {
    this.#timers.delete(timer);
    this.#now = Math.max(this.#now, timer.at);
    timer.callback();
  }
}

/** What `run` throws when time does not help, so that nobody takes it for a timeout of the promise itself. */
export class StillPendingError extends TimeoutError {}

function stillPending(steps: number, passedMs: number): StillPendingError {
  const hours = Math.round(passedMs / 3_600_000);
  return new StillPendingError(
    `The promise is still pending after ${steps} timers and ${hours} hours of virtual time: nothing that time brings settles it.`,
  );
}
