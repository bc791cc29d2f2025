// providers/postgres/postgres-provider.ts — the contract on PostgreSQL, for fleets of processes that share a schema.
//
// Every method is one call of a function in the schema. Messages, turns, activities and statuses that are pending at one moment
// are one call for all of them, and so are fetches that want the same. Here is what surrounds them: waiting for work, and telling those who wait. Why the rules of the contract hold:
//
//   P1. A function is one statement, and so one transaction.
//   P2. The time is handed in by the application, read once for each batch.
//   P3. Whoever claims, sends to, commits or deletes an instance holds the lock of its row in the schedule.
//   P4. A claim passes over rows that others have locked, and then looks again at those that were passed over.
//   P5. The attempt is counted by the statement that takes the row.
//   P8. Events and work items are stored as the text of the shared codec.

import { MisuseError } from "../../errors.js";
import type { Event } from "../../history/event.js";
import type { ActivityExecute, OrchestratorItem } from "../../history/work-item.js";
import type { ProviderAdmin } from "../../provider/admin.js";
import { Batcher } from "../../provider/kit/batcher.js";
import { completeAdmin } from "../../provider/kit/complete-admin.js";
import { Effects } from "../../provider/kit/effects.js";
import { InstanceWatchers } from "../../provider/kit/instance-watchers.js";
import { WorkSignal } from "../../provider/kit/work-signal.js";
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
import { ActivityQueue } from "./activity-queue.js";
import { warnOfClockSkew } from "./clock-skew.js";
import { Connections } from "./connections.js";
import type { Look } from "./look.js";
import { adminStore, type DeletionEffects } from "./management.js";
import { migrate } from "./migrate.js";
import { type PostgresConnection, type PostgresOptions, type PostgresSettings, resolveOptions } from "./options.js";
import { Reading } from "./reading.js";
import { withinTime } from "./session.js";
import { type Audience, Store } from "./store.js";
import { TurnFetch } from "./turn-fetch.js";
import { TurnQueue } from "./turn-queue.js";
import { type News, WakeUps } from "./wake-ups.js";

/** How long `close` waits for calls that are pending. */
const LONGEST_DRAIN_MS = 3_000;

/** A fetch that may wait. */
interface Search<T> {
  readonly signal: WorkSignal<T>;
  readonly group: string;
  readonly options: { readonly pollTimeoutMs?: number; readonly signal?: AbortSignal };
  readonly look: () => Promise<Look<T>>;
}

/**
 * Keeps everything in one schema of a PostgreSQL database, which many processes on many machines may share.
 * What a resolved call has written survives whatever the database's commits survive.
 *
 * @example
 * await using provider = await PostgresProvider.open("postgres://app@localhost/app");
 */
export class PostgresProvider implements Provider {
  readonly name = "postgres";
  readonly version = "0.1.0";
  readonly admin: ProviderAdmin;
  readonly wake: WakeSource;

  readonly #connections: Connections;
  readonly #settings: PostgresSettings;
  readonly #messages: WorkSignal<LockedOrchestrationItem>;
  readonly #activities: WorkSignal<LockedWorkItem>;
  readonly #watchers = new InstanceWatchers();
  readonly #wakeUps: WakeUps;
  readonly #turnFetch: TurnFetch;
  readonly #turnQueue: TurnQueue;
  readonly #activityQueue: ActivityQueue;
  readonly #reading: Reading;
  readonly #statuses: Batcher<string, InstanceStatus | null>;

  private constructor(connections: Connections, settings: PostgresSettings) {
    if (!(connections instanceof Connections)) {
      throw new MisuseError("new PostgresProvider: it must be opened first. Use await PostgresProvider.open(url).");
    }
    const { clock, newId, quotedSchema: schema } = settings;
    this.#connections = connections;
    this.#settings = settings;
    this.#messages = new WorkSignal(clock);
    this.#activities = new WorkSignal(clock);
    this.#wakeUps = new WakeUps({ settings, connections, onNews: (news) => this.#hear(news) });
    const store = new Store(connections, settings, newId(), (effects, audience) => this.#announce(effects, audience));
    this.#turnQueue = new TurnQueue(store);
    this.#turnFetch = new TurnFetch(store, (lockToken) => this.#turnQueue.abandon(lockToken, { ignoreAttempt: true }));
    this.#activityQueue = new ActivityQueue(store);
    this.#reading = new Reading(connections, schema);
    this.#statuses = new Batcher({
      run: async (ids) => (await this.#reading.statusesOf(ids)).map((value) => ({ value })),
      maxInFlight: 2,
    });
    this.admin = completeAdmin(
      adminStore({
        connections,
        quotedSchema: schema,
        now: () => clock.now(),
        announce: (deletion) => this.#announceDeletion(deletion),
      }),
      this,
    );
    this.wake = { watchInstance: (instance, listener) => this.#watch(instance, listener) };
  }

  /**
   * Connects, creates the schema if need be, and brings it to this version. Many processes may do so at the same time.
   *
   * @throws DUROXIDE_INVALID_OPTIONS for a connection that is none, or an option that is unknown or out of range
   * @throws ProviderError "invalid" when the database refuses: password, permission, missing database, newer schema;
   *   "transient" when it cannot be reached
   * @example
   * const password = () => "a token that the function has just asked for";
   * const connection = { host: "db.internal", database: "app", user: "app", password, ssl: true };
   * await using provider = await PostgresProvider.open(connection, { schema: "billing", maxConnections: 20 });
   */
  static async open(connection: string | PostgresConnection, options?: PostgresOptions): Promise<PostgresProvider> {
    const settings = resolveOptions(connection, options);
    const connections = await Connections.open(settings);
    try {
      await migrate(connections, settings);
      await warnOfClockSkew(connections, settings);
    } catch (error) {
      await connections.close();
      throw error;
    }
    return new PostgresProvider(connections, settings);
  }

  /** Ends all waits: pending fetches resolve to null. Later calls reject. Closing twice does nothing. */
  async close(): Promise<void> {
    this.#messages.close();
    this.#activities.close();
    await this.#drained();
    await this.#wakeUps.close();
    await this.#connections.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  // Orchestrator queue

  enqueueForOrchestrator(item: OrchestratorItem, options: EnqueueOptions = {}): Promise<EnqueueOutcome> {
    return this.#turnQueue.enqueue(item, options);
  }

  async fetchOrchestrationItem(options: FetchOrchestrationOptions): Promise<LockedOrchestrationItem | null> {
    if (options.capability?.supportedVersions.length === 0) return null;
    return this.#search({
      signal: this.#messages,
      group: JSON.stringify(options.capability?.supportedVersions[0] ?? null),
      options,
      look: () => this.#turnFetch.look(options),
    });
  }

  ackOrchestrationItem(lockToken: string, turn: TurnCommit): Promise<void> {
    return this.#turnQueue.ack(lockToken, turn);
  }

  abandonOrchestrationItem(lockToken: string, options: AbandonOptions = {}): Promise<void> {
    return this.#turnQueue.abandon(lockToken, options);
  }

  renewOrchestrationItemLock(lockToken: string, extendForMs: number): Promise<void> {
    return this.#turnQueue.renew(lockToken, extendForMs);
  }

  // Worker queue

  enqueueForWorker(item: ActivityExecute): Promise<void> {
    return this.#activityQueue.enqueue(item);
  }

  async fetchWorkItem(options: FetchWorkOptions): Promise<LockedWorkItem | null> {
    if (options.tagFilter?.kind === "none") return null;
    return this.#search({
      signal: this.#activities,
      group: workerGroup(options),
      options,
      look: () => this.#activityQueue.look(options),
    });
  }

  ackWorkItem(lockToken: string, completion: OrchestratorItem | null): Promise<void> {
    return this.#activityQueue.ack(lockToken, completion);
  }

  abandonWorkItem(lockToken: string, options: AbandonOptions = {}): Promise<void> {
    return this.#activityQueue.abandon(lockToken, options);
  }

  renewWorkItemLock(lockToken: string, extendForMs: number): Promise<ExecutionState> {
    return this.#activityQueue.renew(lockToken, extendForMs);
  }

  renewSessionLock(
    ownerIds: readonly string[],
    options: { readonly extendForMs: number; readonly idleTimeoutMs: number },
  ): Promise<number> {
    return this.#activityQueue.renewSessions(ownerIds, options.extendForMs, options.idleTimeoutMs);
  }

  cleanupOrphanedSessions(_options: { readonly idleTimeoutMs: number }): Promise<number> {
    return this.#activityQueue.removeSessions();
  }

  // Reading

  read(instance: string): Promise<readonly Event[]> {
    return this.#reading.read(instance);
  }

  readWithExecution(instance: string, executionId: number): Promise<readonly Event[]> {
    return this.#reading.readWithExecution(instance, executionId);
  }

  appendWithExecution(instance: string, executionId: number, events: readonly Event[]): Promise<void> {
    return this.#turnQueue.append(instance, executionId, events);
  }

  getInstanceStatus(instance: string): Promise<InstanceStatus | null> {
    return this.#statuses.submit(instance);
  }

  getCustomStatus(
    instance: string,
    lastSeenVersion: number,
  ): Promise<{ readonly status: string | null; readonly version: number } | null> {
    return this.#reading.customStatus(instance, lastSeenVersion);
  }

  getKvValue(instance: string, key: string): Promise<string | null> {
    return this.#reading.kvValue(instance, key);
  }

  getKvAllValues(instance: string): Promise<ReadonlyMap<string, string>> {
    return this.#reading.kvValues(instance);
  }

  getInstanceStats(instance: string): Promise<InstanceStats | null> {
    return this.#reading.instanceStats(instance);
  }

  // Those who wait

  /** What was asked for is done, unless the server does not answer. */
  async #drained(): Promise<void> {
    const idle = [this.#turnFetch.idle(), this.#turnQueue.idle(), this.#activityQueue.idle(), this.#statuses.idle()];
    await withinTime(Promise.all(idle), LONGEST_DRAIN_MS).catch(() => {});
  }

  async #search<T>({ signal, group, options, look }: Search<T>): Promise<T | null> {
    const { pollTimeoutMs = 0 } = options;
    if (options.signal?.aborted) return null;
    if (pollTimeoutMs <= 0) return (await look()).found;

    const leave = this.#wakeUps.enter();
    let nextAt: number | null = null;
    const attempt = async (): Promise<T | null> => {
      const looked = await look();
      nextAt = looked.nextAt;
      return looked.found;
    };
    try {
      return await signal.longPoll({
        group,
        pollTimeoutMs,
        attempt,
        nextDueAt: () => nextAt,
        ...(options.signal === undefined ? {} : { signal: options.signal }),
      });
    } finally {
      leave();
    }
  }

  #watch(instance: string, listener: (change: InstanceChange) => void): () => void {
    const leave = this.#wakeUps.enter();
    const unwatch = this.#watchers.watchInstance(instance, listener);
    return () => {
      unwatch();
      leave();
    };
  }

  /** What was committed here. */
  #announce(effects: Effects, audience: Audience): void {
    const nextMessageAt = finite(effects.nextMessageAt);
    const nextActivityAt = finite(effects.nextActivityAt);
    if (effects.readyMessages > 0) this.#messages.notify(effects.readyMessages);
    if (effects.readyActivities > 0) this.#activities.notify(effects.readyActivities);
    if (nextMessageAt !== null) this.#messages.wakeAt(nextMessageAt);
    if (nextActivityAt !== null) this.#activities.wakeAt(nextActivityAt);
    for (const [instance, change] of effects.changedInstances) this.#watchers.changed(instance, change);
    for (const warning of effects.warnings) this.#warn(warning);
    if (audience === "here") return;
    const messages = effects.readyMessages > 0;
    const activities = effects.readyActivities > 0;
    const instances = [...effects.changedInstances.keys()];
    const isNews = messages || activities || nextMessageAt !== null || nextActivityAt !== null || instances.length > 0;
    if (isNews) this.#wakeUps.tell({ messages, activities, nextMessageAt, nextActivityAt, instances });
  }

  #announceDeletion({ changed, readyMessages }: DeletionEffects): void {
    const effects = new Effects();
    effects.readyMessages = readyMessages;
    for (const instance of changed) effects.changed(instance);
    this.#announce(effects, "everywhere");
  }

  /** What was committed elsewhere. */
  #hear({ messages, activities, nextMessageAt, nextActivityAt, instances }: News): void {
    if (messages) this.#messages.notify();
    if (activities) this.#activities.notify();
    if (nextMessageAt !== null) this.#messages.wakeAt(nextMessageAt);
    if (nextActivityAt !== null) this.#activities.wakeAt(nextActivityAt);
    if (instances === "any") this.#watchers.anythingChanged();
    else for (const instance of instances) this.#watchers.changed(instance);
  }

  #warn(warning: string): void {
    try {
      this.#settings.onWarning(warning);
    } catch {
      // What is committed stays committed, whatever its listener makes of it.
    }
  }
}

function finite(timeMs: number): number | null {
  return timeMs < Number.POSITIVE_INFINITY ? timeMs : null;
}
