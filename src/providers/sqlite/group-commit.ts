// providers/sqlite/group-commit.ts — the writes that are pending at one moment are one transaction, with one commit.
//
//   G1. A call resolves after the commit of the transaction that it was in, never before.
//   G2. Everything in one transaction happens at one time, read under the write lock.
//   G3. A call that throws and has written nothing is refused alone; its neighbours go on.
//   G4. A call that throws after it has written takes back the whole transaction; then each is run in one of its own.
//   G5. Who must wait for another process waits as long as if it were alone: what comes later does not wait behind it.

import { type Clock, holding } from "../../clock.js";
import { Batcher, type Outcome } from "../../provider/kit/batcher.js";
import { type Database, NoTransaction } from "./database.js";
import { isDriverError } from "./driver-errors.js";

/** What one call does in an open transaction. It may run more than once; only the last run counts. */
type Work = (db: Database, now: number) => unknown;

export class GroupCommit {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #batcher: Batcher<Work, unknown>;
  /** Ends the hold on the time of those who are not tried yet. Null: there are none. */
  #letTimeGo: (() => void) | null = null;

  constructor(database: Database, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
    this.#batcher = new Batcher({
      run: (works) => this.#run(works),
      maxInFlight: Number.MAX_SAFE_INTEGER, // G5
      runsSingly: (error) => !(error instanceof NoTransaction),
    });
  }

  /** @throws ProviderError, and whatever `work` throws: then it has written nothing */
  async write<T>(operation: string, work: (db: Database, now: number) => T): Promise<T> {
    this.#database.checkOpen(operation);
    this.#holdTime();
    try {
      return (await this.#batcher.submit(work)) as T;
    } catch (error) {
      throw this.#database.explain(operation, error);
    }
  }

  /** Resolves when nothing is pending. */
  idle(): Promise<void> {
    return this.#batcher.idle();
  }

  /** Until they were tried once, and no longer: whoever waits for another process waits for time. */
  #holdTime(): void {
    if (this.#letTimeGo !== null) return;
    const areTried = new Promise<void>((resolve) => {
      this.#letTimeGo = resolve;
    });
    void holding(this.#clock, areTried);
  }

  #run(works: readonly Work[]): Promise<readonly Outcome<unknown>[]> {
    const outcomes = this.#database.writeForMany((db) => this.#runAll(db, works)); // G1
    this.#letTimeGo?.();
    this.#letTimeGo = null;
    return outcomes;
  }

  #runAll(db: Database, works: readonly Work[]): readonly Outcome<unknown>[] {
    const now = this.#clock.now(); // G2
    return works.map((work) => {
      const changesBefore = db.totalChanges();
      try {
        return { value: work(db, now) };
      } catch (error) {
        if (isDriverError(error) || db.totalChanges() !== changesBefore) throw error; // G4
        return { error }; // G3
      }
    });
  }
}
