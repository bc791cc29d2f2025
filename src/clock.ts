// clock.ts — the only file that reads the clock and sets timers. Everything else is handed a Clock.

// The global of that name is the same object, behind a getter that takes half as long as the look itself.
import { performance } from "node:perf_hooks";

/** A pending timer. Clearing it twice, or after it fired, does nothing. */
export interface Timer {
  clear(): void;
}

/** Where time comes from: the system, or a test. */
export interface Clock {
  /** Milliseconds since the epoch, as an integer. */
  now(): number;
  /** Calls back once, no earlier than `delayMs` from now. */
  setTimer(delayMs: number, callback: () => void): Timer;
  /**
   * Time stands still until `work` settles; answers as it does. For stores that do real I/O, which call it by `holding`.
   * Clocks of the real world do not have it.
   */
  holdWhile?<T>(work: Promise<T>): Promise<T>;
}

/** `setTimeout` fires at once for anything longer, so longer delays are cut into pieces. */
const LONGEST_TIMEOUT_MS = 2_147_483_647;

/** The largest distance yet seen between the wall clock and the one that only counts up. */
let ahead = Number.NEGATIVE_INFINITY;
/** When the wall clock is looked at again: it shows whole milliseconds only. */
let nextLookAt = Number.NEGATIVE_INFINITY;

let isLookingNow = false;

/** Whether it is the system's clock that calls `Date.now`, `performance.now` or `setTimeout`: on our behalf, not the user's. */
export function isClockLooking(): boolean {
  return isLookingNow;
}

function looking<T>(look: () => T): T {
  isLookingNow = true;
  try {
    return look();
  } finally {
    isLookingNow = false;
  }
}

/**
 * The wall clock, which never goes back: when it is set back, time goes on from where it was, at its own pace. Whatever is
 * visible stays visible, and what was locked stays no longer locked than it should.
 *
 * @example
 * const expiresAt = systemClock.now() + 5_000;
 */
export const systemClock: Clock = {
  now() {
    isLookingNow = true;
    try {
      return timeNow();
    } finally {
      isLookingNow = false;
    }
  },
  setTimer(delayMs, callback) {
    let handle: NodeJS.Timeout;
    const arm = (leftMs: number): void => {
      const pieceMs = Math.min(leftMs, LONGEST_TIMEOUT_MS);
      const fire = (): void => (leftMs > pieceMs ? arm(leftMs - pieceMs) : callback());
      handle = looking(() => setTimeout(fire, pieceMs));
    };
    arm(Math.max(0, Math.ceil(delayMs)));
    return { clear: () => clearTimeout(handle) };
  },
};

function timeNow(): number {
  const counted = performance.now();
  if (counted >= nextLookAt) {
    nextLookAt = counted + 1;
    ahead = Math.max(ahead, Date.now() - counted);
  }
  return Math.floor(counted + ahead);
}

/**
 * Answers as `work` does. A clock of tests stands still meanwhile, so that a call that takes real milliseconds takes no
 * virtual time; any other clock goes on, and this is `work` itself.
 *
 * For each call of a driver that a provider makes, and for nothing that waits for time: that would wait for itself.
 *
 * @example
 * class Database {
 *   constructor(readonly clock: Clock, readonly driver: { query(sql: string): Promise<unknown[]> }) {}
 *
 *   query(sql: string): Promise<unknown[]> {
 *     return holding(this.clock, this.driver.query(sql));
 *   }
 * }
 */
export function holding<T>(clock: Clock, work: Promise<T>): Promise<T> {
  return clock.holdWhile?.(work) ?? work;
}

/** Resolves after `delayMs`, or as soon as `signal` aborts: the caller looks at the signal to tell which. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const wake = (): void => {
      timer.clear();
      signal?.removeEventListener("abort", wake);
      resolve();
    };
    const timer = clock.setTimer(delayMs, wake);
    signal?.addEventListener("abort", wake, { once: true });
  });
}
