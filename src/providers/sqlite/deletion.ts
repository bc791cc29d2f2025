// providers/sqlite/deletion.ts — removes instances and old executions, each call in one transaction.
//
//   X1. An instance goes with everything that is its own. Its lock goes too, and its activities: whoever works on either
//       finds the token unknown, also when an instance of the same name has begun since.
//   X2. Everything is checked before anything is removed, under the write lock: no child can be born in between.
//   X3. An id without an instance's row is nobody's: what is queued for it stays.
//   X4. The starts that an instance has queued go with it, and the lock of whoever works on one: nobody may answer a new
//       instance of the same name. What else was sent to a child that has not begun goes along, unless somebody else has
//       started it too.

import type { DeleteResult, PruneOptions, PruneResult } from "../../provider/admin.js";
import { instanceNotFound, stillRunning, wouldOrphan } from "../../provider/kit/refusals.js";
import { fromColumn, toColumn, toColumnList } from "../../provider/kit/text-column.js";
import { announceRelease, forgetLock } from "./orchestrator-queue.js";
import type { Transaction } from "./transaction.js";

// Ids come as one JSON array: there may be more of them than a statement can have parameters.

export const selectKnown = `
  SELECT instance_id FROM duroxide_instances WHERE instance_id IN (SELECT value FROM json_each(?))
`;
export const selectUnended = `
  SELECT i.instance_id
  FROM duroxide_instances AS i
  CROSS JOIN duroxide_executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
  WHERE i.instance_id IN (SELECT value FROM json_each(?)) AND e.status NOT IN ('Completed', 'Failed')
  LIMIT 1
`;
/** A child of one of them that is none of them. */
export const selectOrphan = `
  SELECT instance_id, parent_instance_id FROM duroxide_instances
  WHERE parent_instance_id IN (SELECT value FROM json_each(?))
    AND instance_id NOT IN (SELECT value FROM json_each(?))
  LIMIT 1
`;

export const deleteLocks = `
  DELETE FROM duroxide_instance_locks WHERE instance_id IN (SELECT value FROM json_each(?))
`;
export const deleteMessages = `
  DELETE FROM duroxide_orchestrator_queue WHERE instance_id IN (SELECT value FROM json_each(?))
`;
export const deleteActivities = `
  DELETE FROM duroxide_worker_queue WHERE instance_id IN (SELECT value FROM json_each(?))
`;
export const deleteHistories = `
  DELETE FROM duroxide_history WHERE instance_id IN (SELECT value FROM json_each(?))
`;
export const deleteExecutions = `
  DELETE FROM duroxide_executions WHERE instance_id IN (SELECT value FROM json_each(?))
`;
export const deleteKvStore = `
  DELETE FROM duroxide_kv_store WHERE instance_id IN (SELECT value FROM json_each(?))
`;
export const deleteKvDelta = `
  DELETE FROM duroxide_kv_delta WHERE instance_id IN (SELECT value FROM json_each(?))
`;
export const deleteKnown = `
  DELETE FROM duroxide_instances WHERE instance_id IN (SELECT value FROM json_each(?))
`;

/** Starts that these have queued. */
export const deleteStarts = `
  DELETE FROM duroxide_orchestrator_queue WHERE parent_instance_id IN (SELECT value FROM json_each(?))
  RETURNING instance_id
`;
/** What was sent to those of these that have not begun, and that nobody starts any more. */
export const deleteStrayMessages = `
  DELETE FROM duroxide_orchestrator_queue AS q
  WHERE q.instance_id IN (SELECT value FROM json_each(?))
    AND NOT EXISTS (SELECT 1 FROM duroxide_instances AS i WHERE i.instance_id = q.instance_id)
    AND NOT EXISTS (
      SELECT 1 FROM duroxide_orchestrator_queue AS s WHERE s.instance_id = q.instance_id AND s.is_start = 1
    )
`;
/** What else was in the batch of a lock that is gone. */
export const readyMessages = `
  UPDATE duroxide_orchestrator_queue SET state = 'ready'
  WHERE state = 'taken' AND instance_id IN (SELECT value FROM json_each(?))
`;

/** What ended before a certain time and is neither current nor among the newest. */
export const selectPrunable = `
  SELECT e.execution_id
  FROM duroxide_executions AS e
  JOIN duroxide_instances AS i ON i.instance_id = e.instance_id
  WHERE e.instance_id = ?
    AND e.execution_id <> i.current_execution_id
    AND e.completed_at < ?
    AND e.execution_id NOT IN (
      SELECT execution_id FROM duroxide_executions WHERE instance_id = ? ORDER BY execution_id DESC LIMIT ?
    )
`;
export const pruneHistories = `
  DELETE FROM duroxide_history WHERE instance_id = ? AND execution_id IN (SELECT value FROM json_each(?))
`;
export const pruneExecutions = `
  DELETE FROM duroxide_executions WHERE instance_id = ? AND execution_id IN (SELECT value FROM json_each(?))
`;
const selectInstance = `SELECT 1 FROM duroxide_instances WHERE instance_id = ?`;

interface IdRow {
  readonly instance_id: string;
}

/** @throws ProviderError "still-running", "orphans" */
export function deleteInstances(tx: Transaction, instances: readonly string[], force: boolean): DeleteResult {
  tx.writeNewRows();
  const known = tx.db.all<IdRow>(selectKnown, toColumnList(instances)).map((row) => row.instance_id); // X3
  const these = JSON.stringify(known);
  if (!force) checkNoneRuns(tx, these);
  checkNoOrphans(tx, these); // X2

  for (const id of known) forgetLock(tx, id);
  tx.own.forgetActivities();
  tx.db.run(deleteLocks, these); // X1
  const messages = tx.db.run(deleteMessages, these) + deleteChildStarts(tx, these);
  const activities = tx.db.run(deleteActivities, these);
  const eventsDeleted = tx.db.run(deleteHistories, these);
  const executionsDeleted = tx.db.run(deleteExecutions, these);
  tx.db.run(deleteKvStore, these);
  tx.db.run(deleteKvDelta, these);
  const instancesDeleted = tx.db.run(deleteKnown, these);

  for (const id of known) tx.effects.changed(fromColumn(id));
  return { instancesDeleted, executionsDeleted, eventsDeleted, queueMessagesDeleted: messages + activities };
}

/** X4 */
function deleteChildStarts(tx: Transaction, parents: string): number {
  const starts = tx.db.changeAll<IdRow>(deleteStarts, parents);
  if (starts.length === 0) return 0;
  const children = [...new Set(starts.map((row) => row.instance_id))];
  const these = JSON.stringify(children);
  for (const id of children) forgetLock(tx, id);
  const others = tx.db.run(deleteStrayMessages, these);
  tx.db.run(deleteLocks, these);
  tx.db.run(readyMessages, these);
  for (const id of children) {
    tx.effects.changed(fromColumn(id));
    announceRelease(tx, id);
  }
  return starts.length + others;
}

/** @throws ProviderError "not-found" */
export function pruneInstance(
  tx: Transaction,
  instance: string,
  { keepLast = 0, completedBeforeMs = Number.POSITIVE_INFINITY }: PruneOptions,
): PruneResult {
  const id = toColumn(instance);
  tx.writeNewRows();
  if (tx.db.get(selectInstance, id) === undefined) throw instanceNotFound("pruneExecutions", instance);
  const prunable = tx.db.all<{ readonly execution_id: number }>(selectPrunable, id, completedBeforeMs, id, keepLast);
  const these = JSON.stringify(prunable.map((row) => row.execution_id));
  return {
    instancesProcessed: 1,
    eventsDeleted: tx.db.run(pruneHistories, id, these),
    executionsDeleted: tx.db.run(pruneExecutions, id, these),
  };
}

function checkNoneRuns(tx: Transaction, these: string): void {
  const running = tx.db.get<IdRow>(selectUnended, these);
  if (running !== undefined) throw stillRunning("deleteInstancesAtomic", fromColumn(running.instance_id));
}

function checkNoOrphans(tx: Transaction, these: string): void {
  const orphan = tx.db.get<IdRow & { readonly parent_instance_id: string }>(selectOrphan, these, these);
  if (orphan === undefined) return;
  const [child, parent] = [fromColumn(orphan.instance_id), fromColumn(orphan.parent_instance_id)];
  throw wouldOrphan("deleteInstancesAtomic", child, parent);
}
