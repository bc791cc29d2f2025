// runtime/failed-turn.ts — a turn that fails an execution without running its code, in the shape that the engine gives
// to any other failure: what is in flight is cancelled, and the failure is the last event.

import type { StartedPayload, TurnOutcome } from "../engine/turn.js";
import type { ErrorDetails } from "../history/error-details.js";
import { ENGINE_VERSION, type Event, type EventPayload } from "../history/event.js";
import type { ExecutionLedger } from "./execution-ledger.js";

export interface FailedTurn {
  readonly instance: string;
  readonly executionId: number;
  readonly nowMs: number;
  readonly details: ErrorDetails;
  /** What is committed of this execution. */
  readonly ledger: ExecutionLedger;
  /** For an execution of which nothing is committed yet. */
  readonly started: StartedPayload | null;
}

const BREADCRUMB_REASON = "orchestration_terminal_failed";
const CHILD_CANCEL_REASON = "parent dropped sub-orchestration future";

export function failedTurn(turn: FailedTurn): TurnOutcome {
  const { ledger } = turn;
  const activities = ledger.activitiesInFlight();
  const events = [
    ...(turn.started === null ? [] : [{ payload: turn.started, source: null }]),
    ...activities.map((source) => ({ payload: cancelRequested(), source })),
    { payload: { type: "OrchestrationFailed" as const, details: turn.details }, source: null },
  ];
  return {
    result: { kind: "failed", details: turn.details },
    events: events.map(({ payload, source }, place) => stamped(turn, payload, source, ledger.lastEventId + 1 + place)),
    activities: [],
    timers: [],
    children: [],
    detached: [],
    cancelledActivities: activities,
    cancelledTimers: ledger.timersInFlight(),
    cancelledChildren: ledger.childrenInFlight().map(({ instance }) => ({ instance, reason: CHILD_CANCEL_REASON })),
    droppedMessages: [],
    kvKeyCount: 0,
  };
}

function cancelRequested(): EventPayload {
  return { type: "ActivityCancelRequested", reason: BREADCRUMB_REASON };
}

function stamped(turn: FailedTurn, payload: EventPayload, source: number | null, eventId: number): Event {
  return {
    eventId,
    sourceEventId: source,
    instanceId: turn.instance,
    executionId: turn.executionId,
    timestampMs: turn.nowMs,
    duroxideVersion: ENGINE_VERSION,
    ...payload,
  };
}
