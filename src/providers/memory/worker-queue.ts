// providers/memory/worker-queue.ts — the activities to run, in the order in which they were scheduled.
//
//   W1. A row is handed out when it is visible, no live lock holds it, its tag is wanted and its session is open.
//   W2. Removing a locked row takes the work away from whoever holds it: its token is then unknown.

import type { ActivityExecute } from "../../history/work-item.js";
import { letsThrough } from "../../provider/kit/tag-filter.js";
import type { AbandonOptions, FetchWorkOptions, ScheduledId } from "../../provider/provider.js";
import { Sessions } from "./sessions.js";

export interface WorkRow {
  readonly item: ActivityExecute;
  visibleAt: number;
  attemptCount: number;
  lock: { readonly token: string; lockedUntil: number } | null;
}

export class WorkerQueue {
  readonly sessions = new Sessions();
  readonly #rows = new Set<WorkRow>();
  readonly #byToken = new Map<string, WorkRow>();
  /** Where to find what `cancel` asks for. Nothing forbids two rows for one activity. */
  readonly #byActivity = new Map<string, Set<WorkRow>>();

  add(item: ActivityExecute, now: number): void {
    const row: WorkRow = { item, visibleAt: now, attemptCount: 0, lock: null };
    this.#rows.add(row);
    const key = activityKey(item);
    this.#byActivity.set(key, (this.#byActivity.get(key) ?? new Set()).add(row));
  }

  remove(row: WorkRow): void {
    this.#unlock(row);
    this.#rows.delete(row);
    const key = activityKey(row.item);
    const siblings = this.#byActivity.get(key);
    siblings?.delete(row);
    if (siblings?.size === 0) this.#byActivity.delete(key);
  }

  cancel(activity: ScheduledId): void {
    for (const row of [...(this.#byActivity.get(activityKey(activity)) ?? [])]) this.remove(row); // W2
  }

  /** Removes all work of these instances, and answers how much that was. */
  removeWorkOf(instances: ReadonlySet<string>): number {
    const rows = [...this.#rows].filter((row) => instances.has(row.item.instance));
    for (const row of rows) this.remove(row); // W2
    return rows.length;
  }

  /** How many rows no live lock holds, visible or not. */
  countFree(now: number): number {
    return [...this.#rows].filter((row) => isUnlocked(row, now)).length;
  }

  /** The oldest row that these options may take. */
  next({ tagFilter = { kind: "default-only" }, session }: FetchWorkOptions, now: number): WorkRow | null {
    if (tagFilter.kind === "none") return null;
    for (const row of this.#rows) {
      const { tag, sessionId } = row.item;
      const isFree = row.visibleAt <= now && isUnlocked(row, now);
      if (!isFree || !letsThrough(tagFilter, tag)) continue; // W1
      if (sessionId === undefined) return row;
      if (session !== undefined && this.sessions.isOpenTo(sessionId, session.ownerId, now)) return row; // W1
    }
    return null;
  }

  /** Locks the row, and with it the session it belongs to. */
  lock(row: WorkRow, token: string, { lockTimeoutMs, session }: FetchWorkOptions, now: number): void {
    this.#unlock(row);
    row.lock = { token, lockedUntil: now + lockTimeoutMs };
    row.attemptCount += 1;
    this.#byToken.set(token, row);
    if (row.item.sessionId !== undefined && session !== undefined) {
      this.sessions.claim(row.item.sessionId, session, now);
    }
  }

  /** The row that this token was given for, unless it is gone or somebody else has taken it. */
  lockedWith(token: string): WorkRow | null {
    return this.#byToken.get(token) ?? null;
  }

  abandon(row: WorkRow, { delayMs = 0, ignoreAttempt = false }: AbandonOptions, now: number): void {
    this.#unlock(row);
    row.visibleAt = now + delayMs;
    if (ignoreAttempt) row.attemptCount = Math.max(0, row.attemptCount - 1);
  }

  sessionsInUse(): ReadonlySet<string> {
    const inUse = new Set<string>();
    for (const { item } of this.#rows) if (item.sessionId !== undefined) inUse.add(item.sessionId);
    return inUse;
  }

  /** When the passing of time alone may free a row for somebody: a delay, a lock or a session ends. Null: never. */
  nextFreeAt(now: number): number | null {
    let next = Number.POSITIVE_INFINITY;
    for (const { item, visibleAt, lock } of this.#rows) {
      const freeAt = Math.max(visibleAt, lock?.lockedUntil ?? 0);
      if (freeAt > now) next = Math.min(next, freeAt);
      const sessionFreeAt = item.sessionId === undefined ? null : this.sessions.lockedUntil(item.sessionId, now);
      if (sessionFreeAt !== null) next = Math.min(next, sessionFreeAt);
    }
    return Number.isFinite(next) ? next : null;
  }

  #unlock(row: WorkRow): void {
    if (row.lock !== null) this.#byToken.delete(row.lock.token);
    row.lock = null;
  }
}

function isUnlocked({ lock }: WorkRow, now: number): boolean {
  return lock === null || lock.lockedUntil <= now;
}

function activityKey({ instance, executionId, id }: ScheduledId): string {
  return `${executionId}:${id}:${instance}`;
}
