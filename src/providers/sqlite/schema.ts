// providers/sqlite/schema.ts — the tables, as numbered migrations. A released migration is never edited: add another.
//
// Times are integer milliseconds of the application's clock. All names begin with `duroxide_`, so that the tables can
// live in a file beside others.
//
// A message in the orchestrator queue is in one of four states:
//
//   ready    visible. It can be fetched unless its instance is locked.  → taken, with its instance's lock
//   waiting  not visible before `visible_at`: a timer, a delay.         → ready, when that time has come
//   taken    in the batch of its instance's lock.                       → gone, at the ack; ready or waiting, when
//                                                                         abandoned; ready, when the lock has expired
//   parked   ran ahead of the start of its instance.                    → ready, when a start is enqueued or visible
//
// Taking a message changes nothing but its state, to a word of the same length, and a small number: SQLite then writes
// in place, however large the message is.
//
// An activity in the worker queue is ready when `held_until` is null. Otherwise it is held until that time: by the
// worker whose token it carries, by a delay when it carries none. An expired token stays on its row until the row is
// taken again, so that its worker may still abandon it.

export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly script: string;
}

export const MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    name: "initial",
    script: `
      CREATE TABLE duroxide_instances (
        instance_id           TEXT    NOT NULL PRIMARY KEY,
        orchestration_name    TEXT    NOT NULL,
        orchestration_version TEXT    NOT NULL,
        current_execution_id  INTEGER NOT NULL,
        -- The lock token of the last turn; null when something was appended since.
        last_commit           TEXT,
        parent_instance_id    TEXT,
        custom_status_version INTEGER NOT NULL DEFAULT 0,
        created_at            INTEGER NOT NULL,
        -- Among those of the same millisecond.
        created_order         INTEGER NOT NULL,
        updated_at            INTEGER NOT NULL,
        -- Last, as everything that may be long: who wants another column need not read past it.
        custom_status         TEXT
      ) STRICT, WITHOUT ROWID;
      CREATE INDEX duroxide_instances_by_parent ON duroxide_instances (parent_instance_id)
        WHERE parent_instance_id IS NOT NULL;
      CREATE INDEX duroxide_instances_by_age ON duroxide_instances (created_at, created_order);

      -- Independent of the instance's row: an execution may be known where the instance is not.
      CREATE TABLE duroxide_executions (
        instance_id   TEXT    NOT NULL,
        execution_id  INTEGER NOT NULL,
        status        TEXT    NOT NULL DEFAULT 'Running',
        started_at    INTEGER NOT NULL,
        completed_at  INTEGER,
        pinned_major  INTEGER,
        pinned_minor  INTEGER,
        pinned_patch  INTEGER,
        output        TEXT,
        PRIMARY KEY (instance_id, execution_id)
      ) STRICT, WITHOUT ROWID;

      -- Append-only. Clustered by its key: an execution is read from neighbouring pages.
      CREATE TABLE duroxide_history (
        instance_id  TEXT    NOT NULL,
        execution_id INTEGER NOT NULL,
        event_id     INTEGER NOT NULL,
        event_type   TEXT    NOT NULL,
        event_data   TEXT    NOT NULL,
        PRIMARY KEY (instance_id, execution_id, event_id)
      ) STRICT, WITHOUT ROWID;

      CREATE TABLE duroxide_orchestrator_queue (
        id                 INTEGER PRIMARY KEY,
        instance_id        TEXT    NOT NULL,
        state              TEXT    NOT NULL CHECK (state IN ('ready', 'waiting', 'taken', 'parked')),
        -- When it was enqueued; for a timer, when it is to fire. Never changes: batches are ordered by it.
        due_at             INTEGER NOT NULL,
        -- Never before due_at.
        visible_at         INTEGER NOT NULL,
        is_start           INTEGER NOT NULL,
        -- Of a start: whose child it is to be.
        parent_instance_id TEXT,
        timer_execution_id INTEGER,
        timer_id           INTEGER,
        attempt_count      INTEGER NOT NULL DEFAULT 0,
        work_item          TEXT    NOT NULL
      ) STRICT;
      CREATE INDEX duroxide_messages_ready ON duroxide_orchestrator_queue (due_at) WHERE state = 'ready';
      CREATE INDEX duroxide_messages_waiting ON duroxide_orchestrator_queue (visible_at) WHERE state = 'waiting';
      CREATE INDEX duroxide_messages_parked ON duroxide_orchestrator_queue (instance_id) WHERE state = 'parked';
      CREATE INDEX duroxide_messages_by_instance ON duroxide_orchestrator_queue (instance_id, visible_at);
      CREATE INDEX duroxide_messages_starts ON duroxide_orchestrator_queue (instance_id) WHERE is_start = 1;
      CREATE INDEX duroxide_messages_starts_by_parent ON duroxide_orchestrator_queue (parent_instance_id)
        WHERE parent_instance_id IS NOT NULL;
      CREATE INDEX duroxide_messages_timers ON duroxide_orchestrator_queue (instance_id, timer_execution_id, timer_id)
        WHERE timer_id IS NOT NULL;

      CREATE TABLE duroxide_instance_locks (
        instance_id  TEXT    NOT NULL PRIMARY KEY,
        -- Null: nobody's. It only keeps the instance back until its end.
        lock_token   TEXT,
        -- Null: it has lapsed, and is kept only so that its dispatcher may abandon what nobody has taken since.
        locked_until INTEGER,
        -- The messages of its batch were visible then.
        locked_at    INTEGER NOT NULL
      ) STRICT, WITHOUT ROWID;
      CREATE INDEX duroxide_instance_locks_by_end ON duroxide_instance_locks (locked_until)
        WHERE locked_until IS NOT NULL;

      CREATE TABLE duroxide_worker_queue (
        id            INTEGER PRIMARY KEY,
        instance_id   TEXT    NOT NULL,
        execution_id  INTEGER NOT NULL,
        activity_id   INTEGER NOT NULL,
        tag           TEXT,
        session_id    TEXT,
        held_until    INTEGER,
        lock_token    TEXT,
        attempt_count INTEGER NOT NULL DEFAULT 0,
        enqueued_at   INTEGER NOT NULL,
        work_item     TEXT    NOT NULL
      ) STRICT;
      CREATE INDEX duroxide_activities_ready ON duroxide_worker_queue (tag) WHERE held_until IS NULL;
      CREATE INDEX duroxide_activities_held ON duroxide_worker_queue (held_until) WHERE held_until IS NOT NULL;
      CREATE INDEX duroxide_activities_by_id ON duroxide_worker_queue (instance_id, execution_id, activity_id);
      CREATE INDEX duroxide_activities_by_session ON duroxide_worker_queue (session_id) WHERE session_id IS NOT NULL;

      -- Global: a session is no part of an instance.
      CREATE TABLE duroxide_sessions (
        session_id       TEXT    NOT NULL PRIMARY KEY,
        owner_id         TEXT    NOT NULL,
        locked_until     INTEGER NOT NULL,
        last_activity_at INTEGER NOT NULL
      ) STRICT, WITHOUT ROWID;
      CREATE INDEX duroxide_sessions_by_owner ON duroxide_sessions (owner_id, locked_until);
      CREATE INDEX duroxide_sessions_by_end ON duroxide_sessions (locked_until);

      -- The state at the end of the previous execution.
      CREATE TABLE duroxide_kv_store (
        instance_id     TEXT    NOT NULL,
        key             TEXT    NOT NULL,
        value           TEXT    NOT NULL,
        last_updated_at INTEGER NOT NULL,
        PRIMARY KEY (instance_id, key)
      ) STRICT, WITHOUT ROWID;

      -- What the running execution has changed since. A null value is a tombstone.
      CREATE TABLE duroxide_kv_delta (
        instance_id     TEXT    NOT NULL,
        key             TEXT    NOT NULL,
        value           TEXT,
        last_updated_at INTEGER NOT NULL,
        PRIMARY KEY (instance_id, key)
      ) STRICT, WITHOUT ROWID;
    `,
  },
];
