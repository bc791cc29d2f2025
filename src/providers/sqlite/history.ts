// providers/sqlite/history.ts — the events of the executions. Rows are inserted and read, never changed (P7).

import { CodecError, messageOf, ProviderError } from "../../errors.js";
import { decodeEvent, encodeEvent } from "../../history/codec.js";
import type { Event } from "../../history/event.js";
import { checkEventIds } from "../../provider/kit/refusals.js";
import { toColumn } from "../../provider/kit/text-column.js";
import type { Database } from "./database.js";
import type { Transaction } from "./transaction.js";

/** The events of one execution, ascending. */
export const selectEvents = `
  SELECT event_data FROM duroxide_history
  WHERE instance_id = ? AND execution_id = ?
  ORDER BY event_id
`;

/** The newest execution that has an execution row; where none has, the first. */
export const selectLatestExecution = `
  SELECT COALESCE(MAX(execution_id), 1) AS execution_id FROM duroxide_executions WHERE instance_id = ?
`;

/** How the latest execution that has begun was started. */
export const selectLatestStart = `
  SELECT event_data FROM duroxide_history
  WHERE instance_id = ? AND event_type = 'OrchestrationStarted'
  ORDER BY execution_id DESC LIMIT 1
`;

interface EventRow {
  readonly event_data: string;
}

/** An event that is there already is found out when they are written. @throws ProviderError "invalid" */
export function appendEvents(
  tx: Transaction,
  operation: string,
  instance: string,
  executionId: number,
  events: readonly Event[],
): void {
  checkEventIds(operation, events);
  const instanceId = toColumn(instance);
  for (const event of events) {
    tx.newEvents.add(operation, instanceId, executionId, event, encodeEvent(event));
  }
}

/** @throws CodecError */
export function loadEvents(db: Database, instance: string, executionId: number): readonly Event[] {
  const rows = db.all<EventRow>(selectEvents, toColumn(instance), executionId);
  return rows.map((row) => decodeEvent(row.event_data));
}

/** @throws ProviderError "corrupt" */
export function readEvents(db: Database, operation: string, instance: string, executionId: number): readonly Event[] {
  try {
    return loadEvents(db, instance, executionId);
  } catch (error) {
    throw error instanceof CodecError ? corruptHistory(operation, instance, executionId, error) : error;
  }
}

export function corruptHistory(
  operation: string,
  instance: string,
  executionId: number,
  cause: unknown,
): ProviderError {
  const message = `the history of '${instance}', execution ${executionId}, cannot be decoded: ${messageOf(cause)}`;
  return new ProviderError("corrupt", operation, message, { cause });
}

export function latestExecution(db: Database, instance: string): number {
  return db.get<{ readonly execution_id: number }>(selectLatestExecution, toColumn(instance))!.execution_id;
}

/** Text of the latest `OrchestrationStarted`, whichever execution's; null: the instance has never begun. */
export function latestStart(db: Database, instance: string): string | null {
  return db.get<EventRow>(selectLatestStart, toColumn(instance))?.event_data ?? null;
}
