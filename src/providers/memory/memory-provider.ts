// providers/memory/memory-provider.ts — the contract in its plainest form: nothing is kept but in this process.
//
// Read it as the executable specification. P1 to P8 are the rules of the contract (provider/provider.ts); those that
// hold for reasons one does not see in any single place:
//
//   P1. Every operation runs from its first check to its last write without an await, so nobody sees it half done;
//       it checks everything before it writes anything, so a refused operation has changed nothing.
//   P2. `#clock` is the only source of time, read once in an operation.
//   P3. The lock belongs to the instance, not to its messages: what arrives under it waits for the release.
//   P8. Events and work items are immutable; they are stored as the objects they are.

import { randomUUID } from "node:crypto";
import type { Clock } from "../../clock.js";
import { systemClock } from "../../clock.js";
import { encodeEvent } from "../../history/codec.js";
import type { Event } from "../../history/event.js";
import type { ActivityExecute, OrchestratorItem } from "../../history/work-item.js";
import { isStartLike, targetInstance } from "../../history/work-item.js";
import { checkOptions, isClock, isFunction } from "../../options.js";
import type { ProviderAdmin } from "../../provider/admin.js";
import { completeAdmin } from "../../provider/kit/complete-admin.js";
import { InstanceWatchers } from "../../provider/kit/instance-watchers.js";
import {
  checkCompletion,
  checkEventIds,
  checkOrchestratorItem,
  checkWorkerItem,
  eventTaken,
  lockLost,
} from "../../provider/kit/refusals.js";
import { changeOf } from "../../provider/kit/turn-change.js";
import { WorkSignal } from "../../provider/kit/work-signal.js";
import { fetchesToWake, workerGroup } from "../../provider/kit/worker-wake.js";
import type {
  AbandonOptions,
  CapabilityFilter,
  EnqueueOptions,
  EnqueueOutcome,
  ExecutionState,
  FetchOrchestrationOptions,
  FetchWorkOptions,
  InstanceStats,
  InstanceStatus,
  KvEntry,
  LockedOrchestrationItem,
  LockedWorkItem,
  OrchestrationItem,
  Provider,
  TurnCommit,
  WakeSource,
} from "../../provider/provider.js";
import type { ExecutionRecord } from "./execution-record.js";
import { type Identity, type InstanceLock, InstanceRecord } from "./instance-record.js";
import { InstanceSchedule } from "./instance-schedule.js";
import { type KnownInstance, KnownInstances } from "./known-instances.js";
import { MemoryAdmin } from "./memory-admin.js";
import type { Message } from "./message-list.js";
import { WorkerQueue, type WorkRow } from "./worker-queue.js";

/** What a store in memory may be told. */
export interface MemoryProviderOptions {
  /** @default the system's clock */
  readonly clock?: Clock;
  /** Where lock tokens come from. @default random UUIDs */
  readonly newId?: () => string;
  /** Told what was dropped. @default nobody is */
  readonly onWarning?: (message: string) => void;
}

interface Candidate {
  readonly instance: InstanceRecord;
  readonly identity: Identity;
}

/**
 * Keeps everything in memory: for tests, examples and experiments. Nothing survives the process.
 *
 * @throws DUROXIDE_INVALID_OPTIONS for an option that is unknown or wrong
 * @example
 * await using provider = new MemoryProvider();
 * await using runtime = await Runtime.start({ provider, orchestrations, activities });
 */
export class MemoryProvider implements Provider {
  readonly name = "memory";
  readonly version = "0.1.0";
  readonly admin: ProviderAdmin;

  readonly #clock: Clock;
  readonly #newId: () => string;
  readonly #onWarning: (message: string) => void;
  readonly #instances = new Map<string, InstanceRecord>();
  readonly #known = new KnownInstances();
  readonly #schedule = new InstanceSchedule();
  readonly #lockedInstances = new Map<string, InstanceRecord>();
  /** By the id of a parent, whom it has ever started: where to look for starts that are still queued. */
  readonly #childrenOf = new Map<string, Set<string>>();
  readonly #work = new WorkerQueue();
  readonly #orchestratorSignal: WorkSignal<LockedOrchestrationItem>;
  readonly #workerSignal: WorkSignal<LockedWorkItem>;
  readonly #watchers = new InstanceWatchers();
  #lastSeq = 0;

  /** @throws InvalidOptionsError */
  constructor(options: MemoryProviderOptions = {}) {
    checkOptions("new MemoryProvider", options, { clock: isClock, newId: isFunction, onWarning: isFunction });
    const { clock = systemClock, newId = randomUUID, onWarning = () => {} } = options;
    this.#onWarning = onWarning;
    this.#clock = clock;
    this.#newId = newId;
    this.#orchestratorSignal = new WorkSignal(clock);
    this.#workerSignal = new WorkSignal(clock);
    const store = { clock, records: this.#instances, known: this.#known, work: this.#work };
    this.admin = completeAdmin(new MemoryAdmin({ ...store, forget: (instances) => this.#forget(instances) }), this);
  }

  get wake(): WakeSource {
    return this.#watchers;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#orchestratorSignal.close();
    this.#workerSignal.close();
  }

  // Orchestrator queue

  async enqueueForOrchestrator(item: OrchestratorItem, options: EnqueueOptions = {}): Promise<EnqueueOutcome> {
    checkOrchestratorItem("enqueueForOrchestrator", item);
    const now = this.#clock.now();
    if (options.ifAbsent && isStartLike(item) && this.#exists(item.instance)) return "exists";
    const instance = this.#addMessage(item, now, options.delayMs);
    this.#reschedule([instance], now);
    if (isStartLike(item)) this.#watchers.changed(instance.id);
    return "enqueued";
  }

  async fetchOrchestrationItem(options: FetchOrchestrationOptions): Promise<LockedOrchestrationItem | null> {
    if (options.capability?.supportedVersions.length === 0) return null;
    let dueAt: number | null = null;
    return this.#orchestratorSignal.longPoll({
      group: JSON.stringify(options.capability?.supportedVersions[0] ?? null),
      pollTimeoutMs: options.pollTimeoutMs ?? 0,
      signal: options.signal,
      attempt: () => {
        const now = this.#clock.now();
        const found = this.#lockOldestInstance(options, now);
        dueAt = this.#schedule.nextChangeAfter(now); // As of the look: what falls due right after it is not missed.
        return found;
      },
      nextDueAt: () => dueAt,
    });
  }

  async ackOrchestrationItem(lockToken: string, turn: TurnCommit): Promise<void> {
    const now = this.#clock.now();
    const operation = "ackOrchestrationItem";
    const { instance, lock } = this.#requireInstanceLock(operation, lockToken, now); // P6
    checkEvents(operation, instance.executions.get(turn.executionId) ?? null, turn.events); // P7
    for (const item of turn.workerItems) checkWorkerItem(operation, item);
    for (const item of turn.orchestratorItems) checkOrchestratorItem(operation, item);

    // From here on nothing can fail (P1).
    for (const message of lock.batch) instance.messages.remove(message);
    instance.applyTurn(turn, lockToken, now);
    this.#known.noteTurnOf(instance);
    for (const item of turn.workerItems) this.#work.add(item, now);
    for (const activity of turn.cancelledActivities) this.#work.cancel(activity);
    const changed = [instance, ...turn.orchestratorItems.map((item) => this.#addMessage(item, now))];
    for (const timer of turn.cancelledTimers) {
      const owner = this.#instance(timer.instance);
      owner.messages.cancelTimer(timer.executionId, timer.id);
      changed.push(owner);
    }
    this.#unlock(instance);

    this.#reschedule(changed, now);
    if (turn.workerItems.length > 0) this.#workerSignal.notify(sumOf(turn.workerItems.map(fetchesToWake)));
    const started = turn.orchestratorItems.filter(isStartLike).map((item) => item.instance);
    this.#watchers.changed(instance.id, changeOf(turn, instance.row?.currentExecutionId));
    for (const id of started) this.#watchers.changed(id);
  }

  async abandonOrchestrationItem(lockToken: string, options: AbandonOptions = {}): Promise<void> {
    const instance = this.#lockedInstances.get(lockToken);
    if (instance?.lock == null) return;
    const now = this.#clock.now();
    const { batch } = instance.lock;
    if (options.ignoreAttempt)
      for (const message of batch) message.attemptCount = Math.max(0, message.attemptCount - 1);
    this.#unlock(instance);
    const { delayMs = 0 } = options;
    // A lock that nobody owns: later messages wait behind these, so that all of them keep their order.
    if (delayMs > 0) instance.lock = { token: this.#newId(), lockedUntil: now + delayMs, batch: [] };
    this.#reschedule([instance], now);
  }

  async renewOrchestrationItemLock(lockToken: string, extendForMs: number): Promise<void> {
    const now = this.#clock.now();
    const { instance, lock } = this.#requireInstanceLock("renewOrchestrationItemLock", lockToken, now);
    lock.lockedUntil = now + extendForMs;
    this.#reschedule([instance], now);
  }

  #exists(id: string): boolean {
    const instance = this.#instances.get(id);
    if (instance === undefined) return false;
    return instance.row !== null || instance.executions.size > 0 || instance.messages.findStart() !== null;
  }

  #addMessage(item: OrchestratorItem, now: number, delayMs = 0): InstanceRecord {
    const instance = this.#instance(targetInstance(item));
    const parent = isStartLike(item) ? (item.parentInstance ?? null) : null;
    if (parent !== null) this.#childrenOf.set(parent, (this.#childrenOf.get(parent) ?? new Set()).add(instance.id));
    const dueAt = item.type === "TimerFired" ? item.fireAtMs : now;
    this.#lastSeq += 1;
    const visibleAt = Math.max(dueAt, now + delayMs);
    instance.messages.add({ item, dueAt, seq: this.#lastSeq, visibleAt, attemptCount: 0 });
    return instance;
  }

  /** The record of the id. Making one does not make the instance known. */
  #instance(id: string): InstanceRecord {
    let instance = this.#instances.get(id);
    if (instance === undefined) {
      instance = new InstanceRecord(id);
      this.#instances.set(id, instance);
    }
    return instance;
  }

  #lockOldestInstance(options: FetchOrchestrationOptions, now: number): LockedOrchestrationItem | null {
    const candidate = this.#oldestCandidate(options.capability, now);
    if (candidate === null) return null;
    const { instance, identity } = candidate;

    const batch = instance.messages.visible(now);
    for (const message of batch) message.attemptCount += 1; // P5
    this.#unlock(instance); // an expired lock, whose token must not be honoured any more
    instance.lock = { token: this.#newId(), lockedUntil: now + options.lockTimeoutMs, batch };
    this.#lockedInstances.set(instance.lock.token, instance);
    this.#reschedule([instance], now);

    return {
      item: describeItem(instance, identity, batch, options.warm?.get(instance.id)),
      lockToken: instance.lock.token,
      attemptCount: batch.reduce((highest, message) => Math.max(highest, message.attemptCount), 0),
    };
  }

  /** Of the instances that this dispatcher may take, the one whose oldest visible message is the oldest of all. */
  #oldestCandidate(capability: CapabilityFilter | undefined, now: number): Candidate | null {
    const orphans: InstanceRecord[] = [];
    let found: Candidate | null = null;
    for (const instance of this.#schedule.readyAt(now)) {
      if (!instance.isCompatibleWith(capability)) continue;
      const identity = instance.identify(now);
      if (identity === null) {
        orphans.push(instance);
        continue;
      }
      found = { instance, identity };
      break;
    }
    for (const instance of orphans) {
      this.#dropQueueMessages(instance, now);
      this.#schedule.place(instance, now);
    }
    return found;
  }

  /**
   * Messages may run ahead of their instance's start. They wait for it, unlocked and uncounted; but queue messages
   * with no start on its way are dropped, by design.
   */
  #dropQueueMessages({ id, messages }: InstanceRecord, now: number): void {
    const visible = messages.visible(now);
    if (visible.some(({ item }) => item.type !== "QueueMessage") || messages.findStart() !== null) return;
    for (const message of visible) messages.remove(message);
    this.#onWarning(`Dropped ${visible.length} queue message(s) to instance '${id}', which nobody has started.`);
  }

  #requireInstanceLock(
    operation: string,
    lockToken: string,
    now: number,
  ): { readonly instance: InstanceRecord; readonly lock: InstanceLock } {
    const instance = this.#lockedInstances.get(lockToken);
    if (instance?.lock == null || instance.lock.lockedUntil <= now) throw lockLost(operation, lockToken);
    return { instance, lock: instance.lock };
  }

  #unlock(instance: InstanceRecord): void {
    if (instance.lock !== null) this.#lockedInstances.delete(instance.lock.token);
    instance.lock = null;
  }

  /** Without its record an instance is as if it had never been: a token of its lock or of its work opens nothing. */
  #forget(instances: readonly KnownInstance[]): number {
    const ids = new Set(instances.map(({ id }) => id));
    let removed = this.#work.removeWorkOf(ids) + this.#dropStartsFrom(ids, this.#clock.now());
    for (const instance of instances) {
      removed += instance.messages.size;
      this.#unlock(instance);
      this.#schedule.remove(instance);
      this.#known.remove(instance);
      this.#instances.delete(instance.id);
    }
    for (const id of ids) this.#watchers.changed(id);
    return removed;
  }

  #startedBy(parents: ReadonlySet<string>): InstanceRecord[] {
    const children = new Set<string>();
    for (const parent of parents) {
      for (const child of this.#childrenOf.get(parent) ?? []) children.add(child);
      this.#childrenOf.delete(parent);
    }
    return [...children].map((id) => this.#instances.get(id)).filter((child) => child !== undefined);
  }

  /**
   * The starts that these have queued. Whoever works on one finds its lock gone. What else was sent to a child that has
   * not begun goes along, unless somebody else has started it too.
   */
  #dropStartsFrom(parents: ReadonlySet<string>, now: number): number {
    let removed = 0;
    for (const child of this.#startedBy(parents)) {
      const before = child.messages.size;
      for (const start of child.messages.startsFrom(parents)) child.messages.remove(start);
      if (child.messages.size === before) continue;
      if (child.row === null && child.messages.findStart() === null) child.messages.clear();
      removed += before - child.messages.size;
      this.#unlock(child);
      this.#reschedule([child], now);
      this.#watchers.changed(child.id);
    }
    return removed;
  }

  /**
   * To be called after every change to messages or locks. Wakes one waiting fetch for each instance that can be fetched
   * now; those that are locked tell when they are released, and the clock tells of the rest.
   */
  #reschedule(instances: readonly InstanceRecord[], now: number): void {
    let ready = 0;
    for (const instance of new Set(instances)) if (this.#schedule.place(instance, now)) ready += 1;
    if (ready > 0) this.#orchestratorSignal.notify(ready);
    const changesAt = this.#schedule.nextChangeAfter(now);
    if (changesAt !== null) this.#orchestratorSignal.wakeAt(changesAt);
  }

  // Worker queue

  async enqueueForWorker(item: ActivityExecute): Promise<void> {
    checkWorkerItem("enqueueForWorker", item);
    this.#work.add(item, this.#clock.now());
    this.#workerSignal.notify(fetchesToWake(item));
  }

  async fetchWorkItem(options: FetchWorkOptions): Promise<LockedWorkItem | null> {
    if (options.tagFilter?.kind === "none") return null;
    let dueAt: number | null = null;
    return this.#workerSignal.longPoll({
      group: workerGroup(options),
      pollTimeoutMs: options.pollTimeoutMs ?? 0,
      signal: options.signal,
      attempt: () => {
        const now = this.#clock.now();
        const found = this.#lockOldestWork(options, now);
        if (found === null) dueAt = this.#work.nextFreeAt(now); // As of the look.
        return found;
      },
      nextDueAt: () => dueAt,
    });
  }

  async ackWorkItem(lockToken: string, completion: OrchestratorItem | null): Promise<void> {
    const now = this.#clock.now();
    const row = this.#requireWorkLock("ackWorkItem", lockToken, now);
    if (completion !== null) checkCompletion("ackWorkItem", completion);

    this.#work.remove(row);
    if (row.item.sessionId !== undefined) this.#work.sessions.touch(row.item.sessionId, now);
    if (completion !== null) this.#reschedule([this.#addMessage(completion, now)], now);
  }

  async abandonWorkItem(lockToken: string, options: AbandonOptions = {}): Promise<void> {
    const row = this.#work.lockedWith(lockToken);
    if (row === null) return;
    const now = this.#clock.now();
    this.#work.abandon(row, options, now);
    if (row.visibleAt > now) this.#workerSignal.wakeAt(row.visibleAt);
    else this.#workerSignal.notify(fetchesToWake(row.item));
  }

  async renewWorkItemLock(lockToken: string, extendForMs: number): Promise<ExecutionState> {
    const now = this.#clock.now();
    const row = this.#requireWorkLock("renewWorkItemLock", lockToken, now);
    row.lock = { token: lockToken, lockedUntil: now + extendForMs };
    this.#workerSignal.wakeAt(row.lock.lockedUntil);
    if (row.item.sessionId !== undefined) this.#work.sessions.touch(row.item.sessionId, now);
    return this.#executionState(row.item);
  }

  async renewSessionLock(
    ownerIds: readonly string[],
    options: { readonly extendForMs: number; readonly idleTimeoutMs: number },
  ): Promise<number> {
    return this.#work.sessions.renew(ownerIds, options.extendForMs, options.idleTimeoutMs, this.#clock.now());
  }

  async cleanupOrphanedSessions(): Promise<number> {
    return this.#work.sessions.removeExpired(this.#work.sessionsInUse(), this.#clock.now());
  }

  #lockOldestWork(options: FetchWorkOptions, now: number): LockedWorkItem | null {
    const row = this.#work.next(options, now);
    if (row === null) return null;
    const lockToken = this.#newId();
    this.#work.lock(row, lockToken, options, now);
    this.#workerSignal.wakeAt(now + options.lockTimeoutMs);
    if (row.item.sessionId !== undefined && options.session !== undefined) {
      this.#workerSignal.wakeAt(now + options.session.lockTimeoutMs);
    }
    return {
      item: row.item,
      lockToken,
      attemptCount: row.attemptCount,
      executionState: this.#executionState(row.item),
    };
  }

  #requireWorkLock(operation: string, lockToken: string, now: number): WorkRow {
    const row = this.#work.lockedWith(lockToken);
    if (row?.lock == null || row.lock.lockedUntil <= now) throw lockLost(operation, lockToken);
    return row;
  }

  /** Of an instance that is not known nobody can say that it is over: its activities run. */
  #executionState(item: ActivityExecute): ExecutionState {
    const instance = this.#instances.get(item.instance);
    if (instance === undefined || instance.row === null) return "running";
    const isCurrent = item.executionId === instance.row.currentExecutionId;
    return isCurrent && instance.currentExecution?.isRunning !== false ? "running" : "terminated";
  }

  // Reading

  async read(id: string): Promise<readonly Event[]> {
    const instance = this.#instances.get(id);
    return instance?.executions.get(instance.latestExecutionId)?.history() ?? [];
  }

  async readWithExecution(id: string, executionId: number): Promise<readonly Event[]> {
    return this.#instances.get(id)?.executions.get(executionId)?.history() ?? [];
  }

  async appendWithExecution(id: string, executionId: number, events: readonly Event[]): Promise<void> {
    const execution = this.#instances.get(id)?.executions.get(executionId) ?? null;
    checkEvents("appendWithExecution", execution, events);
    const instance = this.#instance(id);
    instance.appendHistory(executionId, events, this.#clock.now());
    if (instance.row !== null) instance.row.lastCommit = null;
    this.#watchers.changed(id);
  }

  async getInstanceStatus(id: string): Promise<InstanceStatus | null> {
    const instance = this.#instances.get(id);
    const identity = instance?.identify() ?? null;
    if (instance === undefined || identity === null) return null;
    return {
      status: instance.currentExecution?.status ?? "Pending",
      orchestrationName: identity.name,
      orchestrationVersion: identity.version,
      executionId: instance.currentExecutionId,
      output: instance.currentExecution?.output ?? null,
      customStatus: instance.row?.customStatus ?? null,
      customStatusVersion: instance.row?.customStatusVersion ?? 0,
    };
  }

  async getCustomStatus(
    id: string,
    lastSeenVersion: number,
  ): Promise<{ readonly status: string | null; readonly version: number } | null> {
    const row = this.#instances.get(id)?.row ?? null;
    if (row === null || row.customStatusVersion <= lastSeenVersion) return null;
    return { status: row.customStatus, version: row.customStatusVersion };
  }

  async getKvValue(id: string, key: string): Promise<string | null> {
    return this.#instances.get(id)?.kv.get(key) ?? null;
  }

  async getKvAllValues(id: string): Promise<ReadonlyMap<string, string>> {
    return this.#instances.get(id)?.kv.values() ?? new Map();
  }

  async getInstanceStats(id: string): Promise<InstanceStats | null> {
    const instance = this.#instances.get(id);
    if (instance === undefined || instance.row === null) return null;
    const history = instance.currentExecution?.history() ?? [];
    const first = history[0];
    const values = [...instance.kv.values().values()];
    return {
      historyEventCount: history.length,
      historySizeBytes: totalBytes(history.map(encodeEvent)),
      queuePendingCount: first?.type === "OrchestrationStarted" ? (first.carryForwardEvents?.length ?? 0) : 0,
      kvUserKeyCount: values.length,
      kvTotalValueBytes: totalBytes(values),
    };
  }
}

const NO_VALUES: ReadonlyMap<string, KvEntry> = new Map();

function describeItem(
  instance: InstanceRecord,
  identity: Identity,
  batch: readonly Message[],
  lastCommit: string | undefined,
): OrchestrationItem {
  const warmAsOf = lastCommit !== undefined && lastCommit === instance.row?.lastCommit ? lastCommit : null;
  return {
    instance: instance.id,
    orchestrationName: identity.name,
    version: identity.version,
    executionId: instance.currentExecutionId,
    history: warmAsOf === null ? (instance.currentExecution?.history() ?? []) : [],
    warmAsOf,
    historyError: null,
    messages: batch.map((message) => message.item),
    kvSnapshot: warmAsOf === null ? instance.kv.snapshot() : NO_VALUES,
  };
}

function totalBytes(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, n) => sum + n, 0);
}

/** @throws ProviderError "invalid" for an event id that is not a positive integer, "duplicate-event" for one in use */
function checkEvents(operation: string, execution: ExecutionRecord | null, events: readonly Event[]): void {
  checkEventIds(operation, events);
  const seen = new Set<number>();
  for (const event of events) {
    if (seen.has(event.eventId) || execution?.has(event.eventId)) throw eventTaken(operation, event);
    seen.add(event.eventId);
  }
}
