// providers/sqlite/orchestrator-queue.ts — messages to instances, fetched by instance, under the instance's lock.
//
// The states of a message and the ways between them stand in `schema.ts`. What must hold:
//
//   O1. Only live locks are in the table of locks once a fetch has looked, so a claim meets none that it must steal.
//   O2. A batch is what was visible when its lock was taken: state 'taken', `visible_at` not after `locked_at`. What
//       arrives later is not 'taken', and waits.
//   O3. What ran ahead of its start is neither locked nor counted, and stands in nobody's way.
//   O4. A message that cannot be decoded is in the batch, though not handed out, and goes with its ack.

import { CodecError, messageOf } from "../../errors.js";
import { decodeWorkItem, encodeWorkItem } from "../../history/codec.js";
import type { Event } from "../../history/event.js";
import type { OrchestratorItem, WorkItem } from "../../history/work-item.js";
import { isStartLike, targetInstance } from "../../history/work-item.js";
import type {
  AbandonOptions,
  CapabilityFilter,
  FetchOrchestrationOptions,
  KvEntry,
  LockedOrchestrationItem,
  OrchestrationItem,
  ScheduledId,
  SemVerRange,
  WarmMark,
} from "../../provider/provider.js";
import type { Database } from "./database.js";
import { loadEvents } from "./history.js";
import { type Identity, identify } from "./instances.js";
import { kvSnapshot } from "./kv.js";
import { lockLost } from "./refusals.js";
import { fromColumn, toColumn } from "./text-column.js";
import type { Transaction } from "./transaction.js";

const insertMessage = `
  INSERT INTO duroxide_orchestrator_queue
    (instance_id, state, due_at, visible_at, is_start, timer_execution_id, timer_id, work_item)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)
`;

export const unparkMessages = `
  UPDATE duroxide_orchestrator_queue SET state = 'ready' WHERE instance_id = ? AND state = 'parked'
`;

/** Whether a message has become visible, or a lock has expired. */
export const selectFallenDue = `
  SELECT 1 FROM duroxide_orchestrator_queue WHERE state = 'waiting' AND visible_at <= ?1
  UNION ALL
  SELECT 1 FROM duroxide_instance_locks WHERE locked_until <= ?1
  LIMIT 1
`;
export const readyVisibleMessages = `
  UPDATE duroxide_orchestrator_queue SET state = 'ready' WHERE state = 'waiting' AND visible_at <= ?
`;
export const deleteExpiredLocks = `
  DELETE FROM duroxide_instance_locks WHERE locked_until <= ? RETURNING instance_id, locked_at
`;
export const readyTaken = `
  UPDATE duroxide_orchestrator_queue SET state = 'ready'
  WHERE instance_id = ?1 AND visible_at <= ?2 AND state = 'taken'
`;

/**
 * The instance with the oldest message that can be fetched by a dispatcher that replays these versions. Where nobody
 * has pinned a version, everybody can.
 */
export const selectCandidate = `
  SELECT q.instance_id, i.orchestration_name, i.orchestration_version, i.current_execution_id
  FROM duroxide_orchestrator_queue AS q
  LEFT JOIN duroxide_instances AS i ON i.instance_id = q.instance_id
  LEFT JOIN duroxide_executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
  WHERE q.state = 'ready'
    AND NOT EXISTS (
      SELECT 1 FROM duroxide_instance_locks AS l WHERE l.instance_id = q.instance_id AND l.locked_until > ?1
    )
    AND (
      e.pinned_major IS NULL
      OR (e.pinned_major, e.pinned_minor, e.pinned_patch) BETWEEN (?2, ?3, ?4) AND (?5, ?6, ?7)
    )
  ORDER BY q.due_at, q.id LIMIT 1
`;

const insertLock = `
  INSERT INTO duroxide_instance_locks (instance_id, lock_token, locked_until, locked_at) VALUES (?, ?, ?, ?)
`;

/** Takes every visible message of the instance (O2), the parked ones too: their start is among them. */
export const takeMessages = `
  UPDATE duroxide_orchestrator_queue SET state = 'taken', attempt_count = attempt_count + 1
  WHERE instance_id = ?1 AND visible_at <= ?2
  RETURNING id, due_at, attempt_count, work_item
`;

/** Undoes a take: no lock, no attempt. */
export const parkTaken = `
  UPDATE duroxide_orchestrator_queue SET state = 'parked', attempt_count = attempt_count - 1
  WHERE instance_id = ?1 AND visible_at <= ?2 AND state = 'taken'
`;
const selectStart = `SELECT 1 FROM duroxide_orchestrator_queue WHERE instance_id = ? AND is_start = 1 LIMIT 1`;

export const deleteTaken = `
  DELETE FROM duroxide_orchestrator_queue WHERE instance_id = ?1 AND visible_at <= ?2 AND state = 'taken'
`;

/** Visible as they were before, so that they keep their place. */
export const abandonTaken = `
  UPDATE duroxide_orchestrator_queue SET state = 'ready', attempt_count = MAX(0, attempt_count - ?3)
  WHERE instance_id = ?1 AND visible_at <= ?2 AND state = 'taken'
`;
export const delayTaken = `
  UPDATE duroxide_orchestrator_queue
  SET state = 'waiting', attempt_count = MAX(0, attempt_count - ?3), visible_at = ?4
  WHERE instance_id = ?1 AND visible_at <= ?2 AND state = 'taken'
`;

export const deleteLiveLock = `
  DELETE FROM duroxide_instance_locks WHERE lock_token = ? AND locked_until > ? RETURNING instance_id, locked_at
`;
/** Also an expired one, as long as no fetch has noticed. */
export const deleteLock = `DELETE FROM duroxide_instance_locks WHERE lock_token = ? RETURNING instance_id, locked_at`;
export const renewLiveLock = `
  UPDATE duroxide_instance_locks SET locked_until = ?3 WHERE lock_token = ?1 AND locked_until > ?2
`;

/** Whether the instance has a message that waits for nothing but the lock. */
export const selectReadyMessage = `
  SELECT 1 FROM duroxide_orchestrator_queue WHERE instance_id = ? AND visible_at <= ? LIMIT 1
`;

export const deleteTimer = `
  DELETE FROM duroxide_orchestrator_queue WHERE instance_id = ? AND timer_execution_id = ? AND timer_id = ?
`;

/** When the passing of time alone makes a message visible, or ends a lock. */
export const selectNextDue = `
  SELECT MIN(at) AS at FROM (
    SELECT MIN(visible_at) AS at FROM duroxide_orchestrator_queue WHERE state = 'waiting' AND visible_at > ?1
    UNION ALL
    SELECT MIN(locked_until) AS at FROM duroxide_instance_locks WHERE locked_until > ?1
  )
`;

interface CandidateRow {
  readonly instance_id: string;
  readonly orchestration_name: string | null;
  readonly orchestration_version: string;
  readonly current_execution_id: number;
}

interface LockRow {
  readonly instance_id: string;
  readonly locked_at: number;
}

interface MessageRow {
  readonly id: number;
  readonly due_at: number;
  readonly attempt_count: number;
  readonly work_item: string;
}

/** The messages of one lock. */
interface Batch {
  readonly lockToken: string;
  readonly attemptCount: number;
  readonly rows: number;
  /** Those that could be decoded, oldest due time first. */
  readonly messages: readonly OrchestratorItem[];
}

const ALL_VERSIONS: SemVerRange = {
  min: { major: 0, minor: 0, patch: 0 },
  max: { major: Number.MAX_SAFE_INTEGER, minor: 0, patch: 0 },
};

const NO_VALUES: ReadonlyMap<string, KvEntry> = new Map();

export function enqueueMessage(tx: Transaction, item: OrchestratorItem, delayMs = 0): void {
  const instance = targetInstance(item);
  const dueAt = item.type === "TimerFired" ? item.fireAtMs : tx.now;
  const visibleAt = Math.max(dueAt, tx.timeIn(delayMs));
  const isVisible = visibleAt <= tx.now;
  const [timerExecutionId, timerId] = item.type === "TimerFired" ? [item.executionId, item.id] : [null, null];
  tx.db.run(
    insertMessage,
    toColumn(instance),
    isVisible ? "ready" : "waiting",
    dueAt,
    visibleAt,
    isStartLike(item) ? 1 : 0,
    timerExecutionId,
    timerId,
    encodeWorkItem(item),
  );
  if (isVisible) tx.effects.readyMessages += 1;
  else tx.effects.messageAt(visibleAt);
  if (isStartLike(item)) instanceMayBegin(tx, instance);
}

/** What was parked until somebody says what the instance is can be fetched now (O3). */
export function instanceMayBegin(tx: Transaction, instance: string): void {
  tx.effects.readyMessages += tx.db.run(unparkMessages, toColumn(instance));
  tx.effects.changedInstances.add(instance);
}

export function cancelTimer(tx: Transaction, { instance, executionId, id }: ScheduledId): void {
  tx.db.run(deleteTimer, toColumn(instance), executionId, id);
}

/** Whether a fetch may find something: a look that takes no lock. */
export function mayHaveMessages(db: Database, { capability }: FetchOrchestrationOptions, now: number): boolean {
  return oldestCandidate(db, capability, now) !== undefined || db.get(selectFallenDue, now) !== undefined;
}

export function fetchOrchestration(
  tx: Transaction,
  options: FetchOrchestrationOptions,
): LockedOrchestrationItem | null {
  readyWhatFellDue(tx); // O1
  for (;;) {
    const candidate = oldestCandidate(tx.db, options.capability, tx.now);
    if (candidate === undefined) return null;
    const instance = fromColumn(candidate.instance_id);
    const batch = lockAndTake(tx, instance, options.lockTimeoutMs);
    const identity = knownIdentity(candidate) ?? identify(tx.db, instance, batch.messages);
    if (identity === null) {
      setAside(tx, instance, batch);
      continue;
    }
    const item = describeItem(tx.db, instance, identity, batch.messages, options.warm?.get(instance));
    return { item, lockToken: batch.lockToken, attemptCount: batch.attemptCount };
  }
}

/** Ends a live lock and removes its batch: the first step of an ack. */
export function consumeBatch(tx: Transaction, operation: string, lockToken: string): string {
  const lock = tx.db.get<LockRow>(deleteLiveLock, lockToken, tx.now);
  if (lock === undefined) throw lockLost(operation, lockToken);
  tx.db.run(deleteTaken, lock.instance_id, lock.locked_at);
  return fromColumn(lock.instance_id);
}

export function abandonBatch(tx: Transaction, lockToken: string, options: AbandonOptions): void {
  const lock = tx.db.get<LockRow>(deleteLock, lockToken);
  if (lock === undefined) return;
  const takenBack = options.ignoreAttempt ? 1 : 0;
  if (options.delayMs !== undefined && options.delayMs > 0) {
    const visibleAt = tx.timeIn(options.delayMs);
    tx.db.run(delayTaken, lock.instance_id, lock.locked_at, takenBack, visibleAt);
    tx.effects.messageAt(visibleAt);
  } else {
    tx.db.run(abandonTaken, lock.instance_id, lock.locked_at, takenBack);
  }
  announceRelease(tx, fromColumn(lock.instance_id));
}

export function renewLock(tx: Transaction, lockToken: string, extendForMs: number): void {
  const renewed = tx.db.run(renewLiveLock, lockToken, tx.now, tx.timeIn(extendForMs));
  if (renewed === 0) throw lockLost("renewOrchestrationItemLock", lockToken);
}

/** What arrived while the instance was locked can be fetched now. */
export function announceRelease(tx: Transaction, instance: string): void {
  if (tx.db.get(selectReadyMessage, toColumn(instance), tx.now) !== undefined) tx.effects.readyMessages += 1;
}

/** When a message may become ready by the passing of time, after a look at `since` found none. */
export function nextMessageAt(db: Database, since: number): number | null {
  return db.get<{ readonly at: number | null }>(selectNextDue, since)?.at ?? null;
}

function readyWhatFellDue(tx: Transaction): void {
  if (tx.db.get(selectFallenDue, tx.now) === undefined) return;
  tx.effects.readyMessages += tx.db.run(readyVisibleMessages, tx.now);
  for (const { instance_id, locked_at } of tx.db.all<LockRow>(deleteExpiredLocks, tx.now)) {
    tx.db.run(readyTaken, instance_id, locked_at);
    tx.effects.readyMessages += 1;
  }
}

function oldestCandidate(db: Database, filter: CapabilityFilter | undefined, now: number): CandidateRow | undefined {
  const range = filter === undefined ? ALL_VERSIONS : filter.supportedVersions[0];
  if (range === undefined) return undefined;
  const { min, max } = range;
  return db.get(selectCandidate, now, min.major, min.minor, min.patch, max.major, max.minor, max.patch);
}

function knownIdentity(row: CandidateRow): Identity | null {
  if (row.orchestration_name === null) return null;
  return {
    name: fromColumn(row.orchestration_name),
    version: fromColumn(row.orchestration_version),
    executionId: row.current_execution_id,
  };
}

function lockAndTake(tx: Transaction, instance: string, lockTimeoutMs: number): Batch {
  const lockToken = tx.newToken();
  const lockedUntil = tx.timeIn(lockTimeoutMs);
  const instanceId = toColumn(instance);
  tx.db.run(insertLock, instanceId, lockToken, lockedUntil, tx.now);
  const rows = tx.db
    .all<MessageRow>(takeMessages, instanceId, tx.now)
    .sort((a, b) => a.due_at - b.due_at || a.id - b.id);
  tx.effects.messageAt(lockedUntil);
  return {
    lockToken,
    attemptCount: rows.reduce((highest, row) => Math.max(highest, row.attempt_count), 0),
    rows: rows.length,
    messages: decodeMessages(tx, rows),
  };
}

function decodeMessages(tx: Transaction, rows: readonly MessageRow[]): readonly OrchestratorItem[] {
  const messages: OrchestratorItem[] = [];
  for (const { id, work_item } of rows) {
    try {
      messages.push(orchestratorItem(decodeWorkItem(work_item)));
    } catch (error) {
      tx.effects.warnings.push(`Message row ${id} cannot be decoded and will be skipped: ${messageOf(error)}`); // O4
    }
  }
  return messages;
}

function orchestratorItem(item: WorkItem): OrchestratorItem {
  if (item.type === "ActivityExecute") throw new TypeError("ActivityExecute is no message to an orchestration");
  return item;
}

/**
 * Nobody has said yet what this instance is. Queue messages with no start on its way are dropped, by design; anything
 * else waits for the start.
 */
function setAside(tx: Transaction, instance: string, { lockToken, rows, messages }: Batch): void {
  const instanceId = toColumn(instance);
  const areQueueMessages = messages.length === rows && messages.every((item) => item.type === "QueueMessage");
  if (areQueueMessages && tx.db.get(selectStart, instanceId) === undefined) {
    tx.db.run(deleteTaken, instanceId, tx.now);
    tx.effects.warnings.push(`Dropped ${rows} queue message(s) to instance '${instance}', which nobody has started.`);
  } else {
    tx.db.run(parkTaken, instanceId, tx.now); // O3
  }
  tx.db.get(deleteLock, lockToken);
}

function describeItem(
  db: Database,
  instance: string,
  { name, version, executionId }: Identity,
  messages: readonly OrchestratorItem[],
  mark: WarmMark | undefined,
): OrchestrationItem {
  const item = { instance, orchestrationName: name, version, executionId, messages, isWarm: false };
  try {
    const tail = mark?.executionId === executionId ? loadTail(db, instance, mark) : null;
    if (tail !== null) return { ...item, history: tail, isWarm: true, historyError: null, kvSnapshot: NO_VALUES };
    const history = loadEvents(db, instance, executionId);
    return { ...item, history, historyError: null, kvSnapshot: kvSnapshot(db, instance) };
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
    return { ...item, history: [], historyError: error.message, kvSnapshot: NO_VALUES };
  }
}

/** Null where the event of the mark is not there: then the caller remembers something else than the store. */
function loadTail(db: Database, instance: string, mark: WarmMark): readonly Event[] | null {
  const tail = loadEvents(db, instance, mark.executionId, mark.lastEventId);
  return tail[0]?.eventId === mark.lastEventId ? tail : null;
}
