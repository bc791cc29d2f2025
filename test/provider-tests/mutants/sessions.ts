import type { Mutant } from "./mutant.js";

export const SESSIONS: readonly Mutant[] = [
  {
    name: "any worker may take the work of an owned session",
    category: "sessions",
    caughtBy: "session_affinity_blocks_other_worker",
    store: "memory",
    patches: [{ file: "sessions.ts", find: "session.ownerId === ownerId", replace: `ownerId !== ""` }],
  },
  {
    name: "a fetch without a session takes the work of sessions",
    category: "sessions",
    caughtBy: "none_session_skips_session_items",
    store: "sqlite",
    patches: [{ file: "worker-queue.ts", find: "AND tag IS ? AND session_id IS NULL", replace: "AND tag IS ?" }],
  },
  {
    name: "a renewal revives sessions that have expired",
    category: "sessions",
    caughtBy: "renew_session_lock_after_expiry_returns_zero",
    store: "sqlite",
    patches: [
      {
        file: "sessions.ts",
        find: "WHERE owner_id = ? AND locked_until > ? AND last_activity_at > ?",
        replace: "WHERE owner_id = ? AND ? > 0 AND last_activity_at > ?",
      },
    ],
  },
  {
    name: "a renewal renews idle sessions",
    category: "sessions",
    caughtBy: "renew_session_lock_skips_idle",
    store: "memory",
    patches: [{ file: "sessions.ts", find: " && session.lastActivityAt > now - idleTimeoutMs", replace: "" }],
  },
  {
    name: "a renewal is for everybody's sessions",
    category: "sessions",
    caughtBy: "renew_session_lock_several_owners",
    store: "memory",
    patches: [{ file: "sessions.ts", find: " || !ownerIds.includes(session.ownerId)", replace: "" }],
  },
  {
    name: "a renewal counts an owner twice that is named twice",
    category: "sessions",
    caughtBy: "renew_session_lock_several_owners",
    store: "sqlite",
    patches: [{ file: "sessions.ts", find: "of new Set(ownerIds)", replace: "of ownerIds" }],
  },
  {
    name: "the clean-up removes sessions with pending work",
    category: "sessions",
    caughtBy: "cleanup_keeps_sessions_with_pending_items",
    store: "sqlite",
    patches: [
      {
        file: "sessions.ts",
        find: "AND NOT EXISTS (SELECT 1 FROM duroxide_worker_queue AS q WHERE q.session_id = s.session_id)",
        replace: "",
      },
    ],
  },
  {
    name: "the clean-up removes live sessions that have no work",
    category: "sessions",
    caughtBy: "cleanup_keeps_active_sessions",
    store: "memory",
    patches: [{ file: "sessions.ts", find: "session.lockedUntil > now || inUse", replace: "inUse" }],
  },
  {
    name: "an ack does not count as use of the session",
    category: "sessions",
    caughtBy: "ack_updates_session_last_activity",
    store: "sqlite",
    patches: [
      {
        file: "worker-queue.ts",
        find: `throw lockLost("ackWorkItem", token);
    touchSession(tx, row.session_id);`,
        replace: `throw lockLost("ackWorkItem", token);`,
      },
    ],
  },
  {
    name: "an ack revives the session that has expired meanwhile",
    category: "sessions",
    caughtBy: "ack_does_not_revive_expired_session",
    store: "memory",
    patches: [
      {
        file: "sessions.ts",
        find: `    const session = this.#live(sessionId, now);
    if (session !== null) session.lastActivityAt = now;`,
        replace: `    const session = this.#sessions.get(sessionId);
    if (session !== undefined) session.lockedUntil = now + 60_000;`,
      },
    ],
  },
  {
    name: "a session is kept for one instance only",
    category: "sessions",
    caughtBy: "session_spans_instances",
    store: "memory",
    patches: [
      { file: "worker-queue.ts", find: "isOpenTo(sessionId,", replace: "isOpenTo(row.item.instance + sessionId," },
      {
        file: "worker-queue.ts",
        find: "sessions.claim(row.item.sessionId,",
        replace: "sessions.claim(row.item.instance + row.item.sessionId,",
      },
    ],
  },
  {
    name: "the session's lock ends with the work's",
    category: "sessions",
    caughtBy: "activity_lock_expires_session_lock_valid_same_worker_refetches",
    store: "memory",
    patches: [
      {
        file: "worker-queue.ts",
        find: "row.item.sessionId, session, now",
        replace: "row.item.sessionId, { ...session, lockTimeoutMs }, now",
      },
    ],
  },
  {
    name: "a fetch does not prolong the lock of a session that it owns",
    category: "sessions",
    caughtBy: "fetch_restarts_session_lock",
    store: "sqlite",
    patches: [
      { file: "sessions.ts", find: "locked_until = excluded.locked_until", replace: "locked_until = locked_until" },
    ],
  },
  {
    name: "an activity that a turn schedules loses its session",
    category: "sessions",
    caughtBy: "session_of_scheduled_activity",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: "for (const item of turn.workerItems) this.#work.add(item, now)",
        replace: "for (const { sessionId: _, ...item } of turn.workerItems) this.#work.add(item, now)",
      },
    ],
  },
  {
    name: "sessions go with the instance whose work was in them",
    category: "sessions",
    caughtBy: "session_outlives_deleted_instance",
    store: "sqlite",
    patches: [
      {
        file: "deletion.ts",
        find: "tx.db.run(deleteLocks, these); // X1",
        replace: `tx.db.run(deleteLocks, these); tx.db.run("DELETE FROM duroxide_sessions");`,
      },
    ],
  },
  {
    name: "a lock of a session lives one millisecond too long",
    category: "sessions",
    caughtBy: "session_lock_ends_on_time",
    store: "memory",
    patches: [
      {
        file: "sessions.ts",
        find: "session !== undefined && session.lockedUntil > now",
        replace: "session !== undefined && session.lockedUntil >= now",
      },
    ],
  },
  {
    name: "the use of one session is taken for the use of all",
    category: "sessions",
    caughtBy: "use_of_one_session_is_not_use_of_another",
    store: "sqlite",
    patches: [
      {
        file: "sessions.ts",
        find: "WHERE session_id = ? AND locked_until > ?",
        replace: "WHERE session_id = ? OR locked_until > ?",
      },
    ],
  },
  {
    name: "only the first fetch is a use of its session",
    category: "sessions",
    caughtBy: "fetch_updates_session_last_activity",
    store: "sqlite",
    patches: [
      {
        file: "sessions.ts",
        find: "    last_activity_at = excluded.last_activity_at",
        replace: "    last_activity_at = last_activity_at",
      },
    ],
  },
];
