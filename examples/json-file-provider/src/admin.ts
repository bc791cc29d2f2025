import {
  type AdminStore,
  type BulkFilter,
  type BulkScope,
  type Clock,
  type DeleteResult,
  type ExecutionInfo,
  type ExecutionStatus,
  executionNotFound,
  type InstanceInfo,
  type InstanceWatchers,
  instanceNotFound,
  type PruneOptions,
  type PruneResult,
  type QueueDepths,
  type SystemMetrics,
  stillRunning,
  wouldOrphan,
} from "duroxide-ts/provider";
import type { JsonDocument } from "./json-document.js";
import { isStart } from "./messages.js";
import {
  currentExecution,
  eventsOf,
  findExecution,
  findInstance,
  highestExecutionId,
  type InstanceRow,
  type MessageRow,
  type Tables,
} from "./tables.js";

/** What operators ask. None of it decodes an event: a corrupt history must not stand in the way of its removal. */
export function adminStore(document: JsonDocument<Tables>, clock: Clock, watchers: InstanceWatchers): AdminStore {
  return {
    async listInstances(): Promise<readonly string[]> {
      return document.content.instances.map(({ id }) => id).reverse();
    },

    async listInstancesByStatus(status: ExecutionStatus): Promise<readonly string[]> {
      const tables = document.content;
      const found = tables.instances.filter((row) => statusOf(tables, row) === status);
      return found.map(({ id }) => id).reverse();
    },

    async listExecutions(instance: string): Promise<readonly number[]> {
      const executions = document.content.executions.filter((row) => row.instance === instance);
      return executions.map(({ executionId }) => executionId).sort((a, b) => a - b);
    },

    async latestExecutionId(instance: string): Promise<number> {
      return Math.max(1, highestExecutionId(document.content, instance));
    },

    async getInstanceInfo(instance: string): Promise<InstanceInfo> {
      const tables = document.content;
      const row = mustFind("getInstanceInfo", tables, instance);
      return {
        instanceId: row.id,
        orchestrationName: row.name,
        orchestrationVersion: row.version,
        currentExecutionId: row.currentExecutionId,
        status: statusOf(tables, row),
        output: currentExecution(tables, row)?.output ?? null,
        createdAtMs: row.createdAtMs,
        updatedAtMs: row.updatedAtMs,
        parentInstanceId: row.parentId,
      };
    },

    async getExecutionInfo(instance: string, executionId: number): Promise<ExecutionInfo> {
      const tables = document.content;
      const row = findExecution(tables, instance, executionId);
      if (row === undefined) throw executionNotFound("getExecutionInfo", instance, executionId);
      const { status, output, startedAtMs, completedAtMs } = row;
      const eventCount = eventsOf(tables, instance, executionId).length;
      return { executionId, status, output, startedAtMs, completedAtMs, eventCount };
    },

    async getSystemMetrics(): Promise<SystemMetrics> {
      const tables = document.content;
      const statuses = tables.instances.map((row) => statusOf(tables, row));
      const count = (status: ExecutionStatus) => statuses.filter((other) => other === status).length;
      return {
        totalInstances: tables.instances.length,
        totalExecutions: tables.executions.length,
        runningInstances: count("Running"),
        completedInstances: count("Completed"),
        failedInstances: count("Failed"),
        totalEvents: tables.events.length,
      };
    },

    async getQueueDepths(): Promise<QueueDepths> {
      const { messages, locks, activities } = document.content;
      const now = clock.now();
      const held = new Set(locks.filter(({ lockedUntilMs }) => lockedUntilMs > now).flatMap((lock) => lock.messages));
      return {
        orchestratorQueue: messages.filter(({ row }) => !held.has(row)).length,
        workerQueue: activities.filter(({ lockedUntilMs }) => lockedUntilMs <= now).length,
        timerQueue: 0,
      };
    },

    async listChildren(instance: string): Promise<readonly string[]> {
      return document.content.instances.filter(({ parentId }) => parentId === instance).map(({ id }) => id);
    },

    async getParentId(instance: string): Promise<string | null> {
      return mustFind("getParentId", document.content, instance).parentId;
    },

    async deleteInstancesAtomic(instances: readonly string[], force: boolean): Promise<DeleteResult> {
      const operation = "deleteInstancesAtomic";
      const { result, changed } = await document.change(operation, (tables) => deleteAll(tables, instances, force));
      for (const instance of changed) watchers.changed(instance);
      return result;
    },

    async pruneExecutions(instance: string, options: PruneOptions): Promise<PruneResult> {
      return document.change("pruneExecutions", (tables) => prune(tables, instance, options));
    },

    async selectInstances(filter: BulkFilter, scope: BulkScope): Promise<readonly string[]> {
      const tables = document.content;
      const { instanceIds, completedBeforeMs, limit } = filter;
      return tables.instances
        .filter((row) => instanceIds === undefined || instanceIds.includes(row.id))
        .filter((row) => endedBefore(currentExecution(tables, row)?.completedAtMs ?? null, completedBeforeMs))
        .filter((row) => isInScope(tables, row, scope))
        .slice(0, limit)
        .map(({ id }) => id);
    },
  };
}

function mustFind(operation: string, tables: Tables, instance: string): InstanceRow {
  const row = findInstance(tables, instance);
  if (row === undefined) throw instanceNotFound(operation, instance);
  return row;
}

function statusOf(tables: Tables, row: InstanceRow): ExecutionStatus {
  return currentExecution(tables, row)?.status ?? "Running";
}

/** One that has continued as new has not: its next execution is on its way. */
function hasEnded(tables: Tables, row: InstanceRow): boolean {
  const status = statusOf(tables, row);
  return status === "Completed" || status === "Failed";
}

function isInScope(tables: Tables, row: InstanceRow, scope: BulkScope): boolean {
  if (scope.kind === "ended-roots") return isRoot(tables, row) && hasEnded(tables, row);
  return tables.executions.filter(({ instance }) => instance === row.id).length > scope.count;
}

/** A child that began after its parent was deleted has nobody left to be deleted with. */
function isRoot(tables: Tables, { parentId }: InstanceRow): boolean {
  return parentId === null || findInstance(tables, parentId) === undefined;
}

function endedBefore(completedAtMs: number | null, limitMs: number | undefined): boolean {
  return limitMs === undefined || (completedAtMs !== null && completedAtMs < limitMs);
}

interface Deletion {
  readonly result: DeleteResult;
  /** The instances of which a watcher sees something else now. */
  readonly changed: readonly string[];
}

function deleteAll(tables: Tables, instances: readonly string[], force: boolean): Deletion {
  const operation = "deleteInstancesAtomic";
  const doomed = tables.instances.filter(({ id }) => instances.includes(id));
  const ids = new Set(doomed.map(({ id }) => id));
  const running = doomed.find((row) => !hasEnded(tables, row));
  if (running !== undefined && !force) throw stillRunning(operation, running.id);
  for (const { id, parentId } of tables.instances) {
    if (parentId !== null && ids.has(parentId) && !ids.has(id)) throw wouldOrphan(operation, id, parentId);
  }

  // The starts that they have queued go too, and the lock of whoever works on one: a new instance with the id of the
  // parent must not get their answers. What else was sent to a child that has not begun goes along, unless somebody
  // else has started it as well.
  const isChildStart = ({ parentId }: MessageRow) => parentId !== null && ids.has(parentId);
  const children = new Set(tables.messages.filter(isChildStart).map(({ instance }) => instance));
  const otherStarts = tables.messages.filter((message) => isStart(message) && !isChildStart(message));
  const isStray = ({ instance }: MessageRow) =>
    children.has(instance) &&
    findInstance(tables, instance) === undefined &&
    !otherStarts.some((start) => start.instance === instance);

  const isKept = ({ instance }: { readonly instance: string }) => !ids.has(instance);
  const before = { ...tables };
  tables.instances = tables.instances.filter(({ id }) => !ids.has(id));
  tables.executions = tables.executions.filter(isKept);
  tables.events = tables.events.filter(isKept);
  tables.messages = tables.messages.filter((message) => isKept(message) && !isChildStart(message) && !isStray(message));
  tables.activities = tables.activities.filter(isKept);
  // Whoever still works on one of them finds out: neither its lock nor its activities can be acked any more.
  tables.locks = tables.locks.filter((lock) => isKept(lock) && !children.has(lock.instance));
  tables.kvStore = tables.kvStore.filter(isKept);
  tables.kvDelta = tables.kvDelta.filter(isKept);
  const result = {
    instancesDeleted: before.instances.length - tables.instances.length,
    executionsDeleted: before.executions.length - tables.executions.length,
    eventsDeleted: before.events.length - tables.events.length,
    queueMessagesDeleted:
      before.messages.length - tables.messages.length + before.activities.length - tables.activities.length,
  };
  return { result, changed: [...ids, ...children] };
}

function prune(tables: Tables, instance: string, { keepLast = 1, completedBeforeMs }: PruneOptions): PruneResult {
  const { currentExecutionId } = mustFind("pruneExecutions", tables, instance);
  const doomed = tables.executions
    .filter((row) => row.instance === instance)
    .sort((a, b) => b.executionId - a.executionId)
    .slice(Math.max(1, keepLast))
    .filter(({ executionId, status }) => executionId !== currentExecutionId && status !== "Running")
    .filter(({ completedAtMs }) => endedBefore(completedAtMs, completedBeforeMs));
  const ids = new Set(doomed.map(({ executionId }) => executionId));
  const isKept = (row: { readonly instance: string; readonly executionId: number }) =>
    row.instance !== instance || !ids.has(row.executionId);
  const eventsBefore = tables.events.length;
  tables.executions = tables.executions.filter(isKept);
  tables.events = tables.events.filter(isKept);
  return {
    instancesProcessed: 1,
    executionsDeleted: doomed.length,
    eventsDeleted: eventsBefore - tables.events.length,
  };
}
