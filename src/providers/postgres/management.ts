// providers/postgres/management.ts — what operators ask, and what they remove. The functions behind it stand in
// `migrations/0005-management.ts`, with the rules of a deletion.
//
//   A1. Every operation is one statement. A deletion that met others in its scope is asked again, a few times.
//   A2. Nothing here decodes an event or a work item: what is corrupt can be listed, counted and deleted.

import { ProviderError, unreachable } from "../../errors.js";
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
import { fromColumn, fromNullableColumn, toColumn } from "../../provider/kit/text-column.js";
import type { ExecutionStatus } from "../../provider/provider.js";
import type { Connections, SqlValue } from "./connections.js";

/** What management needs of the provider. */
export interface ManagementAccess {
  readonly connections: Pick<Connections, "query">;
  readonly quotedSchema: string;
  now(): number;
  /** Told after every deletion, refused or not: it may have kept work from those who looked for some. */
  announce(effects: DeletionEffects): void;
}

/** Whom a deletion concerns beside the one who asked for it. */
export interface DeletionEffects {
  /** The deleted ones, and those whose start went with them. */
  readonly changed: readonly string[];
  /** How many instances have messages that can be fetched now. */
  readonly readyMessages: number;
}

/** How a deletion ended. Nothing is removed when it was refused. */
interface Deletion extends DeletionEffects {
  readonly result: DeleteResult | ProviderError;
}

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

interface MetricsRow {
  readonly instances: number;
  readonly executions: number;
  readonly events: number;
  readonly running: number;
  readonly completed: number;
  readonly failed: number;
}

type DeletionRow = DeletedRow | RefusedRow;

interface DeletedRow {
  readonly outcome: "deleted";
  readonly instances_deleted: number;
  readonly executions_deleted: number;
  readonly events_deleted: number;
  readonly queued_deleted: number;
  readonly changed: readonly string[];
  readonly ready: number;
}

type RefusedRow = { readonly ready: number } & (
  | { readonly outcome: "running"; readonly instance_id: string }
  | { readonly outcome: "orphans"; readonly instance_id: string; readonly parent_instance_id: string }
  | { readonly outcome: "again" }
);

/** How often others may come into the scope of a deletion between its look and its locks. */
const MOST_ATTEMPTS = 10;

export function adminStore(access: ManagementAccess): AdminStore {
  return new ManagementStore(access);
}

class ManagementStore implements AdminStore {
  readonly #access: ManagementAccess;
  readonly #statements: ReturnType<typeof statements>;

  constructor(access: ManagementAccess) {
    this.#access = access;
    this.#statements = statements(access.quotedSchema);
  }

  listInstances(): Promise<readonly string[]> {
    return this.#ids("listInstances", this.#statements.listInstances, []);
  }

  listInstancesByStatus(status: ExecutionStatus): Promise<readonly string[]> {
    return this.#ids("listInstancesByStatus", this.#statements.listInstancesByStatus, [status]);
  }

  listChildren(instance: string): Promise<readonly string[]> {
    return this.#ids("listChildren", this.#statements.listChildren, [toColumn(instance)]);
  }

  async listExecutions(instance: string): Promise<readonly number[]> {
    const values = [toColumn(instance)];
    const rows = await this.#query<{ readonly execution_id: number }>(
      "listExecutions",
      this.#statements.listExecutions,
      values,
    );
    return rows.map((row) => row.execution_id);
  }

  async latestExecutionId(instance: string): Promise<number> {
    const values = [toColumn(instance)];
    const row = await this.#first<{ readonly execution_id: number }>(
      "latestExecutionId",
      this.#statements.latestExecution,
      values,
    );
    return row?.execution_id ?? 1;
  }

  async getInstanceInfo(instance: string): Promise<InstanceInfo> {
    const operation = "getInstanceInfo";
    const row = await this.#first<InstanceInfoRow>(operation, this.#statements.instanceInfo, [toColumn(instance)]);
    if (row === undefined) throw instanceNotFound(operation, instance);
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

  async getExecutionInfo(instance: string, executionId: number): Promise<ExecutionInfo> {
    const operation = "getExecutionInfo";
    const values = [toColumn(instance), executionId];
    const row = await this.#first<ExecutionInfoRow>(operation, this.#statements.executionInfo, values);
    if (row === undefined) throw executionNotFound(operation, instance, executionId);
    return {
      executionId,
      status: row.status,
      output: fromNullableColumn(row.output),
      startedAtMs: row.started_at,
      completedAtMs: row.completed_at,
      eventCount: row.events,
    };
  }

  async getParentId(instance: string): Promise<string | null> {
    const operation = "getParentId";
    const row = await this.#first<Pick<InstanceInfoRow, "parent_instance_id">>(operation, this.#statements.parentOf, [
      toColumn(instance),
    ]);
    if (row === undefined) throw instanceNotFound(operation, instance);
    return fromNullableColumn(row.parent_instance_id);
  }

  async getSystemMetrics(): Promise<SystemMetrics> {
    const row = (await this.#first<MetricsRow>("getSystemMetrics", this.#statements.systemMetrics, []))!;
    return {
      totalInstances: row.instances,
      totalExecutions: row.executions,
      runningInstances: row.running,
      completedInstances: row.completed,
      failedInstances: row.failed,
      totalEvents: row.events,
    };
  }

  async getQueueDepths(): Promise<QueueDepths> {
    const row = (await this.#first<{ readonly messages: number; readonly activities: number }>(
      "getQueueDepths",
      this.#statements.queueDepths,
      [this.#access.now()],
    ))!;
    return { orchestratorQueue: row.messages, workerQueue: row.activities, timerQueue: 0 };
  }

  selectInstances(filter: BulkFilter, scope: BulkScope): Promise<readonly string[]> {
    const endedBefore = filter.completedBeforeMs ?? null;
    const among = filter.instanceIds?.map(toColumn) ?? null;
    switch (scope.kind) {
      case "ended-roots":
        return this.#ids("selectInstances", this.#statements.endedRoots, [endedBefore, among, filter.limit]);
      case "more-executions-than": {
        const values = [endedBefore, scope.count, among, filter.limit];
        return this.#ids("selectInstances", this.#statements.prunableInstances, values);
      }
      default:
        return unreachable(scope);
    }
  }

  async pruneExecutions(instance: string, options: PruneOptions): Promise<PruneResult> {
    const operation = "pruneExecutions";
    const values = [toColumn(instance), options.keepLast ?? 0, options.completedBeforeMs ?? null];
    const row = await this.#first<{ readonly executions_deleted: number; readonly events_deleted: number }>(
      operation,
      this.#statements.pruneExecutions,
      values,
    );
    if (row === undefined) throw instanceNotFound(operation, instance);
    return { instancesProcessed: 1, executionsDeleted: row.executions_deleted, eventsDeleted: row.events_deleted };
  }

  async deleteInstancesAtomic(instances: readonly string[], force: boolean): Promise<DeleteResult> {
    const { result, ...effects } = await this.#delete("deleteInstancesAtomic", instances, force);
    this.#access.announce(effects);
    if (result instanceof ProviderError) throw result;
    return result;
  }

  async #delete(operation: string, instances: readonly string[], force: boolean): Promise<Deletion> {
    const ids = [...new Set(instances.map(toColumn))];
    for (let attempt = 1; ; attempt += 1) {
      const values = [ids, force, this.#access.now()];
      const row = (await this.#first<DeletionRow>(operation, this.#statements.deleteInstances, values))!;
      if (row.outcome === "again" && attempt < MOST_ATTEMPTS) continue; // A1
      return toDeletion(operation, row);
    }
  }

  async #ids(operation: string, text: string, values: readonly SqlValue[]): Promise<readonly string[]> {
    const rows = await this.#query<IdRow>(operation, text, values);
    return rows.map((row) => fromColumn(row.instance_id));
  }

  async #first<Row>(operation: string, text: string, values: readonly SqlValue[]): Promise<Row | undefined> {
    const [row] = await this.#query<Row>(operation, text, values);
    return row;
  }

  #query<Row>(operation: string, text: string, values: readonly SqlValue[]): Promise<readonly Row[]> {
    return this.#access.connections.query<Row>(operation, text, values);
  }
}

/** The statements of one schema, whose name comes quoted. */
function statements(schema: string) {
  return {
    listInstances: `SELECT * FROM ${schema}.list_instances()`,
    listInstancesByStatus: `SELECT * FROM ${schema}.list_instances_by_status($1)`,
    listExecutions: `SELECT * FROM ${schema}.list_executions($1)`,
    latestExecution: `SELECT * FROM ${schema}.latest_execution($1)`,
    instanceInfo: `SELECT * FROM ${schema}.instance_info($1)`,
    executionInfo: `SELECT * FROM ${schema}.execution_info($1, $2)`,
    systemMetrics: `SELECT * FROM ${schema}.system_metrics()`,
    queueDepths: `SELECT * FROM ${schema}.queue_depths($1)`,
    listChildren: `SELECT * FROM ${schema}.list_children($1)`,
    parentOf: `SELECT * FROM ${schema}.parent_of($1)`,
    endedRoots: `SELECT * FROM ${schema}.ended_roots($1, $2, $3)`,
    prunableInstances: `SELECT * FROM ${schema}.prunable_instances($1, $2, $3, $4)`,
    pruneExecutions: `SELECT * FROM ${schema}.prune_executions($1, $2, $3)`,
    deleteInstances: `SELECT * FROM ${schema}.delete_instances($1, $2, $3)`,
  } as const;
}

function toDeletion(operation: string, row: DeletionRow): Deletion {
  if (row.outcome !== "deleted") return { result: toRefusal(operation, row), changed: [], readyMessages: row.ready };
  const result = {
    instancesDeleted: row.instances_deleted,
    executionsDeleted: row.executions_deleted,
    eventsDeleted: row.events_deleted,
    queueMessagesDeleted: row.queued_deleted,
  };
  return { result, changed: row.changed.map(fromColumn), readyMessages: row.ready };
}

function toRefusal(operation: string, row: RefusedRow): ProviderError {
  switch (row.outcome) {
    case "running":
      return stillRunning(operation, fromColumn(row.instance_id));
    case "orphans":
      return wouldOrphan(operation, fromColumn(row.instance_id), fromColumn(row.parent_instance_id));
    case "again": {
      const message = "the instances have started more children, time and again. Nothing was deleted; try again later.";
      return new ProviderError("transient", operation, message);
    }
    default:
      return unreachable(row);
  }
}
