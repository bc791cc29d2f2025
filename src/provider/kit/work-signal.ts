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
//   S9. As long as one of a group waits, un-notified, there is nothing for any of them.

import type { Clock, Timer } from "../../clock.js";
import { LinkedSet, type Place } from "../../linked-set.js";

/** A fetch that may wait for work. */
export interface LongPoll<T, Want = undefined> {
  /** Fetches that may take each other's place: same filters, same queue. */
  readonly group: string;
  /** 0: looks once. */
  readonly pollTimeoutMs: number;
  /** Ends the wait: it answers null. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Looks for work once. Null: there is none now. Who does not look at once calls `looks` when it does: what was there
   * before is then seen, and not told of again.
   */
  readonly attempt: (looks: () => void) => Promise<T | null> | T | null;
  /** When the next row becomes eligible by the passing of time alone (delay or lock expiry); null: none is known. */
  readonly nextDueAt: () => Promise<number | null> | number | null;
  /** What whoever reserves it needs to know, to look in its place. */
  readonly want?: Want;
  /**
   * Where others of its group wait already, there is nothing for it either: it joins them without a look. Not for groups
   * whose members may find different things. @default false
   */
  readonly joins?: boolean;
  /** Called when it is over, however it ended. */
  readonly onEnd?: (() => void) | undefined;
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
  readonly #groups = new Map<string, LinkedSet<Poll<T, Want>>>();
  readonly #callers = new Callers<Poll<T, Want>>();
  #generation = 0;
  #polls = 0;
  #timer: Timer | null = null;
  #timerAt = Number.POSITIVE_INFINITY;
  /** For those whose time is up. It may ring for somebody who is no longer there. */
  #deadlineTimer: Timer | null = null;
  #deadlineAt = Number.POSITIVE_INFINITY;
  #isClosed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** There may be work for `count` fetches. */
  notify(count = Number.POSITIVE_INFINITY): void {
    for (const poll of this.#next(count)) poll.wake();
  }

  /** There may be work for `count` fetches, and the caller looks for them: those whom `notify` would wake, in its order. */
  reserve(count = Number.POSITIVE_INFINITY): readonly Reservation<T, Want>[] {
    const reserved = this.#next(count);
    for (const poll of reserved) poll.reserve();
    return reserved;
  }

  /** How many wait; where there are several groups, of each of them at least. */
  get waiting(): number {
    const sizes = [...this.#groups.values()].map((polls) => polls.size);
    return sizes.length === 0 ? 0 : Math.min(...sizes);
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
  longPoll(poll: LongPoll<T, Want>): Promise<T | null> {
    return new Promise((resolve, reject) => {
      this.#polls += 1;
      new Poll<T, Want>(poll, this.#clock.now() + poll.pollTimeoutMs, this.#host, resolve, reject).begin();
    });
  }

  /** Ends all waits. */
  close(): void {
    this.#isClosed = true;
    this.#stopTimers();
    this.notify();
    this.#callers.close();
  }

  readonly #host: PollHost<T, Want> = {
    generation: () => this.#generation,
    isClosed: () => this.#isClosed,
    now: () => this.#clock.now(),
    wakeAt: (timeMs) => this.wakeAt(timeMs),
    passOn: () => this.notify(1),
    isAwaited: (group) => this.#groups.has(group),
    enter: (poll) => {
      let polls = this.#groups.get(poll.group);
      if (polls === undefined) {
        polls = new LinkedSet();
        this.#groups.set(poll.group, polls);
      }
      this.#ringAt(poll.deadline);
      return polls.add(poll);
    },
    leave: (poll, place) => {
      const polls = this.#groups.get(poll.group);
      polls?.delete(place);
      if (polls?.size === 0) this.#groups.delete(poll.group);
    },
    ended: () => {
      this.#polls -= 1;
      if (this.#polls === 0) this.#stopTimers(); // S6
    },
    listen: (poll, signal) => this.#callers.listen(poll, signal),
    unlisten: (place, signal) => this.#callers.unlisten(place, signal),
  };

  /** Those to be told of work, who no longer wait. S1, S2 */
  #next(count: number): readonly Poll<T, Want>[] {
    this.#generation += 1;
    const next: Poll<T, Want>[] = [];
    for (const polls of [...this.#groups.values()]) {
      for (const poll of inOrder(polls, count)) {
        poll.leave();
        next.push(poll);
      }
    }
    return next;
  }

  /** One timer for all: most waits end long before their time, and cost no timer of their own. */
  #ringAt(deadline: number): void {
    if (deadline >= this.#deadlineAt || this.#isClosed) return;
    this.#deadlineTimer?.clear();
    this.#deadlineAt = deadline;
    this.#deadlineTimer = this.#clock.setTimer(deadline - this.#clock.now(), () => this.#endOverdue());
  }

  #endOverdue(): void {
    this.#deadlineAt = Number.POSITIVE_INFINITY;
    const now = this.#clock.now();
    const waiting = [...this.#groups.values()].flatMap((polls) => polls.values());
    let earliest = Number.POSITIVE_INFINITY;
    for (const poll of waiting) {
      if (poll.deadline <= now) poll.giveUp();
      else earliest = Math.min(earliest, poll.deadline);
    }
    if (earliest < Number.POSITIVE_INFINITY) this.#ringAt(earliest);
  }

  #stopTimer(): void {
    this.#timer?.clear();
    this.#timer = null;
    this.#timerAt = Number.POSITIVE_INFINITY;
  }

  #stopTimers(): void {
    this.#stopTimer();
    this.#deadlineTimer?.clear();
    this.#deadlineTimer = null;
    this.#deadlineAt = Number.POSITIVE_INFINITY;
  }
}

/** Those to be woken: oldest first; but where all of them are, one time this one and one time that one begins (S7). */
function inOrder<P extends object>(polls: LinkedSet<P>, count: number): readonly P[] {
  const first = polls.values(count);
  if (count < polls.size) return first;
  const turn = Math.floor(first.length * GOLDEN_RATIO);
  return [...first.slice(turn), ...first.slice(0, turn)];
}

/** Signals that were used lately, and are listened to although nobody waits by them. */
const MOST_CALLERS = 1_000;

interface Listener {
  giveUp(): void;
}

interface Caller<L extends Listener> {
  readonly polls: LinkedSet<L>;
  readonly onAbort: () => void;
}

/** Whose signals end which polls. A slot waits with the same signal time after time: one listener serves all its waits. */
class Callers<L extends Listener> {
  readonly #bySignal = new Map<AbortSignal, Caller<L>>();

  listen(poll: L, signal: AbortSignal): Place<L> {
    return (this.#bySignal.get(signal) ?? this.#add(signal)).polls.add(poll);
  }

  unlisten(place: Place<L>, signal: AbortSignal): void {
    const caller = this.#bySignal.get(signal);
    caller?.polls.delete(place);
    if (caller?.polls.size === 0 && this.#bySignal.size > MOST_CALLERS) this.#remove(signal);
  }

  close(): void {
    for (const signal of [...this.#bySignal.keys()]) this.#remove(signal);
  }

  #add(signal: AbortSignal): Caller<L> {
    const polls = new LinkedSet<L>();
    const onAbort = (): void => {
      this.#bySignal.delete(signal);
      for (const each of polls.values()) each.giveUp();
    };
    const caller = { polls, onAbort };
    this.#bySignal.set(signal, caller);
    signal.addEventListener("abort", onAbort, { once: true });
    return caller;
  }

  #remove(signal: AbortSignal): void {
    const caller = this.#bySignal.get(signal);
    if (caller !== undefined) signal.removeEventListener("abort", caller.onAbort);
    this.#bySignal.delete(signal);
  }
}

/** What a poll knows of the signal that it belongs to. */
interface PollHost<T, Want> {
  /** Another number whenever there may be work. */
  generation(): number;
  isClosed(): boolean;
  now(): number;
  wakeAt(timeMs: number): void;
  passOn(): void;
  isAwaited(group: string): boolean;
  enter(poll: Poll<T, Want>): Place<Poll<T, Want>>;
  leave(poll: Poll<T, Want>, place: Place<Poll<T, Want>>): void;
  /** It is about to be answered. */
  ended(): void;
  /** Has it give up when its caller does. */
  listen(poll: Poll<T, Want>, signal: AbortSignal): Place<Poll<T, Want>>;
  unlisten(place: Place<Poll<T, Want>>, signal: AbortSignal): void;
}

/** Whoever is woken looks after the one who woke it has been answered. */
const settled = Promise.resolve();

/**
 * One long poll: looking, waiting, reserved or over. Every fetch of every slot comes through here: hence no `async`, and a
 * closure only where somebody waits for a promise.
 */
class Poll<T, Want> implements Reservation<T, Want> {
  readonly deadline: number;
  readonly #poll: LongPoll<T, Want>;
  readonly #host: PollHost<T, Want>;
  /** Its two answers. */
  readonly #onFound: (value: T | null) => void;
  readonly #onFailed: (error: unknown) => void;
  /** As of the last look, or of the reservation. */
  #generation = 0;
  #isReserved = false;
  /** Among those who wait. */
  #place: Place<Poll<T, Want>> | null = null;
  /** Among those whom its caller can end. */
  #listening: Place<Poll<T, Want>> | null = null;

  constructor(
    poll: LongPoll<T, Want>,
    deadline: number,
    host: PollHost<T, Want>,
    onFound: (value: T | null) => void,
    onFailed: (error: unknown) => void,
  ) {
    this.#poll = poll;
    this.deadline = deadline;
    this.#host = host;
    this.#onFound = onFound;
    this.#onFailed = onFailed;
  }

  get group(): string {
    return this.#poll.group;
  }

  get want(): Want {
    return this.#poll.want as Want;
  }

  begin(): void {
    if (this.#poll.joins === true && !this.#isOver() && this.#host.isAwaited(this.group))
      this.#wait(); // S9
    else this.#look();
  }

  wake(): void {
    this.#stopListening();
    void settled.then(() => this.#lookAgain());
  }

  #lookAgain(): void {
    if (!this.#isOver()) return this.#look();
    this.#host.passOn(); // S5
    this.#resolve(null);
  }

  reserve(): void {
    this.#isReserved = true;
    this.#generation = this.#host.generation();
  }

  give(value: T): void {
    this.#stopListening();
    this.#resolve(value);
  }

  giveBack(): void {
    this.#isReserved = false;
    if (this.#isOver() || this.deadline <= this.#host.now()) this.#end();
    else if (this.#generation === this.#host.generation()) this.#place = this.#host.enter(this);
    else this.wake(); // S1
  }

  leave(): void {
    if (this.#place !== null) this.#host.leave(this, this.#place);
    this.#place = null;
  }

  giveUp(): void {
    if (this.#isReserved) return; // S8
    this.leave();
    this.#end();
  }

  #look(): void {
    this.#generation = this.#host.generation();
    let found: Promise<T | null> | T | null;
    try {
      found = this.#poll.attempt(() => {
        this.#generation = this.#host.generation();
      });
    } catch (error) {
      return this.#reject(error);
    }
    if (found instanceof Promise) this.#when(found, (known) => this.#looked(known));
    else this.#looked(found);
  }

  #looked(found: T | null): void {
    if (found !== null) return this.#resolve(found);
    if (this.deadline <= this.#host.now() || this.#isOver()) return this.#resolve(null);
    let dueAt: Promise<number | null> | number | null;
    try {
      dueAt = this.#poll.nextDueAt();
    } catch (error) {
      return this.#reject(error);
    }
    if (dueAt instanceof Promise) this.#when(dueAt, (known) => this.#waitUntil(known));
    else this.#waitUntil(dueAt);
  }

  #waitUntil(dueAt: number | null): void {
    if (dueAt !== null) this.#host.wakeAt(dueAt);
    if (this.#generation !== this.#host.generation())
      this.wake(); // S1
    else if (this.#poll.signal?.aborted) this.#resolve(null);
    else this.#wait();
  }

  #when<V>(value: Promise<V>, then: (value: V) => void): void {
    void value.then(then).catch((error: unknown) => this.#reject(error));
  }

  #wait(): void {
    const { signal } = this.#poll;
    if (signal !== undefined) this.#listening ??= this.#host.listen(this, signal);
    this.#place = this.#host.enter(this);
  }

  #isOver(): boolean {
    return this.#host.isClosed() || (this.#poll.signal?.aborted ?? false);
  }

  /** Nothing has happened since the last look, and whoever asks again begins with one. */
  #end(): void {
    this.#stopListening();
    this.#resolve(null);
  }

  #stopListening(): void {
    const { signal } = this.#poll;
    if (this.#listening !== null && signal !== undefined) this.#host.unlisten(this.#listening, signal);
    this.#listening = null;
  }

  #resolve(value: T | null): void {
    this.#ended();
    this.#onFound(value);
  }

  #reject(error: unknown): void {
    this.#ended();
    this.#onFailed(error);
  }

  #ended(): void {
    this.#host.ended();
    this.#poll.onEnd?.();
  }
}
