// provider/kit/work-signal.ts — wakes waiting fetches when there may be work, and only as many as there is work for.
//
//   S1. Whoever looked for work and found none, and waits with the generation it looked at, misses no later notify.
//   S2. Waiters of one group want the same things; `notify(n)` wakes up to n of each group, oldest first.
//   S3. One timer serves all delayed rows: the earliest `wakeAt` counts, a later one never hides it.
//   S4. A wake is a hint. Whoever is woken looks for itself, and waits again if there is nothing.
//   S5. Whoever is woken and gives up instead of looking passes the wake on.
//   S6. There is a timer only while somebody polls: whoever comes later looks first, and nobody keeps a process alive.
//   S7. When all are woken, none is always the first to look: what the first cannot use, another one gets soon.
//   S8. Whoever is reserved is looked for by somebody else, and neither its deadline nor its caller can end its wait
//       before that one has given it something or given it back: what was taken for it is never lost.

import type { Clock, Timer } from "../../clock.js";

/** A fetch that may wait for work. */
export interface LongPoll<T, Want = undefined> {
  /** Fetches that may take each other's place: same filters, same queue. */
  readonly group: string;
  /** 0: looks once. */
  readonly pollTimeoutMs: number;
  /** Ends the wait: it answers null. */
  readonly signal?: AbortSignal | undefined;
  /** Looks for work once. Null: there is none now. */
  readonly attempt: () => Promise<T | null> | T | null;
  /** When the next row becomes eligible by the passing of time alone (delay or lock expiry); null: none is known. */
  readonly nextDueAt: () => Promise<number | null> | number | null;
  /** What whoever reserves it needs to know, to look in its place. */
  readonly want?: Want;
}

/**
 * A waiting fetch that is being looked for. It must be given something or given back.
 *
 * @example
 * function serve(signal: WorkSignal<string, string>, queue: string[]): void {
 *   for (const reservation of signal.reserve(queue.length)) {
 *     const found = queue.shift();
 *     if (found === undefined) reservation.giveBack();
 *     else reservation.give(found);
 *   }
 * }
 */
export interface Reservation<T, Want> {
  /** As its poll said. */
  readonly want: Want;
  /** It answers this. */
  give(value: T): void;
  /** It waits again. */
  giveBack(): void;
}

type WaitEnd<T> =
  | { readonly kind: "woken" }
  | { readonly kind: "over" }
  | { readonly kind: "given"; readonly value: T };

const WOKEN = { kind: "woken" } as const;
const OVER = { kind: "over" } as const;

/** They wait again in the order in which they looked. Turned by this part of a circle, time after time, each comes first. */
const GOLDEN_RATIO = 0.618_033_988_749_895;

/**
 * Makes a long poller of a provider that knows when it has written something: whoever finds no work waits here, and is
 * woken when there may be some. One for each queue.
 *
 * A wake is a hint: whoever is woken looks for itself. Nobody who looked before a `notify` misses it. A provider that has
 * made work, and can look for those who wait while it is at it, reserves them instead.
 *
 * @example
 * const signal = new WorkSignal<string>(systemClock);
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
export class WorkSignal<T = unknown, Want = undefined> {
  readonly #clock: Clock;
  readonly #groups = new Map<string, Set<Waiter<T, Want>>>();
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
    for (const waiter of this.#next(count)) waiter.end(WOKEN);
  }

  /** There may be work for `count` fetches, and the caller looks for them: those whom `notify` would wake, in its order. */
  reserve(count = Number.POSITIVE_INFINITY): readonly Reservation<T, Want>[] {
    const reserved = this.#next(count);
    for (const waiter of reserved) waiter.reserve();
    return reserved;
  }

  /** Whether anybody waits. */
  get isAwaited(): boolean {
    return this.#groups.size > 0;
  }

  /** Those to be told of work, who no longer wait. S1, S2 */
  #next(count: number): readonly Waiter<T, Want>[] {
    this.#generation += 1;
    const next: Waiter<T, Want>[] = [];
    for (const waiters of [...this.#groups.values()]) {
      let left = count;
      for (const waiter of this.#inOrder(waiters, count)) {
        if (left <= 0) break;
        left -= 1;
        waiter.leave();
        next.push(waiter);
      }
    }
    return next;
  }

  /** Those to be woken: oldest first; but where all of them are, one time this one and one time that one begins (S7). */
  #inOrder(waiters: ReadonlySet<Waiter<T, Want>>, count: number): Iterable<Waiter<T, Want>> {
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
  async longPoll(poll: LongPoll<T, Want>): Promise<T | null> {
    this.#polls += 1;
    try {
      return await this.#poll(poll);
    } finally {
      this.#polls -= 1;
      if (this.#polls === 0) this.#stopTimer(); // S6
    }
  }

  async #poll(poll: LongPoll<T, Want>): Promise<T | null> {
    const deadline = this.#clock.now() + poll.pollTimeoutMs;
    for (;;) {
      const generation = this.#generation;
      const found = await poll.attempt();
      if (found !== null) return found;
      const leftMs = deadline - this.#clock.now();
      if (leftMs <= 0 || this.#isClosed || poll.signal?.aborted) return null;
      const dueAt = await poll.nextDueAt();
      if (dueAt !== null) this.wakeAt(dueAt);
      const end = generation === this.#generation ? await this.#wait(poll, leftMs) : WOKEN; // S1
      if (end.kind === "given") return end.value;
      if (end.kind === "woken" && !poll.signal?.aborted && !this.#isClosed) continue;
      if (end.kind === "woken") this.notify(1); // S5
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

  #wait(poll: LongPoll<T, Want>, timeoutMs: number): Promise<WaitEnd<T>> {
    return new Promise((resolve) => {
      if (poll.signal?.aborted) return resolve(OVER);
      const waiter = new Waiter<T, Want>({
        clock: this.#clock,
        timeoutMs,
        poll,
        groups: this.#groups,
        generation: () => (this.#isClosed ? Number.NaN : this.#generation),
        resolve,
      });
      waiter.enter();
    });
  }
}

interface WaiterDeps<T, Want> {
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly poll: LongPoll<T, Want>;
  readonly groups: Map<string, Set<Waiter<T, Want>>>;
  /** Equals itself as long as nothing has happened. */
  readonly generation: () => number;
  readonly resolve: (end: WaitEnd<T>) => void;
}

/** One wait: in its group, reserved, or over. */
class Waiter<T, Want> implements Reservation<T, Want> {
  readonly #deps: WaiterDeps<T, Want>;
  readonly #timer: Timer;
  /** Of the reservation. Null: not reserved. */
  #reservedAt: number | null = null;
  #isDue = false;

  constructor(deps: WaiterDeps<T, Want>) {
    this.#deps = deps;
    this.#timer = deps.clock.setTimer(deps.timeoutMs, this.#giveUp);
    deps.poll.signal?.addEventListener("abort", this.#giveUp, { once: true });
  }

  get want(): Want {
    return this.#deps.poll.want as Want;
  }

  enter(): void {
    const { groups, poll } = this.#deps;
    const waiters = groups.get(poll.group) ?? new Set();
    groups.set(poll.group, waiters);
    waiters.add(this);
  }

  leave(): void {
    const { groups, poll } = this.#deps;
    const waiters = groups.get(poll.group);
    waiters?.delete(this);
    if (waiters?.size === 0) groups.delete(poll.group);
  }

  reserve(): void {
    this.#reservedAt = this.#deps.generation();
  }

  give(value: T): void {
    this.end({ kind: "given", value });
  }

  giveBack(): void {
    const isUpToDate = this.#reservedAt === this.#deps.generation();
    this.#reservedAt = null;
    if (this.#isDue) this.end(OVER);
    else if (isUpToDate) this.enter();
    else this.end(WOKEN); // S1
  }

  end(end: WaitEnd<T>): void {
    this.#timer.clear();
    this.#deps.poll.signal?.removeEventListener("abort", this.#giveUp);
    this.#deps.resolve(end);
  }

  readonly #giveUp = (): void => {
    this.#isDue = true;
    if (this.#reservedAt !== null) return; // S8
    this.leave();
    this.end(OVER);
  };
}
