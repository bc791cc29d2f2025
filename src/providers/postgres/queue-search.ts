// providers/postgres/queue-search.ts — a fetch that may wait for work from one of the two queues, looking where it has reason to.
//
//   S1. Whether it looks or waits with the others, the signal of the queue says (`queue-signal.ts`).
//   S2. One that ends with nothing, and has never been sure that there was nothing, looks until it is (P4 of `postgres-provider.ts`).

import type { Clock } from "../../clock.js";
import type { LongPoll } from "../../provider/kit/work-signal.js";
import type { Claimed, Patience } from "./look.js";
import type { QueueSignal } from "./queue-signal.js";

/** What both kinds of fetches say. */
interface WaitOptions {
  readonly pollTimeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface SearchDeps<T, Want> {
  readonly queue: QueueSignal<T, Want>;
  readonly clock: Clock;
  /** One look, in a statement of its own or with others. */
  readonly look: (want: Want, patience: Patience) => Promise<Claimed<T>>;
  /** Somebody waits, and wants to hear of other processes. Answers how to leave. */
  readonly enter: () => () => void;
  readonly isClosed: () => boolean;
}

/** Looks until there is something, the time is up, the caller gives up, or the provider is closed. */
export function search<T, Want extends WaitOptions>(
  deps: SearchDeps<T, Want>,
  group: string,
  want: Want,
): Promise<T | null> {
  if (want.signal?.aborted) return NOTHING;
  if ((want.pollTimeoutMs ?? 0) <= 0) return deps.look(want, "sure").then(({ found }) => found);
  const one = new QueueSearch(deps, group, want);
  return deps.queue.longPoll(one).then((found) => found ?? one.madeSure());
}

const NOTHING = Promise.resolve(null);

class QueueSearch<T, Want extends WaitOptions> implements LongPoll<T, Want> {
  readonly group: string;
  readonly want: Want;
  readonly pollTimeoutMs: number;
  readonly signal: AbortSignal | undefined;
  readonly onEnd: () => void;
  readonly #deps: SearchDeps<T, Want>;
  #nextAt: number | null = null;
  #isSure = false;
  #isPassed = false;
  #newsSeen: number | null = null;

  constructor(deps: SearchDeps<T, Want>, group: string, want: Want) {
    this.group = group;
    this.want = want;
    this.pollTimeoutMs = want.pollTimeoutMs ?? 0;
    this.signal = want.signal;
    this.onEnd = deps.enter();
    this.#deps = deps;
  }

  attempt(): Promise<T | null> | null {
    const { queue, clock } = this.#deps;
    const arrival = queue.come(this.group, clock.now(), this.#newsSeen !== null && this.#newsSeen !== queue.news); // S1
    this.#newsSeen = queue.news;
    if (arrival.kind === "looks") return this.#look();
    this.#nextAt = arrival.nextAt;
    return null;
  }

  nextDueAt(): number | null {
    return this.#nextAt;
  }

  /** S2 */
  madeSure(): Promise<T | null> | null {
    if (this.#isSure || this.signal?.aborted || this.#deps.isClosed()) return null;
    return this.#deps.look(this.want, "sure").then(({ found }) => found);
  }

  async #look(): Promise<T | null> {
    const { queue, clock, look } = this.#deps;
    const as = queue.knowledge;
    const lookedAt = clock.now();
    let isEmpty = false;
    try {
      const looked = await look(this.want, this.#isPassed ? "again" : "once");
      this.#nextAt = looked.nextAt;
      isEmpty = looked.isEmpty;
      this.#isPassed = looked.isPassed && looked.found === null;
      this.#isSure = !this.#isPassed;
      return looked.found;
    } finally {
      queue.looked(this.group, { as, lookedAt, isEmpty, isPassed: this.#isPassed, nextAt: this.#nextAt });
    }
  }
}
