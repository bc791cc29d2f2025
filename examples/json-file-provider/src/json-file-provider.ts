import { randomUUID } from "node:crypto";
import {
  type AbandonOptions,
  type ActivityExecute,
  type Clock,
  checkCompletion,
  checkOrchestratorItem,
  checkWorkerItem,
  completeAdmin,
  type EnqueueOptions,
  type EnqueueOutcome,
  type Event,
  type ExecutionState,
  type FetchOrchestrationOptions,
  type FetchWorkOptions,
  type InstanceStats,
  type InstanceStatus,
  InstanceWatchers,
  isStartLike,
  type LockedOrchestrationItem,
  type LockedWorkItem,
  type OrchestratorItem,
  type Provider,
  type ProviderAdmin,
  systemClock,
  type TurnCommit,
  targetInstance,
} from "duroxide-ts/provider";
import {
  addActivity,
  claimSession,
  executionState,
  fitsSession,
  fitsTag,
  liveActivity,
  nextActivity,
  touchSession,
} from "./activities.js";
import { adminStore } from "./admin.js";
import { JsonDocument } from "./json-document.js";
import {
  addMessage,
  hasStart,
  identify,
  inOrder,
  isCompatible,
  isKnownOrStarting,
  replayFrom,
  visibleBatches,
} from "./messages.js";
import {
  type ActivityRow,
  after,
  EMPTY_TABLES,
  eventsOf,
  findExecution,
  findInstance,
  highestExecutionId,
  kvView,
  readEvents,
  readMessage,
  type Tables,
} from "./tables.js";
import { appendEvents, executionRow, isSame, liveLock, writeExecution, writeInstance, writeKeyValues } from "./turn.js";

export interface JsonFileProviderOptions {
  /** Only tests need another one. */
  readonly clock?: Clock;
}

/** Keeps everything in one JSON file, which is rewritten on each commit. One process and one provider for each file. */
export class JsonFileProvider implements Provider {
  readonly name = "json-file";
  readonly version = "0.1.0";
  readonly admin: ProviderAdmin;
  readonly wake: InstanceWatchers;
  readonly #document: JsonDocument<Tables>;
  readonly #clock: Clock;

  private constructor(document: JsonDocument<Tables>, clock: Clock) {
    this.#document = document;
    this.#clock = clock;
    this.wake = new InstanceWatchers();
    this.admin = completeAdmin(adminStore(document, clock, this.wake), this);
  }

  static async open(file: string, { clock = systemClock }: JsonFileProviderOptions = {}): Promise<JsonFileProvider> {
    return new JsonFileProvider(await JsonDocument.open(file, EMPTY_TABLES), clock);
  }

  // Orchestrator queue

  async enqueueForOrchestrator(item: OrchestratorItem, options: EnqueueOptions = {}): Promise<EnqueueOutcome> {
    const operation = "enqueueForOrchestrator";
    checkOrchestratorItem(operation, item);
    const instance = targetInstance(item);
    const outcome = await this.#document.change(operation, (tables): EnqueueOutcome => {
      if (options.ifAbsent === true && isStartLike(item) && isKnownOrStarting(tables, instance)) return "exists";
      addMessage(tables, item, this.#clock.now(), options.delayMs);
      return "enqueued";
    });
    if (isStartLike(item)) this.wake.changed(instance);
    return outcome;
  }

  async fetchOrchestrationItem(options: FetchOrchestrationOptions): Promise<LockedOrchestrationItem | null> {
    const operation = "fetchOrchestrationItem";
    const { lockTimeoutMs, capability } = options;
    const range = capability?.supportedVersions[0];
    if (capability !== undefined && range === undefined) return null;
    return this.#document.change(operation, (tables) => {
      const now = this.#clock.now();
      for (const [instance, batch] of visibleBatches(tables, now)) {
        if (tables.locks.some((lock) => lock.instance === instance && lock.lockedUntilMs > now)) continue;
        if (range !== undefined && !isCompatible(tables, instance, range)) continue;
        const identity = identify(tables, instance, batch);
        if (identity === null) {
          // Nobody has said what this instance is. Mail that nobody is going to read is dropped; the rest waits.
          if (batch.every(({ type }) => type === "QueueMessage") && !hasStart(tables, instance)) {
            tables.messages = tables.messages.filter((message) => !batch.includes(message));
          }
          continue;
        }

        const token = randomUUID();
        // Replaces an expired lock, whose token is unknown from now on.
        tables.locks = tables.locks.filter((lock) => lock.instance !== instance);
        const messages = batch.map(({ row }) => row);
        tables.locks.push({ instance, token, lockedUntilMs: after(now, lockTimeoutMs), messages });
        for (const message of batch) message.attempts += 1;
        return {
          lockToken: token,
          attemptCount: Math.max(...batch.map(({ attempts }) => attempts)),
          item: {
            instance,
            ...identity,
            messages: batch.map(readMessage).filter((message) => message !== null),
            ...replayFrom(tables, instance, identity.executionId),
            warmAsOf: null,
          },
        };
      }
      return null;
    });
  }

  async ackOrchestrationItem(lockToken: string, turn: TurnCommit): Promise<void> {
    const operation = "ackOrchestrationItem";
    const instance = await this.#document.change(operation, (tables) => {
      const now = this.#clock.now();
      const lock = liveLock(operation, tables, lockToken, now);
      appendEvents(operation, tables, lock.instance, turn.executionId, turn.events);
      for (const item of turn.workerItems) checkWorkerItem(operation, item);
      for (const item of turn.orchestratorItems) checkOrchestratorItem(operation, item);

      tables.messages = tables.messages.filter(({ row }) => !lock.messages.includes(row));
      writeInstance(tables, lock.instance, turn, now);
      writeExecution(tables, lock.instance, turn, now);
      writeKeyValues(tables, lock.instance, turn);
      for (const item of turn.workerItems) addActivity(tables, item, now);
      // After the adding: what was scheduled and cancelled in one turn must not run.
      tables.activities = tables.activities.filter((row) => !turn.cancelledActivities.some(isSame(row)));
      for (const item of turn.orchestratorItems) addMessage(tables, item, now);
      tables.messages = tables.messages.filter(
        ({ timer }) => timer === null || !turn.cancelledTimers.some(isSame(timer)),
      );
      tables.locks = tables.locks.filter(({ token }) => token !== lockToken);
      return lock.instance;
    });
    this.wake.changed(instance);
    for (const item of turn.orchestratorItems) if (isStartLike(item)) this.wake.changed(targetInstance(item));
  }

  async abandonOrchestrationItem(lockToken: string, { delayMs, ignoreAttempt }: AbandonOptions = {}): Promise<void> {
    await this.#document.change("abandonOrchestrationItem", (tables) => {
      const lock = tables.locks.find(({ token }) => token === lockToken);
      if (lock === undefined) return;
      tables.locks = tables.locks.filter(({ token }) => token !== lockToken);
      if (ignoreAttempt === true) {
        const batch = tables.messages.filter(({ row }) => lock.messages.includes(row));
        for (const message of batch) message.attempts = Math.max(0, message.attempts - 1);
      }
      if (delayMs !== undefined && delayMs > 0) {
        // A lock that nobody has the token of keeps the whole instance back, later messages too.
        const lockedUntilMs = after(this.#clock.now(), delayMs);
        tables.locks.push({ instance: lock.instance, token: randomUUID(), lockedUntilMs, messages: [] });
      }
    });
  }

  async renewOrchestrationItemLock(lockToken: string, extendForMs: number): Promise<void> {
    const operation = "renewOrchestrationItemLock";
    await this.#document.change(operation, (tables) => {
      const now = this.#clock.now();
      liveLock(operation, tables, lockToken, now).lockedUntilMs = after(now, extendForMs);
    });
  }

  // Worker queue

  async enqueueForWorker(item: ActivityExecute): Promise<void> {
    const operation = "enqueueForWorker";
    checkWorkerItem(operation, item);
    await this.#document.change(operation, (tables) => addActivity(tables, item, this.#clock.now()));
  }

  async fetchWorkItem(options: FetchWorkOptions): Promise<LockedWorkItem | null> {
    const operation = "fetchWorkItem";
    const { session, tagFilter = { kind: "default-only" } } = options;
    if (tagFilter.kind === "none") return null;
    return this.#document.change(operation, (tables) => {
      const now = this.#clock.now();
      const isFitting = (row: ActivityRow) => fitsTag(row, tagFilter) && fitsSession(tables, row, session, now);
      const found = nextActivity(tables, isFitting, now);
      if (found === null) return null;
      const { row, item } = found;
      const lockToken = randomUUID();
      row.token = lockToken;
      row.lockedUntilMs = after(now, options.lockTimeoutMs);
      row.attempts += 1;
      if (row.sessionId !== null && session !== undefined) claimSession(tables, row.sessionId, session, now);
      return { item, lockToken, attemptCount: row.attempts, executionState: executionState(tables, row) };
    });
  }

  async ackWorkItem(lockToken: string, completion: OrchestratorItem | null): Promise<void> {
    const operation = "ackWorkItem";
    await this.#document.change(operation, (tables) => {
      const now = this.#clock.now();
      const row = liveActivity(operation, tables, lockToken, now);
      if (completion !== null) {
        checkCompletion(operation, completion);
        addMessage(tables, completion, now);
      }
      tables.activities = tables.activities.filter((other) => other !== row);
      touchSession(tables, row, now);
    });
  }

  async abandonWorkItem(lockToken: string, { delayMs, ignoreAttempt }: AbandonOptions = {}): Promise<void> {
    await this.#document.change("abandonWorkItem", (tables) => {
      const row = tables.activities.find(({ token }) => token === lockToken);
      if (row === undefined) return;
      row.token = null;
      row.lockedUntilMs = 0;
      row.visibleAtMs = after(this.#clock.now(), delayMs);
      if (ignoreAttempt === true) row.attempts = Math.max(0, row.attempts - 1);
    });
  }

  async renewWorkItemLock(lockToken: string, extendForMs: number): Promise<ExecutionState> {
    const operation = "renewWorkItemLock";
    return this.#document.change(operation, (tables) => {
      const now = this.#clock.now();
      const row = liveActivity(operation, tables, lockToken, now);
      row.lockedUntilMs = after(now, extendForMs);
      touchSession(tables, row, now);
      return executionState(tables, row);
    });
  }

  async renewSessionLock(
    ownerIds: readonly string[],
    { extendForMs, idleTimeoutMs }: { readonly extendForMs: number; readonly idleTimeoutMs: number },
  ): Promise<number> {
    return this.#document.change("renewSessionLock", (tables) => {
      const now = this.#clock.now();
      const renewed = tables.sessions.filter(
        (session) =>
          ownerIds.includes(session.ownerId) &&
          session.lockedUntilMs > now &&
          session.lastActivityAtMs > now - Math.ceil(idleTimeoutMs),
      );
      for (const session of renewed) session.lockedUntilMs = after(now, extendForMs);
      return renewed.length;
    });
  }

  async cleanupOrphanedSessions(): Promise<number> {
    return this.#document.change("cleanupOrphanedSessions", (tables) => {
      const now = this.#clock.now();
      const isOrphan = (id: string) => !tables.activities.some(({ sessionId }) => sessionId === id);
      const kept = tables.sessions.filter(({ id, lockedUntilMs }) => lockedUntilMs > now || !isOrphan(id));
      const removed = tables.sessions.length - kept.length;
      tables.sessions = kept;
      return removed;
    });
  }

  // Reading: the committed state, without waiting for changes that are on their way

  async read(instance: string): Promise<readonly Event[]> {
    return this.#read("read", instance, highestExecutionId(this.#document.content, instance));
  }

  async readWithExecution(instance: string, executionId: number): Promise<readonly Event[]> {
    return this.#read("readWithExecution", instance, executionId);
  }

  #read(operation: string, instance: string, executionId: number): readonly Event[] {
    return readEvents(operation, eventsOf(this.#document.content, instance, executionId));
  }

  async appendWithExecution(instance: string, executionId: number, events: readonly Event[]): Promise<void> {
    const operation = "appendWithExecution";
    await this.#document.change(operation, (tables) => {
      appendEvents(operation, tables, instance, executionId, events);
      executionRow(tables, instance, executionId, this.#clock.now());
    });
    this.wake.changed(instance);
  }

  async getInstanceStatus(instance: string): Promise<InstanceStatus | null> {
    const tables = this.#document.content;
    const identity = identify(tables, instance, inOrder(tables.messages.filter((row) => row.instance === instance)));
    if (identity === null) return null;
    const execution = findExecution(tables, instance, identity.executionId);
    const row = findInstance(tables, instance);
    return {
      status: execution?.status ?? "Pending",
      orchestrationName: identity.orchestrationName,
      orchestrationVersion: identity.version,
      executionId: identity.executionId,
      output: execution?.output ?? null,
      customStatus: row?.customStatus ?? null,
      customStatusVersion: row?.customStatusVersion ?? 0,
    };
  }

  async getCustomStatus(
    instance: string,
    lastSeenVersion: number,
  ): Promise<{ readonly status: string | null; readonly version: number } | null> {
    const row = findInstance(this.#document.content, instance);
    if (row === undefined || row.customStatusVersion <= lastSeenVersion) return null;
    return { status: row.customStatus, version: row.customStatusVersion };
  }

  async getKvValue(instance: string, key: string): Promise<string | null> {
    return kvView(this.#document.content, instance).get(key) ?? null;
  }

  async getKvAllValues(instance: string): Promise<ReadonlyMap<string, string>> {
    return kvView(this.#document.content, instance);
  }

  async getInstanceStats(instance: string): Promise<InstanceStats | null> {
    const tables = this.#document.content;
    const row = findInstance(tables, instance);
    if (row === undefined) return null;
    const events = eventsOf(tables, instance, row.currentExecutionId);
    const [first] = readEvents("getInstanceStats", events.slice(0, 1));
    const carried = first?.type === "OrchestrationStarted" ? first.carryForwardEvents : undefined;
    const values = [...kvView(tables, instance).values()];
    return {
      historyEventCount: events.length,
      historySizeBytes: byteLength(events.map(({ text }) => text)),
      queuePendingCount: carried?.length ?? 0,
      kvUserKeyCount: values.length,
      kvTotalValueBytes: byteLength(values),
    };
  }

  /** For tests: changes the tables as nobody who keeps the rules would. */
  async tamper(change: (tables: Tables) => void): Promise<void> {
    await this.#document.change("tamper", change);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#document.close();
  }
}

function byteLength(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
}
