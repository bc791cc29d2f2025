import {
  CodecError,
  decodeEvent,
  decodeWorkItem,
  type Event,
  type ExecutionStatus,
  type OrchestratorItem,
  ProviderError,
  type ScheduledId,
  type SemVer,
  type WorkItem,
} from "duroxide-ts/provider";

/**
 * Everything that is stored. Every table is an array in order of insertion, searched from its beginning: slow, and
 * plain. Objects keyed by id would have to fear ids like `__proto__`.
 */
export interface Tables {
  readonly format: 1;
  nextRow: number;
  instances: InstanceRow[];
  executions: ExecutionRow[];
  events: EventRow[];
  messages: MessageRow[];
  locks: LockRow[];
  activities: ActivityRow[];
  sessions: SessionRow[];
  /** Key-values as of the end of the previous execution. */
  kvStore: KvRow[];
  /** What the current execution has changed since. A null is a tombstone. */
  kvDelta: KvRow<string | null>[];
}

export interface InstanceRow {
  readonly id: string;
  name: string;
  version: string;
  currentExecutionId: number;
  readonly parentId: string | null;
  customStatus: string | null;
  customStatusVersion: number;
  readonly createdAtMs: number;
  updatedAtMs: number;
}

export interface ExecutionRow {
  readonly instance: string;
  readonly executionId: number;
  status: ExecutionStatus;
  output: string | null;
  readonly startedAtMs: number;
  completedAtMs: number | null;
  pinnedVersion: SemVer | null;
}

export interface EventRow {
  readonly instance: string;
  readonly executionId: number;
  readonly eventId: number;
  text: string;
}

/** A message to an instance. What is asked of it stands beside its text, so that only a fetch needs to decode it. */
export interface MessageRow {
  readonly row: number;
  readonly instance: string;
  readonly type: OrchestratorItem["type"];
  /** Null: no timer. */
  readonly timer: ScheduledId | null;
  /** Of a start: whose child it starts. Null: nobody's, or no start. */
  readonly parentId: string | null;
  text: string;
  readonly dueAtMs: number;
  readonly visibleAtMs: number;
  attempts: number;
}

/** `messages`: the rows of the batch that this lock was taken for. */
export interface LockRow {
  readonly instance: string;
  readonly token: string;
  lockedUntilMs: number;
  readonly messages: readonly number[];
}

export interface ActivityRow {
  readonly instance: string;
  readonly executionId: number;
  readonly id: number;
  readonly tag: string | null;
  readonly sessionId: string | null;
  text: string;
  visibleAtMs: number;
  token: string | null;
  lockedUntilMs: number;
  attempts: number;
}

export interface SessionRow {
  readonly id: string;
  ownerId: string;
  lockedUntilMs: number;
  lastActivityAtMs: number;
}

export interface KvRow<V = string> {
  readonly instance: string;
  readonly key: string;
  readonly value: V;
  readonly lastUpdatedAtMs: number;
}

export const EMPTY_TABLES: Tables = {
  format: 1,
  nextRow: 1,
  instances: [],
  executions: [],
  events: [],
  messages: [],
  locks: [],
  activities: [],
  sessions: [],
  kvStore: [],
  kvDelta: [],
};

export function findInstance(tables: Tables, instance: string): InstanceRow | undefined {
  return tables.instances.find((row) => row.id === instance);
}

export function findExecution(tables: Tables, instance: string, executionId: number): ExecutionRow | undefined {
  return tables.executions.find((row) => row.instance === instance && row.executionId === executionId);
}

export function currentExecution(tables: Tables, { id, currentExecutionId }: InstanceRow): ExecutionRow | undefined {
  return findExecution(tables, id, currentExecutionId);
}

/** 0 where there is none. */
export function highestExecutionId(tables: Tables, instance: string): number {
  return tables.executions.reduce(
    (highest, row) => (row.instance === instance ? Math.max(highest, row.executionId) : highest),
    0,
  );
}

/** Ascending by event id. */
export function eventsOf(tables: Tables, instance: string, executionId: number): EventRow[] {
  return tables.events
    .filter((row) => row.instance === instance && row.executionId === executionId)
    .sort((a, b) => a.eventId - b.eventId);
}

/** Key-values as a reader sees them: the store under the delta. */
export function kvView(tables: Tables, instance: string): Map<string, string> {
  const view = new Map<string, string>();
  for (const { key, value } of tables.kvStore.filter((row) => row.instance === instance)) view.set(key, value);
  for (const { key, value } of tables.kvDelta.filter((row) => row.instance === instance)) {
    if (value === null) view.delete(key);
    else view.set(key, value);
  }
  return view;
}

export function readEvents(operation: string, rows: readonly EventRow[]): Event[] {
  return rows.map(({ text }) => decoded(operation, () => decodeEvent(text)));
}

/** Null where it cannot be decoded: nobody must be kept waiting by it. */
export function readMessage({ text }: MessageRow): OrchestratorItem | null {
  const item = readWorkItem(text);
  return item === null || item.type === "ActivityExecute" ? null : item;
}

export function readWorkItem(text: string): WorkItem | null {
  try {
    return decodeWorkItem(text);
  } catch (error) {
    if (error instanceof CodecError) return null;
    throw error;
  }
}

/** What `decode` makes of stored text. Text that it does not understand is the store's fault. */
export function decoded<R>(operation: string, decode: () => R): R {
  try {
    return decode();
  } catch (error) {
    if (error instanceof CodecError) throw new ProviderError("corrupt", operation, error.message, { cause: error });
    throw error;
  }
}

/** Durations may be fractions of a millisecond; times are integers. */
export function after(now: number, durationMs = 0): number {
  return now + Math.ceil(durationMs);
}
