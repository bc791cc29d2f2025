// providers/sqlite/fetch-orchestration.ts — locks the instance that has waited longest, and hands out its messages.
//
//   F1. A fetch first lets expired locks lapse and makes ready what fell due; whatever lock it then meets is live.
//   F2. What ran ahead of its start is neither locked nor counted, and stands in nobody's way.
//   F3. A message that cannot be decoded is in the batch, though not handed out, and goes with its ack.

import { CodecError, messageOf } from "../../errors.js";
import { decodeWorkItem } from "../../history/codec.js";
import type { OrchestratorItem, WorkItem } from "../../history/work-item.js";
import { fromColumn, toColumn } from "../../provider/kit/text-column.js";
import type {
  CapabilityFilter,
  FetchOrchestrationOptions,
  KvEntry,
  LockedOrchestrationItem,
  OrchestrationItem,
  SemVerRange,
} from "../../provider/provider.js";
import type { Database } from "./database.js";
import { loadEvents } from "./history.js";
import { type Identity, identify } from "./instances.js";
import { kvSnapshot } from "./kv.js";
import { deleteLock, deleteTaken, type LockRow } from "./orchestrator-queue.js";
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
  SELECT q.instance_id, i.orchestration_name, i.orchestration_version, i.current_execution_id, i.last_commit
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

/** Replaces a lapsed lock. The candidate has no other, in the same transaction. */
const insertLock = `
  INSERT INTO duroxide_instance_locks (instance_id, lock_token, locked_until, locked_at) VALUES (?, ?, ?, ?)
  ON CONFLICT (instance_id) DO UPDATE SET
    lock_token = excluded.lock_token,
    locked_until = excluded.locked_until,
    locked_at = excluded.locked_at
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

interface CandidateRow {
  readonly instance_id: string;
  readonly orchestration_name: string | null;
  readonly orchestration_version: string;
  readonly current_execution_id: number;
  readonly last_commit: string | null;
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

/** Whether a fetch may find something: a look that takes no lock. */
export function mayHaveMessages(db: Database, { capability }: FetchOrchestrationOptions, now: number): boolean {
  return oldestCandidate(db, capability, now) !== undefined || db.get(selectFallenDue, now, now) !== undefined;
}

export function fetchOrchestration(
  tx: Transaction,
  options: FetchOrchestrationOptions,
): LockedOrchestrationItem | null {
  readyWhatFellDue(tx); // F1
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
    const warmAsOf = options.warm?.get(instance) === candidate.last_commit ? candidate.last_commit : null;
    const item = describeItem(tx.db, instance, identity, batch.messages, warmAsOf);
    return { item, lockToken: batch.lockToken, attemptCount: batch.attemptCount };
  }
}

function readyWhatFellDue(tx: Transaction): void {
  if (tx.db.get(selectFallenDue, tx.now, tx.now) === undefined) return;
  tx.db.run(unparkForVisibleStarts, tx.now);
  tx.effects.readyMessages += tx.db.run(readyVisibleMessages, tx.now);
  for (const { instance_id, locked_at } of tx.db.all<LockRow>(lapseExpiredLocks, tx.now)) {
    tx.db.run(readyTaken, instance_id, locked_at);
    tx.effects.readyMessages += 1;
  }
}

function oldestCandidate(db: Database, filter: CapabilityFilter | undefined, now: number): CandidateRow | undefined {
  const range = filter === undefined ? ALL_VERSIONS : filter.supportedVersions[0];
  if (range === undefined) return undefined;
  const { min, max } = range;
  return db.get(selectCandidate, now, now, min.major, min.minor, min.patch, max.major, max.minor, max.patch);
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
function setAside(tx: Transaction, instance: string, { lockToken, rows, messages }: Batch): void {
  const instanceId = toColumn(instance);
  const areQueueMessages = messages.length === rows && messages.every((item) => item.type === "QueueMessage");
  if (areQueueMessages && tx.db.get(selectStart, instanceId) === undefined) {
    tx.db.run(deleteTaken, instanceId, tx.now);
    tx.effects.warnings.push(`Dropped ${rows} queue message(s) to instance '${instance}', which nobody has started.`);
  } else {
    tx.db.run(parkTaken, instanceId, tx.now); // F2
  }
  tx.db.get(deleteLock, lockToken);
}

function describeItem(
  db: Database,
  instance: string,
  { name, version, executionId }: Identity,
  messages: readonly OrchestratorItem[],
  warmAsOf: string | null,
): OrchestrationItem {
  const item = { instance, orchestrationName: name, version, executionId, messages, warmAsOf };
  if (warmAsOf !== null) return { ...item, history: [], historyError: null, kvSnapshot: NO_VALUES };
  try {
    const history = loadEvents(db, instance, executionId);
    return { ...item, history, historyError: null, kvSnapshot: kvSnapshot(db, instance) };
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
    return { ...item, history: [], historyError: error.message, kvSnapshot: NO_VALUES };
  }
}
