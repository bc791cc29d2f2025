// providers/sqlite/waiting-fetches.ts — those who wait for work from one of the two queues, and what a commit means to them.
//
//   F1. Whoever waits is looked for by the transaction that makes work. What it took for somebody is given after the commit.
//   F2. Where nothing is ready, and nothing falls due, nobody would find anything: whoever comes then waits without a look.
//   F3. Activities are given before turns (G7).
//   F4. Turns that may go ahead of the commit are given before it (G8).

import { type Clock, holding } from "../../clock.js";
import type { Effects } from "../../provider/kit/effects.js";
import { type LongPoll, type Reservation, WorkSignal } from "../../provider/kit/work-signal.js";
import { workerGroup } from "../../provider/kit/worker-wake.js";
import type {
  FetchOrchestrationOptions,
  FetchWorkOptions,
  LockedOrchestrationItem,
  LockedWorkItem,
  SemVerRange,
} from "../../provider/provider.js";
import type { Served, ServedAhead } from "./batch-run.js";
import type { Database } from "./database.js";
import { type AheadCandidate, aheadInLine, fetchAhead, fetchOrchestration } from "./fetch-orchestration.js";
import { NextDue } from "./next-due.js";
import { MESSAGES, nextMessageAt } from "./orchestrator-queue.js";
import type { Tables } from "./statements.js";
import type { Transaction } from "./transaction.js";
import { ACTIVITIES, fetchActivity, nextActivityAt } from "./worker-queue.js";

/** How those who wait are looked for. */
interface Want<T> {
  /** Takes work for it, in whose transaction ever. */
  take(tx: Transaction): T | null;
  /** Takes this one before the commit, if it may have it. F4 */
  takeAhead(tx: Transaction, candidate: AheadCandidate): T | null;
}

class WantedTurn implements Want<LockedOrchestrationItem> {
  readonly #options: FetchOrchestrationOptions;

  constructor(options: FetchOrchestrationOptions) {
    this.#options = options;
  }

  take(tx: Transaction): LockedOrchestrationItem | null {
    return fetchOrchestration(tx, this.#options);
  }

  takeAhead(tx: Transaction, candidate: AheadCandidate): LockedOrchestrationItem | null {
    return fetchAhead(tx, candidate, this.#options);
  }
}

class WantedActivity implements Want<LockedWorkItem> {
  readonly #options: FetchWorkOptions;

  constructor(options: FetchWorkOptions) {
    this.#options = options;
  }

  take(tx: Transaction): LockedWorkItem | null {
    return fetchActivity(tx, this.#options);
  }

  /** An activity never goes ahead (G8). */
  takeAhead(): null {
    return null;
  }
}

/** What both kinds of fetches say. */
type WaitOptions = Pick<FetchOrchestrationOptions | FetchWorkOptions, "pollTimeoutMs" | "signal">;

/** Those who wait for work from one of the two queues. */
interface Waiters<T> {
  readonly signal: WorkSignal<T, Want<T>>;
  readonly nextDue: NextDue;
}

/** One of the two queues. */
interface Queue<T, Options> extends Waiters<T> {
  readonly operation: string;
  readonly table: Tables;
  readonly nextAt: (db: Database, since: number) => number | null;
  readonly groupOf: (options: Options) => string;
  /** Whether all fetches of a group want the same. */
  readonly joins: (options: Options) => boolean;
}

interface FetchDeps {
  readonly database: Database;
  readonly clock: Clock;
  /** Looks once, in a transaction. */
  readonly look: <T>(operation: string, take: (tx: Transaction) => T | null) => Promise<T | null>;
  /** Told when somebody begins to wait, and when the wait is over. Null: nobody else has to look out. */
  readonly lookout: Lookout | null;
}

/** Who looks out for what others do, as long as somebody waits for it. */
interface Lookout {
  enter(): void;
  leave(): void;
}

const NOTHING = Promise.resolve(null);

export class WaitingFetches {
  readonly #deps: FetchDeps;
  readonly #messages: Queue<LockedOrchestrationItem, FetchOrchestrationOptions>;
  readonly #activities: Queue<LockedWorkItem, FetchWorkOptions>;

  constructor(deps: FetchDeps) {
    this.#deps = deps;
    this.#messages = {
      operation: "fetchOrchestrationItem",
      table: MESSAGES,
      signal: new WorkSignal(deps.clock),
      nextDue: new NextDue(),
      nextAt: nextMessageAt,
      groupOf: replaysVersions,
      joins: () => true,
    };
    this.#activities = {
      operation: "fetchWorkItem",
      table: ACTIVITIES,
      signal: new WorkSignal(deps.clock),
      nextDue: new NextDue(),
      nextAt: nextActivityAt,
      groupOf: workerGroup,
      joins: ({ session }) => session === undefined,
    };
  }

  fetchTurn(options: FetchOrchestrationOptions): Promise<LockedOrchestrationItem | null> {
    if (options.capability?.supportedVersions.length === 0) return NOTHING;
    return this.#search(this.#messages, options, new WantedTurn(options));
  }

  fetchActivity(options: FetchWorkOptions): Promise<LockedWorkItem | null> {
    if (options.tagFilter?.kind === "none") return NOTHING;
    return this.#search(this.#activities, options, new WantedActivity(options));
  }

  /** Where it is known that nothing has fallen due, nobody need look. F2 */
  prepare(tx: Transaction): void {
    const { epoch } = tx.db;
    const messages = this.#messages.nextDue.in(epoch);
    const activities = this.#activities.nextDue.in(epoch);
    // What it has made itself is told after the commit.
    tx.isDueReady = messages.isAfter(tx.now) && tx.effects.nextMessageAt > tx.now;
    tx.isHeldReleased = activities.isAfter(tx.now) && tx.effects.nextActivityAt > tx.now;
    // Not committed yet; but if it never is, there is another epoch, and this is forgotten.
    tx.onDueReady = (nextAt) => messages.seenTo(tx.now, nextAt);
    tx.onHeldReleased = (nextAt) => activities.seenTo(tx.now, nextAt);
  }

  /** Takes what has become ready since the last time for those who wait for it. F1 */
  serve(tx: Transaction): Served {
    const { effects } = tx;
    const [messages, activities] = [effects.readyMessages, effects.readyActivities];
    effects.readyMessages = 0;
    effects.readyActivities = 0;
    const served = new ServedFetches(this.#deps.clock);
    try {
      serveQueue(this.#messages, messages, served.turns, (want) => want.take(tx));
      serveQueue(this.#activities, activities, served.activities, (want) => want.take(tx));
      return served;
    } catch (error) {
      served.giveBack();
      throw error;
    }
  }

  /** Of what has become ready, what those who wait may have before the commit, `most` of it. F4 */
  serveAhead(tx: Transaction, most: number): ServedAhead {
    const turns = new Gifts<LockedOrchestrationItem>();
    try {
      const passesOver = this.#messages.signal.waiting >= tx.effects.readyMessages;
      const inLine = aheadInLine(tx, most, passesOver);
      serveQueue(this.#messages, inLine.length, turns, (want) => {
        for (let place = 0; place < inLine.length; place += 1) {
          const found = want.takeAhead(tx, inLine[place]!);
          if (found !== null) inLine.splice(place, 1);
          if (found !== null || !passesOver) return found;
        }
        return null;
      });
    } catch (error) {
      turns.giveBack();
      throw error;
    }
    const lockTokens = new Set<string>();
    for (const { lockToken, item } of turns.all()) {
      lockTokens.add(lockToken);
      tx.effects.readyMessages -= item.messages.length;
    }
    return { lockTokens, give: () => turns.give(), giveBack: () => turns.giveBack() };
  }

  /** A transaction is committed. `isServed`: those who waited were looked for. */
  announce(effects: Effects, isServed: boolean): void {
    announceQueue(this.#messages, isServed ? 0 : effects.readyMessages, effects.nextMessageAt);
    announceQueue(this.#activities, isServed ? 0 : effects.readyActivities, effects.nextActivityAt);
  }

  /** Somebody else may have changed anything: all look for themselves. */
  anythingChanged(): void {
    this.#messages.signal.notify();
    this.#activities.signal.notify();
  }

  /** Ends all waits. */
  close(): void {
    this.#messages.signal.close();
    this.#activities.signal.close();
  }

  #search<T, Options extends WaitOptions>(
    queue: Queue<T, Options>,
    options: Options,
    want: Want<T>,
  ): Promise<T | null> {
    const { pollTimeoutMs = 0, signal } = options;
    if (signal?.aborted) return NOTHING;
    const { look, lookout } = this.#deps;
    if (pollTimeoutMs <= 0) return look(queue.operation, (tx) => want.take(tx));
    const search = new Search(queue, options, want, this.#deps);
    lookout?.enter();
    return queue.signal.longPoll(search);
  }
}

/** Of ranges that somebody has asked with: a dispatcher has the same one all its life. */
const rangeNames = new WeakMap<SemVerRange, string>();

function replaysVersions({ capability }: FetchOrchestrationOptions): string {
  const range = capability?.supportedVersions[0];
  if (range === undefined) return "any";
  const known = rangeNames.get(range);
  if (known !== undefined) return known;
  const { min, max } = range;
  const name = `${min.major}.${min.minor}.${min.patch}-${max.major}.${max.minor}.${max.patch}`;
  rangeNames.set(range, name);
  return name;
}

/** A fetch that may wait. */
class Search<T, Options extends WaitOptions> implements LongPoll<T, Want<T>> {
  readonly group: string;
  readonly pollTimeoutMs: number;
  readonly signal: AbortSignal | undefined;
  readonly joins: boolean;
  readonly want: Want<T>;
  readonly #queue: Queue<T, Options>;
  readonly #deps: FetchDeps;
  #lookedAt = 0;

  constructor(queue: Queue<T, Options>, options: Options, want: Want<T>, deps: FetchDeps) {
    this.group = queue.groupOf(options);
    this.pollTimeoutMs = options.pollTimeoutMs ?? 0;
    this.signal = options.signal;
    this.joins = queue.joins(options);
    this.want = want;
    this.#queue = queue;
    this.#deps = deps;
  }

  attempt(looks: () => void): Promise<T | null> | null {
    const { operation, table, nextDue } = this.#queue;
    const { database, clock, look } = this.#deps;
    this.#lookedAt = clock.now();
    if (nextDue.in(database.epoch).isAfter(this.#lookedAt) && database.isStill(table)) return null; // F2
    return look(operation, (tx) => {
      this.#lookedAt = tx.now;
      looks();
      return this.want.take(tx);
    });
  }

  nextDueAt(): Promise<number | null> | number | null {
    const { operation, nextDue, nextAt } = this.#queue;
    const { database } = this.#deps;
    const since = this.#lookedAt;
    return nextDue.in(database.epoch).after(since, () => database.read(operation, (db) => nextAt(db, since)));
  }

  onEnd(): void {
    this.#deps.lookout?.leave();
  }
}

// Captured at load, so that the fake timers of a test framework do not keep turns waiting.
const immediate = setImmediate;

/** What a transaction has taken for fetches that wait. */
class ServedFetches implements Served {
  readonly turns = new Gifts<LockedOrchestrationItem>();
  readonly activities = new Gifts<LockedWorkItem>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  give(afterActivities: boolean): void {
    this.activities.give();
    if (this.turns.isEmpty) return;
    if (!afterActivities && this.activities.isEmpty) return this.turns.give();
    const given = new Promise<void>((resolve) => {
      immediate(() => {
        this.turns.give(); // F3
        resolve();
      });
    });
    void holding(this.#clock, given);
  }

  giveBack(): void {
    this.turns.giveBack();
    this.activities.giveBack();
  }
}

interface Gift<T> {
  readonly reservation: Reservation<T, unknown>;
  readonly found: T;
}

/** What was found for those who wait for one queue. */
class Gifts<T> {
  readonly #gifts: Gift<T>[] = [];

  get isEmpty(): boolean {
    return this.#gifts.length === 0;
  }

  add(reservation: Reservation<T, unknown>, found: T): void {
    this.#gifts.push({ reservation, found });
  }

  all(): readonly T[] {
    return this.#gifts.map(({ found }) => found);
  }

  give(): void {
    for (const { reservation, found } of this.#gifts.splice(0)) reservation.give(found);
  }

  giveBack(): void {
    for (const { reservation } of this.#gifts.splice(0)) reservation.giveBack();
  }
}

function serveQueue<T>(
  { signal }: Waiters<T>,
  ready: number,
  served: Gifts<T>,
  look: (want: Want<T>) => T | null,
): void {
  if (ready <= 0) return;
  const waiting = signal.reserve(ready);
  let place = 0;
  try {
    while (place < waiting.length) {
      const next = waiting[place]!;
      const found = look(next.want);
      place += 1;
      if (found === null) next.giveBack();
      else served.add(next, found);
    }
  } finally {
    for (; place < waiting.length; place += 1) waiting[place]!.giveBack();
  }
}

function announceQueue<T>({ signal, nextDue }: Waiters<T>, ready: number, nextAt: number): void {
  if (ready > 0) signal.notify(ready);
  if (nextAt === Number.POSITIVE_INFINITY) return;
  nextDue.learn(nextAt);
  signal.wakeAt(nextAt);
}
