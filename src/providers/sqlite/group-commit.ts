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
//   G8. Turns may go ahead of the commit: a turn has no effect but its ack. So whoever waits for one may have it from the open
//       transaction, which then waits as long as each round of the event loop brings acks, and is committed with them: one
//       commit instead of two, and what was made and used up in it is never written. An activity never goes ahead; and one
//       that has stood in line, for want of workers, does not wait for those who do: then the transaction is committed at once.
//   G9. If such a transaction fails, those who were in it first are run again as if nobody had gone ahead, and then each ack:
//       its lock is not there any more, and it is told so.
//   G10. Nobody goes ahead where other processes have been at work lately: they would wait for the write lock while turns are
//       taken.

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

/** What was taken for those who wait. It must be given or given back in the end. */
export interface Served {
  /** Of the turns, these: the others wait for the commit. G8 */
  giveAhead(lockTokens: ReadonlySet<string>): void;
  /** `afterActivities`: the same commit has handed activities to others. G7 */
  give(afterActivities: boolean): void;
  giveBack(): void;
}

/** A transaction that waits for the acks of turns which have gone ahead. G8 */
interface Ahead {
  readonly lockTokens: ReadonlySet<string>;
  readonly acks: Ack[];
}

interface Ack {
  readonly call: Call;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

interface Acked {
  readonly ack: Ack;
  readonly outcome: Outcome<unknown>;
}

/** So long may a transaction wait for acks, however many are still to come. */
const LONGEST_WAIT_MS = 20;
/** How long others are taken to be at work after a commit of theirs was seen. G10 */
const OTHERS_AT_WORK_MS = 1_000;

// Captured at load, so that the fake timers of a test framework do not keep a transaction open.
const immediate = setImmediate;
const tick = process.nextTick.bind(process);

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
  /** Of turns that had gone ahead: committed, and not answered yet. */
  readonly #acked: Acked[] = [];
  /** Whether, with that, activities go to those who have asked for them. */
  #handsOutActivities = false;
  /** Null: there is none. */
  #ahead: Ahead | null = null;
  /** Ends the hold on the time of those who are not tried yet. Null: there are none. */
  #letTimeGo: (() => void) | null = null;

  constructor(deps: GroupCommitDeps) {
    this.#deps = deps;
    this.#batcher = new Batcher({
      run: (calls) => this.#run(calls),
      errorOf: ({ operation }, error) => deps.database.explain(operation, error),
      onAnswered: () => this.#answerRest(),
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

  /** As `write`, for the ack of a turn: it may be awaited by the transaction that handed it out. G8 */
  ackTurn<T>(operation: string, lockToken: string, work: (tx: Transaction) => T): Promise<T> {
    const ahead = this.#ahead;
    if (ahead === null || !ahead.lockTokens.has(lockToken) || this.#deps.database.refusal(operation) !== null)
      return this.#submit(operation, work, false);
    const call: Call = { operation, work, isFetch: false, takesActivity: false };
    return new Promise((resolve, reject) => {
      ahead.acks.push({ call, resolve: resolve as (value: unknown) => void, reject });
    });
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

  /** What a turn answers was there before it: whoever brought that is done with it when the turn hears of its commit. */
  #answerRest(): void {
    if (this.#acked.length === 0) return this.#giveServed();
    const acked = this.#acked.splice(0);
    tick(() => {
      for (const each of acked) this.#answerAck(each);
      this.#giveServed();
    });
  }

  #answerAck({ ack: { call, resolve, reject }, outcome }: Acked): void {
    if ("error" in outcome) reject(this.#deps.database.explain(call.operation, outcome.error));
    else resolve(outcome.value);
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

  async #commit(calls: readonly Call[], goesAhead = this.#canGoAhead()): Promise<readonly Outcome<unknown>[]> {
    try {
      return await this.#attempt(calls, goesAhead, (tx) => this.#deps.serve(tx));
    } catch (error) {
      if (error instanceof AheadInVain) return this.#commit(calls, false); // G9
      if (error instanceof ServingFailed) return this.#attempt(calls, false, null); // G6
      throw error;
    }
  }

  /** G10 */
  #canGoAhead(): boolean {
    const { database, clock } = this.#deps;
    return clock.now() - database.othersAt >= OTHERS_AT_WORK_MS;
  }

  async #attempt(
    calls: readonly Call[],
    goesAhead: boolean,
    serve: ((tx: Transaction) => Served) | null,
  ): Promise<readonly Outcome<unknown>[]> {
    const { database, clock, newToken, announce } = this.#deps;
    const served: Served[] = [];
    try {
      const { result, open } = await database.writeOrLeaveOpen(
        (db) => {
          const tx = new Transaction(db, clock.now(), newToken, this.known, this.#own, goesAhead); // G2
          const outcomes = new Array<Outcome<unknown>>(calls.length);
          runAll(tx, calls, false, outcomes);
          if (serve !== null) served.push(serving(tx, serve));
          runAll(tx, calls, true, outcomes);
          if (serve !== null) served.push(serving(tx, serve)); // Those who looked may have seen what fell due.
          if (tx.handsOutStored) tx.ahead.clear(); // G8
          if (tx.ahead.size === 0) tx.writeNewRows();
          return { tx, outcomes };
        },
        ({ tx }) => tx.ahead.size > 0,
      );
      const { tx, outcomes } = result;
      if (open !== null && serve !== null) {
        await this.#awaitTurns(tx, served, (acked) =>
          open.finish(() => {
            acked(tx);
            served.push(serving(tx, serve));
            runAgain(tx, calls, outcomes);
            served.push(serving(tx, serve));
            tx.writeNewRows();
          }),
        );
      }
      this.#committed.push(...served.splice(0)); // G1
      this.#handsOutActivities ||= calls.some((call, place) => call.takesActivity && isFound(outcomes[place]));
      announce(tx.effects, serve !== null);
      return outcomes;
    } finally {
      for (const taken of served) taken.giveBack(); // The transaction was taken back.
    }
  }

  /** `finish` commits what was left open, after the acks of those who have gone ahead. G8 */
  #awaitTurns(
    tx: Transaction,
    served: readonly Served[],
    finish: (acked: (tx: Transaction) => void) => void,
  ): Promise<void> {
    const ahead: Ahead = { lockTokens: tx.ahead, acks: [] };
    this.#ahead = ahead;
    for (const taken of served) taken.giveAhead(tx.ahead);
    const { clock } = this.#deps;
    const until = clock.now() + LONGEST_WAIT_MS;
    const isCommitted = new Promise<void>((resolve, reject) => {
      const round = (acksBefore: number): void => {
        const { length } = ahead.acks;
        if (length > acksBefore && length < tx.ahead.size && clock.now() < until) {
          immediate(round, length);
          return;
        }
        this.#ahead = null;
        try {
          this.#finish(ahead, finish);
          resolve();
        } catch (error) {
          reject(error);
        }
      };
      immediate(round, 0);
    });
    return holding(clock, isCommitted);
  }

  #finish({ acks }: Ahead, finish: (acked: (tx: Transaction) => void) => void): void {
    let outcomes: readonly Outcome<unknown>[] = [];
    try {
      finish((tx) => {
        outcomes = acks.map(({ call }) => runOne(tx, call));
      });
    } catch (cause) {
      if (acks.length > 0) this.#holdTime();
      for (const { call, resolve } of acks) resolve(this.#batcher.submit(call)); // G9
      throw new AheadInVain("A transaction from which turns had gone ahead was taken back.", { cause });
    }
    for (const [place, ack] of acks.entries()) this.#acked.push({ ack, outcome: outcomes[place]! });
  }
}

function isFound(outcome: Outcome<unknown> | undefined): boolean {
  return outcome !== undefined && "value" in outcome && outcome.value !== null;
}

class ServingFailed extends Error {}

class AheadInVain extends Error {}

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

/** Those who took nothing: there may be something by now. */
function runAgain(tx: Transaction, calls: readonly Call[], outcomes: Outcome<unknown>[]): void {
  for (let place = 0; place < calls.length; place += 1) {
    const outcome = outcomes[place]!;
    const call = calls[place]!;
    if (call.isFetch && "value" in outcome && outcome.value === null) outcomes[place] = runOne(tx, call);
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
