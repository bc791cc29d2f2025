// runtime/shared-timers.ts — many timers of the same length cost one.
//
// Every lock has a timer for its renewal, and nearly every lock is gone long before. Those of the same length fall due in
// the order in which they were set: one timer of the clock, for the first of them, is enough.
//
//   S1. A callback comes when its own timer would have come, in the same order.
//   S2. Where nobody waits there is no timer: nothing keeps a process alive.

import type { Clock, Timer } from "../clock.js";
import { LinkedSet, type Place } from "../linked-set.js";

/** All timers of one length. */
class Queue {
  readonly #clock: Clock;
  readonly #delayMs: number;
  readonly #timers = new LinkedSet<SharedTimer>();
  #timer: Timer | null = null;

  constructor(clock: Clock, delayMs: number) {
    this.#clock = clock;
    this.#delayMs = delayMs;
  }

  set(callback: () => void, now: number): Timer {
    const timer = new SharedTimer(this, now + this.#delayMs, callback);
    timer.place = this.#timers.add(timer);
    this.#timer ??= this.#clock.setTimer(this.#delayMs, this.#fire);
    return timer;
  }

  remove(place: Place<SharedTimer>): void {
    this.#timers.delete(place);
    if (this.#timers.size > 0) return;
    this.#timer?.clear(); // S2
    this.#timer = null;
  }

  readonly #fire = (): void => {
    const now = this.#clock.now();
    this.#timer = null;
    try {
      for (const timer of this.#timers.values()) {
        if (timer.at > now) break;
        if (timer.place !== null && this.#timers.delete(timer.place)) timer.callback(); // S1: not one that another has cleared.
      }
    } finally {
      this.#arm(now); // Also where a callback threw: the others still come.
    }
  };

  #arm(now: number): void {
    const { first } = this.#timers;
    if (this.#timer !== null || first === undefined) return;
    this.#timer = this.#clock.setTimer(Math.max(0, first.at - now), this.#fire);
  }
}

class SharedTimer implements Timer {
  readonly at: number;
  readonly callback: () => void;
  readonly #queue: Queue;
  place: Place<SharedTimer> | null = null;

  constructor(queue: Queue, at: number, callback: () => void) {
    this.#queue = queue;
    this.at = at;
    this.callback = callback;
  }

  clear(): void {
    if (this.place !== null) this.#queue.remove(this.place);
    this.place = null;
  }
}

/** By clock, and by length: a runtime has a handful of lengths. */
const queues = new WeakMap<Clock, Map<number, Queue>>();

/** As `clock.setTimer`, for lengths that are used again and again. `now`: for whoever has just looked at the clock. */
export function setSharedTimer(clock: Clock, delayMs: number, callback: () => void, now = clock.now()): Timer {
  return (queues.get(clock)?.get(delayMs) ?? newQueue(clock, delayMs)).set(callback, now);
}

function newQueue(clock: Clock, delayMs: number): Queue {
  const queue = new Queue(clock, delayMs);
  const byDelay = queues.get(clock) ?? new Map<number, Queue>();
  queues.set(clock, byDelay.set(delayMs, queue));
  return queue;
}
