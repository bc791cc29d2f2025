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
import { WorkSignal } from "../../provider/kit/work-signal.js";
import { workerGroup } from "../../provider/kit/worker-wake.js";
import type {
  AbandonOptions,
  EnqueueOptions,
  EnqueueOutcome,
  ExecutionState,
  FetchOrchestrationOptions,
  FetchWorkOptions,
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
import { fetchOrchestration, mayHaveMessages } from "./fetch-orchestration.js";
import { GroupCommit } from "./group-commit.js";
import { appendEvents, latestExecution, readEvents } from "./history.js";
import { customStatus, hasBegun, instanceStats, instanceStatus, recordAppend } from "./instances.js";
import { kvValue, kvValues } from "./kv.js";
import { migrate } from "./migrations.js";
import { absolutePath, resolveOptions, type SqliteOptions, type SqliteSettings } from "./options.js";
import { abandonBatch, enqueueMessage, instanceMayBegin, nextMessageAt, renewLock } from "./orchestrator-queue.js";
import { removeExpiredSessions, renewSessions } from "./sessions.js";
import { Transaction } from "./transaction.js";
import { commitTurn } from "./turn-commit.js";
import {
  abandonActivity,
  ackActivity,
  enqueueActivity,
  fetchActivity,
  mayHaveActivity,
  nextActivityAt,
  renewActivity,
} from "./worker-queue.js";

/** A fetch that may wait. */
interface Search<T> {
  readonly operation: string;
  readonly signal: WorkSignal;
  readonly group: () => string;
  readonly options: { readonly pollTimeoutMs?: number; readonly signal?: AbortSignal };
  readonly mayFind: (db: Database, now: number) => boolean;
  readonly take: (tx: Transaction) => T | null;
  readonly nextAt: (db: Database, since: number) => number | null;
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
  readonly #messages: WorkSignal;
  readonly #activities: WorkSignal;
  readonly #watchers = new InstanceWatchers();
  /** Null: only this process can see the database, or nobody wants to know. */
  readonly #changes: ChangePoller | null;
  /** Fetches that wait, and have looked. Nobody else needs to be told when something falls due. */
  #waiting = 0;

  private constructor(database: Database, settings: SqliteSettings) {
    if (!(database instanceof Database)) {
      throw new MisuseError("new SqliteProvider: it must be opened first. Use await SqliteProvider.open(file).");
    }
    const { clock, crossProcessPollMs } = settings;
    this.#database = database;
    this.#writes = new GroupCommit(database, clock);
    this.#settings = settings;
    this.#messages = new WorkSignal(clock);
    this.#activities = new WorkSignal(clock);
    const readVersion = () => database.dataVersion();
    this.#changes =
      database.isShared && crossProcessPollMs > 0
        ? new ChangePoller(clock, crossProcessPollMs, readVersion, () => this.#somebodyCommitted())
        : null;
    this.admin = completeAdmin(
      adminStore({
        read: (operation, work) => database.read(operation, (db) => work(db, clock.now())),
        write: (operation, work) => this.#write(operation, work),
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
    this.#messages.close();
    this.#activities.close();
    this.#changes?.close();
    this.#database.beginClosing();
    await this.#writes.idle();
    this.#database.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  // Orchestrator queue

  async enqueueForOrchestrator(item: OrchestratorItem, options: EnqueueOptions = {}): Promise<EnqueueOutcome> {
    checkOrchestratorItem("enqueueForOrchestrator", item);
    return this.#write("enqueueForOrchestrator", (tx) => {
      if (options.ifAbsent && isStartLike(item) && hasBegun(tx.db, item.instance)) return "exists";
      enqueueMessage(tx, item, options.delayMs);
      return "enqueued";
    });
  }

  async fetchOrchestrationItem(options: FetchOrchestrationOptions): Promise<LockedOrchestrationItem | null> {
    if (options.capability?.supportedVersions.length === 0) return null;
    return this.#search({
      operation: "fetchOrchestrationItem",
      signal: this.#messages,
      group: () => JSON.stringify(options.capability?.supportedVersions[0] ?? null),
      options,
      mayFind: (db, now) => mayHaveMessages(db, options, now),
      take: (tx) => fetchOrchestration(tx, options),
      nextAt: nextMessageAt,
    });
  }

  async ackOrchestrationItem(lockToken: string, turn: TurnCommit): Promise<void> {
    return this.#write("ackOrchestrationItem", (tx) => commitTurn(tx, lockToken, turn));
  }

  async abandonOrchestrationItem(lockToken: string, options: AbandonOptions = {}): Promise<void> {
    return this.#write("abandonOrchestrationItem", (tx) => abandonBatch(tx, lockToken, options));
  }

  async renewOrchestrationItemLock(lockToken: string, extendForMs: number): Promise<void> {
    return this.#write("renewOrchestrationItemLock", (tx) => renewLock(tx, lockToken, extendForMs));
  }

  // Worker queue

  async enqueueForWorker(item: ActivityExecute): Promise<void> {
    checkWorkerItem("enqueueForWorker", item);
    return this.#write("enqueueForWorker", (tx) => enqueueActivity(tx, item));
  }

  async fetchWorkItem(options: FetchWorkOptions): Promise<LockedWorkItem | null> {
    if (options.tagFilter?.kind === "none") return null;
    return this.#search({
      operation: "fetchWorkItem",
      signal: this.#activities,
      group: () => workerGroup(options),
      options,
      mayFind: (db, now) => mayHaveActivity(db, options, now),
      take: (tx) => fetchActivity(tx, options),
      nextAt: nextActivityAt,
    });
  }

  async ackWorkItem(lockToken: string, completion: OrchestratorItem | null): Promise<void> {
    if (completion !== null) checkCompletion("ackWorkItem", completion);
    return this.#write("ackWorkItem", (tx) => ackActivity(tx, lockToken, completion));
  }

  async abandonWorkItem(lockToken: string, options: AbandonOptions = {}): Promise<void> {
    return this.#write("abandonWorkItem", (tx) => abandonActivity(tx, lockToken, options));
  }

  async renewWorkItemLock(lockToken: string, extendForMs: number): Promise<ExecutionState> {
    return this.#write("renewWorkItemLock", (tx) => renewActivity(tx, lockToken, extendForMs));
  }

  async renewSessionLock(
    ownerIds: readonly string[],
    options: { readonly extendForMs: number; readonly idleTimeoutMs: number },
  ): Promise<number> {
    return this.#write("renewSessionLock", (tx) => renewSessions(tx, ownerIds, options));
  }

  async cleanupOrphanedSessions(_options: { readonly idleTimeoutMs: number }): Promise<number> {
    return this.#write("cleanupOrphanedSessions", removeExpiredSessions);
  }

  // Reading

  async read(instance: string): Promise<readonly Event[]> {
    return this.#database.read("read", (db) => readEvents(db, "read", instance, latestExecution(db, instance)));
  }

  async readWithExecution(instance: string, executionId: number): Promise<readonly Event[]> {
    return this.#database.read("readWithExecution", (db) => readEvents(db, "readWithExecution", instance, executionId));
  }

  async appendWithExecution(instance: string, executionId: number, events: readonly Event[]): Promise<void> {
    return this.#write("appendWithExecution", (tx) => {
      recordAppend(tx, instance, executionId);
      appendEvents(tx, "appendWithExecution", instance, executionId, events);
      instanceMayBegin(tx, instance);
    });
  }

  async getInstanceStatus(instance: string): Promise<InstanceStatus | null> {
    return this.#database.read("getInstanceStatus", (db) => instanceStatus(db, instance));
  }

  async getCustomStatus(
    instance: string,
    lastSeenVersion: number,
  ): Promise<{ readonly status: string | null; readonly version: number } | null> {
    return this.#database.read("getCustomStatus", (db) => customStatus(db, instance, lastSeenVersion));
  }

  async getKvValue(instance: string, key: string): Promise<string | null> {
    return this.#database.read("getKvValue", (db) => kvValue(db, instance, key));
  }

  async getKvAllValues(instance: string): Promise<ReadonlyMap<string, string>> {
    return this.#database.read("getKvAllValues", (db) => kvValues(db, instance));
  }

  async getInstanceStats(instance: string): Promise<InstanceStats | null> {
    return this.#database.read("getInstanceStats", (db) => instanceStats(db, instance));
  }

  // Transactions, and those who wait for them

  async #write<T>(operation: string, work: (tx: Transaction) => T): Promise<T> {
    const { result, effects } = await this.#writes.write(operation, (db, now) => {
      const tx = new Transaction(db, now, this.#settings.newId);
      return { result: work(tx), effects: tx.effects };
    });
    this.#announce(effects); // Only of those runs that were committed.
    return result;
  }

  #announce(effects: Effects): void {
    if (effects.readyMessages > 0) this.#messages.notify(effects.readyMessages);
    if (effects.readyActivities > 0) this.#activities.notify(effects.readyActivities);
    if (this.#waiting > 0) {
      if (effects.nextMessageAt < Number.POSITIVE_INFINITY) this.#messages.wakeAt(effects.nextMessageAt);
      if (effects.nextActivityAt < Number.POSITIVE_INFINITY) this.#activities.wakeAt(effects.nextActivityAt);
    }
    for (const instance of effects.changedInstances) this.#watchers.changed(instance);
    for (const warning of effects.warnings) this.#warn(warning);
  }

  #warn(warning: string): void {
    try {
      this.#settings.onWarning(warning);
    } catch {
      // What is committed stays committed, whatever its listener makes of it.
    }
  }

  #somebodyCommitted(): void {
    this.#messages.notify();
    this.#activities.notify();
    this.#watchers.anythingChanged();
  }

  #watch(instance: string, listener: () => void): () => void {
    const leave = this.#changes?.enter();
    const unwatch = this.#watchers.watchInstance(instance, listener);
    return () => {
      unwatch();
      leave?.();
    };
  }

  async #search<T>(search: Search<T>): Promise<T | null> {
    const { pollTimeoutMs = 0, signal } = search.options;
    if (signal?.aborted) return null;
    const found = await this.#write(search.operation, search.take);
    if (found !== null || pollTimeoutMs <= 0) return found;

    const leave = this.#changes?.enter();
    try {
      return await this.#wait(search, pollTimeoutMs);
    } finally {
      leave?.();
    }
  }

  #wait<T>(search: Search<T>, pollTimeoutMs: number): Promise<T | null> {
    const { clock } = this.#settings;
    const deadline = clock.now() + pollTimeoutMs;
    let lookedAt = clock.now();
    this.#waiting += 1;
    return search.signal
      .longPoll({
        group: search.group(),
        pollTimeoutMs,
        signal: search.options.signal,
        attempt: () => {
          lookedAt = clock.now();
          this.#waiting -= 1;
          return this.#look(search).finally(() => {
            this.#waiting += 1;
          });
        },
        nextDueAt: async () => {
          const at = await this.#database.read(search.operation, (db) => search.nextAt(db, lookedAt));
          return at !== null && at < deadline ? at : null;
        },
      })
      .finally(() => {
        this.#waiting -= 1;
      });
  }

  /** Looks before it locks: of many that are woken, those who find nothing do not hinder those who write. */
  async #look<T>({ operation, mayFind, take }: Search<T>): Promise<T | null> {
    const mayBeThere = await this.#database.read(operation, (db) => mayFind(db, this.#settings.clock.now()));
    return mayBeThere ? this.#write(operation, take) : null;
  }
}
