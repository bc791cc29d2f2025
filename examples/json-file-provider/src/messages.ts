import {
  CodecError,
  decodeEvent,
  type Event,
  encodeWorkItem,
  isStartLike,
  type KvEntry,
  type OrchestratorItem,
  type SemVer,
  type SemVerRange,
  targetInstance,
} from "duroxide-ts/provider";
import {
  after,
  currentExecution,
  type EventRow,
  eventsOf,
  findInstance,
  highestExecutionId,
  type MessageRow,
  readMessage,
  type Tables,
} from "./tables.js";

export function addMessage(tables: Tables, item: OrchestratorItem, now: number, delayMs?: number): void {
  const instance = targetInstance(item);
  const timer = item.type === "TimerFired" ? item : null;
  const dueAtMs = timer?.fireAtMs ?? now;
  tables.messages.push({
    row: tables.nextRow,
    instance,
    type: item.type,
    timer: timer === null ? null : { instance, executionId: timer.executionId, id: timer.id },
    parentId: isStartLike(item) ? (item.parentInstance ?? null) : null,
    text: encodeWorkItem(item),
    dueAtMs,
    visibleAtMs: Math.max(dueAtMs, after(now, delayMs)),
    attempts: 0,
  });
  tables.nextRow += 1;
}

/** By due time, then by insertion: the tables are in that order, and sorting keeps it among equals. */
export function inOrder(messages: readonly MessageRow[]): MessageRow[] {
  return messages.toSorted((a, b) => a.dueAtMs - b.dueAtMs);
}

/** The visible messages of each instance, and the instance with the oldest one first. */
export function visibleBatches(tables: Tables, now: number): ReadonlyMap<string, readonly MessageRow[]> {
  const batches = new Map<string, MessageRow[]>();
  for (const message of inOrder(tables.messages.filter(({ visibleAtMs }) => visibleAtMs <= now))) {
    const batch = batches.get(message.instance);
    if (batch === undefined) batches.set(message.instance, [message]);
    else batch.push(message);
  }
  return batches;
}

export function isStart({ type }: MessageRow): boolean {
  return type === "StartOrchestration" || type === "ContinueAsNew";
}

export function hasStart(tables: Tables, instance: string): boolean {
  return tables.messages.some((message) => message.instance === instance && isStart(message));
}

export function isKnownOrStarting(tables: Tables, instance: string): boolean {
  return (
    findInstance(tables, instance) !== undefined ||
    highestExecutionId(tables, instance) > 0 ||
    hasStart(tables, instance)
  );
}

interface Identity {
  readonly orchestrationName: string;
  readonly version: string;
  readonly executionId: number;
}

/** What the instance is: by its row, else by its history, else by the oldest start of these messages. Null: unknown. */
export function identify(tables: Tables, instance: string, messages: readonly MessageRow[]): Identity | null {
  const row = findInstance(tables, instance);
  if (row !== undefined) {
    return { orchestrationName: row.name, version: row.version, executionId: row.currentExecutionId };
  }
  const executionId = highestExecutionId(tables, instance);
  const started = startedEvent(tables.events.filter((event) => event.instance === instance));
  if (started !== null) return { orchestrationName: started.name, version: started.version, executionId };
  const start = messages.find(isStart);
  const item = start === undefined ? null : readMessage(start);
  if (item !== null && isStartLike(item)) {
    const version = item.version ?? "unknown";
    return { orchestrationName: item.orchestration, version, executionId: Math.max(1, executionId) };
  }
  // There is a history, but none that says what it is a history of: the runtime must get to see it nevertheless.
  return executionId > 0 ? { orchestrationName: "unknown", version: "unknown", executionId } : null;
}

/** The start of the latest execution that has one. Events that cannot be decoded tell nothing. */
function startedEvent(rows: readonly EventRow[]): Extract<Event, { readonly type: "OrchestrationStarted" }> | null {
  for (const { text } of rows.toSorted((a, b) => b.executionId - a.executionId)) {
    try {
      const event = decodeEvent(text);
      if (event.type === "OrchestrationStarted") return event;
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
    }
  }
  return null;
}

/** An instance whose version nobody has pinned can be replayed by everybody. */
export function isCompatible(tables: Tables, instance: string, { min, max }: SemVerRange): boolean {
  const row = findInstance(tables, instance);
  const pinned = row === undefined ? null : (currentExecution(tables, row)?.pinnedVersion ?? null);
  return pinned === null || (compareVersions(pinned, min) >= 0 && compareVersions(pinned, max) <= 0);
}

function compareVersions(a: SemVer, b: SemVer): number {
  return a.major - b.major || a.minor - b.minor || a.patch - b.patch;
}

interface ReplayBasis {
  readonly history: readonly Event[];
  readonly kvSnapshot: ReadonlyMap<string, KvEntry>;
  readonly historyError: string | null;
}

/** A corrupt history is no failure of the fetch: the attempt counts, and the runtime decides what becomes of it. */
export function replayFrom(tables: Tables, instance: string, executionId: number): ReplayBasis {
  try {
    const history = eventsOf(tables, instance, executionId).map(({ text }) => decodeEvent(text));
    const entries = tables.kvStore
      .filter((row) => row.instance === instance)
      .map(({ key, value, lastUpdatedAtMs }): [string, KvEntry] => [key, { value, lastUpdatedAtMs }]);
    return { history, kvSnapshot: new Map(entries), historyError: null };
  } catch (error) {
    if (error instanceof CodecError) return { history: [], kvSnapshot: new Map(), historyError: error.message };
    throw error;
  }
}
