// bench/floor/sqlite-rows.mjs — which rows each stage of a chain writes in SQLite, and with which statements.
//
// One statement writes the rows of many chains: `*` stands for what each of them adds. What is the same for all chains of
// a stage is part of the statement. Rows are found by their keys, the cheapest way; nobody else is there to compete.

import { LOCKED_UNTIL, NOW, ORCHESTRATION, OUTPUT, PINNED_VERSION } from "./chain.mjs";

/**
 * @typedef {object} Write
 * @property {string} sql
 * @property {string} row   what one chain puts in the place of `*`
 * @property {(step: import("./chain.mjs").Step) => readonly (string | number | null)[]} values   its parameters
 * @property {true} [isPassing]   what is sent by one stage, and gone with the next: messages, and their locks
 */

const insertMessage = (isStart) => ({
  isPassing: true,
  sql: `
    INSERT INTO duroxide_orchestrator_queue
      (id, instance_id, state, due_at, visible_at, is_start, attempt_count, work_item)
    VALUES *`,
  row: `(?, ?, 'taken', ${NOW}, ${NOW}, ${isStart}, 1, ?)`,
  values: ({ messageRow, instance, message }) => [messageRow, instance, message],
});

const deleteMessage = {
  isPassing: true,
  sql: `DELETE FROM duroxide_orchestrator_queue WHERE id IN (*)`,
  row: `?`,
  values: ({ messageRow }) => [messageRow],
};

const insertLock = {
  isPassing: true,
  sql: `INSERT INTO duroxide_instance_locks (instance_id, lock_token, locked_until, locked_at) VALUES *`,
  row: `(?, ?, ${LOCKED_UNTIL}, ${NOW})`,
  values: ({ instance, lockToken }) => [instance, lockToken],
};

const deleteLock = {
  isPassing: true,
  sql: `DELETE FROM duroxide_instance_locks WHERE instance_id IN (*)`,
  row: `?`,
  values: ({ instance }) => [instance],
};

const insertInstance = {
  sql: `
    INSERT INTO duroxide_instances
      (instance_id, orchestration_name, orchestration_version, current_execution_id, last_commit, created_at,
       created_order, updated_at)
    VALUES *`,
  row: `(?, '${ORCHESTRATION.name}', '${ORCHESTRATION.version}', 1, ?, ${NOW}, ?, ${NOW})`,
  values: ({ instance, lockToken, number }) => [instance, lockToken, number],
};

/** An UPDATE of many rows with a value for each would join them, which takes longer than to run into each conflict. */
const updateInstance = {
  ...insertInstance,
  sql: `${insertInstance.sql}
    ON CONFLICT (instance_id) DO UPDATE SET last_commit = excluded.last_commit, updated_at = excluded.updated_at`,
};

const insertExecution = {
  sql: `
    INSERT INTO duroxide_executions
      (instance_id, execution_id, started_at, pinned_major, pinned_minor, pinned_patch)
    VALUES *`,
  row: `(?, 1, ${NOW}, ${PINNED_VERSION})`,
  values: ({ instance }) => [instance],
};

const endExecution = {
  sql: `
    UPDATE duroxide_executions SET status = 'Completed', output = '${OUTPUT}', completed_at = ${NOW}
    WHERE execution_id = 1 AND instance_id IN (*)`,
  row: `?`,
  values: ({ instance }) => [instance],
};

const insertEvents = (events) => ({
  sql: `INSERT INTO duroxide_history (instance_id, execution_id, event_id, event_type, event_data) VALUES *`,
  row: events.map(({ id, type }) => `(?, 1, ${id}, '${type}', ?)`).join(", "),
  values: ({ instance, events: texts }) => texts.flatMap((text) => [instance, text]),
});

const insertActivity = (activityId) => ({
  sql: `
    INSERT INTO duroxide_worker_queue
      (id, instance_id, execution_id, activity_id, held_until, lock_token, attempt_count, enqueued_at, work_item)
    VALUES *`,
  row: `(?, ?, 1, ${activityId}, ${LOCKED_UNTIL}, ?, 1, ${NOW}, ?)`,
  values: ({ activityRow, instance, activityToken, activity }) => [activityRow, instance, activityToken, activity],
});

const deleteActivity = {
  sql: `DELETE FROM duroxide_worker_queue WHERE id IN (*)`,
  row: `?`,
  values: ({ activityRow }) => [activityRow],
};

/**
 * The rows of each kind of stage. Why none can be left out stands in README.md.
 *
 * @type {Record<import("./chain.mjs").Stage["kind"], (stage: import("./chain.mjs").Stage) => readonly Write[]>}
 */
export const WRITES = {
  start: () => [insertMessage(1), insertLock],
  "first-turn": ({ events, activityId }) => [
    deleteLock,
    deleteMessage,
    insertInstance,
    insertExecution,
    insertEvents(events),
    insertActivity(activityId),
  ],
  activity: () => [deleteActivity, insertMessage(0), insertLock],
  turn: ({ events, activityId }) => [
    deleteLock,
    deleteMessage,
    updateInstance,
    insertEvents(events),
    insertActivity(activityId),
  ],
  "last-turn": ({ events }) => [deleteLock, deleteMessage, updateInstance, endExecution, insertEvents(events)],
};
