// runtime/turn-commit.ts — what a turn decided, as the one thing that the store commits.
//
//   C1. A turn that ends its execution starts nothing but detached orchestrations: only they outlive their creator.
//   C2. A child carries the execution of the parent that asked, through continue-as-new, back to it.
//   C3. Metadata says only what the delta says: identity with the first event, status with the last.

import type { ActivityToStart, ChildToStart, DetachedToStart, TurnOutcome, TurnResult } from "../engine/turn.js";
import { unreachable } from "../errors.js";
import { displayMessage } from "../history/error-details.js";
import type { Event } from "../history/event.js";
import type { ActivityExecute, ContinueAsNew, OrchestratorItem, StartOrchestration } from "../history/work-item.js";
import type { ExecutionMetadata, ScheduledId, TurnCommit } from "../provider/provider.js";
import { answerTo, type ParentRoute } from "./parent-route.js";
import { parseSemVer } from "./semver.js";

/** Whose turn it was. */
export interface TurnIdentity {
  readonly instance: string;
  readonly executionId: number;
  readonly name: string;
  readonly version: string;
  readonly parent: ParentRoute | null;
}

/** `alsoSend`: messages to others that this batch gave rise to. */
export function turnCommit(
  turn: TurnIdentity,
  outcome: TurnOutcome,
  alsoSend: readonly OrchestratorItem[] = [],
): TurnCommit {
  return {
    executionId: turn.executionId,
    events: outcome.events,
    workerItems: goesOn(outcome) ? outcome.activities.map((activity) => activityExecute(turn, activity)) : [],
    orchestratorItems: orchestratorItems(turn, outcome, alsoSend),
    metadata: metadataOf(outcome),
    cancelledActivities: outcome.cancelledActivities.map((id) => scheduled(turn, id)),
    cancelledTimers: outcome.cancelledTimers.map((id) => scheduled(turn, id)),
  };
}

/** C1 */
function goesOn({ result }: TurnOutcome): boolean {
  return result.kind === "waiting";
}

function scheduled({ instance, executionId }: TurnIdentity, id: number): ScheduledId {
  return { instance, executionId, id };
}

function orchestratorItems(
  turn: TurnIdentity,
  outcome: TurnOutcome,
  alsoSend: readonly OrchestratorItem[],
): OrchestratorItem[] {
  const items: OrchestratorItem[] = [];
  if (goesOn(outcome)) {
    for (const timer of outcome.timers) items.push({ type: "TimerFired", ...scheduled(turn, timer.id), ...timer });
    for (const child of outcome.children) items.push(childStart(turn, child));
  }
  for (const detached of outcome.detached) items.push(detachedStart(detached));
  for (const child of outcome.cancelledChildren) items.push({ type: "CancelInstance", ...child });
  const last = endingMessage(turn, outcome.result);
  if (last !== null) items.push(last);
  for (const item of alsoSend) items.push(item);
  return items;
}

/** Consumes the messages and changes nothing. */
export function emptyCommit(executionId: number, alsoSend: readonly OrchestratorItem[]): TurnCommit {
  return {
    executionId,
    events: [],
    workerItems: [],
    orchestratorItems: alsoSend,
    metadata: {},
    cancelledActivities: [],
    cancelledTimers: [],
  };
}

function activityExecute(turn: TurnIdentity, activity: ActivityToStart): ActivityExecute {
  const { instance, executionId, name: orchestrationName, version: orchestrationVersion } = turn;
  const { id, name, input, sessionId, tag, retryOf } = activity;
  const type = "ActivityExecute";
  if (sessionId === undefined && tag === undefined && retryOf === undefined)
    return { type, instance, executionId, id, name, input, orchestrationName, orchestrationVersion };
  return {
    type,
    instance,
    executionId,
    id,
    name,
    input,
    orchestrationName,
    orchestrationVersion,
    ...(sessionId === undefined ? {} : { sessionId }),
    ...(tag === undefined ? {} : { tag }),
    ...(retryOf === undefined ? {} : { retryOf }),
  };
}

function childStart(turn: TurnIdentity, child: ChildToStart): StartOrchestration {
  return {
    type: "StartOrchestration",
    instance: child.instance,
    orchestration: child.name,
    input: child.input,
    version: child.version,
    parentInstance: turn.instance,
    parentId: child.id,
    executionId: 1,
    parentExecutionId: turn.executionId, // C2
  };
}

function detachedStart(detached: DetachedToStart): StartOrchestration {
  return {
    type: "StartOrchestration",
    instance: detached.instance,
    orchestration: detached.name,
    input: detached.input,
    version: detached.version,
    parentInstance: null,
    parentId: null,
    executionId: 1,
  };
}

function endingMessage(turn: TurnIdentity, result: TurnResult): OrchestratorItem | null {
  switch (result.kind) {
    case "waiting":
      return null;
    case "completed":
      return turn.parent === null ? null : answerTo(turn.parent, { kind: "completed", output: result.output });
    case "failed":
    case "cancelled":
      return turn.parent === null ? null : answerTo(turn.parent, { kind: "failed", details: result.details });
    case "continuedAsNew":
      return continuation(turn, result);
    default:
      return unreachable(result);
  }
}

function continuation(turn: TurnIdentity, result: Extract<TurnResult, { kind: "continuedAsNew" }>): ContinueAsNew {
  return {
    type: "ContinueAsNew",
    instance: turn.instance,
    orchestration: turn.name,
    input: result.input,
    version: result.version,
    carryForwardEvents: result.carried,
    ...(result.customStatus === null ? {} : { initialCustomStatus: result.customStatus }),
    ...(turn.parent ?? {}), // C2
  };
}

const NO_METADATA: ExecutionMetadata = Object.freeze({});

/** C3 */
function metadataOf({ events, result }: TurnOutcome): ExecutionMetadata {
  const identity = identityMetadata(events);
  const status = statusMetadata(result);
  if (status === NO_METADATA) return identity;
  return identity === NO_METADATA ? status : { ...identity, ...status };
}

function identityMetadata(events: readonly Event[]): ExecutionMetadata {
  const started = events[0];
  if (started?.type !== "OrchestrationStarted") return NO_METADATA;
  const pinnedVersion = parseSemVer(started.duroxideVersion);
  return {
    orchestrationName: started.name,
    orchestrationVersion: started.version,
    ...(started.parentInstance === null ? {} : { parentInstanceId: started.parentInstance }),
    ...(pinnedVersion === null ? {} : { pinnedVersion }),
  };
}

function statusMetadata(result: TurnResult): ExecutionMetadata {
  switch (result.kind) {
    case "waiting":
      return NO_METADATA;
    case "completed":
      return { status: "Completed", output: result.output };
    case "failed":
    case "cancelled":
      return { status: "Failed", output: displayMessage(result.details) };
    case "continuedAsNew":
      return { status: "ContinuedAsNew", output: result.input };
    default:
      return unreachable(result);
  }
}
