// providers/sqlite/orchestrator-queue.ts — messages to instances, and the locks under which they are handed out.
//
// The states of a message and the ways between them stand in `schema.ts`; the fetch is in `fetch-orchestration.ts`.
//
//   O1. A batch is what was visible when its lock was taken: `visible_at` not after `locked_at`, and fetched at least
//       once. Its state is 'taken' as long as the lock has not lapsed. What arrives later has never been fetched.

import { encodeWorkItem } from "../../history/codec.js";
import type { OrchestratorItem } from "../../history/work-item.js";
import { isStartLike, targetInstance } from "../../history/work-item.js";
import { lockLost } from "../../provider/kit/refusals.js";
import { fromColumn, toColumn, toNullableColumn } from "../../provider/kit/text-column.js";
import type { AbandonOptions, ScheduledId } from "../../provider/provider.js";
import type { Database } from "./database.js";
import type { Transaction } from "./transaction.js";

const insertMessage = `
  INSERT INTO duroxide_orchestrator_queue
    (instance_id, state, due_at, visible_at, is_start, parent_instance_id, timer_execution_id, timer_id, work_item)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
`;

export const unparkMessages = `
  UPDATE duroxide_orchestrator_queue SET state = 'ready' WHERE instance_id = ? AND state = 'parked'
`;

export const deleteTaken = `
  DELETE FROM duroxide_orchestrator_queue WHERE instance_id = ? AND visible_at <= ? AND state = 'taken'
`;

/** Touches the batch only (O1). Its messages are visible as they were before, so that they keep their place. */
export const releaseBatch = `
  UPDATE duroxide_orchestrator_queue SET state = 'ready', attempt_count = attempt_count - ?
  WHERE instance_id = ? AND visible_at <= ? AND attempt_count > 0
`;
/** Touches the batch only (O1). */
export const takeBackAttempts = `
  UPDATE duroxide_orchestrator_queue SET attempt_count = attempt_count - 1
  WHERE instance_id = ? AND visible_at <= ? AND attempt_count > 0
`;

/**
 * Makes it a lock that nobody owns, until that time. Its batch stays taken, and later messages wait behind it: all of
 * them keep their order.
 */
export const holdLock = `
  UPDATE duroxide_instance_locks SET lock_token = NULL, locked_until = ? WHERE lock_token = ?
  RETURNING instance_id, locked_at
`;
export const deleteLiveLock = `
  DELETE FROM duroxide_instance_locks WHERE lock_token = ? AND locked_until > ? RETURNING instance_id, locked_at
`;
/** Live, expired or lapsed. */
export const deleteLock = `DELETE FROM duroxide_instance_locks WHERE lock_token = ? RETURNING instance_id, locked_at`;
export const renewLiveLock = `
  UPDATE duroxide_instance_locks SET locked_until = ? WHERE lock_token = ? AND locked_until > ?
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
    SELECT MIN(visible_at) AS at FROM duroxide_orchestrator_queue WHERE state = 'waiting' AND visible_at > ?
    UNION ALL
    SELECT MIN(locked_until) AS at FROM duroxide_instance_locks WHERE locked_until > ?
  )
`;

export interface LockRow {
  readonly instance_id: string;
  readonly locked_at: number;
}

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
    toNullableColumn((isStartLike(item) ? item.parentInstance : null) ?? null),
    timerExecutionId,
    timerId,
    encodeWorkItem(item),
  );
  if (isVisible) tx.effects.readyMessages += 1;
  else tx.effects.messageAt(visibleAt);
  if (isStartLike(item)) instanceMayBegin(tx, instance);
}

/** What was parked until somebody says what the instance is can be fetched now. */
export function instanceMayBegin(tx: Transaction, instance: string): void {
  tx.effects.readyMessages += tx.db.run(unparkMessages, toColumn(instance));
  tx.effects.changedInstances.add(instance);
}

export function cancelTimer(tx: Transaction, { instance, executionId, id }: ScheduledId): void {
  tx.db.run(deleteTimer, toColumn(instance), executionId, id);
}

/** Ends a live lock and removes its batch: the first step of an ack. */
export function consumeBatch(tx: Transaction, operation: string, lockToken: string): string {
  const lock = tx.db.get<LockRow>(deleteLiveLock, lockToken, tx.now);
  if (lock === undefined) throw lockLost(operation, lockToken);
  tx.db.run(deleteTaken, lock.instance_id, lock.locked_at);
  return fromColumn(lock.instance_id);
}

export function abandonBatch(tx: Transaction, lockToken: string, options: AbandonOptions): void {
  const { delayMs = 0, ignoreAttempt = false } = options;
  if (delayMs > 0) holdBatch(tx, lockToken, tx.timeIn(delayMs), ignoreAttempt);
  else giveBack(tx, lockToken, ignoreAttempt);
}

function giveBack(tx: Transaction, lockToken: string, ignoreAttempt: boolean): void {
  const lock = tx.db.get<LockRow>(deleteLock, lockToken);
  if (lock === undefined) return;
  tx.db.run(releaseBatch, ignoreAttempt ? 1 : 0, lock.instance_id, lock.locked_at);
  announceRelease(tx, fromColumn(lock.instance_id));
}

function holdBatch(tx: Transaction, lockToken: string, until: number, ignoreAttempt: boolean): void {
  const lock = tx.db.get<LockRow>(holdLock, until, lockToken);
  if (lock === undefined) return;
  if (ignoreAttempt) tx.db.run(takeBackAttempts, lock.instance_id, lock.locked_at);
  tx.effects.messageAt(until);
}

export function renewLock(tx: Transaction, lockToken: string, extendForMs: number): void {
  const renewed = tx.db.run(renewLiveLock, tx.timeIn(extendForMs), lockToken, tx.now);
  if (renewed === 0) throw lockLost("renewOrchestrationItemLock", lockToken);
}

/** What arrived while the instance was locked can be fetched now. */
export function announceRelease(tx: Transaction, instance: string): void {
  if (tx.db.get(selectReadyMessage, toColumn(instance), tx.now) !== undefined) tx.effects.readyMessages += 1;
}

/** When a message may become ready by the passing of time, after a look at `since` found none. */
export function nextMessageAt(db: Database, since: number): number | null {
  return db.get<{ readonly at: number | null }>(selectNextDue, since, since)?.at ?? null;
}
