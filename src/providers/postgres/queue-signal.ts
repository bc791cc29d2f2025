// providers/postgres/queue-signal.ts — a queue's signal that knows when a look would be in vain: others look, or just have.
//
//   Q1. A queue is quiet when a look has found that nothing is left in it for anybody. That ends with the next news, or when
//       time makes something ready, or after a moment: news of other processes may be late.
//   Q2. Whoever comes to a quiet queue waits as if it had looked itself, just now.
//   Q3. Where the last look left nothing, whoever comes while others look waits for what they find out, and can be given what is
//       new meanwhile. If there may be more after all, it is woken, and looks. Where there is always more, all look at once.
//   Q4. Whoever is woken looks: whether others look already or not, they may have begun before the news.

import { WorkSignal } from "../../provider/kit/work-signal.js";

/** How long one look is good for. A fetch on its own looks once in a poll; hundreds of them look once in this time. */
const QUIET_MS = 1_000;

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

/** What a look found out. */
export interface LookResult {
  /** Of the signal, when it began. */
  readonly news: number;
  readonly lookedAt: number;
  /** Nothing is left for anybody of the group. */
  readonly isEmpty: boolean;
  /** When something becomes ready by the passing of time. Null: nothing is known of. */
  readonly nextAt: number | null;
}

/** `nextAt`: as far as is known. */
export type Arrival = { readonly kind: "looks" } | { readonly kind: "waits"; readonly nextAt: number | null };

const LOOKS: Arrival = Object.freeze({ kind: "looks" });
const WAITS: Arrival = Object.freeze({ kind: "waits", nextAt: null });

export class QueueSignal<T, Want> extends WorkSignal<T, Want> {
  readonly #groups = new Map<string, Group>();
  #news = 0;

  /** Grows with every piece of news. */
  get news(): number {
    return this.#news;
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

  looked(name: string, { news, lookedAt, isEmpty, nextAt }: LookResult): void {
    const group = this.#group(name);
    group.looking -= 1;
    group.hasMore = !isEmpty;
    if (isEmpty && news === this.#news) {
      group.quiet = { endsAt: Math.min(lookedAt + QUIET_MS, nextAt ?? Number.POSITIVE_INFINITY), nextAt };
      group.behind = 0;
    } else if (group.looking === 0 && group.behind > 0) {
      const { behind } = group;
      group.behind = 0;
      this.notify(behind); // Q3
    }
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

  #group(name: string): Group {
    let group = this.#groups.get(name);
    if (group === undefined) {
      group = { quiet: null, hasMore: true, looking: 0, behind: 0 };
      this.#groups.set(name, group);
    }
    return group;
  }
}
