// provider/kit/work-signal.ts — wakes waiting fetches when there may be work, and only as many as there is work for.
//
//   S1. Whoever looked for work and found none, and waits with the generation it looked at, misses no later notify.
//   S2. Waiters of one group want the same things; `notify(n)` wakes up to n of each group, oldest first.
//   S3. One timer serves all delayed rows: the earliest `wakeAt` counts, a later one never hides it.
//   S4. A wake is a hint. Whoever is woken looks for itself, and waits again if there is nothing.
//   S5. Whoever is woken and gives up instead of looking passes the wake on.
//   S6. There is a timer only while somebody polls: whoever comes later looks first, and nobody keeps a process alive.
//   S7. When all are woken, none is always the first to look: what the first cannot use, another one gets soon.

import type { Clock, Timer } from "../../clock.js";

interface Waiter {
  readonly wake: () => void;
}

/** A fetch that may wait for work. */
export interface LongPoll<T> {
  /** Fetches that may take each other's place: same filters, same queue. */
  readonly group: string;
  /** 0: looks once. */
  readonly pollTimeoutMs: number;
  /** Ends the wait: it answers null. */
  readonly signal?: AbortSignal;
  /** Looks for work once. Null: there is none now. */
  readonly attempt: () => Promise<T | null> | T | null;
  /** When the next row becomes eligible by the passing of time alone (delay or lock expiry); null: none is known. */
  readonly nextDueAt: () => Promise<number | null> | number | null;
}

/** They wait again in the order in which they looked. Turned by this part of a circle, time after time, each comes first. */
const GOLDEN_RATIO = 0.618_033_988_749_895;

/**
 * Makes a long poller of a provider that knows when it has written something: whoever finds no work waits here, and is
 * woken when there may be some. One for each queue.
 *
 * A wake is a hint: whoever is woken looks for itself. Nobody who looked before a `notify` misses it.
 *
 * @example
 * const signal = new WorkSignal(systemClock);
 * const queue: string[] = [];
 * const fetched = signal.longPoll({
 *   group: "all",
 *   pollTimeoutMs: 30_000,
 *   attempt: () => queue.shift() ?? null,
 *   nextDueAt: () => null,
 * });
 * queue.push("work");
 * signal.notify(1); // after the commit that made the work
 * report(await fetched);
 */
export class WorkSignal {
  readonly #clock: Clock;
  readonly #groups = new Map<string, Set<Waiter>>();
  #generation = 0;
  #polls = 0;
  #timer: Timer | null = null;
  #timerAt = Number.POSITIVE_INFINITY;
  #isClosed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** There may be work for `count` fetches. */
  notify(count = Number.POSITIVE_INFINITY): void {
    this.#generation += 1;
    for (const waiters of this.#groups.values()) {
      let left = count;
      for (const waiter of this.#inOrder(waiters, count)) {
        if (left <= 0) break;
        left -= 1;
        waiters.delete(waiter);
        waiter.wake();
      }
    }
  }

  /** Those to be woken: oldest first; but where all of them are, one time this one and one time that one begins (S7). */
  #inOrder(waiters: ReadonlySet<Waiter>, count: number): Iterable<Waiter> {
    if (count < waiters.size) return waiters;
    const all = [...waiters];
    const first = Math.floor(all.length * GOLDEN_RATIO);
    return [...all.slice(first), ...all.slice(0, first)];
  }

  /** There may be work at `timeMs`. */
  wakeAt(timeMs: number): void {
    if (this.#polls === 0 || this.#isClosed || timeMs >= this.#timerAt) return; // S6
    this.#timer?.clear();
    this.#timerAt = timeMs;
    this.#timer = this.#clock.setTimer(timeMs - this.#clock.now(), () => {
      this.#stopTimer();
      this.notify();
    });
  }

  /** Looks for work until there is some, the time is up, the caller gives up, or the provider is closed. */
  async longPoll<T>(poll: LongPoll<T>): Promise<T | null> {
    this.#polls += 1;
    try {
      return await this.#poll(poll);
    } finally {
      this.#polls -= 1;
      if (this.#polls === 0) this.#stopTimer(); // S6
    }
  }

  async #poll<T>(poll: LongPoll<T>): Promise<T | null> {
    const deadline = this.#clock.now() + poll.pollTimeoutMs;
    for (;;) {
      const generation = this.#generation;
      const found = await poll.attempt();
      if (found !== null) return found;
      const leftMs = deadline - this.#clock.now();
      if (leftMs <= 0 || this.#isClosed || poll.signal?.aborted) return null;
      const dueAt = await poll.nextDueAt();
      if (dueAt !== null) this.wakeAt(dueAt);
      const isNotified = generation !== this.#generation || (await this.#wait(poll.group, leftMs, poll.signal)); // S1
      if (isNotified && !poll.signal?.aborted && !this.#isClosed) continue;
      if (isNotified) this.notify(1); // S5
      return null; // Nothing has happened since the last look, and whoever asks again begins with one.
    }
  }

  /** Ends all waits. */
  close(): void {
    this.#isClosed = true;
    this.#stopTimer();
    this.notify();
  }

  #stopTimer(): void {
    this.#timer?.clear();
    this.#timer = null;
    this.#timerAt = Number.POSITIVE_INFINITY;
  }

  /** Answers whether it was a notify that ended the wait, and not the time or the caller. */
  #wait(group: string, timeoutMs: number, signal: AbortSignal | undefined): Promise<boolean> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve(false);
      const waiters = this.#groups.get(group) ?? new Set<Waiter>();
      this.#groups.set(group, waiters);
      const end = (isNotified: boolean): void => {
        timer.clear();
        signal?.removeEventListener("abort", giveUp);
        waiters.delete(waiter);
        if (waiters.size === 0) this.#groups.delete(group);
        resolve(isNotified);
      };
      const giveUp = (): void => end(false);
      const waiter: Waiter = { wake: () => end(true) };
      waiters.add(waiter);
      const timer = this.#clock.setTimer(timeoutMs, giveUp);
      signal?.addEventListener("abort", giveUp, { once: true });
    });
  }
}
