// providers/memory/memory-admin.ts — what operators ask of the store, in its plainest form.
//
// A1 to A5 are the rules of the contract (provider/admin.ts). As everywhere in this provider, an operation runs from its
// first check to its last write without an await.

import type { Clock } from "../../clock.js";
import { unreachable } from "../../errors.js";
import { INITIAL_EXECUTION_ID } from "../../history/event.js";
import type {
  AdminStore,
  BulkFilter,
  BulkScope,
  DeleteResult,
  ExecutionInfo,
  InstanceInfo,
  PruneOptions,
  PruneResult,
  QueueDepths,
  SystemMetrics,
} from "../../provider/admin.js";
import { executionNotFound, instanceNotFound, stillRunning, wouldOrphan } from "../../provider/kit/refusals.js";
import type { ExecutionStatus } from "../../provider/provider.js";
import type { ExecutionRecord } from "./execution-record.js";
import type { InstanceRecord } from "./instance-record.js";
import type { KnownInstance, KnownInstances } from "./known-instances.js";
import type { WorkerQueue } from "./worker-queue.js";

/** What management sees of the store, and the one way in which it removes instances. */
export interface AdminView {
  readonly clock: Clock;
  /** Everything that stands under some id, known or not. */
  readonly records: ReadonlyMap<string, InstanceRecord>;
  readonly known: KnownInstances;
  readonly work: WorkerQueue;
  /** Removes all that the store holds of them; answers how many messages and activities that were. */
  readonly forget: (instances: readonly KnownInstance[]) => number;
}

export class MemoryAdmin implements AdminStore {
  readonly #store: AdminView;

  constructor(store: AdminView) {
    this.#store = store;
  }

  // Lists

  async listInstances(): Promise<readonly string[]> {
    return this.#store.known.newestFirst().map(({ id }) => id);
  }

  async listInstancesByStatus(status: ExecutionStatus): Promise<readonly string[]> {
    const matching = this.#store.known.newestFirst().filter((instance) => statusOf(instance) === status);
    return matching.map(({ id }) => id);
  }

  async listExecutions(id: string): Promise<readonly number[]> {
    return executionsOf(this.#store.records.get(id)).map(({ executionId }) => executionId);
  }

  async latestExecutionId(id: string): Promise<number> {
    return executionsOf(this.#store.records.get(id)).at(-1)?.executionId ?? INITIAL_EXECUTION_ID;
  }

  async listChildren(id: string): Promise<readonly string[]> {
    return this.#store.known.childrenOf(id);
  }

  async selectInstances(filter: BulkFilter, scope: BulkScope): Promise<readonly string[]> {
    const wanted = filter.instanceIds === undefined ? null : new Set(filter.instanceIds);
    const selected = this.#store.known.oldestFirst().filter((instance) => {
      if (wanted !== null && !wanted.has(instance.id)) return false;
      if (!this.#isInScope(instance, scope)) return false;
      return isCompletedBefore(instance.currentExecution, filter.completedBeforeMs);
    });
    return selected.slice(0, filter.limit).map(({ id }) => id);
  }

  // Details

  async getInstanceInfo(id: string): Promise<InstanceInfo> {
    const instance = this.#require("getInstanceInfo", id);
    const { row } = instance;
    return {
      instanceId: id,
      orchestrationName: row.name,
      orchestrationVersion: row.version,
      currentExecutionId: row.currentExecutionId,
      status: statusOf(instance),
      output: instance.currentExecution?.output ?? null,
      createdAtMs: row.createdAt,
      updatedAtMs: row.updatedAt,
      parentInstanceId: row.parentInstanceId,
    };
  }

  async getExecutionInfo(id: string, executionId: number): Promise<ExecutionInfo> {
    const execution = this.#store.records.get(id)?.executions.get(executionId);
    if (execution === undefined) throw executionNotFound("getExecutionInfo", id, executionId);
    return {
      executionId,
      status: execution.status,
      output: execution.output,
      startedAtMs: execution.startedAt,
      completedAtMs: execution.completedAt,
      eventCount: execution.eventCount,
    };
  }

  async getParentId(id: string): Promise<string | null> {
    return this.#require("getParentId", id).row.parentInstanceId;
  }

  // Counts

  async getSystemMetrics(): Promise<SystemMetrics> {
    const known = this.#store.known.oldestFirst();
    const countOf = (status: ExecutionStatus) => known.filter((instance) => statusOf(instance) === status).length;
    const executions = [...this.#store.records.values()].flatMap(executionsOf);
    return {
      totalInstances: known.length,
      totalExecutions: executions.length,
      runningInstances: countOf("Running"),
      completedInstances: countOf("Completed"),
      failedInstances: countOf("Failed"),
      totalEvents: countEvents(executions),
    };
  }

  async getQueueDepths(): Promise<QueueDepths> {
    const now = this.#store.clock.now();
    let orchestratorQueue = 0;
    for (const record of this.#store.records.values()) orchestratorQueue += record.countFreeMessages(now);
    return { orchestratorQueue, workerQueue: this.#store.work.countFree(now), timerQueue: 0 };
  }

  // Removal

  async deleteInstancesAtomic(ids: readonly string[], force: boolean): Promise<DeleteResult> {
    const operation = "deleteInstancesAtomic";
    const doomedIds = new Set(ids);
    const doomed = [...doomedIds].map((id) => this.#store.known.get(id)).filter((instance) => instance !== null);
    const running = doomed.find((instance) => !hasEnded(instance));
    if (running !== undefined && !force) throw stillRunning(operation, running.id);
    for (const instance of doomed) {
      const orphan = this.#store.known.childrenOf(instance.id).find((child) => !doomedIds.has(child));
      if (orphan !== undefined) throw wouldOrphan(operation, orphan, instance.id); // A2
    }

    // From here on nothing can fail.
    const executions = doomed.flatMap(executionsOf);
    return {
      instancesDeleted: doomed.length,
      executionsDeleted: executions.length,
      eventsDeleted: countEvents(executions),
      queueMessagesDeleted: this.#store.forget(doomed),
    };
  }

  async pruneExecutions(id: string, options: PruneOptions): Promise<PruneResult> {
    const instance = this.#require("pruneExecutions", id);
    const executions = executionsOf(instance);
    const old = executions.slice(0, executions.length - Math.min(executions.length, options.keepLast ?? 0));
    const pruned = old.filter((execution) => {
      if (execution.isRunning || execution === instance.currentExecution) return false; // A3
      return isCompletedBefore(execution, options.completedBeforeMs);
    });
    for (const { executionId } of pruned) instance.executions.delete(executionId);
    return { instancesProcessed: 1, executionsDeleted: pruned.length, eventsDeleted: countEvents(pruned) };
  }

  #isInScope(instance: KnownInstance, scope: BulkScope): boolean {
    switch (scope.kind) {
      case "ended-roots":
        return hasEnded(instance) && !this.#hasParent(instance);
      case "more-executions-than":
        return instance.executions.size > scope.count;
      default:
        return unreachable(scope);
    }
  }

  /** A child whose parent is gone has none (A4). */
  #hasParent({ row }: KnownInstance): boolean {
    return row.parentInstanceId !== null && this.#store.known.get(row.parentInstanceId) !== null;
  }

  #require(operation: string, id: string): KnownInstance {
    const instance = this.#store.known.get(id);
    if (instance === null) throw instanceNotFound(operation, id); // A1
    return instance;
  }
}

function statusOf(instance: KnownInstance): ExecutionStatus {
  return instance.currentExecution?.status ?? "Running";
}

/** A5 */
function hasEnded(instance: KnownInstance): boolean {
  const status = statusOf(instance);
  return status === "Completed" || status === "Failed";
}

function isCompletedBefore(execution: ExecutionRecord | null, timeMs: number | undefined): boolean {
  if (timeMs === undefined) return true;
  const completedAt = execution?.completedAt ?? null;
  return completedAt !== null && completedAt < timeMs;
}

/** Ascending. */
function executionsOf(instance: InstanceRecord | undefined): ExecutionRecord[] {
  return [...(instance?.executions.values() ?? [])].sort((a, b) => a.executionId - b.executionId);
}

function countEvents(executions: readonly ExecutionRecord[]): number {
  return executions.reduce((sum, { eventCount }) => sum + eventCount, 0);
}
