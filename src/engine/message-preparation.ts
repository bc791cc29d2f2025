// engine/message-preparation.ts — turns the messages of a batch into the arrivals of a turn, before any code runs.
//
//   A1. At most one answer per schedule, success or failure, over history and batch; the first wins.
//   A2. A message for another execution, or for a schedule that nobody made, is dropped and reported.
//   A3. External events and mailbox messages are never deduplicated, and recorded even if nobody waits.
//   A4. A failure that is not the application's own, or an answer of the wrong kind, aborts the turn: no code runs.

import { type ErrorDetails, nondeterminism } from "../history/error-details.js";
import type { Event, EventPayload } from "../history/event.js";
import type { OrchestratorItem } from "../history/work-item.js";
import type { AnswerableKind } from "./history-index.js";
import type { DroppedMessage } from "./turn.js";
import type { TurnRecorder } from "./turn-recorder.js";

export interface Prepared {
  readonly arrivals: readonly Event[];
  /** What ends the turn before any code runs. A4 */
  readonly failure: ErrorDetails | null;
}

export function prepareMessages(messages: readonly OrchestratorItem[], recorder: TurnRecorder): Prepared {
  const arrivals: Event[] = [];
  let failure: ErrorDetails | null = null;
  for (const message of messages) {
    const prepared = prepare(message, recorder);
    if (prepared === null) continue;
    if ("wrongKind" in prepared) failure = prepared.wrongKind;
    else {
      arrivals.push(prepared.event);
      failure ??= systemFailure(prepared.event);
    }
  }
  return { arrivals, failure };
}

type PreparedMessage = { readonly event: Event } | { readonly wrongKind: ErrorDetails } | null;

function prepare(message: OrchestratorItem, recorder: TurnRecorder): PreparedMessage {
  switch (message.type) {
    case "ActivityCompleted":
      return answer(message, recorder, "activity", message.id, message.executionId, {
        type: "ActivityCompleted",
        result: message.result,
      });
    case "ActivityFailed":
      return answer(message, recorder, "activity", message.id, message.executionId, {
        type: "ActivityFailed",
        details: message.details,
      });
    case "TimerFired":
      return answer(message, recorder, "timer", message.id, message.executionId, {
        type: "TimerFired",
        fireAtMs: message.fireAtMs,
      });
    case "SubOrchCompleted":
      return answer(message, recorder, "suborchestration", message.parentId, message.parentExecutionId, {
        type: "SubOrchestrationCompleted",
        result: message.result,
      });
    case "SubOrchFailed":
      return answer(message, recorder, "suborchestration", message.parentId, message.parentExecutionId, {
        type: "SubOrchestrationFailed",
        details: message.details,
      });
    case "ExternalRaised":
      return { event: recorder.append({ type: "ExternalEvent", name: message.name, data: message.data }) };
    case "QueueMessage":
      return { event: recorder.append({ type: "ExternalEventPersistent", name: message.name, data: message.data }) };
    case "CancelInstance":
      if (recorder.index.cancelReason !== null) return drop(recorder, message, "cancel-repeated");
      return { event: recorder.append({ type: "OrchestrationCancelRequested", reason: message.reason }) };
    default:
      return drop(recorder, message, "wrong-queue");
  }
}

function answer(
  message: OrchestratorItem,
  recorder: TurnRecorder,
  kind: AnswerableKind,
  scheduleId: number,
  executionId: number,
  payload: EventPayload,
): PreparedMessage {
  if (executionId !== recorder.executionId) return drop(recorder, message, "other-execution"); // A2
  const scheduled = recorder.index.kindOf(scheduleId);
  if (scheduled === undefined) return drop(recorder, message, "no-matching-schedule"); // A2
  if (scheduled !== kind) {
    const text = `completion kind mismatch for id=${scheduleId}, expected '${scheduled}', got '${kind}'`;
    return { wrongKind: nondeterminism(text) }; // A4
  }
  if (!recorder.index.outstanding.has(scheduleId)) return drop(recorder, message, "duplicate"); // A1
  return { event: recorder.append(payload, scheduleId) };
}

function drop(recorder: TurnRecorder, message: OrchestratorItem, why: DroppedMessage["why"]): null {
  recorder.droppedMessages.push({ message, why });
  return null;
}

function systemFailure(event: Event): ErrorDetails | null {
  const isFailure = event.type === "ActivityFailed" || event.type === "SubOrchestrationFailed";
  return isFailure && event.details.category !== "application" ? event.details : null;
}
