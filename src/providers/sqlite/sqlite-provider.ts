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
import { ProvenStarts } from "../../provider/kit/proven-starts.js";
import { checkCompletion, checkOrchestratorItem, checkWorkerItem } from "../../provider/kit/refusals.js";
import { toColumn } from "../../provider/kit/text-column.js";
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
import { Database } from "./database.js";
import { GroupCommit } from "./group-commit.js";
import { appendEvents, latestExecution, readEvents } from "./history.js";
import {
  customStatus,
  enqueueStart,
  instanceStats,
  instanceStatus,
  recordAppend,
  startingStatus,
} from "./instances.js";
import { kvValue, kvValues } from "./kv.js";
import { migrate } from "./migrations.js";
import { absolutePath, resolveOptions, type SqliteOptions, type SqliteSettings } from "./options.js";
import { abandonBatch, enqueueMessage, instanceMayBegin, renewLock } from "./orchestrator-queue.js";
import { removeExpiredSessions, renewSessions } from "./sessions.js";
import { commitTurn } from "./turn-commit.js";
import { WaitingFetches } from "./waiting-fetches.js";
import { abandonActivity, ackActivity, enqueueActivity, renewActivity } from "./worker-queue.js";

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
  readonly #waiting: WaitingFetches;
  readonly #watchers = new InstanceWatchers();
  readonly #proven: ProvenStarts;
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
      prepare: (tx) => this.#waiting.prepare(tx),
      serve: (tx) => this.#waiting.serve(tx),
      serveAhead: (tx, most) => this.#waiting.serveAhead(tx, most),
      announce: (effects, isServed) => this.#announce(effects, isServed),
      announceLater: (changed) => this.#announceLater(changed),
    });
    this.#settings = settings;
    this.#proven = new ProvenStarts(settings.startsGoAhead, settings.newId);
    const readVersion = () => database.othersVersion();
    this.#changes =
      database.isShared && crossProcessPollMs > 0
        ? new ChangePoller(clock, crossProcessPollMs, readVersion, () => this.#somebodyCommitted())
        : null;
    this.#waiting = new WaitingFetches({
      database,
      clock,
      look: (operation, take) => this.#writes.fetch(operation, take),
      lookout: this.#changes,
    });
    this.admin = completeAdmin(
      adminStore({
        read: (operation, work) => database.read(operation, (db) => work(db, clock.now())),
        write: (operation, work) => this.#writes.write(operation, work),
      }),
      this,
    );
    const watchers = this.#watchers;
    this.wake = {
      watchInstance: (instance, listener) => this.#watch(instance, listener),
      get changes() {
        return watchers.changes;
      },
    };
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
    this.#waiting.close();
    this.#changes?.close();
    this.#database.beginClosing();
    await this.#writes.idle();
    await this.#database.endWriter();
    this.#database.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  // Orchestrator queue

  enqueueForOrchestrator(item: OrchestratorItem, options: EnqueueOptions = {}): Promise<EnqueueOutcome> {
    return this.#writes.write("enqueueForOrchestrator", (tx) => {
      checkOrchestratorItem("enqueueForOrchestrator", item);
      if (options.ifAbsent && isStartLike(item)) return enqueueStart(tx, item, options.delayMs, this.#proven);
      enqueueMessage(tx, item, options.delayMs);
      return "enqueued";
    });
  }

  fetchOrchestrationItem(options: FetchOrchestrationOptions): Promise<LockedOrchestrationItem | null> {
    return this.#waiting.fetchTurn(options);
  }

  ackOrchestrationItem(lockToken: string, turn: TurnCommit): Promise<void> {
    return this.#writes.ackTurn("ackOrchestrationItem", lockToken, (tx) => {
      this.#proven.taken(turn.metadata);
      commitTurn(tx, lockToken, turn);
    });
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
    return this.#waiting.fetchActivity(options);
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
    return this.#database.read("getInstanceStatus", (db) => {
      const starting = db.isAsWeLeftIt ? this.#writes.known.starting(toColumn(instance), db.epoch) : null;
      return starting === null ? instanceStatus(db, instance) : startingStatus(starting);
    });
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

  // Those who want to know

  #announce(effects: Effects, isServed: boolean): void {
    this.#waiting.announce(effects, isServed);
    for (const [instance, change] of effects.changedInstances) this.#watchers.changed(instance, change);
    for (const warning of effects.warnings) this.#warn(warning);
  }

  /** Who begins to watch only now may wait for another instance of that id. */
  #announceLater(changed: ReadonlyMap<string, InstanceChange>): () => void {
    const asOf = this.#watchers.lastNr;
    return () => {
      for (const [instance, change] of changed) this.#watchers.changed(instance, change, asOf);
    };
  }

  /** What is committed stays committed, whatever the listener makes of it. */
  #warn(warning: string): void {
    try {
      this.#settings.onWarning(warning);
    } catch {
      // Its own affair.
    }
  }

  #somebodyCommitted(): void {
    this.#waiting.anythingChanged();
    this.#watchers.anythingChanged();
  }

  #watch(instance: string, listener: (change: InstanceChange) => void): () => void {
    this.#changes?.enter();
    const unwatch = this.#watchers.watchInstance(instance, listener);
    let isWatching = true;
    return () => {
      unwatch();
      if (isWatching) this.#changes?.leave();
      isWatching = false;
    };
  }
}
