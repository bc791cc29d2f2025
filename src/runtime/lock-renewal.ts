// runtime/lock-renewal.ts — keeps one lock alive while its work is in progress.
//
//   L1. Only "lock-lost" means that the lock is gone. Any other failure is retried until the lock must have expired.
//   L2. After `stop` nothing is renewed and nobody is called.
//   L3. A renewal that is never answered does not keep a lock: it is lost when it must have expired.

import type { Clock, Timer } from "../clock.js";
import { ProviderError } from "../errors.js";
import { setSharedTimer } from "./shared-timers.js";

/** Whose lock it is. */
export interface LockHolder<T> {
  /** Renews once, for the whole length of the lock from now. */
  renewLock(): Promise<T>;
  /** Told what the provider answered. */
  lockRenewed(answer: T): void;
  /** Told once, when the lock is gone for certain. */
  lockLost(): void;
}

/** How long before a retry of a renewal that failed for a passing reason. */
const RETRY_AFTER_MS = 200;

/** However long the buffer, no more than this many renewals in the life of a lock. */
const MOST_RENEWALS = 10;

/**
 * Half the lock's life, or earlier if the buffer asks for it; never as late as its end, and never all the time. A buffer that
 * the lock does not outlive was meant for longer locks, and asks for nothing.
 */
export function renewalIntervalMs(lockTimeoutMs: number, renewalBufferMs: number): number {
  const half = lockTimeoutMs / 2;
  const asked = renewalBufferMs < lockTimeoutMs ? lockTimeoutMs - renewalBufferMs : half;
  return Math.max(1, Math.floor(Math.min(half, Math.max(asked, lockTimeoutMs / MOST_RENEWALS))));
}

/** Renews a lock that was taken at `now`, from now on. */
export class KeptLock<T> {
  readonly #holder: LockHolder<T>;
  readonly #clock: Clock;
  readonly #lockTimeoutMs: number;
  readonly #intervalMs: number;
  #isStopped = false;
  #liveUntil: number;
  #timer: Timer;

  constructor(holder: LockHolder<T>, clock: Clock, now: number, lockTimeoutMs: number, renewalBufferMs: number) {
    this.#holder = holder;
    this.#clock = clock;
    this.#lockTimeoutMs = lockTimeoutMs;
    this.#intervalMs = renewalIntervalMs(lockTimeoutMs, renewalBufferMs);
    this.#liveUntil = now + lockTimeoutMs;
    this.#timer = setSharedTimer(clock, this.#intervalMs, this.#renewOnce, now);
  }

  stop(): void {
    this.#isStopped = true; // L2
    this.#timer.clear();
  }

  readonly #renewOnce = (): void => {
    const askedAt = this.#clock.now();
    this.#timer = this.#clock.setTimer(Math.max(this.#liveUntil - askedAt, 0), () => this.#lose()); // L3
    ask(this.#holder).then(
      (answer) => this.#renewed(askedAt, answer),
      (error: unknown) => this.#failed(error),
    );
  };

  #renewed(askedAt: number, answer: T): void {
    if (this.#isStopped) return;
    this.#timer.clear();
    this.#liveUntil = askedAt + this.#lockTimeoutMs;
    this.#timer = setSharedTimer(this.#clock, this.#intervalMs, this.#renewOnce);
    this.#holder.lockRenewed(answer);
  }

  #failed(error: unknown): void {
    if (this.#isStopped) return;
    this.#timer.clear();
    const isLost = error instanceof ProviderError && error.kind === "lock-lost";
    if (isLost || this.#clock.now() >= this.#liveUntil)
      this.#lose(); // L1
    else this.#timer = this.#clock.setTimer(Math.min(RETRY_AFTER_MS, this.#intervalMs), this.#renewOnce);
  }

  #lose(): void {
    this.#isStopped = true;
    this.#holder.lockLost();
  }
}

/** A provider that throws instead of rejecting must not end the process from within a timer. */
async function ask<T>(holder: LockHolder<T>): Promise<T> {
  return holder.renewLock();
}
