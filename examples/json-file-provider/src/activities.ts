import {
  type ActivityExecute,
  type ExecutionState,
  encodeWorkItem,
  lockLost,
  type SessionFetch,
  type TagFilter,
} from "duroxide-ts/provider";
import { type ActivityRow, after, currentExecution, findInstance, readWorkItem, type Tables } from "./tables.js";

export function addActivity(tables: Tables, item: ActivityExecute, now: number): void {
  tables.activities.push({
    instance: item.instance,
    executionId: item.executionId,
    id: item.id,
    tag: item.tag ?? null,
    sessionId: item.sessionId ?? null,
    text: encodeWorkItem(item),
    visibleAtMs: now,
    token: null,
    lockedUntilMs: 0,
    attempts: 0,
  });
}

/** The oldest activity that can be taken. What cannot be decoded is set aside for good on the way. */
export function nextActivity(
  tables: Tables,
  isFitting: (row: ActivityRow) => boolean,
  now: number,
): { readonly row: ActivityRow; readonly item: ActivityExecute } | null {
  for (const row of tables.activities) {
    if (row.visibleAtMs > now || row.lockedUntilMs > now || !isFitting(row)) continue;
    const item = readWorkItem(row.text);
    if (item?.type === "ActivityExecute") return { row, item };
    row.visibleAtMs = Number.MAX_SAFE_INTEGER;
  }
  return null;
}

export function liveActivity(operation: string, tables: Tables, lockToken: string, now: number): ActivityRow {
  const row = tables.activities.find(({ token }) => token === lockToken);
  if (row === undefined || row.lockedUntilMs <= now) throw lockLost(operation, lockToken);
  return row;
}

export function fitsTag({ tag }: ActivityRow, filter: TagFilter): boolean {
  switch (filter.kind) {
    case "any":
      return true;
    case "none":
      return false;
    case "default-only":
      return tag === null;
    case "tags":
      return tag !== null && filter.tags.includes(tag);
    case "default-and":
      return tag === null || filter.tags.includes(tag);
  }
}

export function fitsSession(tables: Tables, row: ActivityRow, session: SessionFetch | undefined, now: number): boolean {
  if (row.sessionId === null) return true;
  if (session === undefined) return false;
  const claim = tables.sessions.find(({ id }) => id === row.sessionId);
  return claim === undefined || claim.lockedUntilMs <= now || claim.ownerId === session.ownerId;
}

export function claimSession(tables: Tables, id: string, { ownerId, lockTimeoutMs }: SessionFetch, now: number): void {
  tables.sessions = tables.sessions.filter((session) => session.id !== id);
  tables.sessions.push({ id, ownerId, lockedUntilMs: after(now, lockTimeoutMs), lastActivityAtMs: now });
}

export function touchSession(tables: Tables, { sessionId }: ActivityRow, now: number): void {
  const session = tables.sessions.find(({ id, lockedUntilMs }) => id === sessionId && lockedUntilMs > now);
  if (session !== undefined) session.lastActivityAtMs = now;
}

/** Whether anybody still waits for the activity. Where nobody knows the instance, somebody may. */
export function executionState(tables: Tables, { instance, executionId }: ActivityRow): ExecutionState {
  const row = findInstance(tables, instance);
  if (row === undefined) return "running";
  const runs = row.currentExecutionId === executionId && currentExecution(tables, row)?.status === "Running";
  return runs ? "running" : "terminated";
}
