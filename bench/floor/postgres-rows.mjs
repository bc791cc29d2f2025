// bench/floor/postgres-rows.mjs — which rows each stage of a chain writes in PostgreSQL, and with which statement.
//
// One statement is one stage of many chains, and one transaction: one round trip, one commit. A column is an array of
// one value for each chain; what is the same for all chains of a stage is part of the statement. Rows are found by their
// keys, the cheapest way; nobody else is there to compete.

import { LOCKED_UNTIL, NOW, ORCHESTRATION, OUTPUT, PINNED_VERSION } from "./chain.mjs";

/** As long as the name that a provider has. */
const COMMITTER = "00000000-0000-4000-8000-000000000000";

/**
 * @typedef {object} StageStatement
 * @property {string} sql   `{schema}` stands for the schema
 * @property {readonly ((step: import("./chain.mjs").Step) => string | number | null)[]} columns   its parameters, as arrays
 */

const instance = (step) => step.instance;
const number = (step) => step.number;
const messageRow = (step) => step.messageRow;
const lockToken = (step) => step.lockToken;
const message = (step) => step.message;
const activityRow = (step) => step.activityRow;
const activityToken = (step) => step.activityToken;
const activity = (step) => step.activity;
const firstEvent = (step) => step.events[0];
const secondEvent = (step) => step.events[1];

/** The message and its instance's place in the schedule, which is locked. $1: instance, $2: row, $3: token, $4: item. */
const sendLocked = (kind) => `
  scheduled AS (
    INSERT INTO {schema}.schedule
      (instance_id, ready_at, place, place_order, lock_token, locked_until, attempts, batch)
    SELECT m.instance_id, ${LOCKED_UNTIL}, ${NOW}, m.id, m.token, ${LOCKED_UNTIL}, 1, ARRAY[m.id]
    FROM unnest($1::text[], $2::bigint[], $3::text[]) AS m (instance_id, id, token)
  )
  INSERT INTO {schema}.messages (id, instance_id, due_at, visible_at, kind, work_item) OVERRIDING SYSTEM VALUE
  SELECT m.id, m.instance_id, ${NOW}, ${NOW}, '${kind}', m.item
  FROM unnest($2::bigint[], $1::text[], $4::text[]) AS m (id, instance_id, item)`;

/** The end of a turn's lock, and of its batch. $1: instance, $2: row of the message. */
const consumeBatch = `
  unlocked AS (DELETE FROM {schema}.schedule WHERE instance_id = ANY ($1::text[])),
  consumed AS (DELETE FROM {schema}.messages WHERE id = ANY ($2::bigint[]))`;

/** $1: instance, $3: token. */
const updateInstance = `
  turned AS (
    UPDATE {schema}.instances AS i SET last_commit = t.token, last_committer = '${COMMITTER}', updated_at = ${NOW}
    FROM unnest($1::text[], $3::text[]) AS t (instance_id, token)
    WHERE i.instance_id = t.instance_id
  )`;

/** $1: instance, $4 and $5: texts. */
const insertEvents = ([first, second]) => `
    INSERT INTO {schema}.history (instance_id, execution_id, event_id, event_type, event_data)
    SELECT e.instance_id, 1, n.id, n.type, CASE n.id WHEN ${first.id} THEN e.first ELSE e.second END
    FROM unnest($1::text[], $4::text[], $5::text[]) AS e (instance_id, first, second)
    CROSS JOIN (VALUES (${first.id}, '${first.type}'), (${second.id}, '${second.type}')) AS n (id, type)`;

/** $1: instance, $6: row, $7: token, $8: item. */
const insertActivityLocked = (activityId) => `
  INSERT INTO {schema}.activities
    (id, instance_id, execution_id, activity_id, tag, ready_at, lock_token, attempts, enqueued_at, work_item)
  OVERRIDING SYSTEM VALUE
  SELECT a.id, a.instance_id, 1, ${activityId}, '', ${LOCKED_UNTIL}, a.token, 1, ${NOW}, a.item
  FROM unnest($6::bigint[], $1::text[], $7::text[], $8::text[]) AS a (id, instance_id, token, item)`;

/**
 * The rows of each kind of stage. Why none can be left out stands in README.md.
 *
 * @type {Record<import("./chain.mjs").Stage["kind"], (stage: import("./chain.mjs").Stage) => StageStatement>}
 */
export const STATEMENTS = {
  start: () => ({ sql: `WITH ${sendLocked("start")}`, columns: [instance, messageRow, lockToken, message] }),
  "first-turn": ({ events, activityId }) => ({
    sql: `WITH ${consumeBatch},
      begun AS (
        INSERT INTO {schema}.instances
          (instance_id, orchestration_name, orchestration_version, current_execution_id, last_commit, last_committer,
           created_at, created_order, updated_at)
        OVERRIDING SYSTEM VALUE
        SELECT t.instance_id, '${ORCHESTRATION.name}', '${ORCHESTRATION.version}', 1, t.token, '${COMMITTER}', ${NOW},
               t.number, ${NOW}
        FROM unnest($1::text[], $3::text[], $9::bigint[]) AS t (instance_id, token, number)
      ),
      executed AS (
        INSERT INTO {schema}.executions
          (instance_id, execution_id, started_at, pinned_major, pinned_minor, pinned_patch)
        SELECT t.instance_id, 1, ${NOW}, ${PINNED_VERSION} FROM unnest($1::text[]) AS t (instance_id)
      ),
      appended AS (${insertEvents(events)})
      ${insertActivityLocked(activityId)}`,
    columns: [...turnColumns(), activityRow, activityToken, activity, number],
  }),
  activity: () => ({
    sql: `WITH done AS (DELETE FROM {schema}.activities WHERE id = ANY ($5::bigint[])), ${sendLocked("other")}`,
    columns: [instance, messageRow, lockToken, message, activityRow],
  }),
  turn: ({ events, activityId }) => ({
    sql: `WITH ${consumeBatch}, ${updateInstance},
      appended AS (${insertEvents(events)})
      ${insertActivityLocked(activityId)}`,
    columns: [...turnColumns(), activityRow, activityToken, activity],
  }),
  "last-turn": ({ events }) => ({
    sql: `WITH ${consumeBatch}, ${updateInstance},
      ended AS (
        UPDATE {schema}.executions SET status = 'Completed', output = '${OUTPUT}', completed_at = ${NOW}
        WHERE instance_id = ANY ($1::text[]) AND execution_id = 1
      )
      ${insertEvents(events)}`,
    columns: turnColumns(),
  }),
};

function turnColumns() {
  return [instance, messageRow, lockToken, firstEvent, secondEvent];
}
