// runtime/turn-facts.ts — what there is to report of a turn once it is committed. Every fact is about this turn alone, so
// nothing is told twice.

import type { DroppedMessage, TurnOutcome, TurnResult } from "../engine/turn.js";
import type { Event } from "../history/event.js";
import type { Limits } from "../history/limits.js";
import type { OrchestratorItem } from "../history/work-item.js";
import type { Fact, OrchestrationEnding, OrchestrationRef } from "../observer.js";
import type { ExecutionLedger } from "./execution-ledger.js";
import { nearLimits } from "./limit-usage.js";

/** Enters the turn's events into the ledger, and adds what they mean for observers to `facts`. */
export function recordTurn(
  ref: OrchestrationRef,
  ledger: ExecutionLedger,
  outcome: TurnOutcome,
  limits: Limits,
  facts: Fact[],
): Fact[] {
  const before = ledger.usage.snapshot();
  for (const event of outcome.events) {
    const ended = childEnded(ref, ledger, event);
    if (ended !== null) facts.push(ended);
    ledger.add(event);
  }
  ledger.usage.addTurn(outcome);
  nearLimits(ref, before, ledger.usage, limits, facts);
  if (outcome.droppedMessages.length > 0) facts.push(...messagesDropped(ref.instanceId, outcome.droppedMessages));
  const ending = endingOf(outcome.result);
  if (ending !== null) facts.push(orchestrationEnded(ref, ledger, ending, outcome.result));
  return facts;
}

/** None where nothing was dropped. */
export function dropped(instanceId: string, why: string, count: number): Fact[] {
  return count === 0 ? [] : [{ type: "messages-dropped", instanceId, why, count }];
}

/** One fact for each reason. */
function messagesDropped(instanceId: string, messages: readonly DroppedMessage[]): Fact[] {
  const byReason = new Map<string, { readonly first: string; count: number }>();
  for (const { message, why } of messages) {
    const known = byReason.get(why);
    if (known === undefined) byReason.set(why, { first: described(message), count: 1 });
    else known.count += 1;
  }
  return [...byReason].map(([why, some]) => ({ type: "messages-dropped", instanceId, why, ...some }));
}

function described(message: OrchestratorItem): string {
  switch (message.type) {
    case "ActivityCompleted":
    case "ActivityFailed":
    case "TimerFired":
      return `${message.type} for event ${message.id}`;
    case "SubOrchCompleted":
    case "SubOrchFailed":
      return `${message.type} for event ${message.parentId}`;
    default:
      return message.type;
  }
}

function childEnded(ref: OrchestrationRef, ledger: ExecutionLedger, event: Event): Fact | null {
  if (event.type !== "SubOrchestrationCompleted" && event.type !== "SubOrchestrationFailed") return null;
  const child = ledger.child(event.sourceEventId);
  if (child === null) return null;
  return {
    type: "suborchestration-ended",
    ref,
    childName: child.name,
    outcome: event.type === "SubOrchestrationCompleted" ? "success" : "failed",
    durationMs: Math.max(0, event.timestampMs - child.scheduledAtMs),
  };
}

function endingOf(result: TurnResult): OrchestrationEnding | null {
  return result.kind === "waiting" ? null : result.kind;
}

function orchestrationEnded(
  ref: OrchestrationRef,
  ledger: ExecutionLedger,
  ending: OrchestrationEnding,
  result: TurnResult,
): Fact {
  const { started, terminal } = ledger;
  const durationMs = started === null || terminal === null ? 0 : terminal.timestampMs - started.timestampMs;
  return {
    type: "orchestration-ended",
    ref,
    ending,
    details: "details" in result ? result.details : null,
    durationMs: Math.max(0, durationMs),
    historyEvents: ledger.eventCount,
    turns: ledger.turns,
    ...("error" in result ? { error: result.error } : {}),
  };
}
