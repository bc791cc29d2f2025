// providers/sqlite/fetch-orchestration.ts — locks the instance that has waited longest, and hands out its messages.
//
//   F1. A fetch first lets expired locks lapse and makes ready what fell due; whatever lock it then meets is live.
//   F2. What ran ahead of its start is neither locked nor counted, and stands in nobody's way.
//   F3. A message that cannot be decoded is in the batch, though not handed out, and goes with its ack.
//   F4. What was made in this transaction is handed over only where nothing older can be fetched.
//   F5. Before the commit whoever waits may have of that what everything is known of: that there is no lock, nor one that has
//       lapsed, and no history to go through. In its turn: past something that comes before it and has to wait for the commit only
//       where enough wait for all of it, so that the commit brings that to others.

import { CodecError, messageOf } from "../../errors.js";
import { decodeWorkItem } from "../../history/codec.js";
import type { OrchestratorItem, WorkItem } from "../../history/work-item.js";
import { fromColumn } from "../../provider/kit/text-column.js";
import type {
  ExecutionStatus,
  FetchOrchestrationOptions,
  KvEntry,
  LockedOrchestrationItem,
  OrchestrationItem,
  SemVer,
  SemVerRange,
} from "../../provider/provider.js";
import type { Database } from "./database.js";
import { loadEvents } from "./history.js";
import { type Identity, identify, newIdentity } from "./instances.js";
import type { InstanceFacts } from "./known-instances.js";
import { kvSnapshot } from "./kv.js";
import { isSecretOf } from "./lock-token.js";
import {
  deleteLock,
  deleteTaken,
  forgetLock,
  isAnyReady,
  newTurnLock,
  nextMessageAt,
  type TurnLock,
  turnTokenOf,
} from "./orchestrator-queue.js";
import type { Transaction } from "./transaction.js";

/** Whether a message has become visible, or a lock has expired. */
export const selectFallenDue = `
  SELECT 1 FROM duroxide_orchestrator_queue WHERE state = 'waiting' AND visible_at <= ?
  UNION ALL
  SELECT 1 FROM duroxide_instance_locks WHERE locked_until <= ?
  LIMIT 1
`;
/** What waits for a start takes its place in line as soon as the start is visible. */
export const unparkForVisibleStarts = `
  UPDATE duroxide_orchestrator_queue SET state = 'ready'
  WHERE state = 'parked'
    AND instance_id IN (
      SELECT instance_id FROM duroxide_orchestrator_queue
      WHERE state = 'waiting' AND visible_at <= ? AND is_start = 1
    )
`;
export const readyVisibleMessages = `
  UPDATE duroxide_orchestrator_queue SET state = 'ready' WHERE state = 'waiting' AND visible_at <= ?
`;
export const lapseExpiredLocks = `
  UPDATE duroxide_instance_locks SET locked_until = NULL WHERE locked_until <= ? RETURNING instance_id, locked_at
`;
export const readyTaken = `
  UPDATE duroxide_orchestrator_queue SET state = 'ready'
  WHERE instance_id = ? AND visible_at <= ? AND state = 'taken'
`;

/**
 * The instance with the oldest message that can be fetched by a dispatcher that replays these versions. Where nobody
 * has pinned a version, everybody can.
 */
export const selectCandidate = `
  SELECT q.instance_id, i.orchestration_name, i.orchestration_version, i.current_execution_id, i.last_commit, e.status,
         e.pinned_major, e.pinned_minor, e.pinned_patch, e.status IS NOT NULL OR EXISTS (
           SELECT 1 FROM duroxide_executions AS x WHERE x.instance_id = q.instance_id
         ) AS has_begun
  FROM duroxide_orchestrator_queue AS q
  LEFT JOIN duroxide_instances AS i ON i.instance_id = q.instance_id
  LEFT JOIN duroxide_executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
  WHERE q.state = 'ready' AND q.visible_at <= ?
    AND NOT EXISTS (
      SELECT 1 FROM duroxide_instance_locks AS l WHERE l.instance_id = q.instance_id AND l.locked_until > ?
    )
    AND (
      e.pinned_major IS NULL
      OR (e.pinned_major, e.pinned_minor, e.pinned_patch) BETWEEN (?, ?, ?) AND (?, ?, ?)
    )
  ORDER BY q.due_at, q.id LIMIT 1
`;

/** Of an instance, known or not, all that a fetch needs to know. */
export const selectInstance = `
  SELECT asked.instance_id, i.orchestration_name, i.orchestration_version, i.current_execution_id, i.last_commit,
         e.status, e.pinned_major, e.pinned_minor, e.pinned_patch, l.locked_until,
         EXISTS (SELECT 1 FROM duroxide_executions AS x WHERE x.instance_id = asked.instance_id) AS has_begun
  FROM (SELECT ? AS instance_id) AS asked
  LEFT JOIN duroxide_instances AS i ON i.instance_id = asked.instance_id
  LEFT JOIN duroxide_executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
  LEFT JOIN duroxide_instance_locks AS l ON l.instance_id = asked.instance_id
`;
/** What is left to ask where the rest is known. */
export const selectLastCommit = `
  SELECT i.last_commit, l.locked_until
  FROM duroxide_instances AS i
  LEFT JOIN duroxide_instance_locks AS l ON l.instance_id = i.instance_id
  WHERE i.instance_id = ?
`;

/** Takes every visible message of the instance. */
export const takeMessages = `
  UPDATE duroxide_orchestrator_queue SET state = 'taken', attempt_count = attempt_count + 1
  WHERE instance_id = ? AND visible_at <= ?
  RETURNING id, due_at, attempt_count, work_item
`;

/** Undoes a take: no lock, no attempt. */
export const parkTaken = `
  UPDATE duroxide_orchestrator_queue SET state = 'parked', attempt_count = attempt_count - 1
  WHERE instance_id = ? AND visible_at <= ? AND state = 'taken'
`;
const selectStart = `SELECT 1 FROM duroxide_orchestrator_queue WHERE instance_id = ? AND is_start = 1 LIMIT 1`;

interface LapsedRow {
  readonly instance_id: string;
  readonly locked_at: number;
}

interface CandidateRow {
  readonly instance_id: string;
  readonly orchestration_name: string | null;
  readonly orchestration_version: string;
  readonly current_execution_id: number;
  readonly last_commit: string | null;
  /** Of the current execution. */
  readonly status: ExecutionStatus | null;
  readonly pinned_major: number | null;
  readonly pinned_minor: number | null;
  readonly pinned_patch: number | null;
  /** Whether it has an execution. 0: then it has no history and no values either. */
  readonly has_begun: number;
}

interface LockableRow extends CandidateRow {
  readonly locked_until: number | null;
}

interface Lockable extends LockableRow {
  /** Whether nobody had to ask. Then an instance without the end of a lock has no lock at all. */
  readonly isKnown: boolean;
}

interface MessageRow {
  readonly id: number;
  readonly due_at: number;
  readonly attempt_count: number;
  readonly work_item: string;
}

/** The messages of one lock. */
interface Batch {
  readonly lock: TurnLock;
  readonly token: string;
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

export function fetchOrchestration(
  tx: Transaction,
  options: FetchOrchestrationOptions,
): LockedOrchestrationItem | null {
  readyWhatFellDue(tx); // F1
  const range = options.capability === undefined ? ALL_VERSIONS : options.capability.supportedVersions[0];
  if (range === undefined) return null;
  return fetchNew(tx, options, range) ?? fetchStored(tx, options, range);
}

/** Where everything that waits has just been made, it is handed over as it is written. F4 */
function fetchNew(
  tx: Transaction,
  options: FetchOrchestrationOptions,
  range: SemVerRange,
): LockedOrchestrationItem | null {
  for (let row = nextNew(tx); row !== null; row = nextNew(tx)) {
    if (!isReplayable(row, range)) return null;
    const locked = describe(tx, row, options, takeNew(tx, row, options));
    if (locked !== null) return locked;
  }
  return null;
}

/** Null: there is none, something older can be fetched, or the tables have to tell. */
function nextNew(tx: Transaction): Lockable | null {
  for (let instanceId = tx.newMessages.first(); instanceId !== undefined; instanceId = tx.newMessages.first()) {
    if (isAnyReady(tx)) return null;
    const row = tx.newMessages.isLocked(instanceId) ? null : lockable(tx, instanceId);
    if (row === null || isHeld(tx, row)) {
      tx.newMessages.holdBack(instanceId);
      continue;
    }
    const isUnknown = row.orchestration_name === null && !tx.newMessages.hasStart(instanceId);
    return isUnknown ? null : row; // What was parked for an unknown one is in its batch, too.
  }
  return null;
}

/** One whose turn may go ahead. */
export type AheadCandidate = Lockable;

/** The first in line whose turns whoever waits may have before the commit, as far as that is not for him to say. F5 */
export function aheadInLine(tx: Transaction, most: number, passesOver: boolean): AheadCandidate[] {
  readyWhatFellDue(tx); // F1
  if (isAnyReady(tx)) return [];
  const candidates: AheadCandidate[] = [];
  for (const instanceId of tx.newMessages.inLine()) {
    if (candidates.length >= most) break;
    const mayGoAhead = tx.newMessages.mayGoAhead(instanceId);
    if (tx.newMessages.isLocked(instanceId) || (passesOver && !mayGoAhead)) continue;
    const row = lockable(tx, instanceId);
    if (isHeld(tx, row)) continue;
    const isStarted = row.has_begun !== 0 || tx.newMessages.hasStart(instanceId); // F2
    if (row.isKnown && mayGoAhead && isStarted) candidates.push(row);
    else if (!passesOver) break;
  }
  return candidates;
}

/** As `fetchOrchestration`, of one that may go ahead. Null: not to this one. F5 */
export function fetchAhead(
  tx: Transaction,
  row: AheadCandidate,
  options: FetchOrchestrationOptions,
): LockedOrchestrationItem | null {
  const range = options.capability === undefined ? ALL_VERSIONS : options.capability.supportedVersions[0];
  if (range === undefined || !isReplayable(row, range)) return null;
  const isWarm = isSecretOf(row.last_commit, options.warm?.get(fromColumn(row.instance_id)));
  if (row.has_begun !== 0 && !isWarm) return null;
  return describe(tx, row, options, takeNew(tx, row, options));
}

function takeNew(tx: Transaction, row: CandidateRow, options: FetchOrchestrationOptions): Batch {
  const lockedUntil = lockEnd(tx, options);
  const lock = lockInstance(tx, row, lockedUntil);
  const token = turnTokenOf(lock);
  const { messages, rows } = tx.newMessages.take(row.instance_id);
  tx.own.lockedTurn({ lock, token, lockedUntil, rows });
  return { lock, token, attemptCount: 1, rows: rows.length, messages };
}

/** As the tables would tell of an instance that is not in them. */
const NEVER_RUN = Object.freeze({
  orchestration_name: null,
  orchestration_version: "",
  current_execution_id: 0,
  last_commit: null,
  status: null,
  pinned_major: null,
  pinned_minor: null,
  pinned_patch: null,
  has_begun: 0,
});

function lockable(tx: Transaction, instanceId: string): Lockable {
  const current = tx.known.current(instanceId);
  if (current === null && tx.known.starting(instanceId, tx.db.epoch) === null) {
    return { ...asTheTablesTell(tx, instanceId), isKnown: false };
  }
  const locked_until = tx.own.turnEnd(instanceId);
  const isKnown = locked_until === null;
  if (current === null) return { ...NEVER_RUN, instance_id: instanceId, locked_until, isKnown };
  const { facts, secret } = current;
  return {
    instance_id: instanceId,
    orchestration_name: facts.orchestration_name,
    orchestration_version: facts.orchestration_version,
    current_execution_id: facts.current_execution_id,
    last_commit: secret,
    status: "Running",
    pinned_major: facts.pinned_major,
    pinned_minor: facts.pinned_minor,
    pinned_patch: facts.pinned_patch,
    has_begun: 1,
    locked_until,
    isKnown,
  };
}

function isHeld(tx: Transaction, row: LockableRow): boolean {
  return row.locked_until !== null && row.locked_until > tx.now;
}

function asTheTablesTell(tx: Transaction, instanceId: string): LockableRow {
  const last = tx.db.get<Pick<LockableRow, "last_commit" | "locked_until">>(selectLastCommit, instanceId);
  const known = last === undefined ? null : tx.known.asOf(instanceId, last.last_commit);
  if (last === undefined || known === null) return tx.db.get<LockableRow>(selectInstance, instanceId)!;
  const { last_commit, locked_until } = last;
  return { ...known, instance_id: instanceId, last_commit, locked_until, status: "Running", has_begun: 1 };
}

function isReplayable(row: CandidateRow, { min, max }: SemVerRange): boolean {
  const { pinned_major: major, pinned_minor: minor, pinned_patch: patch } = row;
  if (major === null || minor === null || patch === null) return true;
  const pinned = { major, minor, patch };
  return compareVersions(min, pinned) <= 0 && compareVersions(pinned, max) <= 0;
}

function compareVersions(a: SemVer, b: SemVer): number {
  return a.major - b.major || a.minor - b.minor || a.patch - b.patch;
}

function fetchStored(
  tx: Transaction,
  options: FetchOrchestrationOptions,
  range: SemVerRange,
): LockedOrchestrationItem | null {
  tx.newMessages.writeAll();
  while (isAnyReady(tx)) {
    const candidate = oldestCandidate(tx, range);
    if (candidate === undefined) return null;
    const locked = describe(tx, candidate, options, takeBatch(tx, candidate, options));
    if (locked !== null) return locked;
  }
  return null;
}

/** Null where nobody knows what the instance is. */
function describe(
  tx: Transaction,
  candidate: CandidateRow,
  options: FetchOrchestrationOptions,
  batch: Batch,
): LockedOrchestrationItem | null {
  const instance = fromColumn(candidate.instance_id);
  const isNew = candidate.has_begun === 0;
  const remembered = options.warm?.get(instance);
  const warmAsOf = isSecretOf(candidate.last_commit, remembered) ? (remembered ?? null) : null;
  if (!isNew && warmAsOf === null) tx.newEvents.writeAll(); // They may be its own.
  const identity =
    knownIdentity(candidate) ?? (isNew ? newIdentity(batch.messages) : identify(tx.db, instance, batch.messages));
  if (identity === null) {
    setAside(tx, instance, batch);
    return null;
  }
  if (isNew || candidate.status === "Running") {
    tx.known.fetched(batch.lock.secret, isNew ? null : factsOf(candidate));
  }
  const past = isNew || warmAsOf !== null ? NO_PAST : pastOf(tx.db, instance, identity.executionId);
  return {
    item: {
      instance,
      orchestrationName: identity.name,
      version: identity.version,
      executionId: identity.executionId,
      history: past.history,
      warmAsOf,
      historyError: past.historyError,
      messages: batch.messages,
      kvSnapshot: past.kvSnapshot,
    },
    lockToken: batch.token,
    attemptCount: batch.attemptCount,
  };
}

function factsOf(row: CandidateRow): InstanceFacts {
  return {
    orchestration_name: row.orchestration_name!,
    orchestration_version: row.orchestration_version,
    current_execution_id: row.current_execution_id,
    pinned_major: row.pinned_major,
    pinned_minor: row.pinned_minor,
    pinned_patch: row.pinned_patch,
  };
}

function readyWhatFellDue(tx: Transaction): void {
  if (tx.isDueReady) return;
  tx.isDueReady = true;
  tx.newMessages.writeTaken();
  if (tx.db.get(selectFallenDue, tx.now, tx.now) !== undefined) readyFallenDue(tx);
  tx.onDueReady?.(nextMessageAt(tx.db, tx.now));
}

function readyFallenDue(tx: Transaction): void {
  tx.db.run(unparkForVisibleStarts, tx.now);
  tx.effects.readyMessages += tx.db.run(readyVisibleMessages, tx.now);
  for (const { instance_id, locked_at } of tx.db.changeAll<LapsedRow>(lapseExpiredLocks, tx.now)) {
    tx.db.run(readyTaken, instance_id, locked_at);
    tx.effects.readyMessages += 1;
  }
}

function oldestCandidate(tx: Transaction, { min, max }: SemVerRange): CandidateRow | undefined {
  const versions = [min.major, min.minor, min.patch, max.major, max.minor, max.patch] as const;
  return tx.db.get(selectCandidate, tx.now, tx.now, ...versions);
}

function knownIdentity(row: CandidateRow): Identity | null {
  if (row.orchestration_name === null) return null;
  return {
    name: fromColumn(row.orchestration_name),
    version: fromColumn(row.orchestration_version),
    executionId: row.current_execution_id,
  };
}

function lockEnd(tx: Transaction, { lockTimeoutMs }: FetchOrchestrationOptions): number {
  const lockedUntil = tx.timeIn(lockTimeoutMs);
  if (lockedUntil <= tx.now) tx.isDueReady = false;
  tx.effects.messageAt(lockedUntil);
  return lockedUntil;
}

function lockInstance(tx: Transaction, row: CandidateRow, lockedUntil: number): TurnLock {
  const lock = newTurnLock(tx, row.instance_id, row.status === "Running" ? row.current_execution_id : 0);
  tx.newMessages.lock(row.instance_id, lock.secret, lockedUntil, lock.lockedAt);
  return lock;
}

function takeBatch(tx: Transaction, candidate: CandidateRow, options: FetchOrchestrationOptions): Batch {
  const lockedUntil = lockEnd(tx, options);
  const lock = lockInstance(tx, candidate, lockedUntil);
  const token = turnTokenOf(lock);
  tx.newMessages.writeAll();
  const rows = tx.db
    .changeAll<MessageRow>(takeMessages, candidate.instance_id, tx.now)
    .sort((a, b) => a.due_at - b.due_at || a.id - b.id);
  tx.own.lockedTurn({ lock, token, lockedUntil, rows: rows.map(({ id }) => id) });
  return {
    lock,
    token,
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
      tx.effects.warnings.push(`Message row ${id} cannot be decoded and will be skipped: ${messageOf(error)}`); // F3
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
function setAside(tx: Transaction, instance: string, { lock, rows, messages }: Batch): void {
  tx.newMessages.writeAll();
  const { instanceId, secret } = lock;
  forgetLock(tx, instanceId);
  const areQueueMessages = messages.length === rows && messages.every((item) => item.type === "QueueMessage");
  if (areQueueMessages && tx.db.get(selectStart, instanceId) === undefined) {
    tx.db.run(deleteTaken, instanceId, tx.now);
    tx.effects.warnings.push(`Dropped ${rows} queue message(s) to instance '${instance}', which nobody has started.`);
  } else {
    tx.db.run(parkTaken, instanceId, tx.now); // F2
  }
  tx.db.run(deleteLock, instanceId, secret);
}

type Past = Pick<OrchestrationItem, "history" | "historyError" | "kvSnapshot">;

const NO_PAST: Past = Object.freeze({ history: Object.freeze([]), historyError: null, kvSnapshot: NO_VALUES });

function pastOf(db: Database, instance: string, executionId: number): Past {
  try {
    return { history: loadEvents(db, instance, executionId), historyError: null, kvSnapshot: kvSnapshot(db, instance) };
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
    return { history: [], historyError: error.message, kvSnapshot: NO_VALUES };
  }
}
