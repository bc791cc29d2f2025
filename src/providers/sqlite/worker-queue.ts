// providers/sqlite/worker-queue.ts — the activities to run, in the order in which they were scheduled.
//
//   W1. A row is handed out when nothing holds it, its tag is wanted and its session is open to the caller.
//   W2. Removing a held row takes the work away from whoever holds it: the token is then unknown.
//   W3. A row that cannot be decoded is set aside for good, counted, and stands in nobody's way.

import { messageOf, unreachable } from "../../errors.js";
import { decodeWorkItem, encodeWorkItem } from "../../history/codec.js";
import type { ActivityExecute, OrchestratorItem } from "../../history/work-item.js";
import { lockLost } from "../../provider/kit/refusals.js";
import { fromColumn, toColumn, toNullableColumn } from "../../provider/kit/text-column.js";
import { fetchesToWake } from "../../provider/kit/worker-wake.js";
import type {
  AbandonOptions,
  ExecutionState,
  FetchWorkOptions,
  LockedWorkItem,
  ScheduledId,
  TagFilter,
} from "../../provider/provider.js";
import type { Database } from "./database.js";
import { executionState } from "./instances.js";
import { newSecret, partsOf, placeOf, tokenOf } from "./lock-token.js";
import { enqueueMessage } from "./orchestrator-queue.js";
import { claimSession, touchSession } from "./sessions.js";
import { tablesIn } from "./statements.js";
import type { Transaction } from "./transaction.js";

const insertActivity = `
  INSERT INTO duroxide_worker_queue
    (instance_id, execution_id, activity_id, tag, session_id, enqueued_at, work_item)
  VALUES (?, ?, ?, ?, ?, ?, ?)
`;

/** Whether a lock or a delay is over. */
export const selectEndedHold = `SELECT 1 FROM duroxide_worker_queue WHERE held_until <= ? LIMIT 1`;

/** The token stays: its worker may still abandon what nobody has taken since. */
export const releaseEndedHolds = `UPDATE duroxide_worker_queue SET held_until = NULL WHERE held_until <= ?`;

export const selectReady = `SELECT 1 FROM duroxide_worker_queue WHERE held_until IS NULL LIMIT 1`;
export const ACTIVITIES = tablesIn("duroxide_worker_queue");

/** The oldest activity with this tag that belongs to no session. */
export const selectOldest = `
  SELECT id, session_id FROM duroxide_worker_queue
  WHERE held_until IS NULL AND tag IS ? AND session_id IS NULL
  ORDER BY id LIMIT 1
`;

/** The oldest activity with this tag that belongs to no session, or to one that nobody else holds. */
export const selectOldestForOwner = `
  SELECT id, session_id FROM duroxide_worker_queue AS q
  WHERE held_until IS NULL AND tag IS ?
    AND NOT EXISTS (
      SELECT 1 FROM duroxide_sessions AS s
      WHERE s.session_id = q.session_id AND s.owner_id <> ? AND s.locked_until > ?
    )
  ORDER BY id LIMIT 1
`;

/** The tags that have ready work, each found by one step in the index. */
export const selectReadyTags = `
  WITH RECURSIVE ready (tag) AS (
    SELECT MIN(tag) FROM duroxide_worker_queue WHERE held_until IS NULL AND tag IS NOT NULL
    UNION ALL
    SELECT (SELECT MIN(q.tag) FROM duroxide_worker_queue AS q WHERE q.held_until IS NULL AND q.tag > ready.tag)
    FROM ready WHERE ready.tag IS NOT NULL
  )
  SELECT tag FROM ready WHERE tag IS NOT NULL
`;

export const takeActivity = `
  UPDATE duroxide_worker_queue SET lock_token = ?, held_until = ?, attempt_count = attempt_count + 1
  WHERE id = ?
  RETURNING attempt_count, work_item
`;

const setAside = `UPDATE duroxide_worker_queue SET lock_token = NULL, held_until = ? WHERE id = ?`;

/** Only while the lock is live. */
export const deleteTaken = `
  DELETE FROM duroxide_worker_queue WHERE id = ? AND lock_token = ? AND held_until > ? RETURNING session_id
`;

/** Also for an expired lock, as long as nobody has taken the row since. */
export const abandonTaken = `
  UPDATE duroxide_worker_queue SET lock_token = NULL, held_until = ?, attempt_count = MAX(0, attempt_count - ?)
  WHERE id = ? AND lock_token = ?
`;

/** Only while the lock is live. */
export const renewTaken = `
  UPDATE duroxide_worker_queue SET held_until = ?
  WHERE id = ? AND lock_token = ? AND held_until > ?
  RETURNING instance_id, execution_id, session_id
`;

export const deleteActivity = `
  DELETE FROM duroxide_worker_queue WHERE instance_id = ? AND execution_id = ? AND activity_id = ? RETURNING id
`;

/** When the passing of time alone frees an activity, or a session. */
export const selectNextRelease = `
  SELECT MIN(at) AS at FROM (
    SELECT MIN(held_until) AS at FROM duroxide_worker_queue WHERE held_until > ?
    UNION ALL
    SELECT MIN(locked_until) AS at FROM duroxide_sessions WHERE locked_until > ?
  )
`;

/** Woken for what may be a session's: who its owner is, each of them has to see for itself. */
const EVERYBODY = Number.POSITIVE_INFINITY;

/** Later than any clock shows: the row is kept for whoever wants to look into it. */
const NEVER = Number.MAX_SAFE_INTEGER;

function activityLockOf(token: string): { readonly id: number; readonly secret: string } {
  const { secret, place } = partsOf(token);
  return { secret, id: Number(place) };
}

interface Candidate {
  readonly id: number;
  readonly session_id: string | null;
}

/** `isRunning`: its execution is known to run. */
export function enqueueActivity(tx: Transaction, item: ActivityExecute, isRunning = false): void {
  tx.touch(toColumn(item.instance));
  if (item.sessionId === undefined) {
    const instanceId = toColumn(item.instance);
    tx.newActivities.add({ instanceId, item, text: encodeWorkItem(item), at: tx.now, isRunning });
    tx.effects.readyActivities += 1;
    return;
  }
  tx.newActivities.writeAll();
  tx.ids.forgetActivity();
  tx.db.run(
    insertActivity,
    toColumn(item.instance),
    item.executionId,
    item.id,
    toNullableColumn(item.tag),
    toNullableColumn(item.sessionId),
    tx.now,
    encodeWorkItem(item),
  );
  tx.effects.readyActivities += fetchesToWake(item);
}

export function fetchActivity(tx: Transaction, options: FetchWorkOptions): LockedWorkItem | null {
  releaseHeld(tx);
  while (isAnyActivityReady(tx)) {
    const candidate = oldestActivity(tx.db, options, tx.now);
    if (candidate === null) break;
    const taken = take(tx, candidate, options);
    if (taken !== null) return taken;
  }
  return takeNew(tx, options);
}

/** Whether the table has an activity that nothing holds, whomever it is for. */
export function isAnyActivityReady({ db }: Transaction): boolean {
  return db.hasReady(ACTIVITIES, selectReady);
}

export function ackActivity(tx: Transaction, token: string, completion: OrchestratorItem | null): void {
  const id = Number(placeOf(token));
  const attempts = tx.own.endActivity(id, token, tx.now);
  if (attempts !== null) {
    tx.gone.activity(id);
  } else {
    const { secret } = partsOf(token);
    const row = tx.db.change<{ readonly session_id: string | null }>(deleteTaken, id, secret, tx.now);
    if (row === undefined) throw lockLost("ackWorkItem", token);
    touchSession(tx, row.session_id);
  }
  if (completion !== null) enqueueMessage(tx, completion, 0, attempts === 1);
}

export function abandonActivity(tx: Transaction, token: string, options: AbandonOptions): void {
  const { id, secret } = activityLockOf(token);
  tx.own.forgetActivity(id);
  const heldUntil = options.delayMs !== undefined && options.delayMs > 0 ? tx.timeIn(options.delayMs) : null;
  const abandoned = tx.db.run(abandonTaken, heldUntil, options.ignoreAttempt ? 1 : 0, id, secret);
  if (heldUntil !== null) tx.effects.activityAt(heldUntil);
  else if (abandoned > 0) tx.effects.readyActivities = EVERYBODY;
}

export function renewActivity(tx: Transaction, token: string, extendForMs: number): ExecutionState {
  const { id, secret } = activityLockOf(token);
  tx.own.forgetActivity(id);
  const heldUntil = tx.timeIn(extendForMs);
  const row = tx.db.change<{
    readonly instance_id: string;
    readonly execution_id: number;
    readonly session_id: string | null;
  }>(renewTaken, heldUntil, id, secret, tx.now);
  if (row === undefined) throw lockLost("renewWorkItemLock", token);
  tx.effects.activityAt(heldUntil); // It may end earlier than it would have.
  touchSession(tx, row.session_id);
  return executionState(tx.db, fromColumn(row.instance_id), row.execution_id);
}

export function cancelActivity(tx: Transaction, { instance, executionId, id }: ScheduledId): void {
  tx.newActivities.writeAll();
  const gone = tx.db.changeAll<{ readonly id: number }>(deleteActivity, toColumn(instance), executionId, id); // W2
  for (const row of gone) tx.own.forgetActivity(row.id);
}

/** When an activity may become ready by the passing of time, after a look at `since` found none. */
export function nextActivityAt(db: Database, since: number): number | null {
  return db.get<{ readonly at: number | null }>(selectNextRelease, since, since)?.at ?? null;
}

function releaseHeld(tx: Transaction): void {
  if (tx.isHeldReleased) return;
  tx.isHeldReleased = true;
  if (tx.db.get(selectEndedHold, tx.now) !== undefined && tx.db.run(releaseEndedHolds, tx.now) > 0)
    tx.effects.readyActivities = EVERYBODY;
  tx.onHeldReleased?.(nextActivityAt(tx.db, tx.now));
}

function oldestActivity(db: Database, options: FetchWorkOptions, now: number): Candidate | null {
  let oldest: Candidate | null = null;
  for (const tag of wantedTags(db, options.tagFilter ?? { kind: "default-only" })) {
    const candidate =
      options.session === undefined
        ? db.get<Candidate>(selectOldest, tag)
        : db.get<Candidate>(selectOldestForOwner, tag, toColumn(options.session.ownerId), now);
    if (candidate !== undefined && (oldest === null || candidate.id < oldest.id)) oldest = candidate;
  }
  return oldest;
}

/** As columns. Null is the tag of work without a tag. */
function wantedTags(db: Database, filter: TagFilter): readonly (string | null)[] {
  switch (filter.kind) {
    case "default-only":
      return [null];
    case "tags":
      return filter.tags.map(toColumn);
    case "default-and":
      return [null, ...filter.tags.map(toColumn)];
    case "any":
      return [null, ...db.all<{ readonly tag: string }>(selectReadyTags).map((row) => row.tag)];
    case "none":
      return [];
    default:
      return unreachable(filter);
  }
}

/** What is not written yet is younger than all that is. */
function takeNew(tx: Transaction, options: FetchWorkOptions): LockedWorkItem | null {
  const activity = tx.newActivities.next(options.tagFilter ?? { kind: "default-only" });
  if (activity === null) return null;
  const secret = newSecret(tx.newToken);
  const lockedUntil = holdUntil(tx, options);
  const id = tx.newActivities.take(activity, secret, lockedUntil);
  const token = tokenOf(secret, String(id));
  tx.own.lockedActivity(id, { token, lockedUntil, attempts: 1 });
  const { item } = activity;
  return {
    item,
    lockToken: token,
    attemptCount: 1,
    executionState: activity.isRunning ? "running" : stateOf(tx, item),
  };
}

function holdUntil(tx: Transaction, { lockTimeoutMs }: FetchWorkOptions): number {
  const lockedUntil = tx.timeIn(lockTimeoutMs);
  if (lockedUntil <= tx.now) tx.isHeldReleased = false;
  tx.effects.activityAt(lockedUntil);
  return lockedUntil;
}

/** Null where the row cannot be decoded. */
function take(tx: Transaction, { id, session_id }: Candidate, options: FetchWorkOptions): LockedWorkItem | null {
  const secret = newSecret(tx.newToken);
  const lockedUntil = holdUntil(tx, options);
  const row = tx.db.change<{ readonly attempt_count: number; readonly work_item: string }>(
    takeActivity,
    secret,
    lockedUntil,
    id,
  )!;
  const item = decodeActivity(row.work_item);
  if (item instanceof Error) {
    tx.db.run(setAside, NEVER, id); // W3
    tx.effects.warnings.push(`Activity row ${id} cannot be decoded and is set aside: ${messageOf(item)}`);
    return null;
  }
  const token = tokenOf(secret, String(id));
  if (session_id === null) tx.own.lockedActivity(id, { token, lockedUntil, attempts: row.attempt_count });
  else if (options.session !== undefined) claimSession(tx, session_id, options.session);
  return {
    item,
    lockToken: token,
    attemptCount: row.attempt_count,
    executionState: stateOf(tx, item),
  };
}

/** What this process has committed of the instance, nobody need ask for. */
function stateOf(tx: Transaction, { instance, executionId }: ActivityExecute): ExecutionState {
  const known = tx.known.current(toColumn(instance));
  if (known?.facts.current_execution_id === executionId) return "running";
  return executionState(tx.db, instance, executionId);
}

function decodeActivity(text: string): ActivityExecute | Error {
  try {
    const item = decodeWorkItem(text);
    return item.type === "ActivityExecute" ? item : new TypeError(`${item.type} is no activity`);
  } catch (error) {
    return error instanceof Error ? error : new TypeError(messageOf(error));
  }
}
