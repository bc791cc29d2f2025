// providers/sqlite/batch-run.ts — the calls of one batch in one transaction, and those for whom it takes work beside them.
//
//   R1. Those who make work come first, then fetches that have waited for it, then fetches that have just come.
//   R2. A call that throws and has written nothing is refused alone. One that has written, or had written what others left to be
//       written, throws for all of them.
//   R3. Where turns go ahead, nothing else is taken before their acks have come: it would be held without being at work.
//   R4. What those turns have changed is kept apart: it is told later than the rest.

import type { Outcome } from "../../provider/kit/batcher.js";
import type { InstanceChange } from "../../provider/provider.js";
import { isDriverError } from "./driver-errors.js";
import { RowsMissing } from "./gone-rows.js";
import type { Transaction } from "./transaction.js";
import { isAnyActivityReady } from "./worker-queue.js";
import { LogRefused } from "./write-log.js";

export interface Call {
  readonly operation: string;
  /** What it does in an open transaction. It may run more than once; only the last run counts. */
  readonly work: (tx: Transaction) => unknown;
  /** Whether it takes work: it comes last, after those who make work, and after those who have waited longer. */
  readonly isFetch: boolean;
  readonly takesActivity: boolean;
}

/** Takes work for those who wait, within a transaction. What it throws takes the transaction back. */
export interface Servants {
  /** Tells the transaction what it need not look for. */
  prepare(tx: Transaction): void;
  serve(tx: Transaction): Served;
  /** Turns that may go ahead of the commit, `most` of them. */
  serveAhead(tx: Transaction, most: number): ServedAhead;
}

/** What was taken for those who wait. One of both must be called in the end; the second does nothing then. */
export interface Served {
  /** `afterActivities`: the same commit has handed activities to others. */
  give(afterActivities: boolean): void;
  giveBack(): void;
}

export interface ServedAhead extends Served {
  readonly lockTokens: ReadonlySet<string>;
}

export class ServingFailed extends Error {}

export class BatchRun {
  readonly tx: Transaction;
  readonly outcomes: Outcome<unknown>[];
  readonly served: Served[] = [];
  /** R4 */
  readonly changedByTurnsAhead = new Map<string, InstanceChange>();
  readonly #calls: readonly Call[];
  /** Null: those who wait look for themselves. */
  readonly #servants: Servants | null;
  #ahead: ServedAhead | null = null;

  constructor(tx: Transaction, calls: readonly Call[], servants: Servants | null) {
    this.tx = tx;
    this.outcomes = new Array<Outcome<unknown>>(calls.length);
    this.#calls = calls;
    this.#servants = servants;
  }

  /** Those who were looked for need not be told. */
  get isServed(): boolean {
    return this.#servants !== null;
  }

  /** Null: there are none. */
  get ahead(): ServedAhead | null {
    return this.#ahead;
  }

  /** Whether a call of it has an activity now. */
  get hasFoundActivities(): boolean {
    return this.#calls.some((call, place) => call.takesActivity && isFound(this.outcomes[place]));
  }

  /** `mostAhead` turns may go ahead. Where none does, it is complete. */
  begin(mostAhead: number): void {
    this.#servants?.prepare(this.tx);
    this.#run(false); // R1
    if (mostAhead > 0 && !this.#keepsActivitiesWaiting()) this.#goAhead(mostAhead);
    if (this.#ahead === null) this.#complete();
  }

  /** After the acks of those who have gone ahead, at the time that it is by now. Answers what became of the acks. */
  finish(acks: readonly Call[], now: number): readonly Outcome<unknown>[] {
    const outcomes = this.#runAcks(acks);
    this.tx.now = Math.max(this.tx.now, now);
    this.#servants?.prepare(this.tx);
    this.#complete();
    return outcomes;
  }

  /** R4 */
  #runAcks(acks: readonly Call[]): readonly Outcome<unknown>[] {
    const { changedInstances } = this.tx.effects;
    const before = [...changedInstances];
    changedInstances.clear();
    const outcomes = acks.map((ack) => this.#runOne(ack));
    for (const [instance, change] of changedInstances) this.changedByTurnsAhead.set(instance, change);
    changedInstances.clear();
    for (const [instance, change] of before) changedInstances.set(instance, change);
    return outcomes;
  }

  giveBack(): void {
    for (const taken of this.served) taken.giveBack();
    this.#ahead?.giveBack();
  }

  /** Activities stand in line for workers who are here: they begin as soon as the transaction is committed. */
  #keepsActivitiesWaiting(): boolean {
    return this.#calls.some(({ takesActivity }) => takesActivity) && isAnyActivityReady(this.tx);
  }

  #goAhead(most: number): void {
    const ahead = this.#serving((servants) => servants.serveAhead(this.tx, most));
    if (ahead !== null && ahead.lockTokens.size > 0) this.#ahead = ahead;
  }

  #complete(): void {
    this.#serve();
    this.#run(true);
    this.#serve(); // Those who looked may have seen what fell due.
    this.tx.writeNewRows();
  }

  #serve(): void {
    const served = this.#serving((servants) => servants.serve(this.tx));
    if (served !== null) this.served.push(served);
  }

  #serving<T>(serve: (servants: Servants) => T): T | null {
    if (this.#servants === null) return null;
    try {
      return serve(this.#servants);
    } catch (cause) {
      if (cause instanceof LogRefused) throw cause;
      throw new ServingFailed("A waiting fetch could not be served.", { cause });
    }
  }

  /** Those who take work, or the others. */
  #run(areFetches: boolean): void {
    for (let place = 0; place < this.#calls.length; place += 1) {
      const call = this.#calls[place]!;
      if (call.isFetch === areFetches) this.outcomes[place] = this.#runOne(call);
    }
  }

  /** R2 */
  #runOne({ work }: Call): Outcome<unknown> {
    const { tx } = this;
    const changesBefore = tx.changes;
    try {
      return { value: work(tx) };
    } catch (error) {
      const isItsOwn = !isDriverError(error) && !(error instanceof RowsMissing) && !(error instanceof LogRefused);
      if (!isItsOwn || tx.changes !== changesBefore) throw error;
      return { error };
    }
  }
}

function isFound(outcome: Outcome<unknown> | undefined): boolean {
  return outcome !== undefined && "value" in outcome && outcome.value !== null;
}
