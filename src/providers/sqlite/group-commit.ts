// providers/sqlite/group-commit.ts — the writes that are pending at one moment are one transaction, with one commit.
//
//   G1. A call resolves after the commit of the transaction that it was in, never before.
//   G2. Everything in one transaction happens at one time, read under the write lock; but what follows the acks of G8, at theirs.
//   G3. A call that throws and has written nothing is refused alone; its neighbours go on.
//   G4. A call that throws after it has written or taken anything, or had written what others have left to be written, takes back the
//       whole transaction; then each is run in one of its own, perhaps after a batch that came later.
//   G5. Who must wait for another process waits as long as if it were alone: what comes later does not wait behind it.
//   G6. Fetches that wait are served in the transaction that made work for them, without a commit of their own; those that
//       have just come, after them. What fails there is not the fault of those who wrote: they are run again without it,
//       and the fetches look for themselves.
//   G7. Where a commit hands out activities and turns, activities go first: they wait for the world, turns take the CPU.
//   G8. Turns may go ahead of the commit: a turn has no effect but its ack. So whoever waits for one may have it from the open
//       transaction, which waits for its ack and is committed with it: one commit instead of two, and what was made and used up in
//       it is never written. An activity never goes ahead.
//   G9. If such a transaction fails, those who were in it first are run again, before anybody else, as if nobody had gone ahead;
//       and then each ack: its lock is not there any more, and it is told so. Where one of the first is to blame, and that fails, too,
//       each of them is run alone (G4), and those who came meanwhile may be before them: none of them had an answer.
//  G10. What turns that had gone ahead have changed is told after whoever brought what they answer had his answer: who has just started an
//       instance, and is told of nothing since, does not look for its end.
//  G11. Where transactions are written down for another thread, half of the calls are in one, so that one is made while another is
//       executed; and no third one, so that what comes meanwhile shares the next. Where one is refused, so is the other, and may be
//       run again before it: none of those in both had an answer.

import { type Clock, holding } from "../../clock.js";
import { Batcher, type Outcome } from "../../provider/kit/batcher.js";
import type { Effects } from "../../provider/kit/effects.js";
import type { InstanceChange } from "../../provider/provider.js";
import { BatchRun, type Call, type Servants, type Served, type ServedAhead, ServingFailed } from "./batch-run.js";
import type { Database, OpenTransaction } from "./database.js";
import { KnownInstances } from "./known-instances.js";
import { LastIds } from "./last-ids.js";
import { OwnLocks } from "./own-locks.js";
import { NoTransaction } from "./patience.js";
import { Transaction } from "./transaction.js";
import { type AheadAck, AheadPace, AwaitedAcks } from "./turns-ahead.js";

interface GroupCommitDeps extends Servants {
  readonly database: Database;
  readonly clock: Clock;
  readonly newToken: () => string;
  /** A transaction is committed. `isServed`: those who waited were looked for. */
  readonly announce: (effects: Effects, isServed: boolean) => void;
  /** Turns have changed these, and are committed. Answers how to tell of it later. */
  readonly announceLater: (changed: ReadonlyMap<string, InstanceChange>) => () => void;
}

/** The ack of a turn that had gone ahead: committed, and not answered yet. */
interface Acked {
  readonly ack: AheadAck;
  readonly outcome: Outcome<unknown>;
}

/** G11 */
const MOST_UNDER_WAY = 2;
const SMALLEST_SHARE = 16;

const tick = process.nextTick.bind(process);

export class GroupCommit {
  readonly #deps: GroupCommitDeps;
  readonly #batcher: Batcher<Call, unknown>;
  /** As of the last transaction that was not taken back. */
  readonly known = new KnownInstances();
  readonly #own = new OwnLocks();
  readonly #ids = new LastIds();
  /** What is committed, and not given yet: those who wrote hear of it first. */
  #committed: Served[] = [];
  /** Of turns that had gone ahead: committed, and not answered yet. */
  readonly #acked: Acked[] = [];
  /** By turns that had gone ahead: committed, and not told yet. G10 */
  readonly #untold: (() => void)[] = [];
  /** Whether, with that, activities go to those who have asked for them. */
  #handsOutActivities = false;
  readonly #pace: AheadPace;
  /** Of the open transaction. Null: there is none. */
  #awaited: AwaitedAcks | null = null;
  /** Ends the hold on the time of those who are not tried yet. Null: there are none. */
  #letTimeGo: (() => void) | null = null;

  constructor(deps: GroupCommitDeps) {
    this.#deps = deps;
    this.#pace = new AheadPace(deps.clock);
    this.#batcher = new Batcher({
      run: (calls) => this.#run(calls),
      errorOf: ({ operation }, error) => deps.database.explain(operation, error),
      onAnswered: () => this.#answerRest(),
      maxInFlight: Number.MAX_SAFE_INTEGER, // G5
      shareOf: (waiting, inFlight) => this.#shareOf(waiting, inFlight), // G11
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
    const awaited = this.#awaited;
    if (awaited === null || !awaited.has(lockToken) || this.#deps.database.refusal(operation) !== null)
      return this.#submit(operation, work, false);
    return awaited.add({ operation, work, isFetch: false, takesActivity: false }) as Promise<T>;
  }

  /** G11 */
  #shareOf(waiting: number, inFlight: number): number {
    const { underWay } = this.#deps.database;
    if (underWay === null) return Number.POSITIVE_INFINITY;
    return underWay >= MOST_UNDER_WAY ? 0 : Math.max(SMALLEST_SHARE, Math.ceil((waiting + inFlight) / 2));
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
    const untold = this.#untold.splice(0);
    tick(() => {
      for (const tell of untold) tell();
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

  async #commit(calls: readonly Call[]): Promise<readonly Outcome<unknown>[]> {
    this.#deps.database.sawBatchOf(calls.length);
    try {
      return await this.#attempt(calls, true);
    } catch (error) {
      if (!(error instanceof ServingFailed)) throw error;
      return this.#attempt(calls, false); // G6
    }
  }

  async #attempt(calls: readonly Call[], serves: boolean): Promise<readonly Outcome<unknown>[]> {
    const { database } = this.#deps;
    const runs: BatchRun[] = [];
    const begin = (db: Database, mostAhead: number): BatchRun => {
      giveBackAll(runs); // What was written down in vain.
      const run = this.#newRun(db, calls, serves);
      runs.push(run);
      run.begin(mostAhead);
      return run;
    };
    try {
      const { result, open, isCommitted } = await database.writeOrLeaveOpen(
        (db) => begin(db, serves ? this.#pace.mostIn(db) : 0),
        ({ ahead }) => ahead !== null,
      );
      if (open === null || result.ahead === null) {
        if (isCommitted === true || (await isCommitted)) return this.#conclude(result);
        return this.#conclude(await database.writeForMany((db) => begin(db, 0)));
      }
      if (await this.#finishWithAcks(result, result.ahead, open)) return this.#conclude(result);
      return this.#conclude(await open.replace((db) => begin(db, 0))); // G9
    } catch (error) {
      giveBackAll(runs); // The transaction was taken back.
      throw error;
    }
  }

  #newRun(db: Database, calls: readonly Call[], serves: boolean): BatchRun {
    const { clock, newToken } = this.#deps;
    const tx = new Transaction(db, clock.now(), newToken, this.known, this.#own, this.#ids); // G2
    return new BatchRun(tx, calls, serves ? this.#deps : null);
  }

  /** It is committed. G1 */
  #conclude(run: BatchRun): readonly Outcome<unknown>[] {
    this.#committed.push(...run.served);
    this.#handsOutActivities ||= run.hasFoundActivities;
    this.#deps.announce(run.tx.effects, run.isServed);
    return run.outcomes;
  }

  /** G8. False: it was taken back. */
  #finishWithAcks(run: BatchRun, ahead: ServedAhead, open: OpenTransaction): Promise<boolean> {
    const { clock } = this.#deps;
    const awaited = new AwaitedAcks(ahead.lockTokens, clock);
    const isCommitted = awaited.whenHere(run.tx.now, () => {
      this.#awaited = null;
      return this.#finish(run, awaited.acks, open);
    });
    this.#awaited = awaited;
    ahead.give(false);
    return isCommitted;
  }

  #finish(run: BatchRun, acks: readonly AheadAck[], open: OpenTransaction): boolean | Promise<boolean> {
    let outcomes: readonly Outcome<unknown>[];
    let isCommitted: true | Promise<boolean>;
    try {
      const now = this.#deps.clock.now();
      if (run.ahead !== null) this.#pace.took(run.ahead.lockTokens.size, now - run.tx.now);
      const calls = acks.map(({ call }) => call);
      ({ result: outcomes, isCommitted } = open.finish(() => run.finish(calls, now)));
    } catch {
      return this.#runAgain(acks);
    }
    if (isCommitted === true) return this.#haveActed(run, acks, outcomes);
    return isCommitted.then((is) => (is ? this.#haveActed(run, acks, outcomes) : this.#runAgain(acks)));
  }

  #haveActed(run: BatchRun, acks: readonly AheadAck[], outcomes: readonly Outcome<unknown>[]): true {
    for (const [place, ack] of acks.entries()) this.#acked.push({ ack, outcome: outcomes[place]! });
    if (acks.length > 0) this.#untold.push(this.#deps.announceLater(run.changedByTurnsAhead));
    return true;
  }

  /** Whatever it was: those who are run again hear of it if it is about them. G9 */
  #runAgain(acks: readonly AheadAck[]): false {
    if (acks.length > 0) this.#holdTime();
    for (const { call, resolve } of acks) resolve(this.#batcher.submit(call));
    return false;
  }
}

function giveBackAll(runs: BatchRun[]): void {
  for (const run of runs.splice(0)) run.giveBack();
}
