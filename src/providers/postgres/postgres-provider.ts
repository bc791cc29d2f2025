// providers/postgres/postgres-provider.ts — the contract on PostgreSQL, for fleets of processes that share a schema.
//
// Every method is one call of a function in the schema. What is pending at one moment is one call for all of its kind: turns that
// are committed; messages that are sent, with activities that are done; fetches that want the same; statuses. Those who wait
// for work are given it by the calls that make it. Here is what surrounds them: waiting, and telling those who wait. Why the
// rules of the contract hold:
//
//   P1. A function is one statement, and so one transaction.
//   P2. The time is handed in by the application, read once for each batch.
//   P3. Whoever claims, sends to, commits or deletes an instance holds the lock of its row in the schedule.
//   P4. A claim passes over rows that others have locked, and then looks again at those that were passed over. A fetch that has
//       not looked, because others just had, does so before it answers that there is nothing.
//   P5. The attempt is counted by the statement that takes the row. A turn may be computed before that (`foreseen-turns.ts`), and end
//       the process: then what it answers was not stored either, and comes again as a second attempt of its activity, which is stored
//       before anybody computes what follows from it.
//   P8. Events and work items are stored as the text of the shared codec.

import { MisuseError } from "../../errors.js";
import type { Event } from "../../history/event.js";
import type { ActivityExecute, OrchestratorItem } from "../../history/work-item.js";
import type { ProviderAdmin } from "../../provider/admin.js";
import { Batcher } from "../../provider/kit/batcher.js";
import { completeAdmin } from "../../provider/kit/complete-admin.js";
import { Effects } from "../../provider/kit/effects.js";
import { InstanceWatchers } from "../../provider/kit/instance-watchers.js";
import { ProvenStarts } from "../../provider/kit/proven-starts.js";
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
import { ActivityHandOff } from "./activity-hand-off.js";
import { ActivityQueue } from "./activity-queue.js";
import { afterAnswers } from "./after-answers.js";
import { warnOfClockSkew } from "./clock-skew.js";
import { Connections } from "./connections.js";
import { Deliveries } from "./deliveries.js";
import { ForeseenTurns } from "./foreseen-turns.js";
import { KnownInstances } from "./known-instances.js";
import { adminStore, type DeletionEffects } from "./management.js";
import { migrate } from "./migrate.js";
import { type PostgresConnection, type PostgresOptions, type PostgresSettings, resolveOptions } from "./options.js";
import { PredictedTurns } from "./predicted-turns.js";
import { type SearchDeps, search } from "./queue-search.js";
import { QueueSignal } from "./queue-signal.js";
import { Reading } from "./reading.js";
import { withinTime } from "./session.js";
import { type Audience, Store } from "./store.js";
import { TurnFetch } from "./turn-fetch.js";
import { TurnHandOff } from "./turn-hand-off.js";
import { TurnQueue } from "./turn-queue.js";
import { groupOfVersions } from "./versions.js";
import { type News, WakeUps } from "./wake-ups.js";

/** How long `close` waits for calls that are pending. */
const LONGEST_DRAIN_MS = 3_000;

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
  readonly #messages: QueueSignal<LockedOrchestrationItem, FetchOrchestrationOptions>;
  readonly #activities: QueueSignal<LockedWorkItem, FetchWorkOptions>;
  readonly #watchers = new InstanceWatchers();
  readonly #wakeUps: WakeUps;
  readonly #turnFetch: TurnFetch;
  readonly #turnQueue: TurnQueue;
  readonly #activityQueue: ActivityQueue;
  readonly #deliveries: Deliveries;
  readonly #turnSearch: SearchDeps<LockedOrchestrationItem, FetchOrchestrationOptions>;
  readonly #activitySearch: SearchDeps<LockedWorkItem, FetchWorkOptions>;
  readonly #reading: Reading;
  readonly #statuses: Batcher<string, InstanceStatus | null>;
  #isClosed = false;

  private constructor(connections: Connections, settings: PostgresSettings) {
    if (!(connections instanceof Connections)) {
      throw new MisuseError("new PostgresProvider: it must be opened first. Use await PostgresProvider.open(url).");
    }
    const { clock, newId, quotedSchema: schema } = settings;
    this.#connections = connections;
    this.#settings = settings;
    const isBusy = (): boolean => this.#deliveries.isBusy || this.#turnQueue.isBusy;
    this.#messages = new QueueSignal(clock, isBusy);
    this.#activities = new QueueSignal(clock, isBusy);
    this.#wakeUps = new WakeUps({ settings, connections, onNews: (news) => this.#hear(news) });
    const announce = (effects: Effects, audience: Audience): void => this.#announce(effects, audience);
    const store = new Store(connections, settings, newId(), announce, () => this.#watchers.lastNr);
    this.#activityQueue = new ActivityQueue(store);
    const activityHandOff = new ActivityHandOff(store, this.#activities, this.#activityQueue);
    const known = new KnownInstances();
    const predicted = new PredictedTurns();
    const proven = new ProvenStarts(settings.startsGoAhead, newId);
    const foreseen = new ForeseenTurns(known, clock);
    const onSteps = (isAnybodyInLine: boolean): void => turnHandOff.sawLine(isAnybodyInLine);
    this.#turnQueue = new TurnQueue(store, activityHandOff, known, predicted, proven, onSteps);
    const giveBack = (lockToken: string) => this.#turnQueue.abandon(lockToken, { ignoreAttempt: true });
    this.#turnFetch = new TurnFetch(store, giveBack, known);
    const turnHandOff = new TurnHandOff(store, this.#messages, this.#turnFetch, foreseen);
    this.#deliveries = new Deliveries(store, turnHandOff, this.#turnQueue, predicted, proven);
    const waiting = { clock, enter: () => this.#wakeUps.enter(), isClosed: () => this.#isClosed };
    this.#turnSearch = {
      ...waiting,
      queue: this.#messages,
      look: (options, patience) => this.#turnFetch.look(options, patience),
    };
    this.#activitySearch = {
      ...waiting,
      queue: this.#activities,
      look: (options, patience) => this.#activityQueue.look(options, patience),
    };
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
    const watchers = this.#watchers;
    this.wake = {
      watchInstance: (instance, listener) => this.#watch(instance, listener),
      get changes() {
        return watchers.changes;
      },
    };
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
    this.#isClosed = true;
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
    return this.#deliveries.send(item, options);
  }

  fetchOrchestrationItem(options: FetchOrchestrationOptions): Promise<LockedOrchestrationItem | null> {
    if (options.capability?.supportedVersions.length === 0) return NOTHING;
    return search(this.#turnSearch, groupOfVersions(options.capability), options);
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

  fetchWorkItem(options: FetchWorkOptions): Promise<LockedWorkItem | null> {
    if (options.tagFilter?.kind === "none") return NOTHING;
    return search(this.#activitySearch, workerGroup(options), options);
  }

  ackWorkItem(lockToken: string, completion: OrchestratorItem | null): Promise<void> {
    return this.#deliveries.complete(lockToken, completion);
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
    const parts = [this.#turnFetch, this.#turnQueue, this.#activityQueue, this.#deliveries, this.#statuses];
    const idle = parts.map((part) => part.idle());
    await withinTime(Promise.all(idle), LONGEST_DRAIN_MS).catch(() => {});
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
    if (effects.isToldAfterAnswers) afterAnswers(() => this.#tellWatchers(effects));
    else this.#tellWatchers(effects);
    for (const warning of effects.warnings) this.#warn(warning);
    if (audience === "here") return;
    const messages = Math.min(effects.readyMessages, Number.MAX_SAFE_INTEGER);
    const activities = Math.min(effects.readyActivities, Number.MAX_SAFE_INTEGER);
    const instances = [...effects.changedInstances].flatMap(([id, change]) => (change === "turn" ? [] : [id]));
    this.#wakeUps.tell({ messages, activities, nextMessageAt, nextActivityAt, instances });
  }

  #tellWatchers({ changedInstances, watchedAsOf }: Effects): void {
    for (const [instance, change] of changedInstances) this.#watchers.changed(instance, change, watchedAsOf);
  }

  #announceDeletion({ changed, readyMessages }: DeletionEffects): void {
    const effects = new Effects();
    effects.readyMessages = readyMessages;
    for (const instance of changed) effects.changed(instance);
    this.#announce(effects, "everywhere");
  }

  /** What was committed elsewhere. */
  #hear({ messages, activities, nextMessageAt, nextActivityAt, instances }: News): void {
    if (messages > 0) this.#messages.hear(messages);
    if (activities > 0) this.#activities.notify(activities);
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

const NOTHING = Promise.resolve(null);

function finite(timeMs: number): number | null {
  return timeMs < Number.POSITIVE_INFINITY ? timeMs : null;
}
