// providers/sqlite/sessions.ts — which worker process owns which session, and until when. Session ids are global.

import { toColumn } from "../../provider/kit/text-column.js";
import type { SessionFetch } from "../../provider/provider.js";
import type { Transaction } from "./transaction.js";

/** The claim of an activity has seen that nobody else's lock is live, in the same transaction. */
const claim = `
  INSERT INTO duroxide_sessions (session_id, owner_id, locked_until, last_activity_at) VALUES (?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET
    owner_id = excluded.owner_id,
    locked_until = excluded.locked_until,
    last_activity_at = excluded.last_activity_at
`;

/** An expired session stays expired. */
const touch = `UPDATE duroxide_sessions SET last_activity_at = ? WHERE session_id = ? AND locked_until > ?`;

/** Only sessions that are live and were used since a certain time. */
export const renewOwned = `
  UPDATE duroxide_sessions SET locked_until = ?
  WHERE owner_id = ? AND locked_until > ? AND last_activity_at > ?
`;

/** Queued work must find its session as it was. */
export const deleteExpired = `
  DELETE FROM duroxide_sessions AS s
  WHERE locked_until <= ?
    AND NOT EXISTS (SELECT 1 FROM duroxide_worker_queue AS q WHERE q.session_id = s.session_id)
`;

/** `sessionId` is the column's value. */
export function claimSession(tx: Transaction, sessionId: string, { ownerId, lockTimeoutMs }: SessionFetch): void {
  const lockedUntil = tx.timeIn(lockTimeoutMs);
  tx.db.run(claim, sessionId, toColumn(ownerId), lockedUntil, tx.now);
  tx.effects.activityAt(lockedUntil);
}

/** Work of the session was acked or renewed: it is not idle. `sessionId` is the column's value. */
export function touchSession(tx: Transaction, sessionId: string | null): void {
  if (sessionId !== null) tx.db.run(touch, tx.now, sessionId, tx.now);
}

export function renewSessions(
  tx: Transaction,
  ownerIds: readonly string[],
  { extendForMs, idleTimeoutMs }: { readonly extendForMs: number; readonly idleTimeoutMs: number },
): number {
  let renewed = 0;
  const lockedUntil = tx.timeIn(extendForMs);
  for (const ownerId of new Set(ownerIds)) {
    const usedAfter = Math.trunc(tx.now - idleTimeoutMs);
    renewed += tx.db.run(renewOwned, lockedUntil, toColumn(ownerId), tx.now, usedAfter);
  }
  if (renewed > 0) tx.effects.activityAt(lockedUntil); // They may end earlier than they would have.
  return renewed;
}

export function removeExpiredSessions(tx: Transaction): number {
  return tx.db.run(deleteExpired, tx.now);
}
