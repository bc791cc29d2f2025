// providers/sqlite/admin.ts — what operators ask. Lists and counts here; what is removed, in `deletion.ts`.
//
//   A1. Nothing here decodes an event or a work item: what is corrupt can be listed, counted and deleted.
//   A2. The order of creation is (created_at, created_order), which the index by age follows in both directions.
//   A3. Whoever asks for a status, or for an end, goes through all executions in the order of the table, and from those
//       that fit to their instances. That is a small fraction of a microsecond for each; an index would cost every
//       execution two writes.

import { unreachable } from "../../errors.js";
import type {
  AdminStore,
  BulkFilter,
  BulkScope,
  ExecutionInfo,
  InstanceInfo,
  QueueDepths,
  SystemMetrics,
} from "../../provider/admin.js";
import { executionNotFound, instanceNotFound } from "../../provider/kit/refusals.js";
import { fromColumn, fromNullableColumn, toColumn, toColumnList } from "../../provider/kit/text-column.js";
import type { ExecutionStatus } from "../../provider/provider.js";
import type { Database } from "./database.js";
import { deleteInstances, pruneInstance } from "./deletion.js";
import { latestExecution } from "./history.js";
import type { Transaction } from "./transaction.js";

/** Newest first. */
export const selectAllInstances = `
  SELECT instance_id FROM duroxide_instances ORDER BY created_at DESC, created_order DESC
`;

/** Those whose current execution has this status, newest first. */
export const selectInstancesByStatus = `
  SELECT i.instance_id
  FROM duroxide_executions AS e
  CROSS JOIN duroxide_instances AS i ON i.instance_id = e.instance_id AND i.current_execution_id = e.execution_id
  WHERE e.status = ?
  ORDER BY i.created_at DESC, i.created_order DESC
`;

export const selectExecutionIds = `
  SELECT execution_id FROM duroxide_executions WHERE instance_id = ? ORDER BY execution_id
`;

export const selectInstanceInfo = `
  SELECT i.orchestration_name, i.orchestration_version, i.current_execution_id, e.status, e.output,
         i.created_at, i.updated_at, i.parent_instance_id
  FROM duroxide_instances AS i
  CROSS JOIN duroxide_executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
  WHERE i.instance_id = ?
`;

/** Known by its own row, whether the instance has one or not. */
export const selectExecutionInfo = `
  SELECT e.status, e.output, e.started_at, e.completed_at,
         (SELECT COUNT(*) FROM duroxide_history AS h
          WHERE h.instance_id = e.instance_id AND h.execution_id = e.execution_id) AS events
  FROM duroxide_executions AS e
  WHERE e.instance_id = ? AND e.execution_id = ?
`;

export const selectParent = `SELECT parent_instance_id FROM duroxide_instances WHERE instance_id = ?`;

/** Oldest first. */
export const selectChildren = `
  SELECT instance_id FROM duroxide_instances WHERE parent_instance_id = ? ORDER BY created_at, created_order
`;

/** Reads the whole store: a counter would have to be written by every turn. */
const countEverything = `
  SELECT COUNT(*) AS instances,
         (SELECT COUNT(*) FROM duroxide_executions) AS executions,
         (SELECT COUNT(*) FROM duroxide_history) AS events,
         COUNT(*) FILTER (WHERE e.status = 'Running') AS running,
         COUNT(*) FILTER (WHERE e.status = 'Completed') AS completed,
         COUNT(*) FILTER (WHERE e.status = 'Failed') AS failed
  FROM duroxide_instances AS i
  CROSS JOIN duroxide_executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
`;

/** All messages but those in the batch of a live lock that somebody owns. */
const countMessages = `
  SELECT (SELECT COUNT(*) FROM duroxide_orchestrator_queue) - COUNT(*) AS depth
  FROM duroxide_instance_locks AS l
  CROSS JOIN duroxide_orchestrator_queue AS q
    ON q.instance_id = l.instance_id AND q.visible_at <= l.locked_at AND q.state = 'taken'
  WHERE l.locked_until > ? AND l.lock_token IS NOT NULL
`;

/** All activities but those that somebody's live lock holds. */
const countActivities = `
  SELECT (SELECT COUNT(*) FROM duroxide_worker_queue) - COUNT(*) AS depth
  FROM duroxide_worker_queue
  WHERE held_until > ? AND lock_token IS NOT NULL
`;

// What a bulk operation is about, oldest first: of all, or of some. Of what still runs nobody can say that it ended
// before a certain time; whoever does not ask for a time gets it, too. A root is whose parent is not there, or not there
// any more.

export const selectPrunable = `
  SELECT i.instance_id
  FROM duroxide_executions AS e
  CROSS JOIN duroxide_instances AS i ON i.instance_id = e.instance_id AND i.current_execution_id = e.execution_id
  WHERE COALESCE(e.completed_at, ?) < ?
    AND (SELECT COUNT(*) FROM duroxide_executions AS x WHERE x.instance_id = i.instance_id) > ?
  ORDER BY i.created_at, i.created_order LIMIT ?
`;
export const selectPrunableAmong = `
  SELECT i.instance_id
  FROM duroxide_instances AS i
  CROSS JOIN duroxide_executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
  WHERE COALESCE(e.completed_at, ?) < ?
    AND (SELECT COUNT(*) FROM duroxide_executions AS x WHERE x.instance_id = i.instance_id) > ?
    AND i.instance_id IN (SELECT value FROM json_each(?))
  ORDER BY i.created_at, i.created_order LIMIT ?
`;
export const selectEndedRoots = `
  SELECT i.instance_id
  FROM duroxide_executions AS e
  CROSS JOIN duroxide_instances AS i ON i.instance_id = e.instance_id AND i.current_execution_id = e.execution_id
  WHERE e.completed_at < ? AND e.status IN ('Completed', 'Failed')
    AND NOT EXISTS (SELECT 1 FROM duroxide_instances AS p WHERE p.instance_id = i.parent_instance_id)
  ORDER BY i.created_at, i.created_order LIMIT ?
`;
export const selectEndedRootsAmong = `
  SELECT i.instance_id
  FROM duroxide_instances AS i
  CROSS JOIN duroxide_executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
  WHERE e.completed_at < ? AND e.status IN ('Completed', 'Failed')
    AND i.instance_id IN (SELECT value FROM json_each(?))
    AND NOT EXISTS (SELECT 1 FROM duroxide_instances AS p WHERE p.instance_id = i.parent_instance_id)
  ORDER BY i.created_at, i.created_order LIMIT ?
`;

interface IdRow {
  readonly instance_id: string;
}

interface InstanceInfoRow {
  readonly orchestration_name: string;
  readonly orchestration_version: string;
  readonly current_execution_id: number;
  readonly status: ExecutionStatus;
  readonly output: string | null;
  readonly created_at: number;
  readonly updated_at: number;
  readonly parent_instance_id: string | null;
}

interface ExecutionInfoRow {
  readonly status: ExecutionStatus;
  readonly output: string | null;
  readonly started_at: number;
  readonly completed_at: number | null;
  readonly events: number;
}

interface CountsRow {
  readonly instances: number;
  readonly executions: number;
  readonly events: number;
  readonly running: number;
  readonly completed: number;
  readonly failed: number;
}

interface DepthRow {
  readonly depth: number;
}

/** How a transaction is made. */
export interface AdminAccess {
  read<T>(operation: string, work: (db: Database, now: number) => T): Promise<T>;
  write<T>(operation: string, work: (tx: Transaction) => T): Promise<T>;
}

const ALWAYS = Number.POSITIVE_INFINITY;
const LONG_AGO = Number.NEGATIVE_INFINITY;

/** Each method is one transaction. */
export function adminStore({ read, write }: AdminAccess): AdminStore {
  return {
    listInstances: () => read("listInstances", (db) => ids(db.all(selectAllInstances))),
    listInstancesByStatus: (status) =>
      read("listInstancesByStatus", (db) => ids(db.all(selectInstancesByStatus, status))),
    listExecutions: (instance) => read("listExecutions", (db) => executionIds(db, instance)),
    latestExecutionId: (instance) => read("latestExecutionId", (db) => latestExecution(db, instance)),
    getInstanceInfo: (instance) => read("getInstanceInfo", (db) => instanceInfo(db, instance)),
    getExecutionInfo: (instance, executionId) =>
      read("getExecutionInfo", (db) => executionInfo(db, instance, executionId)),
    getSystemMetrics: () => read("getSystemMetrics", systemMetrics),
    getQueueDepths: () => read("getQueueDepths", queueDepths),
    listChildren: (instance) => read("listChildren", (db) => ids(db.all(selectChildren, toColumn(instance)))),
    getParentId: (instance) => read("getParentId", (db) => parentId(db, instance)),
    selectInstances: (filter, scope) => read("selectInstances", (db) => selectedInstances(db, filter, scope)),
    deleteInstancesAtomic: (instances, force) =>
      write("deleteInstancesAtomic", (tx) => deleteInstances(tx, instances, force)),
    pruneExecutions: (instance, options) => write("pruneExecutions", (tx) => pruneInstance(tx, instance, options)),
  };
}

function ids(rows: readonly IdRow[]): readonly string[] {
  return rows.map((row) => fromColumn(row.instance_id));
}

function executionIds(db: Database, instance: string): readonly number[] {
  const rows = db.all<{ readonly execution_id: number }>(selectExecutionIds, toColumn(instance));
  return rows.map((row) => row.execution_id);
}

function instanceInfo(db: Database, instance: string): InstanceInfo {
  const row = db.get<InstanceInfoRow>(selectInstanceInfo, toColumn(instance));
  if (row === undefined) throw instanceNotFound("getInstanceInfo", instance);
  return {
    instanceId: instance,
    orchestrationName: fromColumn(row.orchestration_name),
    orchestrationVersion: fromColumn(row.orchestration_version),
    currentExecutionId: row.current_execution_id,
    status: row.status,
    output: fromNullableColumn(row.output),
    createdAtMs: row.created_at,
    updatedAtMs: row.updated_at,
    parentInstanceId: fromNullableColumn(row.parent_instance_id),
  };
}

function executionInfo(db: Database, instance: string, executionId: number): ExecutionInfo {
  const row = db.get<ExecutionInfoRow>(selectExecutionInfo, toColumn(instance), executionId);
  if (row === undefined) throw executionNotFound("getExecutionInfo", instance, executionId);
  return {
    executionId,
    status: row.status,
    output: fromNullableColumn(row.output),
    startedAtMs: row.started_at,
    completedAtMs: row.completed_at,
    eventCount: row.events,
  };
}

function systemMetrics(db: Database): SystemMetrics {
  const row = db.get<CountsRow>(countEverything)!;
  return {
    totalInstances: row.instances,
    totalExecutions: row.executions,
    runningInstances: row.running,
    completedInstances: row.completed,
    failedInstances: row.failed,
    totalEvents: row.events,
  };
}

function queueDepths(db: Database, now: number): QueueDepths {
  return {
    orchestratorQueue: db.get<DepthRow>(countMessages, now)!.depth,
    workerQueue: db.get<DepthRow>(countActivities, now)!.depth,
    timerQueue: 0,
  };
}

function parentId(db: Database, instance: string): string | null {
  const row = db.get<{ readonly parent_instance_id: string | null }>(selectParent, toColumn(instance));
  if (row === undefined) throw instanceNotFound("getParentId", instance);
  return fromNullableColumn(row.parent_instance_id);
}

function selectedInstances(db: Database, filter: BulkFilter, scope: BulkScope): readonly string[] {
  const endedBefore = filter.completedBeforeMs ?? ALWAYS;
  const among = filter.instanceIds === undefined ? null : toColumnList(filter.instanceIds);
  switch (scope.kind) {
    case "ended-roots":
      return among === null
        ? ids(db.all(selectEndedRoots, endedBefore, filter.limit))
        : ids(db.all(selectEndedRootsAmong, endedBefore, among, filter.limit));
    case "more-executions-than": {
      const runningEndsAt = filter.completedBeforeMs === undefined ? LONG_AGO : ALWAYS;
      return among === null
        ? ids(db.all(selectPrunable, runningEndsAt, endedBefore, scope.count, filter.limit))
        : ids(db.all(selectPrunableAmong, runningEndsAt, endedBefore, scope.count, among, filter.limit));
    }
    default:
      return unreachable(scope);
  }
}
