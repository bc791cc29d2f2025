// providers/sqlite/group-commit.ts — the writes that are pending at one moment are one transaction, with one commit.
//
//   G1. A call resolves after the commit of the transaction that it was in, never before.
//   G2. Everything in one transaction happens at one time, read under the write lock.
//   G3. A call that throws and has written nothing is refused alone; its neighbours go on.
//   G4. A call that throws after it has written or taken anything, or had written what others have left to be written, takes back the
//       whole transaction; then each is run in one of its own.
//   G5. Who must wait for another process waits as long as if it were alone: what comes later does not wait behind it.
//   G6. Fetches that wait are served in the transaction that made work for them, without a commit of their own; those that
//       have just come, after them. What fails there is not the fault of those who wrote: they are run again without it,
//       and the fetches look for themselves.
//   G7. Where a commit hands out activities and turns, activities go first: they wait for the world, turns take the CPU.

import { type Clock, holding } from "../../clock.js";
import { Batcher, type Outcome } from "../../provider/kit/batcher.js";
import type { Effects } from "../../provider/kit/effects.js";
import { type Database, NoTransaction } from "./database.js";
import { isDriverError } from "./driver-errors.js";
import { RowsMissing } from "./gone-rows.js";
import { KnownInstances } from "./known-instances.js";
import { OwnLocks } from "./own-locks.js";
import { Transaction } from "./transaction.js";

interface Call {
  readonly operation: string;
  /** What it does in an open transaction. It may run more than once; only the last run counts. */
  readonly work: (tx: Transaction) => unknown;
  /** Whether it takes work: it comes last, after those who make work, and after those who have waited longer. */
  readonly isFetch: boolean;
  readonly takesActivity: boolean;
}

/** Those for whom a transaction takes work beside its calls. */
export interface Servants {
  /** Takes work for those who wait, within the transaction. What it throws takes the transaction back. */
  serve(tx: Transaction): Served;
  /** The transaction is committed. `isServed`: those who waited were looked for. */
  announce(effects: Effects, isServed: boolean): void;
}

/** What was taken for those who wait. One of both must be called. */
export interface Served {
  /** `afterActivities`: the same commit has handed activities to others. G7 */
  give(afterActivities: boolean): void;
  giveBack(): void;
}

interface GroupCommitDeps extends Servants {
  readonly database: Database;
  readonly clock: Clock;
  readonly newToken: () => string;
}

export class GroupCommit {
  readonly #deps: GroupCommitDeps;
  readonly #batcher: Batcher<Call, unknown>;
  /** As of the last transaction that was not taken back. */
  readonly known = new KnownInstances();
  readonly #own = new OwnLocks();
  /** What is committed, and not given yet: those who wrote hear of it first. */
  #committed: Served[] = [];
  /** Whether, with that, activities go to those who have asked for them. */
  #handsOutActivities = false;
  /** Ends the hold on the time of those who are not tried yet. Null: there are none. */
  #letTimeGo: (() => void) | null = null;

  constructor(deps: GroupCommitDeps) {
    this.#deps = deps;
    this.#batcher = new Batcher({
      run: (calls) => this.#run(calls),
      errorOf: ({ operation }, error) => deps.database.explain(operation, error),
      onAnswered: () => this.#giveServed(),
      maxInFlight: Number.MAX_SAFE_INTEGER, // G5
      runsSingly: (error) => !(error instanceof NoTransaction),
    });
  }

  /** @throws ProviderError, and whatever `work` throws: then it has written nothing */
  write<T>(operation: string, work: (tx: Transaction) => T): Promise<T> {
    return this.#submit(operation, work, false);
  }

  /** As `write`, for those who take work. */
  fetch<T>(operation: string, take: (tx: Transaction) => T): Promise<T> {
    return this.#submit(operation, take, true);
  }

  #submit<T>(operation: string, work: (tx: Transaction) => T, isFetch: boolean): Promise<T> {
    const refusal = this.#deps.database.refusal(operation);
    if (refusal !== null) return Promise.reject(refusal);
    this.#holdTime();
    const takesActivity = operation === "fetchWorkItem";
    return this.#batcher.submit({ operation, work, isFetch, takesActivity }) as Promise<T>;
  }

  /** Resolves when nothing is pending. */
  idle(): Promise<void> {
    return this.#batcher.idle();
  }

  #giveServed(): void {
    const [served, afterActivities] = [this.#committed, this.#handsOutActivities];
    this.#committed = [];
    this.#handsOutActivities = false;
    for (const each of served) each.give(afterActivities);
  }

  /** Until they were tried once, and no longer: whoever waits for another process waits for time. */
  #holdTime(): void {
    if (this.#letTimeGo !== null) return;
    const areTried = new Promise<void>((resolve) => {
      this.#letTimeGo = resolve;
    });
    void holding(this.#deps.clock, areTried);
  }

  #run(calls: readonly Call[]): Promise<readonly Outcome<unknown>[]> {
    const outcomes = this.#commit(calls);
    this.#letTimeGo?.();
    this.#letTimeGo = null;
    return outcomes;
  }

  async #commit(calls: readonly Call[]): Promise<readonly Outcome<unknown>[]> {
    try {
      return await this.#attempt(calls, (tx) => this.#deps.serve(tx));
    } catch (error) {
      if (!(error instanceof ServingFailed)) throw error;
      return this.#attempt(calls, null); // G6
    }
  }

  async #attempt(
    calls: readonly Call[],
    serve: ((tx: Transaction) => Served) | null,
  ): Promise<readonly Outcome<unknown>[]> {
    const { database, clock, newToken, announce } = this.#deps;
    const served: Served[] = [];
    try {
      const { outcomes, effects } = await database.writeForMany((db) => {
        const tx = new Transaction(db, clock.now(), newToken, this.known, this.#own); // G2
        const outcomes = new Array<Outcome<unknown>>(calls.length);
        runAll(tx, calls, false, outcomes);
        if (serve !== null) served.push(serving(tx, serve));
        runAll(tx, calls, true, outcomes);
        if (serve !== null) served.push(serving(tx, serve)); // Those who looked may have seen what fell due.
        tx.writeNewRows();
        return { outcomes, effects: tx.effects };
      });
      this.#committed.push(...served.splice(0)); // G1
      this.#handsOutActivities ||= calls.some((call, place) => call.takesActivity && isFound(outcomes[place]));
      announce(effects, serve !== null);
      return outcomes;
    } finally {
      for (const taken of served) taken.giveBack(); // The transaction was taken back.
    }
  }
}

function isFound(outcome: Outcome<unknown> | undefined): boolean {
  return outcome !== undefined && "value" in outcome && outcome.value !== null;
}

class ServingFailed extends Error {}

function serving(tx: Transaction, serve: (tx: Transaction) => Served): Served {
  try {
    return serve(tx);
  } catch (cause) {
    throw new ServingFailed("A waiting fetch could not be served.", { cause });
  }
}

/** Those who take work, or the others. */
function runAll(tx: Transaction, calls: readonly Call[], areFetches: boolean, outcomes: Outcome<unknown>[]): void {
  for (let place = 0; place < calls.length; place += 1) {
    const call = calls[place]!;
    if (call.isFetch === areFetches) outcomes[place] = runOne(tx, call);
  }
}

function runOne(tx: Transaction, { work }: Call): Outcome<unknown> {
  const changesBefore = tx.changes;
  try {
    return { value: work(tx) };
  } catch (error) {
    const isItsOwn = !isDriverError(error) && !(error instanceof RowsMissing);
    if (!isItsOwn || tx.changes !== changesBefore) throw error; // G4
    return { error }; // G3
  }
}
