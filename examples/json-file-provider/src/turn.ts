import {
  checkEventIds,
  type Event,
  encodeEvent,
  eventTaken,
  lockLost,
  type ScheduledId,
  type TurnCommit,
} from "duroxide-ts/provider";
import {
  type ExecutionRow,
  eventsOf,
  findExecution,
  findInstance,
  kvView,
  type LockRow,
  type Tables,
} from "./tables.js";

export function liveLock(operation: string, tables: Tables, lockToken: string, now: number): LockRow {
  const lock = tables.locks.find(({ token }) => token === lockToken);
  if (lock === undefined || lock.lockedUntilMs <= now) throw lockLost(operation, lockToken);
  return lock;
}

export function appendEvents(
  operation: string,
  tables: Tables,
  instance: string,
  executionId: number,
  events: readonly Event[],
): void {
  checkEventIds(operation, events);
  const taken = new Set(eventsOf(tables, instance, executionId).map(({ eventId }) => eventId));
  for (const event of events) {
    if (taken.has(event.eventId)) throw eventTaken(operation, event);
    taken.add(event.eventId);
    tables.events.push({ instance, executionId, eventId: event.eventId, text: encodeEvent(event) });
  }
}

export function writeInstance(
  tables: Tables,
  instance: string,
  { executionId, events, metadata }: TurnCommit,
  now: number,
) {
  const { orchestrationName: name, orchestrationVersion: version, parentInstanceId } = metadata;
  let row = findInstance(tables, instance);
  if (name !== undefined && version !== undefined) {
    if (row === undefined) {
      row = {
        id: instance,
        name,
        version,
        currentExecutionId: executionId,
        parentId: parentInstanceId ?? null,
        customStatus: null,
        customStatusVersion: 0,
        createdAtMs: now,
        updatedAtMs: now,
      };
      tables.instances.push(row);
    }
    row.name = name;
    row.version = version;
  }
  if (row === undefined) return;
  row.currentExecutionId = Math.max(row.currentExecutionId, executionId);
  row.updatedAtMs = now;
  const update = events.findLast((event) => event.type === "CustomStatusUpdated");
  if (update !== undefined) {
    row.customStatus = update.status;
    row.customStatusVersion += 1;
  }
}

/** The row of the execution, which begins now if it is new. */
export function executionRow(tables: Tables, instance: string, executionId: number, now: number): ExecutionRow {
  const known = findExecution(tables, instance, executionId);
  if (known !== undefined) return known;
  const row: ExecutionRow = {
    instance,
    executionId,
    status: "Running",
    output: null,
    startedAtMs: now,
    completedAtMs: null,
    pinnedVersion: null,
  };
  tables.executions.push(row);
  return row;
}

export function writeExecution(
  tables: Tables,
  instance: string,
  { executionId, metadata }: TurnCommit,
  now: number,
): void {
  const row = executionRow(tables, instance, executionId, now);
  if (metadata.pinnedVersion !== undefined) row.pinnedVersion = metadata.pinnedVersion;
  if (metadata.status === undefined) return;
  row.status = metadata.status;
  row.output = metadata.output ?? null;
  row.completedAtMs = metadata.status === "Running" ? null : now;
}

export function writeKeyValues(tables: Tables, instance: string, { events, metadata }: TurnCommit): void {
  const isOther = (row: { readonly instance: string }) => row.instance !== instance;
  const put = (key: string, value: string | null, lastUpdatedAtMs: number) => {
    tables.kvDelta = tables.kvDelta.filter((row) => isOther(row) || row.key !== key);
    tables.kvDelta.push({ instance, key, value, lastUpdatedAtMs });
  };
  for (const event of events) {
    if (event.type === "KeyValueSet") put(event.key, event.value, event.lastUpdatedAtMs);
    else if (event.type === "KeyValueCleared") put(event.key, null, event.timestampMs);
    else if (event.type === "KeyValuesCleared") {
      for (const key of kvView(tables, instance).keys()) put(key, null, event.timestampMs);
    }
  }
  if (metadata.status === undefined || metadata.status === "Running") return;
  for (const { key, value, lastUpdatedAtMs } of tables.kvDelta.filter((row) => !isOther(row))) {
    tables.kvStore = tables.kvStore.filter((row) => isOther(row) || row.key !== key);
    if (value !== null) tables.kvStore.push({ instance, key, value, lastUpdatedAtMs });
  }
  tables.kvDelta = tables.kvDelta.filter(isOther);
}

/** For `cancelled.some(isSame(row))`. */
export function isSame({ instance, executionId, id }: ScheduledId): (other: ScheduledId) => boolean {
  return (other) => other.instance === instance && other.executionId === executionId && other.id === id;
}
