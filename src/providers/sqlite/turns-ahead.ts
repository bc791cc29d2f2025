// providers/sqlite/turns-ahead.ts — turns that were handed out before the commit: how many may be, and the wait for their acks.
//
//   A1. The wait lasts as long as each round of the event loop brings acks, until all have come, and 20 ms at most: turns that
//       take longer are acked in a transaction of their own.
//   A2. While turns are taken nobody else can write. So it begins with one, as many go as have taken 20 ms of late, and after
//       one that took longer none for a second. How long a single turn takes nobody can know before.
//   A3. Nobody goes ahead where other connections are at work: those of other processes have written within the last second, or
//       there are others in this process, which would wait for the very thread that has to finish.

import { type Clock, holding } from "../../clock.js";
import type { Call } from "./batch-run.js";
import type { Database } from "./database.js";

const LONGEST_WAIT_MS = 20;
const PAUSE_MS = 1_000;
/** More than are ever called for in one batch. */
const MOST = 256;

// Captured at load, so that the fake timers of a test framework do not keep a transaction open.
const immediate = setImmediate;

/** How many turns may go ahead. A2, A3 */
export class AheadPace {
  readonly #clock: Clock;
  #most = 1;
  #pausesUntil = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Within a transaction, which has seen what others have written. */
  mostIn(database: Database): number {
    const now = this.#clock.now();
    const isAlone = database.isOnlyOne && now - database.othersAt >= PAUSE_MS;
    return isAlone && now >= this.#pausesUntil ? this.#most : 0;
  }

  /** So many went ahead, and so long the transaction was open for them. */
  took(turns: number, ms: number): void {
    const affordable = Math.floor((LONGEST_WAIT_MS * turns) / Math.max(ms, 1));
    this.#most = Math.max(1, Math.min(2 * this.#most, affordable, MOST));
    if (affordable < 1) this.#pausesUntil = this.#clock.now() + PAUSE_MS;
  }
}

/** The ack of a turn that went ahead, and who waits for it. */
export interface AheadAck {
  readonly call: Call;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** What the open transaction waits for. */
export class AwaitedAcks {
  readonly acks: AheadAck[] = [];
  readonly #lockTokens: ReadonlySet<string>;
  readonly #clock: Clock;

  constructor(lockTokens: ReadonlySet<string>, clock: Clock) {
    this.#lockTokens = lockTokens;
    this.#clock = clock;
  }

  has(lockToken: string): boolean {
    return this.#lockTokens.has(lockToken);
  }

  add(call: Call): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.acks.push({ call, resolve, reject });
    });
  }

  /** `then` is called when no more are waited for. Time stands still until then. A1 */
  whenHere<T>(since: number, then: () => T | Promise<T>): Promise<T> {
    const until = since + LONGEST_WAIT_MS;
    const done = new Promise<T>((resolve, reject) => {
      const round = (before: number): void => {
        const { length } = this.acks;
        const comeMore = length > before && length < this.#lockTokens.size && this.#clock.now() < until;
        if (comeMore) {
          immediate(round, length);
          return;
        }
        try {
          resolve(then());
        } catch (error) {
          reject(error);
        }
      };
      immediate(round, 0);
    });
    return holding(this.#clock, done);
  }
}
