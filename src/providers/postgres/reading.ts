// providers/postgres/reading.ts — what clients ask about instances. The functions behind it stand in
// `migrations/0004-reading.ts`.
//
//   R1. Every question is one statement.
//   R2. Stored events and work items are decoded here. Where a history is asked for, what cannot be decoded is an error
//       ("corrupt"); where it only tells a name, the name is not known.

import { CodecError, messageOf, ProviderError } from "../../errors.js";
import { decodeEvent, decodeWorkItem } from "../../history/codec.js";
import type { Event } from "../../history/event.js";
import { isStartLike } from "../../history/work-item.js";
import { identityInEvent, identityInStart, type StartIdentity } from "../../provider/kit/start-identity.js";
import { fromColumn, fromNullableColumn, toColumn } from "../../provider/kit/text-column.js";
import type { ExecutionStatus, InstanceStats, InstanceStatus } from "../../provider/provider.js";
import type { Connections } from "./connections.js";

interface EventRow {
  readonly event_data: string;
}

interface StatusRow {
  readonly instance_id: string;
  /** Null: the instance has no row. */
  readonly orchestration_name: string | null;
  readonly orchestration_version: string | null;
  readonly execution_id: number;
  readonly status: ExecutionStatus | null;
  readonly output: string | null;
  readonly custom_status: string | null;
  readonly custom_status_version: number;
  readonly start_event: string | null;
  readonly start_item: string | null;
}

interface StatsRow {
  readonly execution_id: number;
  readonly events: number;
  readonly bytes: number;
  readonly first_event: string | null;
  readonly keys: number;
  readonly plain_bytes: number;
  readonly escaped: readonly string[];
}

/** The reading half of the provider. */
export class Reading {
  readonly #connections: Pick<Connections, "query">;
  readonly #statements: ReturnType<typeof statements>;

  constructor(connections: Pick<Connections, "query">, quotedSchema: string) {
    this.#connections = connections;
    this.#statements = statements(quotedSchema);
  }

  /** Of the latest execution. @throws ProviderError "corrupt" */
  async read(instance: string): Promise<readonly Event[]> {
    const rows = await this.#connections.query<EventRow & { readonly execution_id: number }>(
      "read",
      this.#statements.readLatest,
      [toColumn(instance)],
    );
    return decodeHistory("read", instance, rows[0]?.execution_id ?? 1, rows);
  }

  /** @throws ProviderError "corrupt" */
  async readWithExecution(instance: string, executionId: number): Promise<readonly Event[]> {
    const values = [toColumn(instance), executionId];
    const rows = await this.#connections.query<EventRow>("readWithExecution", this.#statements.read, values);
    return decodeHistory("readWithExecution", instance, executionId, rows);
  }

  /** Of many at once, in the order in which they were asked for. Null: unknown. */
  async statusesOf(instances: readonly string[]): Promise<readonly (InstanceStatus | null)[]> {
    const ids = instances.map(toColumn);
    const values = [[...new Set(ids)]];
    const rows = await this.#connections.query<StatusRow>("getInstanceStatus", this.#statements.statuses, values);
    const statusById = new Map(rows.map((row) => [row.instance_id, toStatus(row)]));
    return ids.map((id) => statusById.get(id) ?? null);
  }

  /** Null unless its version is newer than the one last seen. */
  async customStatus(
    instance: string,
    lastSeenVersion: number,
  ): Promise<{ readonly status: string | null; readonly version: number } | null> {
    const [row] = await this.#connections.query<Pick<StatusRow, "custom_status" | "custom_status_version">>(
      "getCustomStatus",
      this.#statements.customStatus,
      [toColumn(instance), lastSeenVersion],
    );
    return row === undefined
      ? null
      : { status: fromNullableColumn(row.custom_status), version: row.custom_status_version };
  }

  async kvValue(instance: string, key: string): Promise<string | null> {
    const [row] = await this.#connections.query<{ readonly value: string | null }>(
      "getKvValue",
      this.#statements.kvValue,
      [toColumn(instance), toColumn(key)],
    );
    return row === undefined ? null : fromNullableColumn(row.value);
  }

  async kvValues(instance: string): Promise<ReadonlyMap<string, string>> {
    const rows = await this.#connections.query<{ readonly key: string; readonly value: string }>(
      "getKvAllValues",
      this.#statements.kvValues,
      [toColumn(instance)],
    );
    return new Map(rows.map((row) => [fromColumn(row.key), fromColumn(row.value)]));
  }

  /** Of the current execution. Null where the instance has no row. @throws ProviderError "corrupt" */
  async instanceStats(instance: string): Promise<InstanceStats | null> {
    const values = [toColumn(instance)];
    const [row] = await this.#connections.query<StatsRow>("getInstanceStats", this.#statements.stats, values);
    if (row === undefined) return null;
    return {
      historyEventCount: row.events,
      historySizeBytes: row.bytes,
      queuePendingCount: carriedMessages(instance, row),
      kvUserKeyCount: row.keys,
      kvTotalValueBytes: row.escaped.reduce(
        (sum, value) => sum + Buffer.byteLength(fromColumn(value)),
        row.plain_bytes,
      ),
    };
  }
}

/** The statements of one schema, whose name comes quoted. */
function statements(schema: string) {
  return {
    read: `SELECT * FROM ${schema}.read_history($1, $2)`,
    readLatest: `SELECT * FROM ${schema}.read_latest_history($1)`,
    statuses: `SELECT * FROM ${schema}.instance_statuses($1)`,
    customStatus: `SELECT * FROM ${schema}.newer_custom_status($1, $2)`,
    kvValue: `SELECT * FROM ${schema}.kv_value($1, $2)`,
    kvValues: `SELECT * FROM ${schema}.kv_values($1)`,
    stats: `SELECT * FROM ${schema}.instance_stats($1)`,
  } as const;
}

function decodeHistory(
  operation: string,
  instance: string,
  executionId: number,
  rows: readonly EventRow[],
): readonly Event[] {
  try {
    return rows.map((row) => decodeEvent(row.event_data));
  } catch (error) {
    throw error instanceof CodecError ? corruptHistory(operation, instance, executionId, error) : error;
  }
}

function corruptHistory(operation: string, instance: string, executionId: number, cause: CodecError): ProviderError {
  const message = `the history of '${instance}', execution ${executionId}, cannot be decoded: ${messageOf(cause)}`;
  return new ProviderError("corrupt", operation, message, { cause });
}

/** Null: nobody has said yet what it is. */
function toStatus(row: StatusRow): InstanceStatus | null {
  const identity = identityOf(row);
  if (identity === null) return null;
  return {
    status: row.status ?? "Pending",
    orchestrationName: identity.name,
    orchestrationVersion: identity.version,
    executionId: row.execution_id,
    output: fromNullableColumn(row.output),
    customStatus: fromNullableColumn(row.custom_status),
    customStatusVersion: row.custom_status_version,
  };
}

/** Known by its row, without a row by its history, without history by its start. */
function identityOf(row: StatusRow): StartIdentity | null {
  if (row.orchestration_name !== null && row.orchestration_version !== null) {
    return { name: fromColumn(row.orchestration_name), version: fromColumn(row.orchestration_version) };
  }
  if (row.start_event !== null) return identityInEvent(row.start_event);
  return row.start_item === null ? null : nameInStart(row.start_item);
}

/** Null for a start that cannot be decoded: it will never start anything. */
function nameInStart(startItem: string): StartIdentity | null {
  try {
    const item = decodeWorkItem(startItem);
    return isStartLike(item) ? identityInStart(item) : null;
  } catch (error) {
    if (error instanceof CodecError) return null;
    throw error;
  }
}

/** Messages that continue-as-new brought along, and that the history begins with. */
function carriedMessages(instance: string, { first_event, execution_id }: StatsRow): number {
  if (first_event === null) return 0;
  const [first] = decodeHistory("getInstanceStats", instance, execution_id, [{ event_data: first_event }]);
  return first?.type === "OrchestrationStarted" ? (first.carryForwardEvents?.length ?? 0) : 0;
}
