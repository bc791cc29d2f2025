// providers/postgres/migrations/0001-tables.ts — the tables. Frozen: what must change, a later migration changes.
//
// Times are integer milliseconds of the application's clock. Text is compared byte by byte (COLLATE "C"). Events and work
// items are text that no statement looks into.
//
// `schedule` has a row for every instance that has messages or a lock, and says when it can be claimed next. Everything
// that concerns the queue of an instance happens under the lock of its row:
//
//   S1. Whoever sends a message, commits a turn, gives an instance back or deletes it locks the row first and looks then,
//       in a later statement: it sees all that was committed before, and nobody commits beside it.
//   S2. Rows of several instances are locked in the order of their ids, all of them before anything else is locked: rows of
//       the schedule, then activities by id, then sessions by id. Nobody waits in a circle.
//   S3. `ready_at` is never later than it should be. It may be earlier: a claim that finds no visible message puts it right.
//   S4. Who is ready stands in line by `place`: the due time of its oldest message, which a lock or a delay does not change.
//       It is never later than `ready_at`.
//   S5. A claim takes rows as they stand in line, not by id, and passes over those that are locked. But where a row has just
//       been changed, and is being changed again, PostgreSQL waits in spite of SKIP LOCKED. So a claim waits a moment only
//       (lock_timeout, far shorter than it takes to notice a circle), is undone, and looks again.
//   S6. What is locked does not stand in line, and comes back into it when somebody notices that its time is over. So a look
//       at the line passes over nothing that is held, nor over what is left of it in the index until the next vacuum.
//   S7. A row that is made for somebody who waits for it is written as locked, where nothing older can be claimed.
//   S8. A commit locks the row of its instance by removing it, and makes it anew where messages are left: one look for the row
//       instead of three. Until it has committed, whoever wants the row waits for it as for any other lock; afterwards there is
//       either none, or another one, and the holder of the old lock has lost it.
//   S9. A step is the outcomes of activities and the turn that answers them, committed together: of an instance that has no row
//       here, by the process that made its last commit. It makes none, either, and locks the row of the instance instead, by
//       changing it, if the last commit is the one that is expected; then it looks whether there is a row here, and if so, does
//       nothing at all. Whoever hands an instance out locks that row as well, after its own here, and reads what it hands out
//       in later statements; where somebody has it locked, for a step or for long, he passes over the instance, which stays in line.
//       So one of the two sees the other: either the step is in what is handed out, or the step finds the row.
//       Whoever only sends may do so beside a step: his message comes after it. Rows of instances are locked after those of the
//       schedule, in the order of their ids, and before activities; by who deletes, too.
//  S10. A beginning is a start and the first turn that answers it, committed together: of an instance of which there is nothing. Its
//       row here is made and removed at once, in the order of S2, before anything else is locked: a lock like that of S8, under
//       which nothing else may be there of it. Who has sent to it before has made the row that it then meets.
//
// States of a row, and the ways out of each:
//
//   ready    `locked_until` is null, `ready_at` has come.         → locked, by a claim
//   waiting  `locked_until` is null, `ready_at` is in the future. → ready, when that time has come, or by a message
//   parked   `ready_at` is null: all its messages ran ahead of    → ready or waiting, by a start
//            the start of the instance.
//   locked   `lock_token` names the owner, `ready_at` is          → gone, ready or waiting by its ack; ready, when abandoned,
//            `locked_until`.                                        or once the time is over; held, when abandoned with a
//                                                                   delay
//   held     `lock_token` is null, `ready_at` is `locked_until`.  → ready, once the time is over
//
// An activity can be claimed from `ready_at` on: when it was enqueued, when the lock on it ends, when its delay is over. While
// it is locked, and until somebody notices that the lock is over, it `is_held`, and not in line (S6). An expired token stays on
// its row until the row is taken again, so that its worker may still give it back.

export const tables = `
CREATE TABLE {schema}.instances (
  instance_id           text COLLATE "C" PRIMARY KEY,
  orchestration_name    text NOT NULL,
  orchestration_version text NOT NULL,
  current_execution_id  bigint NOT NULL,
  parent_instance_id    text COLLATE "C",
  -- The secret of the lock of the last turn, and the provider that committed it; null when something was appended since.
  last_commit           text,
  last_committer        text,
  custom_status         text,
  custom_status_version bigint NOT NULL DEFAULT 0,
  created_at            bigint NOT NULL,
  -- Among those of the same millisecond.
  created_order         bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  updated_at            bigint NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX instances_by_parent ON {schema}.instances (parent_instance_id) WHERE parent_instance_id IS NOT NULL;
CREATE INDEX instances_by_age ON {schema}.instances (created_at, created_order);

-- Independent of the instance's row: an execution may be known where the instance is not.
CREATE TABLE {schema}.executions (
  instance_id  text COLLATE "C" NOT NULL,
  execution_id bigint NOT NULL,
  status       text NOT NULL DEFAULT 'Running',
  output       text,
  started_at   bigint NOT NULL,
  completed_at bigint,
  pinned_major bigint,
  pinned_minor bigint,
  pinned_patch bigint,
  PRIMARY KEY (instance_id, execution_id)
) WITH (fillfactor = 80);

-- Append-only.
CREATE TABLE {schema}.history (
  instance_id  text COLLATE "C" NOT NULL,
  execution_id bigint NOT NULL,
  event_id     bigint NOT NULL,
  event_type   text NOT NULL,
  event_data   text NOT NULL,
  PRIMARY KEY (instance_id, execution_id, event_id)
);

CREATE TABLE {schema}.schedule (
  instance_id  text COLLATE "C" PRIMARY KEY,
  ready_at     bigint,
  place        bigint NOT NULL,
  -- Among those of the same millisecond.
  place_order  bigint NOT NULL,
  lock_token   text COLLATE "C",
  locked_until bigint,
  -- How often the messages of its next batch were handed out.
  attempts     integer NOT NULL DEFAULT 0,
  -- The messages that were handed out under the lock.
  batch        bigint[]
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX schedule_line ON {schema}.schedule (place, place_order, ready_at)
  WHERE locked_until IS NULL AND ready_at IS NOT NULL;
CREATE INDEX schedule_held ON {schema}.schedule (locked_until) WHERE locked_until IS NOT NULL;
-- Steps are longer than batches: each message of a batch has a place of its own.
CREATE SEQUENCE {schema}.schedule_order INCREMENT BY 1000;

-- They are drawn before the rows are written: whoever makes a row that is locked writes its batch with it. A statement that writes
-- many draws once for all of them.
CREATE SEQUENCE {schema}.message_ids INCREMENT BY 1000;
CREATE SEQUENCE {schema}.activity_ids INCREMENT BY 1000;

CREATE TABLE {schema}.messages (
  id                 bigint PRIMARY KEY DEFAULT pg_catalog.nextval('{schema}.message_ids'),
  instance_id        text COLLATE "C" NOT NULL,
  -- When it was enqueued; for a timer, when it is to fire. Batches are ordered by it.
  due_at             bigint NOT NULL,
  -- Never before due_at.
  visible_at         bigint NOT NULL,
  -- 'start', 'queue', 'timer' or 'other'. No CHECK: the server parses it anew for every statement that inserts.
  kind               text NOT NULL,
  -- Of a start: whose child it is to be.
  parent_instance_id text COLLATE "C",
  timer_execution_id bigint,
  timer_id           bigint,
  work_item          text NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX messages_by_instance ON {schema}.messages (instance_id, visible_at);
CREATE INDEX messages_by_parent ON {schema}.messages (parent_instance_id) WHERE parent_instance_id IS NOT NULL;
CREATE INDEX messages_timers ON {schema}.messages (instance_id, timer_execution_id, timer_id) WHERE timer_id IS NOT NULL;

CREATE TABLE {schema}.activities (
  id            bigint PRIMARY KEY DEFAULT pg_catalog.nextval('{schema}.activity_ids'),
  instance_id   text COLLATE "C" NOT NULL,
  execution_id  bigint NOT NULL,
  activity_id   bigint NOT NULL,
  -- '' for work without a tag, '=' and the tag for other work: every kind of work is one stretch of the index.
  tag           text COLLATE "C" NOT NULL,
  session_id    text COLLATE "C",
  ready_at      bigint NOT NULL,
  is_held       boolean NOT NULL DEFAULT false,
  lock_token    text COLLATE "C",
  attempts      integer NOT NULL DEFAULT 0,
  enqueued_at   bigint NOT NULL,
  work_item     text NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
-- Ordered by id, but not for looking up an id: the planner might, in a table that it believes to be empty.
CREATE INDEX activities_line ON {schema}.activities (tag, ready_at, (id + 0)) WHERE NOT is_held;
CREATE INDEX activities_held ON {schema}.activities (ready_at) WHERE is_held;
CREATE INDEX activities_by_instance ON {schema}.activities (instance_id, execution_id, activity_id);
CREATE INDEX activities_by_session ON {schema}.activities (session_id) WHERE session_id IS NOT NULL;

-- Global: a session is no part of an instance.
CREATE TABLE {schema}.sessions (
  session_id       text COLLATE "C" PRIMARY KEY,
  owner_id         text COLLATE "C" NOT NULL,
  locked_until     bigint NOT NULL,
  last_activity_at bigint NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX sessions_by_owner ON {schema}.sessions (owner_id);
CREATE INDEX sessions_by_end ON {schema}.sessions (locked_until);

-- The state at the end of the previous execution.
CREATE TABLE {schema}.kv_store (
  instance_id     text COLLATE "C" NOT NULL,
  key             text COLLATE "C" NOT NULL,
  value           text NOT NULL,
  last_updated_at bigint NOT NULL,
  PRIMARY KEY (instance_id, key)
);

-- What the running execution has changed since. A null value is a tombstone.
CREATE TABLE {schema}.kv_delta (
  instance_id     text COLLATE "C" NOT NULL,
  key             text COLLATE "C" NOT NULL,
  value           text,
  last_updated_at bigint NOT NULL,
  PRIMARY KEY (instance_id, key)
);
`;
