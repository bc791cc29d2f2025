// provider/admin.ts — what operators ask of a store: lists, details, counts, and the removal of what is over.
//
//   A1. An instance is known here by its row: from its first turn on that named orchestration and version.
//   A2. Removal is atomic, leaves no child without its parent, and takes locks along: whoever works on a removed
//       instance cannot commit any more. Children that have not begun go with their parent: their queued starts, and
//       the locks of those who work on them.
//   A3. The current execution and a running one are never pruned.
//   A4. A tree is deleted by its root. A child whose parent is gone counts as a root.
//   A5. An instance has ended when its current execution has completed or failed. One that has continued as new goes
//       on: the start of its next execution is queued.

import type { Event } from "../history/event.js";
import type { ExecutionStatus } from "./provider.js";

/** What the store knows of an instance. Status and output are those of its current execution. */
export interface InstanceInfo {
  readonly instanceId: string;
  readonly orchestrationName: string;
  readonly orchestrationVersion: string;
  readonly currentExecutionId: number;
  readonly status: ExecutionStatus;
  /** Output, display text of the failure, or the next input. */
  readonly output: string | null;
  readonly createdAtMs: number;
  /** When its last turn was committed. */
  readonly updatedAtMs: number;
  /** Null: nobody's child. */
  readonly parentInstanceId: string | null;
}

/** What the store knows of one execution. */
export interface ExecutionInfo {
  readonly executionId: number;
  readonly status: ExecutionStatus;
  readonly output: string | null;
  readonly startedAtMs: number;
  /** When it completed, failed or continued as new; null while it runs. */
  readonly completedAtMs: number | null;
  readonly eventCount: number;
}

/** The store as a whole. The three states look at the current execution of every instance. */
export interface SystemMetrics {
  readonly totalInstances: number;
  readonly totalExecutions: number;
  readonly runningInstances: number;
  readonly completedInstances: number;
  readonly failedInstances: number;
  readonly totalEvents: number;
}

/** Rows that no live lock holds, visible or not. */
export interface QueueDepths {
  readonly orchestratorQueue: number;
  readonly workerQueue: number;
  /** Always 0: timers are messages of the orchestrator queue. */
  readonly timerQueue: number;
}

/** An instance and all its descendants. */
export interface InstanceTree {
  readonly rootId: string;
  /** The root first, every parent before its children. */
  readonly allIds: readonly string[];
}

/** Which instances a bulk operation is about. All conditions must hold. */
export interface InstanceFilter {
  /** Absent: any. Empty: none. */
  readonly instanceIds?: readonly string[];
  /** The current execution ended before this time (exclusive). */
  readonly completedBeforeMs?: number;
  /** @default 1000 */
  readonly limit?: number;
}

/** A filter whose limit is known: what a store is asked with. */
export type BulkFilter = InstanceFilter & { readonly limit: number };

/** Which executions go. All conditions must hold; the current one and running ones stay whatever they say. */
export interface PruneOptions {
  /** Keeps the newest ones, the current among them. Absent, 0 and 1 mean the same: only the current one. */
  readonly keepLast?: number;
  /** Only executions that ended before this time (exclusive). */
  readonly completedBeforeMs?: number;
}

/** What a deletion took. */
export interface DeleteResult {
  readonly instancesDeleted: number;
  readonly executionsDeleted: number;
  readonly eventsDeleted: number;
  /** Messages and activities. */
  readonly queueMessagesDeleted: number;
}

/** What a pruning took. */
export interface PruneResult {
  readonly instancesProcessed: number;
  readonly executionsDeleted: number;
  readonly eventsDeleted: number;
}

/** Which instances a bulk operation may take beside its filter. */
export type BulkScope =
  /** Instances that have completed or failed, and whose parent, if any, is gone. */
  | { readonly kind: "ended-roots" }
  /** Instances in any state that have more executions than this. */
  | { readonly kind: "more-executions-than"; readonly count: number };

/**
 * What a store must answer itself. The kit's `completeAdmin` makes a `ProviderAdmin` of it.
 * Every method is one atomic operation.
 */
export interface AdminStore {
  /** All instances, newest first. */
  listInstances(): Promise<readonly string[]>;
  /** Those whose current execution has this status, newest first. */
  listInstancesByStatus(status: ExecutionStatus): Promise<readonly string[]>;
  /** Ids of executions, ascending; known even where the instance is not. Empty: none. */
  listExecutions(instance: string): Promise<readonly number[]>;
  /** The highest id of an execution; 1 where there is none. */
  latestExecutionId(instance: string): Promise<number>;
  /** @throws ProviderError "not-found" */
  getInstanceInfo(instance: string): Promise<InstanceInfo>;
  /** @throws ProviderError "not-found" */
  getExecutionInfo(instance: string, executionId: number): Promise<ExecutionInfo>;
  getSystemMetrics(): Promise<SystemMetrics>;
  getQueueDepths(): Promise<QueueDepths>;
  /** Direct children only. Empty for a leaf and for an unknown instance. */
  listChildren(instance: string): Promise<readonly string[]>;
  /** Null for a root. @throws ProviderError "not-found" */
  getParentId(instance: string): Promise<string | null>;
  /**
   * Deletes just these, all or none: history, executions, messages and activities, locks, key-values. Unknown ids
   * are ignored, and count nothing.
   * @throws ProviderError "still-running" for one that has not ended, unless forced; "orphans", forced or not, for one whose
   *   child is not among them
   */
  deleteInstancesAtomic(instances: readonly string[], force: boolean): Promise<DeleteResult>;
  /**
   * Removes old executions with their histories. Key-values, messages and the instance stay.
   * @throws ProviderError "not-found"
   */
  pruneExecutions(instance: string, options: PruneOptions): Promise<PruneResult>;
  /** The instances that a bulk operation is about, oldest first, no more than the filter's limit. */
  selectInstances(filter: BulkFilter, scope: BulkScope): Promise<readonly string[]>;
}

/** What operators ask of a store. Optional in a provider: a runtime does not need it. */
export interface ProviderAdmin extends Omit<AdminStore, "selectInstances"> {
  /** As `Provider.read`. */
  readHistory(instance: string): Promise<readonly Event[]>;
  /** As `Provider.readWithExecution`. */
  readHistoryWithExecutionId(instance: string, executionId: number): Promise<readonly Event[]>;
  /** The instance and its descendants. @throws ProviderError "not-found" */
  getInstanceTree(instance: string): Promise<InstanceTree>;
  /**
   * Deletes a root with all its descendants, atomically.
   * @throws ProviderError "not-found"; "sub-orchestration" for a child, forced or not; "still-running" where one of
   *   them runs, unless forced
   */
  deleteInstance(instance: string, force: boolean): Promise<DeleteResult>;
  /**
   * Deletes ended roots with their descendants, each tree atomically. Trees in which something has not ended are passed
   * over, and so are children that are named by themselves.
   */
  deleteInstanceBulk(filter: InstanceFilter): Promise<DeleteResult>;
  /**
   * Prunes each of these, running ones too, each atomically. Instances that have no more executions than are kept are
   * passed over, and count neither as processed nor for the limit.
   */
  pruneExecutionsBulk(filter: InstanceFilter, options: PruneOptions): Promise<PruneResult>;
}
