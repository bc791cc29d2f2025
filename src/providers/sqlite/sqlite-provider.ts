// providers/sqlite/sqlite-provider.ts — the contract on a SQLite file, over one connection.
//
// The operations themselves are functions over an open transaction, in the files beside this one. Here is what surrounds
// them: hand them to the group commit, then tell those who wait. Why the rules of the contract hold:
//
//   P1. A method is written whole or not at all, whoever shares its transaction; it resolves after the commit.
//   P2. `Transaction.now` is the only time, read once under the write lock.
//   P3. SQLite has one writer at a time, so a claim sees every other claim.
//   P5. The attempt is counted by the statement that takes the row.
//   P8. Events and work items are stored as the text of the shared codec.

import { MisuseError } from "../../errors.js";
import type { Event } from "../../history/event.js";
import type { ActivityExecute, OrchestratorItem } from "../../history/work-item.js";
import { isStartLike } from "../../history/work-item.js";
import type { ProviderAdmin } from "../../provider/admin.js";
import { completeAdmin } from "../../provider/kit/complete-admin.js";
import type { Effects } from "../../provider/kit/effects.js";
import { InstanceWatchers } from "../../provider/kit/instance-watchers.js";
import { checkCompletion, checkOrchestratorItem, checkWorkerItem } from "../../provider/kit/refusals.js";
import { type Reservation, WorkSignal } from "../../provider/kit/work-signal.js";
import { workerGroup } from "../../provider/kit/worker-wake.js";
import type {
  AbandonOptions,
  EnqueueOptions,
  EnqueueOutcome,
  ExecutionState,
  FetchOrchestrationOptions,
  FetchWorkOptions,
  InstanceChange,
  InstanceStats,
  InstanceStatus,
  LockedOrchestrationItem,
  LockedWorkItem,
  Provider,
  TurnCommit,
  WakeSource,
} from "../../provider/provider.js";
import { adminStore } from "./admin.js";
import { ChangePoller } from "./change-poller.js";
import { Database, type Tables } from "./database.js";
import { fetchOrchestration } from "./fetch-orchestration.js";
import { GroupCommit, type Served } from "./group-commit.js";
import { appendEvents, latestExecution, readEvents } from "./history.js";
import { customStatus, hasBegun, instanceStats, instanceStatus, recordAppend } from "./instances.js";
import { kvValue, kvValues } from "./kv.js";
import { migrate } from "./migrations.js";
import { NextDue } from "./next-due.js";
import { absolutePath, resolveOptions, type SqliteOptions, type SqliteSettings } from "./options.js";
import {
  abandonBatch,
  enqueueMessage,
  instanceMayBegin,
  MESSAGES,
  nextMessageAt,
  renewLock,
} from "./orchestrator-queue.js";
import { removeExpiredSessions, renewSessions } from "./sessions.js";
import type { Transaction } from "./transaction.js";
import { commitTurn } from "./turn-commit.js";
import {
  ACTIVITIES,
  abandonActivity,
  ackActivity,
  enqueueActivity,
  fetchActivity,
  nextActivityAt,
  renewActivity,
} from "./worker-queue.js";

/** Takes work for one fetch, in whose transaction ever. */
type Take<T> = (tx: Transaction) => T | null;

/** One of the two queues, and those who wait for work from it. */
interface Queue<T> {
  readonly operation: string;
  readonly table: Tables;
  readonly signal: WorkSignal<T, Take<T>>;
  readonly nextDue: NextDue;
  readonly nextAt: (db: Database, since: number) => number | null;
}

/** A fetch that may wait. */
interface Search<T> {
  readonly queue: Queue<T>;
  readonly group: () => string;
  readonly options: { readonly pollTimeoutMs?: number; readonly signal?: AbortSignal };
  readonly take: Take<T>;
  /** Whether all fetches of its group want the same. */
  readonly joins: boolean;
}

/**
 * Keeps everything in one SQLite file, which several processes of one machine may share.
 * What a resolved call has written survives the crash of the process and, by default, a power cut.
 *
 * @example
 * await using provider = await SqliteProvider.open("./app.db");
 */
export class SqliteProvider implements Provider {
  readonly name = "sqlite";
  readonly version = "0.1.0";
  readonly admin: ProviderAdmin;
  readonly wake: WakeSource;

  readonly #database: Database;
  readonly #writes: GroupCommit;
  readonly #settings: SqliteSettings;
  readonly #messages: Queue<LockedOrchestrationItem>;
  readonly #activities: Queue<LockedWorkItem>;
  readonly #watchers = new InstanceWatchers();
  /** Null: only this process can see the database, or nobody wants to know. */
  readonly #changes: ChangePoller | null;

  private constructor(database: Database, settings: SqliteSettings) {
    if (!(database instanceof Database)) {
      throw new MisuseError("new SqliteProvider: it must be opened first. Use await SqliteProvider.open(file).");
    }
    const { clock, crossProcessPollMs } = settings;
    this.#database = database;
    this.#writes = new GroupCommit({
      database,
      clock,
      newToken: settings.newId,
      serve: (tx) => this.#serve(tx),
      announce: (effects, isServed) => this.#announce(effects, isServed),
    });
    this.#settings = settings;
    this.#messages = {
      operation: "fetchOrchestrationItem",
      table: MESSAGES,
      signal: new WorkSignal(clock),
      nextDue: new NextDue(),
      nextAt: nextMessageAt,
    };
    this.#activities = {
      operation: "fetchWorkItem",
      table: ACTIVITIES,
      signal: new WorkSignal(clock),
      nextDue: new NextDue(),
      nextAt: nextActivityAt,
    };
    const readVersion = () => database.dataVersion();
    this.#changes =
      database.isShared && crossProcessPollMs > 0
        ? new ChangePoller(clock, crossProcessPollMs, readVersion, () => this.#somebodyCommitted())
        : null;
    this.admin = completeAdmin(
      adminStore({
        read: (operation, work) => database.read(operation, (db) => work(db, clock.now())),
        write: (operation, work) => this.#writes.write(operation, work),
      }),
      this,
    );
    this.wake = { watchInstance: (instance, listener) => this.#watch(instance, listener) };
  }

  /**
   * Opens the file, creates it if need be, and brings its tables to this version. `:memory:` lives as long as the
   * provider.
   *
   * @throws DUROXIDE_INVALID_OPTIONS for a file that is no path, or an option that is unknown or out of range
   * @throws ProviderError "invalid" when there is no SQLite, the file is no database, cannot be written, or was written
   *   by a newer version; "transient" when another process keeps it locked
   * @example
   * await using provider = await SqliteProvider.open("./app.db", { durability: "process-crash" });
   */
  static async open(file: string, options?: SqliteOptions): Promise<SqliteProvider> {
    const settings = resolveOptions(file, options);
    const database = await Database.open(absolutePath(file), settings);
    try {
      await migrate(database, settings.clock.now());
    } catch (error) {
      database.close();
      throw error;
    }
    return new SqliteProvider(database, settings);
  }

  /**
   * Ends all waits: pending fetches resolve to null, what another process keeps from being written rejects. Later calls
   * reject. Closing twice does nothing.
   */
  async close(): Promise<void> {
    this.#messages.signal.close();
    this.#activities.signal.close();
    this.#changes?.close();
    this.#database.beginClosing();
    await this.#writes.idle();
    this.#database.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  // Orchestrator queue

  enqueueForOrchestrator(item: OrchestratorItem, options: EnqueueOptions = {}): Promise<EnqueueOutcome> {
    return this.#writes.write("enqueueForOrchestrator", (tx) => {
      checkOrchestratorItem("enqueueForOrchestrator", item);
      if (options.ifAbsent && isStartLike(item) && hasBegun(tx, item.instance)) return "exists";
      enqueueMessage(tx, item, options.delayMs);
      return "enqueued";
    });
  }

  fetchOrchestrationItem(options: FetchOrchestrationOptions): Promise<LockedOrchestrationItem | null> {
    if (options.capability?.supportedVersions.length === 0) return NOTHING;
    return this.#search({
      queue: this.#messages,
      group: () => JSON.stringify(options.capability?.supportedVersions[0] ?? null),
      options,
      take: (tx) => fetchOrchestration(tx, options),
      joins: true,
    });
  }

  ackOrchestrationItem(lockToken: string, turn: TurnCommit): Promise<void> {
    return this.#writes.write("ackOrchestrationItem", (tx) => commitTurn(tx, lockToken, turn));
  }

  abandonOrchestrationItem(lockToken: string, options: AbandonOptions = {}): Promise<void> {
    return this.#writes.write("abandonOrchestrationItem", (tx) => abandonBatch(tx, lockToken, options));
  }

  renewOrchestrationItemLock(lockToken: string, extendForMs: number): Promise<void> {
    return this.#writes.write("renewOrchestrationItemLock", (tx) => renewLock(tx, lockToken, extendForMs));
  }

  // Worker queue

  enqueueForWorker(item: ActivityExecute): Promise<void> {
    return this.#writes.write("enqueueForWorker", (tx) => {
      checkWorkerItem("enqueueForWorker", item);
      enqueueActivity(tx, item);
    });
  }

  fetchWorkItem(options: FetchWorkOptions): Promise<LockedWorkItem | null> {
    if (options.tagFilter?.kind === "none") return NOTHING;
    return this.#search({
      queue: this.#activities,
      group: () => workerGroup(options),
      options,
      take: (tx) => fetchActivity(tx, options),
      joins: options.session === undefined,
    });
  }

  ackWorkItem(lockToken: string, completion: OrchestratorItem | null): Promise<void> {
    return this.#writes.write("ackWorkItem", (tx) => {
      if (completion !== null) checkCompletion("ackWorkItem", completion);
      ackActivity(tx, lockToken, completion);
    });
  }

  abandonWorkItem(lockToken: string, options: AbandonOptions = {}): Promise<void> {
    return this.#writes.write("abandonWorkItem", (tx) => abandonActivity(tx, lockToken, options));
  }

  renewWorkItemLock(lockToken: string, extendForMs: number): Promise<ExecutionState> {
    return this.#writes.write("renewWorkItemLock", (tx) => renewActivity(tx, lockToken, extendForMs));
  }

  renewSessionLock(
    ownerIds: readonly string[],
    options: { readonly extendForMs: number; readonly idleTimeoutMs: number },
  ): Promise<number> {
    return this.#writes.write("renewSessionLock", (tx) => renewSessions(tx, ownerIds, options));
  }

  cleanupOrphanedSessions(_options: { readonly idleTimeoutMs: number }): Promise<number> {
    return this.#writes.write("cleanupOrphanedSessions", removeExpiredSessions);
  }

  // Reading

  read(instance: string): Promise<readonly Event[]> {
    return this.#database.read("read", (db) => readEvents(db, "read", instance, latestExecution(db, instance)));
  }

  readWithExecution(instance: string, executionId: number): Promise<readonly Event[]> {
    return this.#database.read("readWithExecution", (db) => readEvents(db, "readWithExecution", instance, executionId));
  }

  appendWithExecution(instance: string, executionId: number, events: readonly Event[]): Promise<void> {
    return this.#writes.write("appendWithExecution", (tx) => {
      recordAppend(tx, instance, executionId);
      appendEvents(tx, "appendWithExecution", instance, executionId, events);
      instanceMayBegin(tx, instance);
    });
  }

  getInstanceStatus(instance: string): Promise<InstanceStatus | null> {
    return this.#database.read("getInstanceStatus", (db) => instanceStatus(db, instance));
  }

  getCustomStatus(
    instance: string,
    lastSeenVersion: number,
  ): Promise<{ readonly status: string | null; readonly version: number } | null> {
    return this.#database.read("getCustomStatus", (db) => customStatus(db, instance, lastSeenVersion));
  }

  getKvValue(instance: string, key: string): Promise<string | null> {
    return this.#database.read("getKvValue", (db) => kvValue(db, instance, key));
  }

  getKvAllValues(instance: string): Promise<ReadonlyMap<string, string>> {
    return this.#database.read("getKvAllValues", (db) => kvValues(db, instance));
  }

  getInstanceStats(instance: string): Promise<InstanceStats | null> {
    return this.#database.read("getInstanceStats", (db) => instanceStats(db, instance));
  }

  // Transactions, and those who wait for them

  /** Takes what has become ready since the last time for those who wait for it. */
  #serve(tx: Transaction): Served {
    const { served: before, effects } = tx;
    const [messages, activities] = [
      effects.readyMessages - before.messages,
      effects.readyActivities - before.activities,
    ];
    before.messages = effects.readyMessages;
    before.activities = effects.readyActivities;
    const served = new ServedFetches();
    try {
      serveQueue(tx, this.#messages, messages, served);
      serveQueue(tx, this.#activities, activities, served);
      return served;
    } catch (error) {
      served.giveBack();
      throw error;
    }
  }

  #announce(effects: Effects, isServed: boolean): void {
    announceQueue(this.#messages, isServed ? 0 : effects.readyMessages, effects.nextMessageAt);
    announceQueue(this.#activities, isServed ? 0 : effects.readyActivities, effects.nextActivityAt);
    for (const [instance, change] of effects.changedInstances)
      this.#tell(() => this.#watchers.changed(instance, change));
    for (const warning of effects.warnings) this.#tell(() => this.#settings.onWarning(warning));
  }

  /** What is committed stays committed, whatever a listener makes of it, and the others hear of it too. */
  #tell(listener: () => void): void {
    try {
      listener();
    } catch {
      // Its own affair.
    }
  }

  #somebodyCommitted(): void {
    for (const { signal, nextDue } of [this.#messages, this.#activities]) {
      nextDue.forget();
      signal.notify();
    }
    this.#watchers.anythingChanged();
  }

  #watch(instance: string, listener: (change: InstanceChange) => void): () => void {
    const leave = this.#changes?.enter();
    const unwatch = this.#watchers.watchInstance(instance, listener);
    return () => {
      unwatch();
      leave?.();
    };
  }

  #search<T>({ queue, group, options, take, joins }: Search<T>): Promise<T | null> {
    const { pollTimeoutMs = 0, signal } = options;
    if (signal?.aborted) return NOTHING;
    const { operation, table, nextDue, nextAt } = queue;
    if (pollTimeoutMs <= 0) return this.#writes.fetch(operation, take);

    let lookedAt = 0;
    return queue.signal.longPoll({
      group: group(),
      pollTimeoutMs,
      signal,
      joins,
      want: take,
      attempt: (looks) => {
        lookedAt = this.#settings.clock.now();
        if (nextDue.isAfter(lookedAt) && this.#database.isStill(table)) return null; // Nobody would find anything.
        return this.#writes.fetch(operation, (tx) => {
          lookedAt = tx.now;
          looks();
          return take(tx);
        });
      },
      nextDueAt: () => nextDue.after(lookedAt, () => this.#database.read(operation, (db) => nextAt(db, lookedAt))),
      onEnd: this.#changes?.enter(),
    });
  }
}

const NOTHING = Promise.resolve(null);

/** What a transaction has taken for fetches that wait. */
class ServedFetches implements Served {
  readonly #given: { readonly give: () => void; readonly giveBack: () => void }[] = [];

  add<T>(reservation: Reservation<T, unknown>, found: T): void {
    this.#given.push({ give: () => reservation.give(found), giveBack: () => reservation.giveBack() });
  }

  give(): void {
    for (const each of this.#given) each.give();
  }

  giveBack(): void {
    for (const each of this.#given) each.giveBack();
  }
}

function serveQueue<T>(tx: Transaction, { signal }: Queue<T>, ready: number, served: ServedFetches): void {
  if (!(ready > 0)) return; // Also where it was, and is, as many as there may be.
  const waiting = [...signal.reserve(ready)];
  try {
    for (let next = waiting[0]; next !== undefined; next = waiting[0]) {
      const found = next.want(tx);
      waiting.shift();
      if (found === null) next.giveBack();
      else served.add(next, found);
    }
  } finally {
    for (const unserved of waiting) unserved.giveBack();
  }
}

function announceQueue<T>({ signal, nextDue }: Queue<T>, ready: number, nextAt: number): void {
  if (ready > 0) signal.notify(ready);
  if (nextAt === Number.POSITIVE_INFINITY) return;
  nextDue.learn(nextAt);
  signal.wakeAt(nextAt);
}
