// providers/sqlite/instances.ts — what is known of an instance and its executions beside their histories.
//
//   I1. An instance's row is written only by a turn that names both orchestration and version. An execution's row is
//       written by every turn. Neither needs the other.
//   I2. Without a row, an instance is known by its history; without history, by its start.

import { decodeEvent, decodeWorkItem } from "../../history/codec.js";
import { INITIAL_EXECUTION_ID } from "../../history/event.js";
import type { ContinueAsNew, StartOrchestration, WorkItem } from "../../history/work-item.js";
import { isStartLike } from "../../history/work-item.js";
import type { ProvenStarts } from "../../provider/kit/proven-starts.js";
import { identityInEvent, identityInStart, type StartIdentity } from "../../provider/kit/start-identity.js";
import { fromColumn, fromNullableColumn, toColumn, toNullableColumn } from "../../provider/kit/text-column.js";
import type {
  EnqueueOutcome,
  ExecutionState,
  ExecutionStatus,
  InstanceStats,
  InstanceStatus,
  TurnCommit,
} from "../../provider/provider.js";
import type { Database } from "./database.js";
import { corruptHistory, latestExecution, latestStart } from "./history.js";
import { kvValues } from "./kv.js";
import { enqueueMessage, type TurnLock } from "./orchestrator-queue.js";
import type { Transaction } from "./transaction.js";

/** Creates the instance or renames it. The parent is set once; the current execution never goes back. */
const upsertInstance = `
  INSERT INTO duroxide_instances
    (instance_id, orchestration_name, orchestration_version, current_execution_id, parent_instance_id,
     last_commit, updated_at, created_at, created_order)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, (SELECT COALESCE(MAX(created_order), 0) + 1 FROM duroxide_instances WHERE created_at = ?))
  ON CONFLICT DO UPDATE SET
    orchestration_name = excluded.orchestration_name,
    orchestration_version = excluded.orchestration_version,
    current_execution_id = MAX(current_execution_id, excluded.current_execution_id),
    last_commit = excluded.last_commit,
    updated_at = excluded.updated_at
`;

/** Does nothing for an instance that is not known. */
const advanceInstance = `
  UPDATE duroxide_instances SET current_execution_id = MAX(current_execution_id, ?), last_commit = ?, updated_at = ?
  WHERE instance_id = ?
`;
const forgetLastCommit = `UPDATE duroxide_instances SET last_commit = NULL WHERE instance_id = ?`;

const ensureExecution = `
  INSERT INTO duroxide_executions (instance_id, execution_id, started_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING
`;
const setExecutionStatus = `
  UPDATE duroxide_executions SET status = ?, output = ?, completed_at = ? WHERE instance_id = ? AND execution_id = ?
`;
const ensurePinned = `
  INSERT INTO duroxide_executions
    (instance_id, execution_id, started_at, pinned_major, pinned_minor, pinned_patch)
  VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET
    pinned_major = excluded.pinned_major, pinned_minor = excluded.pinned_minor, pinned_patch = excluded.pinned_patch
`;

const setCustomStatus = `
  UPDATE duroxide_instances SET custom_status = ?, custom_status_version = custom_status_version + 1
  WHERE instance_id = ?
`;
const selectCustomStatus = `
  SELECT custom_status, custom_status_version FROM duroxide_instances
  WHERE instance_id = ? AND custom_status_version > ?
`;

const selectInstance = `
  SELECT i.orchestration_name, i.orchestration_version, i.current_execution_id, i.custom_status,
         i.custom_status_version, e.status, e.output
  FROM duroxide_instances AS i
  LEFT JOIN duroxide_executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
  WHERE i.instance_id = ?
`;
const selectExecution = `SELECT status, output FROM duroxide_executions WHERE instance_id = ? AND execution_id = ?`;

/** Answers only where the instance is known. */
const selectCurrentExecution = `
  SELECT i.current_execution_id, e.status
  FROM duroxide_instances AS i
  LEFT JOIN duroxide_executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
  WHERE i.instance_id = ?
`;

/** The oldest start of the instance that is queued, visible or not. */
const selectQueuedStart = `
  SELECT work_item FROM duroxide_orchestrator_queue WHERE instance_id = ? AND is_start = 1 ORDER BY due_at, id LIMIT 1
`;

/** Whether the instance has run, or is about to; and whether anything else is there that concerns its first turn. */
const selectTrace = `
  SELECT
    EXISTS (SELECT 1 FROM duroxide_instances WHERE instance_id = ?)
      OR EXISTS (SELECT 1 FROM duroxide_executions WHERE instance_id = ?)
      OR EXISTS (SELECT 1 FROM duroxide_orchestrator_queue WHERE instance_id = ? AND is_start = 1) AS has_begun,
    EXISTS (SELECT 1 FROM duroxide_instance_locks WHERE instance_id = ?)
      OR EXISTS (SELECT 1 FROM duroxide_history WHERE instance_id = ?) AS has_traces
`;

/** Sizes of the history in bytes, as stored. */
const selectHistorySize = `
  SELECT COUNT(*) AS events, COALESCE(SUM(OCTET_LENGTH(event_data)), 0) AS bytes
  FROM duroxide_history WHERE instance_id = ? AND execution_id = ?
`;
const selectFirstEvent = `
  SELECT event_data FROM duroxide_history WHERE instance_id = ? AND execution_id = ? ORDER BY event_id LIMIT 1
`;

/** What the instance is a run of, and where it stands. */
export interface Identity extends StartIdentity {
  readonly executionId: number;
}

interface InstanceRow {
  readonly orchestration_name: string;
  readonly orchestration_version: string;
  readonly current_execution_id: number;
  readonly custom_status: string | null;
  readonly custom_status_version: number;
  readonly status: ExecutionStatus | null;
  readonly output: string | null;
}

/** Writes what a turn says of its instance and its execution, but for its events. */
export function recordTurn(tx: Transaction, lock: TurnLock, { executionId, metadata }: TurnCommit): void {
  const { instanceId } = lock;
  tx.touch(instanceId);
  const { orchestrationName: name, orchestrationVersion: version, pinnedVersion: pin } = metadata;
  if (name !== undefined && version !== undefined) {
    const parent = toNullableColumn(metadata.parentInstanceId);
    const commit = [lock.secret, tx.now, tx.now, tx.now] as const;
    tx.db.runBlindly(upsertInstance, instanceId, toColumn(name), toColumn(version), executionId, parent, ...commit);
  } else {
    tx.db.runBlindly(advanceInstance, executionId, lock.secret, tx.now, instanceId);
  }

  if (pin !== undefined) {
    tx.db.runBlindly(ensurePinned, instanceId, executionId, tx.now, pin.major, pin.minor, pin.patch);
  } else if (executionId !== lock.executionId) {
    tx.db.runBlindly(ensureExecution, instanceId, executionId, tx.now);
  }
  if (metadata.status !== undefined) {
    const completedAt = metadata.status === "Running" ? null : tx.now;
    const output = toNullableColumn(metadata.output);
    tx.db.runBlindly(setExecutionStatus, metadata.status, output, completedAt, instanceId, executionId);
  }
}

/** Events were appended beside all turns: whoever remembers the last turn does not know them. */
export function recordAppend(tx: Transaction, instance: string, executionId: number): void {
  const instanceId = toColumn(instance);
  tx.db.run(ensureExecution, instanceId, executionId, tx.now);
  tx.db.run(forgetLastCommit, instanceId);
  tx.known.forget(instanceId);
}

/** Readers see one new version. */
export function recordCustomStatus(tx: Transaction, instance: string, status: string | null): void {
  tx.db.runBlindly(setCustomStatus, toNullableColumn(status), toColumn(instance));
}

export function customStatus(
  db: Database,
  instance: string,
  lastSeenVersion: number,
): { readonly status: string | null; readonly version: number } | null {
  const row = db.get<Pick<InstanceRow, "custom_status" | "custom_status_version">>(
    selectCustomStatus,
    toColumn(instance),
    lastSeenVersion,
  );
  return row === undefined
    ? null
    : { status: fromNullableColumn(row.custom_status), version: row.custom_status_version };
}

/** Of an instance that is not known nobody can say that it is over: its activities run. */
export function executionState(db: Database, instance: string, executionId: number): ExecutionState {
  const row = db.get<Pick<InstanceRow, "current_execution_id" | "status">>(selectCurrentExecution, toColumn(instance));
  if (row === undefined) return "running";
  const isRunning = row.status === null || row.status === "Running";
  return row.current_execution_id === executionId && isRunning ? "running" : "terminated";
}

/** Starts an instance, unless it was started before. */
export function enqueueStart(
  tx: Transaction,
  start: StartOrchestration | ContinueAsNew,
  delayMs: number | undefined,
  proven: ProvenStarts,
): EnqueueOutcome {
  const instanceId = toColumn(start.instance);
  if (tx.newMessages.hasStart(instanceId)) return "exists";
  const trace = tx.db.getOf<{ readonly has_begun: number; readonly has_traces: number }>(
    instanceId,
    selectTrace,
    ...([instanceId, instanceId, instanceId, instanceId, instanceId] as const),
  )!;
  if (trace.has_begun !== 0) return "exists";
  enqueueMessage(tx, start, delayMs, proven.mayGoAhead(start.orchestration));
  if (trace.has_traces === 0) tx.known.started(instanceId, identityInStart(start));
  return "enqueued";
}

export function queuedStart(db: Database, instance: string): StartOrchestration | ContinueAsNew | null {
  const row = db.get<{ readonly work_item: string }>(selectQueuedStart, toColumn(instance));
  if (row === undefined) return null;
  try {
    const item = decodeWorkItem(row.work_item);
    return isStartLike(item) ? item : null;
  } catch {
    return null; // It will never start anything.
  }
}

/** Who an instance without a row is (I2). Null: nobody has said yet. */
export function identify(db: Database, instance: string, messages: readonly WorkItem[]): Identity | null {
  const start = latestStart(db, instance);
  if (start !== null) return { ...identityInEvent(start), executionId: latestExecution(db, instance) };
  const first = messages.find(isStartLike);
  return first === undefined ? null : { ...identityInStart(first), executionId: latestExecution(db, instance) };
}

/** Who an instance without a history is. Null: nobody has said yet. */
export function newIdentity(messages: readonly WorkItem[]): Identity | null {
  const first = messages.find(isStartLike);
  return first === undefined ? null : { ...identityInStart(first), executionId: INITIAL_EXECUTION_ID };
}

/** Where an instance stands of which there is nothing but a start. */
export function startingStatus({ name, version }: StartIdentity): InstanceStatus {
  return {
    status: "Pending",
    orchestrationName: name,
    orchestrationVersion: version,
    executionId: INITIAL_EXECUTION_ID,
    output: null,
    customStatus: null,
    customStatusVersion: 0,
  };
}

export function instanceStatus(db: Database, instance: string): InstanceStatus | null {
  const row = db.get<InstanceRow>(selectInstance, toColumn(instance));
  if (row !== undefined) {
    return {
      status: row.status ?? "Pending",
      orchestrationName: fromColumn(row.orchestration_name),
      orchestrationVersion: fromColumn(row.orchestration_version),
      executionId: row.current_execution_id,
      output: fromNullableColumn(row.output),
      customStatus: fromNullableColumn(row.custom_status),
      customStatusVersion: row.custom_status_version,
    };
  }
  const start = queuedStart(db, instance);
  const identity = identify(db, instance, start === null ? [] : [start]);
  if (identity === null) return null;
  const execution = db.get<Pick<InstanceRow, "status" | "output">>(
    selectExecution,
    toColumn(instance),
    identity.executionId,
  );
  return {
    status: execution?.status ?? "Pending",
    orchestrationName: identity.name,
    orchestrationVersion: identity.version,
    executionId: identity.executionId,
    output: fromNullableColumn(execution?.output ?? null),
    customStatus: null,
    customStatusVersion: 0,
  };
}

/** Of the current execution. Null where the instance is not known. */
export function instanceStats(db: Database, instance: string): InstanceStats | null {
  const instanceId = toColumn(instance);
  const row = db.get<InstanceRow>(selectInstance, instanceId);
  if (row === undefined) return null;
  const size = db.get<{ readonly events: number; readonly bytes: number }>(
    selectHistorySize,
    instanceId,
    row.current_execution_id,
  )!;
  const values = [...kvValues(db, instance).values()];
  return {
    historyEventCount: size.events,
    historySizeBytes: size.bytes,
    queuePendingCount: carriedMessages(db, instance, row.current_execution_id),
    kvUserKeyCount: values.length,
    kvTotalValueBytes: values.reduce((sum, value) => sum + Buffer.byteLength(value), 0),
  };
}

/** Messages that continue-as-new brought along, and that the history begins with. */
function carriedMessages(db: Database, instance: string, executionId: number): number {
  const row = db.get<{ readonly event_data: string }>(selectFirstEvent, toColumn(instance), executionId);
  if (row === undefined) return 0;
  try {
    const first = decodeEvent(row.event_data);
    return first.type === "OrchestrationStarted" ? (first.carryForwardEvents?.length ?? 0) : 0;
  } catch (error) {
    throw corruptHistory("getInstanceStats", instance, executionId, error);
  }
}
