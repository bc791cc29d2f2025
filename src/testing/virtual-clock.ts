// testing/virtual-clock.ts — time that passes only when a test says so. Three days take a millisecond.
//
//   V1. Timers fire in the order of their times, those of one time in the order in which they were set; and before the
//       next one fires, everything that the last one woke has come to rest, however many callers move the time at once.
//   V2. Whoever waits for what never happens is told so: after very many timers, after ages, or when no timer is left;
//       and also when time is held for a call that never ends, or for calls without end.
//   V3. While work is held nothing is at rest, and when the last of it has ended, whatever that woke gets its rounds anew.

import type { Clock, Timer } from "../clock.js";
import { durationMs } from "../duration.js";
import { TimeoutError } from "../errors.js";

interface VirtualTimer {
  readonly at: number;
  readonly order: number;
  readonly callback: () => void;
}

/** Far more than any test needs, and a second or two for a computer. */
const MAX_STEPS = 100_000;
/** Twice the longest duration that a timer may have. */
const AGES_MS = 2_000 * 366 * 86_400_000;
/** Real milliseconds without a single timer, in which something outside may still settle a promise. */
const MOST_IDLE_MS = 1_000;
/** Rounds of the event loop that everything woken gets before time moves on. */
const SETTLE_ROUNDS = 12;
/** Real milliseconds in which not one of those who hold time lets go: far more than a store needs, and less than a test gets. */
const MOST_HELD_MS = 20_000;
/** In one moment of virtual time. Ten for each of the turns that are too many. */
const MOST_HOLDS_AT_ONCE = 1_000_000;

// Captured at load, so that the fake timers of a test framework do not stop the time.
const immediate = setImmediate;
const timeout = setTimeout;
const noTimeout = clearTimeout;

/**
 * A clock for tests. Hand it to the provider and the runtime, then move it: `advance` by a while, or `run` until a promise
 * settles. `TestWorld` does all that for you.
 *
 * Time waits for the real I/O of a store that says so (`holding`), and for no other: what somebody else awaits from outside
 * may come days too late.
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
  /** The last of those who move the time. */
  #lastStep: Promise<unknown> = Promise.resolve();
  #holds = 0;
  #endedHolds = 0;
  /** Lets whoever waits for the end of a hold look again. */
  #stir = (): void => {};

  constructor(startMs = 1_700_000_000_000) {
    this.#now = startMs;
  }

  now(): number {
    return this.#now;
  }

  setTimer(delayMs: number, callback: () => void): Timer {
    const delay = Number.isNaN(delayMs) ? 0 : Math.max(0, Math.ceil(delayMs));
    this.#order += 1;
    const timer: VirtualTimer = { at: this.#now + delay, order: this.#order, callback };
    this.#timers.add(timer);
    return { clear: () => void this.#timers.delete(timer) };
  }

  /** Time stands still until `work` settles; answers as it does. V3 */
  async holdWhile<T>(work: Promise<T>): Promise<T> {
    this.#holds += 1;
    try {
      return await work;
    } finally {
      this.#holds -= 1;
      this.#endedHolds += 1;
      this.#stir();
    }
  }

  /** How many timers are pending. */
  get pendingTimers(): number {
    return this.#timers.size;
  }

  /**
   * Moves time forward, fires what falls due on the way in order, and lets everything woken run to rest.
   *
   * @throws DUROXIDE_INVALID_INPUT for what is no number of milliseconds from 0 up
   * @throws DUROXIDE_TIMEOUT if a store holds the time and never lets go
   */
  async advance(ms: number): Promise<void> {
    const target = this.#now + durationMs(ms, "VirtualClock.advance");
    for (let isThere = false; !isThere; ) {
      isThere = await this.#step(async () => {
        await this.rested();
        const next = this.#next();
        const isLast = next === null || next.at > target;
        if (isLast) this.#now = Math.max(this.#now, target);
        else this.#fire(next);
        return isLast;
      });
    }
    await this.#step(() => this.rested());
  }

  /**
   * Moves time from timer to timer until `promise` settles, and answers as it does.
   *
   * @throws DUROXIDE_TIMEOUT after a hundred thousand timers (or as many as `maxSteps` says) that did not settle it, or
   *   when there is no timer that could, or if a store holds the time and never lets go
   */
  async run<T>(promise: PromiseLike<T>, options: { readonly maxSteps?: number } = {}): Promise<T> {
    const { maxSteps = MAX_STEPS } = options;
    const startedAt = this.#now;
    let steps = 0;
    let idleMs = 0;
    let isSettled = false;
    const result = Promise.resolve(promise).finally(() => {
      isSettled = true;
      this.#stir();
    });
    result.catch(() => {});
    while (!isSettled) {
      await this.#step(async () => {
        await this.rested(() => isSettled);
        if (isSettled) return;
        const next = this.#next();
        const isHopeless = next === null ? idleMs >= MOST_IDLE_MS : next.at - startedAt > AGES_MS;
        if (isHopeless || steps === maxSteps) throw new StillPendingError(steps, this.#now - startedAt); // V2
        if (next === null) {
          idleMs += 1;
          await realMillisecond();
        } else {
          idleMs = 0;
          steps += 1;
          this.#fire(next);
        }
      });
    }
    return result;
  }

  /** Resolves when everything that was woken has come to rest, or earlier if `isDone` says so: then time may pass. */
  protected async rested(isDone: () => boolean = () => false): Promise<void> {
    const mostEnded = this.#endedHolds + MOST_HOLDS_AT_ONCE;
    for (let round = 0; round < SETTLE_ROUNDS && !isDone(); ) {
      const ended = this.#endedHolds;
      await new Promise<void>((resolve) => void immediate(resolve));
      if (this.#holds > 0 && !isDone()) await this.#stirred();
      round = this.#holds === 0 && this.#endedHolds === ended ? round + 1 : 0; // V3
      if (this.#endedHolds > mostEnded) throw neverAtRest(); // V2
    }
  }

  /** Resolves when a hold ends, or a promise settles that somebody waits for. V2 */
  #stirred(): Promise<void> {
    return new Promise((resolve, reject) => {
      const patience = timeout(() => reject(neverLetGo(this.#holds)), MOST_HELD_MS);
      this.#stir = () => {
        noTimeout(patience);
        resolve();
      };
    });
  }

  /** One at a time. V1 */
  #step<T>(step: () => Promise<T>): Promise<T> {
    const result = this.#lastStep.then(step);
    this.#lastStep = result.catch(() => {}); // Whoever took the step hears of its failure.
    return result;
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

/** A millisecond outside, in which nothing happens here. */
export function realMillisecond(): Promise<void> {
  return new Promise((resolve) => void timeout(resolve, 1));
}

/** What `run` throws when time does not help, so that nobody takes it for a timeout of the promise itself. */
export class StillPendingError extends TimeoutError {
  readonly timers: number;

  constructor(timers: number, passedMs: number) {
    const hours = Math.round(passedMs / 3_600_000);
    super(
      `The promise is still pending after ${timers} timers and ${hours} hours of virtual time: nothing that time brings settles it.`,
    );
    this.timers = timers;
  }
}

function neverLetGo(holds: number): TimeoutError {
  const calls = holds === 1 ? "1 call" : `${holds} calls`;
  return new TimeoutError(
    `Time is held for ${calls} of a store (Clock.holdWhile), and for ${MOST_HELD_MS / 1_000} real seconds none has ended: the store does not answer, or a call waits for virtual time while it holds it.`,
  );
}

function neverAtRest(): TimeoutError {
  return new TimeoutError(
    `Time was held ${MOST_HOLDS_AT_ONCE} times in one moment of virtual time (Clock.holdWhile): something calls its store on and on without ever waiting.`,
  );
}
