// test/fuzz/live-oracle.ts — what code decides when it runs live on the arrivals of a history, whatever that history says
// of its decisions. Nothing here knows how a history is replayed.

import { DROPPED_FUTURE } from "../../src/engine/history-index.js";
import { isInlineCall } from "../../src/engine/system-calls.js";
import type { OrchestrationHandler, TurnResult } from "../../src/engine/turn.js";
import type { Event, EventType } from "../../src/history/event.js";
import { natureOf } from "../../src/history/nature.js";
import type { OrchestratorItem } from "../../src/history/work-item.js";
import { NOW } from "../engine/drive.js";
import { executionOf } from "../engine/live-run.js";
import { messageOf } from "../engine/recorded-arrivals.js";

/** What becomes of the code when these things arrive. */
export type Live =
  | {
      readonly kind: "possible";
      readonly decisions: readonly unknown[];
      /** Which of its decisions code has taken back, by their order. */
      readonly drops: ReadonlySet<number>;
      readonly result: TurnResult;
    }
  /** They cannot have come: what they answer was never asked for, or answered before. */
  | { readonly kind: "impossible" }
  /** By the time that they came, code had decided more than the history says: a runtime goes on, and records it late. */
  | { readonly kind: "hidden" }
  /** There is nothing to compare with: no start, a say of the clock, or a failure that code is never told. */
  | { readonly kind: "unknown" };

export async function liveOn(handler: OrchestrationHandler, events: readonly Event[]): Promise<Live> {
  if (events[0]?.type !== "OrchestrationStarted" || events.some(isNobodysFailure)) return { kind: "unknown" };
  const execution = executionOf({ events, handler, kv: new Map() }, []);
  const produced: Event[] = [];
  let result: TurnResult = { kind: "waiting" };
  for (const { batch, decisionsBefore } of batchesOf(events)) {
    if (decisionsBefore < produced.filter(isDecision).length) return { kind: "hidden" };
    const messages = batch.map((event) => toLive(event, events, produced));
    const possible = messages.slice(0, messages.includes(null) ? messages.indexOf(null) : messages.length);
    const outcome = await execution.turn({ nowMs: NOW, messages: possible as OrchestratorItem[] });
    produced.push(...outcome.events);
    result = outcome.result;
    if (produced.some(isSystemCall)) return { kind: "unknown" };
    const isOver = result.kind !== "waiting";
    const isPossible = possible.length === messages.length && outcome.droppedMessages.length === 0;
    // Whatever else was in the batch in which code has ended, nobody has looked at.
    if (!isPossible) return { kind: isOver ? "unknown" : "impossible" };
    if (isOver) break;
  }
  return { kind: "possible", decisions: decisionsIn(produced), drops: dropsIn(produced), result };
}

/** Without what differs between two runs, and what replay does not compare. */
export function decisionsIn(events: readonly Event[]): readonly unknown[] {
  return events.filter(isDecision).map((event) => {
    const { eventId, sourceEventId, instanceId, executionId, timestampMs, duroxideVersion, ...decision } = event;
    switch (decision.type) {
      case "TimerCreated":
      case "CustomStatusUpdated":
        return decision.type;
      case "KeyValueSet":
        return { ...decision, lastUpdatedAtMs: 0 };
      case "SubOrchestrationScheduled":
        return { ...decision, instance: decision.instance.replace(/^sub::.*/, "sub::") };
      default:
        return decision;
    }
  });
}

/**
 * The decisions that events say code has taken back, by their order; -1: something that was never decided. Of timers, and
 * of what was answered in the same turn perhaps, no history says so.
 */
export function dropsIn(events: readonly Event[]): ReadonlySet<number> {
  const silent = new Set<number | null>();
  for (const event of events) {
    if (isAnswer(event)) silent.add(event.sourceEventId);
    if (event.type === "TimerCreated") silent.add(event.eventId);
  }
  const drops = events.filter((event) => isDrop(event) && !silent.has(event.sourceEventId));
  return new Set(drops.map(({ sourceEventId }) => orderOf(events, sourceEventId)));
}

function isDrop(event: Event): boolean {
  return natureOf(event) === "breadcrumb" && "reason" in event && event.reason === DROPPED_FUTURE;
}

interface Batch {
  readonly batch: Event[];
  /** How many decisions the history records until then. */
  readonly decisionsBefore: number;
}

/** Arrivals that no decision parts come together, as far as anybody can tell; those that follow the start, with it. */
function batchesOf(events: readonly Event[]): Batch[] {
  const batches: Batch[] = [{ batch: [], decisionsBefore: 0 }];
  let decisions = 0;
  for (const event of events) {
    if (isDecision(event)) decisions += 1;
    if (natureOf(event) !== "arrival") continue;
    if (batches.at(-1)!.decisionsBefore < decisions) batches.push({ batch: [], decisionsBefore: decisions });
    if (!answersNothing(event)) batches.at(-1)!.batch.push(event);
  }
  return batches;
}

/** What each kind of answer answers. Other arrivals answer nothing, whatever they name. */
const ANSWERS: Readonly<Partial<Record<EventType, EventType>>> = {
  ActivityCompleted: "ActivityScheduled",
  ActivityFailed: "ActivityScheduled",
  TimerFired: "TimerCreated",
  SubOrchestrationCompleted: "SubOrchestrationScheduled",
  SubOrchestrationFailed: "SubOrchestrationScheduled",
};

function isAnswer(event: Event): boolean {
  return ANSWERS[event.type] !== undefined;
}

/** An answer that does not say to what is nobody's. */
function answersNothing(event: Event): boolean {
  return isAnswer(event) && event.sourceEventId === null;
}

/** The same answer to the same request, counted by the order of requests: ids may be others. Null: to none. */
function toLive(event: Event, events: readonly Event[], produced: readonly Event[]): OrchestratorItem | null {
  if (!isAnswer(event)) return messageOf(event);
  const source = produced.filter(isDecision)[orderOf(events, event.sourceEventId)];
  if (source === undefined || ANSWERS[event.type] !== source.type) return null;
  const { instanceId, executionId, eventId: sourceEventId } = source;
  return messageOf({ ...event, instanceId, executionId, sourceEventId });
}

function orderOf(events: readonly Event[], eventId: number | null): number {
  return events.filter(isDecision).findIndex((event) => event.eventId === eventId);
}

function isDecision(event: Event): boolean {
  return natureOf(event) === "decision";
}

function isSystemCall(event: Event): boolean {
  return event.type === "ActivityScheduled" && isInlineCall(event.name);
}

function isNobodysFailure(event: Event): boolean {
  const isFailure = event.type === "ActivityFailed" || event.type === "SubOrchestrationFailed";
  return isFailure && event.details.category !== "application";
}
