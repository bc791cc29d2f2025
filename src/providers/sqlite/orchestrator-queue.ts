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
import { toColumn, toNullableColumn } from "../../provider/kit/text-column.js";
import type { AbandonOptions, ScheduledId } from "../../provider/provider.js";
import type { Database } from "./database.js";
import { newSecret, partsOf, tokenOf } from "./lock-token.js";
import type { OwnTurn } from "./own-locks.js";
import { tablesIn } from "./statements.js";
import type { Transaction } from "./transaction.js";

const insertMessage = `
  INSERT INTO duroxide_orchestrator_queue
    (id, instance_id, state, due_at, visible_at, is_start, parent_instance_id, timer_execution_id, timer_id, work_item)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
`;

export const unparkMessages = `
  UPDATE duroxide_orchestrator_queue SET state = 'ready' WHERE instance_id = ? AND state = 'parked'
`;

export const selectParked = `
  SELECT 1 FROM duroxide_orchestrator_queue WHERE instance_id = ? AND state = 'parked' LIMIT 1
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
  UPDATE duroxide_instance_locks SET lock_token = NULL, locked_until = ? WHERE instance_id = ? AND lock_token = ?
`;
export const deleteLiveLock = `
  DELETE FROM duroxide_instance_locks WHERE instance_id = ? AND lock_token = ? AND locked_until > ?
`;
/** Live, expired or lapsed. */
export const deleteLock = `DELETE FROM duroxide_instance_locks WHERE instance_id = ? AND lock_token = ?`;
export const renewLiveLock = `
  UPDATE duroxide_instance_locks SET locked_until = ? WHERE instance_id = ? AND lock_token = ? AND locked_until > ?
`;

/** Whether the instance has a message that waits for nothing but the lock. */
export const selectReadyMessage = `
  SELECT 1 FROM duroxide_orchestrator_queue WHERE instance_id = ? AND visible_at <= ? LIMIT 1
`;

export const deleteTimer = `
  DELETE FROM duroxide_orchestrator_queue WHERE instance_id = ? AND timer_execution_id = ? AND timer_id = ?
`;

export const selectReady = `SELECT 1 FROM duroxide_orchestrator_queue WHERE state = 'ready' LIMIT 1`;
export const MESSAGES = tablesIn("duroxide_orchestrator_queue");

/** When the passing of time alone makes a message visible, or ends a lock. */
export const selectNextDue = `
  SELECT MIN(at) AS at FROM (
    SELECT MIN(visible_at) AS at FROM duroxide_orchestrator_queue WHERE state = 'waiting' AND visible_at > ?
    UNION ALL
    SELECT MIN(locked_until) AS at FROM duroxide_instance_locks WHERE locked_until > ?
  )
`;

/** The lock of an instance, as its token tells. */
export interface TurnLock {
  /** As a column. */
  readonly instanceId: string;
  readonly secret: string;
  /** The messages of its batch were visible then. */
  readonly lockedAt: number;
  /** The instance's current execution, which was running then; 0: there was none. */
  readonly executionId: number;
}

export function newTurnLock(tx: Transaction, instanceId: string, executionId: number): TurnLock {
  return { instanceId, executionId, lockedAt: tx.now, secret: newSecret(tx.newToken) };
}

export function turnTokenOf({ secret, lockedAt, executionId, instanceId }: TurnLock): string {
  return tokenOf(secret, `${lockedAt}:${executionId}:${instanceId}`);
}

export function turnLockOf(token: string): TurnLock {
  const { secret, place } = partsOf(token);
  const first = place.indexOf(":");
  const second = place.indexOf(":", first + 1);
  return {
    secret,
    lockedAt: Number(place.slice(0, first)),
    executionId: Number(place.slice(first + 1, second)),
    instanceId: place.slice(second + 1),
  };
}

/**
 * `mayGoAhead`: whether its turn may be taken before it is committed. Where that turn ends the process, whoever sent it must have
 * been counted.
 */
export function enqueueMessage(tx: Transaction, item: OrchestratorItem, delayMs = 0, mayGoAhead = false): void {
  const instance = targetInstance(item);
  const instanceId = toColumn(instance);
  const isStart = isStartLike(item);
  const parentId = toNullableColumn((isStart ? item.parentInstance : null) ?? null);
  const dueAt = item.type === "TimerFired" ? item.fireAtMs : tx.now;
  const visibleAt = Math.max(dueAt, tx.timeIn(delayMs));
  const isVisible = visibleAt <= tx.now;
  const hasParked = isStart && hasParkedMessages(tx, instanceId);
  tx.touch(instanceId);
  if (isVisible && item.type !== "TimerFired") {
    tx.newMessages.add(instanceId, { item, isStart, parentId, at: tx.now, mayGoAhead });
  } else {
    const timer = item.type === "TimerFired" ? ([item.executionId, item.id] as const) : ([null, null] as const);
    const state = isVisible ? "ready" : "waiting";
    tx.newMessages.writeOf(instanceId);
    const place = [tx.newMessages.nextId(), instanceId, state, dueAt, visibleAt] as const;
    tx.db.runBlindly(insertMessage, ...place, isStart ? 1 : 0, parentId, ...timer, encodeWorkItem(item));
  }
  if (isVisible) tx.effects.readyMessages += 1;
  else tx.effects.messageAt(visibleAt);
  if (!isStart) return;
  tx.known.anotherStart(instanceId);
  mayBegin(tx, instance, hasParked);
}

/** What was parked until somebody says what the instance is can be fetched now. */
export function instanceMayBegin(tx: Transaction, instance: string): void {
  mayBegin(tx, instance, hasParkedMessages(tx, toColumn(instance)));
}

function mayBegin(tx: Transaction, instance: string, hasParked: boolean): void {
  if (hasParked) tx.effects.readyMessages += tx.db.run(unparkMessages, toColumn(instance));
  tx.effects.changed(instance);
}

function hasParkedMessages(tx: Transaction, instanceId: string): boolean {
  return tx.db.getOf(instanceId, selectParked, instanceId) !== undefined;
}

export function cancelTimer(tx: Transaction, { instance, executionId, id }: ScheduledId): void {
  const instanceId = toColumn(instance);
  forgetLock(tx, instanceId); // It may be in its batch.
  tx.touch(instanceId);
  tx.db.runBlindly(deleteTimer, instanceId, executionId, id);
}

/** Ends a live lock and removes its batch: the first step of an ack. Answers whose it was, as a column. */
export function consumeBatch(tx: Transaction, operation: string, token: string): TurnLock {
  const own = tx.own.endTurn(token, tx.now);
  if (own !== null) {
    removeBatch(tx, own);
    return own.lock;
  }
  const lock = turnLockOf(token);
  const { instanceId, secret, lockedAt } = lock;
  if (tx.newMessages.isLocked(instanceId)) tx.newMessages.writeTaken();
  if (tx.db.run(deleteLiveLock, instanceId, secret, tx.now) === 0) throw lockLost(operation, token);
  tx.db.run(deleteTaken, instanceId, lockedAt);
  return lock;
}

function removeBatch(tx: Transaction, { lock, rows }: OwnTurn): void {
  if (tx.newMessages.useUp(lock.instanceId, rows)) return;
  tx.gone.lock(lock.instanceId);
  for (const row of rows) tx.gone.message(row);
}

export function abandonBatch(tx: Transaction, token: string, options: AbandonOptions): void {
  const { delayMs = 0, ignoreAttempt = false } = options;
  const lock = turnLockOf(token);
  forgetLock(tx, lock.instanceId);
  if (delayMs > 0) holdBatch(tx, lock, tx.timeIn(delayMs), ignoreAttempt);
  else giveBack(tx, lock, ignoreAttempt);
}

/** What becomes of it is for the tables to tell. */
export function forgetLock(tx: Transaction, instanceId: string): void {
  tx.own.forgetTurn(instanceId);
  tx.known.forget(instanceId);
}

function giveBack(tx: Transaction, { instanceId, secret, lockedAt }: TurnLock, ignoreAttempt: boolean): void {
  if (tx.db.run(deleteLock, instanceId, secret) === 0) return;
  tx.db.run(releaseBatch, ignoreAttempt ? 1 : 0, instanceId, lockedAt);
  announceRelease(tx, instanceId);
}

function holdBatch(
  tx: Transaction,
  { instanceId, secret, lockedAt }: TurnLock,
  until: number,
  ignoreAttempt: boolean,
): void {
  if (tx.db.run(holdLock, until, instanceId, secret) === 0) return;
  if (ignoreAttempt) tx.db.run(takeBackAttempts, instanceId, lockedAt);
  tx.effects.messageAt(until);
}

export function renewLock(tx: Transaction, token: string, extendForMs: number): void {
  const { instanceId, secret } = turnLockOf(token);
  forgetLock(tx, instanceId);
  const lockedUntil = tx.timeIn(extendForMs);
  const renewed = tx.db.run(renewLiveLock, lockedUntil, instanceId, secret, tx.now);
  if (renewed === 0) throw lockLost("renewOrchestrationItemLock", token);
  tx.effects.messageAt(lockedUntil); // It may end earlier than it would have.
}

/** Whether the table has a message that waits for nothing, or nothing but a lock. */
export function isAnyReady({ db }: Transaction): boolean {
  return db.hasReady(MESSAGES, selectReady);
}

/** What arrived while the instance was locked can be fetched now. */
export function announceRelease(tx: Transaction, instanceId: string): void {
  const isAwaited =
    tx.newMessages.release(instanceId) ||
    (isAnyReady(tx) && tx.db.get(selectReadyMessage, instanceId, tx.now) !== undefined);
  if (isAwaited) tx.effects.readyMessages += 1;
}

/** When a message may become ready by the passing of time, after a look at `since` found none. */
export function nextMessageAt(db: Database, since: number): number | null {
  return db.get<{ readonly at: number | null }>(selectNextDue, since, since)?.at ?? null;
}
