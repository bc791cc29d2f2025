// test/power-cut/evidence.ts — what an acknowledged call must leave behind, and what a database holds of it.
//
//   E1. A turn leaves its events, as they were; an activity its answer, a start its instance, a message itself: in the queue,
//       or in the history that has taken it up.
//   E2. An acknowledgement is written down after the call has resolved, before anything else happens in its thread.

import { createHash } from "node:crypto";
import { writeSync } from "node:fs";
import type { Clock } from "../../src/clock.js";
import { decodeEvent, decodeWorkItem, encodeEvent } from "../../src/history/codec.js";
import type { Event } from "../../src/history/event.js";
import type { OrchestratorItem } from "../../src/history/work-item.js";
import { ProviderWrapper } from "../../src/provider/kit/provider-wrapper.js";
import type { EnqueueOptions, EnqueueOutcome, Provider, TurnCommit } from "../../src/provider/provider.js";
import type { SqliteConnection } from "../../src/providers/sqlite/driver.js";

/** A call that was acknowledged. */
export interface Acknowledgement {
  readonly atMs: number;
  readonly call: "turn" | "activity" | "enqueue";
  readonly evidence: readonly string[];
}

/** Writes down what it acknowledges. E2 */
export class AcknowledgingProvider extends ProviderWrapper {
  readonly #descriptor: number;
  readonly #clock: Clock;

  /** `descriptor`: of the file of marks. */
  constructor(inner: Provider, clock: Clock, descriptor: number) {
    super(inner);
    this.#clock = clock;
    this.#descriptor = descriptor;
  }

  override async enqueueForOrchestrator(item: OrchestratorItem, options?: EnqueueOptions): Promise<EnqueueOutcome> {
    const evidence = evidenceOfItem(item);
    const outcome = await super.enqueueForOrchestrator(item, options);
    this.#note("enqueue", evidence);
    return outcome;
  }

  override async ackOrchestrationItem(lockToken: string, turn: TurnCommit): Promise<void> {
    const evidence = turn.events.map(eventAsItWas);
    await super.ackOrchestrationItem(lockToken, turn);
    this.#note("turn", evidence);
  }

  override async ackWorkItem(lockToken: string, completion: OrchestratorItem | null): Promise<void> {
    const evidence = completion === null ? [] : evidenceOfItem(completion);
    await super.ackWorkItem(lockToken, completion);
    this.#note("activity", evidence);
  }

  #note(call: Acknowledgement["call"], evidence: readonly string[]): void {
    const acknowledgement: Acknowledgement = { atMs: this.#clock.now(), call, evidence };
    writeSync(this.#descriptor, `${JSON.stringify(acknowledgement)}\n`);
  }
}

interface HistoryRow {
  readonly event_data: string;
}

interface MessageRow {
  readonly work_item: string;
}

/** Everything that a database, which may be empty, holds. */
export function evidenceIn(connection: SqliteConnection): ReadonlySet<string> {
  const evidence = new Set<string>();
  const hasTables = connection.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'duroxide_history'").get();
  if (hasTables === undefined) return evidence;
  for (const row of connection.prepare("SELECT event_data FROM duroxide_history").all() as HistoryRow[]) {
    const event = decodeEvent(row.event_data);
    for (const each of [eventAsItWas(event), ...evidenceOfEvent(event)]) evidence.add(each);
  }
  for (const row of connection.prepare("SELECT work_item FROM duroxide_orchestrator_queue").all() as MessageRow[]) {
    for (const each of evidenceOfItem(decodeWorkItem(row.work_item) as OrchestratorItem)) evidence.add(each);
  }
  return evidence;
}

export const startOf = (instance: string): string => `start of ${instance}`;
export const messageTo = (instance: string, queue: string, data: string): string =>
  `message to ${instance}, ${queue}: ${data}`;
const answerTo = (instance: string, execution: number, id: number): string =>
  `answer to ${instance}#${execution}:${id}`;

function eventAsItWas(event: Event): string {
  const digest = createHash("sha256").update(encodeEvent(event)).digest("hex").slice(0, 16);
  return `event ${event.instanceId}#${event.executionId}:${event.eventId} ${digest}`;
}

/** What an event has taken up. E1 */
function evidenceOfEvent(event: Event): readonly string[] {
  switch (event.type) {
    case "OrchestrationStarted":
      return [startOf(event.instanceId)];
    case "ActivityCompleted":
    case "ActivityFailed":
      return [answerTo(event.instanceId, event.executionId, event.sourceEventId ?? 0)];
    case "ExternalEventPersistent":
      return [messageTo(event.instanceId, event.name, event.data)];
    default:
      return [];
  }
}

function evidenceOfItem(item: OrchestratorItem): readonly string[] {
  switch (item.type) {
    case "StartOrchestration":
      return [startOf(item.instance)];
    case "ActivityCompleted":
    case "ActivityFailed":
      return [answerTo(item.instance, item.executionId, item.id)];
    case "QueueMessage":
      return [messageTo(item.instance, item.name, item.data)];
    default:
      return [];
  }
}
