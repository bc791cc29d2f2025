// providers/postgres/queue-signal.ts — a queue's signal that knows when a look would be in vain: others look, or just have.
//
//   Q1. A queue is quiet when a look has found that nothing is left in it for anybody. That ends with the next news, or when
//       time makes something ready, or after a moment: news of other processes may be late.
//   Q2. Whoever comes to a quiet queue waits as if it had looked itself, just now.
//   Q3. Where the last look left nothing, whoever comes while others look waits for what they find out, and can be given what is
//       new meanwhile. If there may be more after all, it is woken, and looks. Where there is always more, all look at once.
//   Q4. Whoever is woken looks: whether others look already or not, they may have begun before the news.
//   Q5. News of other processes that finds this one busy is owed a look, and so is what others had locked. All hear of it and one
//       gets it: a look in vain costs the server more than its share of a statement that is made anyhow, and who is idle goes
//       first. The look is made when this process is busy no longer, or has been for long, if not by another one that began
//       after the news. Whoever takes over what is owed makes the look or owes it again, so nothing that was heard is forgotten.
//   Q6. Where fetches want different things, only time pays what is owed, and news is never: what one of them finds says nothing
//       of the others.

import type { Clock, Timer } from "../../clock.js";
import { WorkSignal } from "../../provider/kit/work-signal.js";

/** How long one look is good for. A fetch on its own looks once in a poll; hundreds of them look once in this time. */
const QUIET_MS = 1_000;

/** When to see whether a look is still owed, and can be made. Nobody notices it. */
const OWED_MS = 10;
/** How long a busy process may owe a look. Under a load that keeps it busy it has most likely sent something by then. */
const LONGEST_OWED_MS = 100;

/** What is known of those who may take each other's place. */
interface Group {
  /** Null: it is not quiet. */
  quiet: { readonly endsAt: number; readonly nextAt: number | null } | null;
  /** What the last look says: there may be more. */
  hasMore: boolean;
  looking: number;
  /** How many wait for what those find out. */
  behind: number;
}

/** How much a signal had heard of at some moment: what may wake whoever waits, and what a look is owed for. */
interface Knowledge {
  readonly news: number;
  readonly heard: number;
}

/** What a look found out. */
export interface LookResult {
  /** What the signal knew when it began. */
  readonly as: Knowledge;
  readonly lookedAt: number;
  /** Nothing is left for anybody of the group. */
  readonly isEmpty: boolean;
  /** Somebody else had something locked: it is worth another look. */
  readonly isPassed: boolean;
  /** When something becomes ready by the passing of time. Null: nothing is known of. */
  readonly nextAt: number | null;
}

/** `nextAt`: as far as is known. */
export type Arrival = { readonly kind: "looks" } | { readonly kind: "waits"; readonly nextAt: number | null };

const LOOKS: Arrival = Object.freeze({ kind: "looks" });
const WAITS: Arrival = Object.freeze({ kind: "waits", nextAt: null });

export class QueueSignal<T, Want> extends WorkSignal<T, Want> {
  readonly #clock: Clock;
  readonly #isBusy: () => boolean;
  readonly #groups = new Map<string, Group>();
  #news = 0;
  /** Grows whenever a look is owed. */
  #heard = 0;
  /** For how many there is news that nobody has looked at. */
  #owed = 0;
  #owedSince = 0;
  #owedTimer: Timer | null = null;
  #isClosed = false;

  /** `isBusy`: whether statements are on their way that others will most likely follow. */
  constructor(clock: Clock, isBusy: () => boolean) {
    super(clock);
    this.#clock = clock;
    this.#isBusy = isBusy;
  }

  /** Grows with every piece of news that may wake somebody. */
  get news(): number {
    return this.#news;
  }

  get knowledge(): Knowledge {
    return { news: this.#news, heard: this.#heard };
  }

  /** Whether to look; then `looked` must be called. `isWoken`: there was news since it came. */
  come(name: string, now: number, isWoken: boolean): Arrival {
    const group = this.#group(name);
    if (group.quiet !== null && now < group.quiet.endsAt) return { kind: "waits", nextAt: group.quiet.nextAt }; // Q2
    if (!isWoken && !group.hasMore && group.looking > 0) {
      group.behind += 1;
      return WAITS; // Q3
    }
    group.looking += 1;
    return LOOKS;
  }

  looked(name: string, { as, lookedAt, isEmpty, isPassed, nextAt }: LookResult): void {
    const group = this.#group(name);
    group.looking -= 1;
    group.hasMore = !isEmpty && !isPassed;
    if (isPassed) {
      this.owe(1 + group.behind); // Q5
      group.behind = 0;
      if (as.news === this.#news) group.quiet = { endsAt: lookedAt + OWED_MS, nextAt: null };
    } else if (isEmpty && as.news === this.#news) {
      if (this.#isOne && as.heard === this.#heard) this.takeOwed(); // Q5
      group.quiet = { endsAt: Math.min(lookedAt + QUIET_MS, nextAt ?? Number.POSITIVE_INFINITY), nextAt };
      group.behind = 0;
    } else if (group.looking === 0 && group.behind > 0) {
      const { behind } = group;
      group.behind = 0;
      this.notify(behind); // Q3
    }
  }

  /** News of another process, for `count` fetches. */
  hear(count: number): void {
    if (this.#isOne && this.#isBusy()) this.owe(count);
    else this.notify(count); // Q6
  }

  /** A look for `count` fetches is to be made soon. */
  owe(count: number): void {
    if (count <= 0 || this.#isClosed) return;
    this.#heard += 1;
    this.#owed += count;
    if (this.#owedTimer !== null) return;
    this.#owedSince = this.#clock.now();
    this.#payLater();
  }

  #payLater(): void {
    this.#owedTimer = this.#clock.setTimer(OWED_MS, () => {
      const owedMs = this.#clock.now() - this.#owedSince;
      if (this.#isBusy() && owedMs >= 0 && owedMs < LONGEST_OWED_MS) this.#payLater();
      else this.notify(this.takeOwed());
    });
  }

  /** For how many fetches a look is owed that one of them could make for all. */
  get owed(): number {
    return this.#isOne ? this.#owed : 0; // Q6
  }

  /** It is now for the caller to make the look that is owed, or to owe it again. Answers for how many fetches. */
  takeOwed(): number {
    const owed = this.#owed;
    this.#owedTimer?.clear();
    this.#owedTimer = null;
    this.#owed = 0;
    return owed;
  }

  override close(): void {
    this.#isClosed = true;
    this.takeOwed();
    super.close();
  }

  override notify(count?: number): void {
    this.#news += 1;
    for (const group of this.#groups.values()) group.quiet = null; // Q1
    super.notify(count);
  }

  override wakeAt(timeMs: number): void {
    for (const group of this.#groups.values()) {
      if (group.quiet === null) continue;
      const { endsAt, nextAt } = group.quiet;
      group.quiet = { endsAt: Math.min(endsAt, timeMs), nextAt: Math.min(nextAt ?? timeMs, timeMs) };
    }
    super.wakeAt(timeMs);
  }

  /** All who have ever come want the same. */
  get #isOne(): boolean {
    return this.#groups.size === 1;
  }

  #group(name: string): Group {
    let group = this.#groups.get(name);
    if (group === undefined) {
      group = { quiet: null, hasMore: true, looking: 0, behind: 0 };
      this.#groups.set(name, group);
    }
    return group;
  }
}
