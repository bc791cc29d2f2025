// runtime/lock-renewal.ts — keeps one lock alive while its work is in progress.
//
//   L1. Only "lock-lost" means that the lock is gone. Any other failure is retried until the lock must have expired.
//   L2. After `stop` nothing is renewed and nobody is called.
//   L3. A renewal that is never answered does not keep a lock: it is lost when it must have expired.

import type { Clock, Timer } from "../clock.js";
import { ProviderError } from "../errors.js";
import { setSharedTimer } from "./shared-timers.js";

export interface LockRenewal<T> {
  readonly clock: Clock;
  readonly lockTimeoutMs: number;
  readonly renewalBufferMs: number;
  /** Renews once, for `lockTimeoutMs` from now. */
  readonly renew: () => Promise<T>;
  /** Told what the provider answered. */
  readonly onRenewed?: (answer: T) => void;
  /** Told once, when the lock is gone for certain. */
  readonly onLost: () => void;
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

/** Starts renewing. Returns the way to stop. */
export function keepLock<T>(renewal: LockRenewal<T>): () => void {
  const { clock, lockTimeoutMs } = renewal;
  const intervalMs = renewalIntervalMs(lockTimeoutMs, renewal.renewalBufferMs);
  let isStopped = false;
  let liveUntil = clock.now() + lockTimeoutMs;
  let timer: Timer = setSharedTimer(clock, intervalMs, renewOnce);

  function renewOnce(): void {
    const askedAt = clock.now();
    timer = clock.setTimer(Math.max(liveUntil - askedAt, 0), lose); // L3
    ask(renewal.renew).then(
      (answer) => {
        if (isStopped) return;
        timer.clear();
        liveUntil = askedAt + lockTimeoutMs;
        timer = setSharedTimer(clock, intervalMs, renewOnce);
        renewal.onRenewed?.(answer);
      },
      (error: unknown) => {
        if (isStopped) return;
        timer.clear();
        const isLost = error instanceof ProviderError && error.kind === "lock-lost";
        if (isLost || clock.now() >= liveUntil)
          lose(); // L1
        else timer = clock.setTimer(Math.min(RETRY_AFTER_MS, intervalMs), renewOnce);
      },
    );
  }

  function lose(): void {
    isStopped = true;
    renewal.onLost();
  }

  return () => {
    isStopped = true; // L2
    timer.clear();
  };
}

/** A provider that throws instead of rejecting must not end the process from within a timer. */
async function ask<T>(renew: () => Promise<T>): Promise<T> {
  return renew();
}
