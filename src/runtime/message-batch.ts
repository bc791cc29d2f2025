// runtime/message-batch.ts — what the messages of one fetch mean for the instance as it stands. Decides; does nothing.
//
//   B1. A continuation goes before any start. An instance with a history ignores starts: history says what it is.
//   B2. Whoever starts a child under an id that is taken is told so, unless it is the very parent the id belongs to.
//   B3. Between two executions nothing is consumed: the messages wait for the one that is about to start.
//   B4. What is carried over comes before what is new.

import {
  type ContinueAsNew,
  isStartLike,
  type OrchestratorItem,
  type ParentLink,
  type QueueMessage,
  type StartOrchestration,
} from "../history/work-item.js";
import { type ExecutionLedger, parentLinkOf } from "./execution-ledger.js";
import type { ExecutionStart } from "./execution-start.js";

/** Completion-like messages in order, and the starts among them that found the place taken. */
interface BatchContents {
  readonly messages: readonly OrchestratorItem[];
  readonly ignoredStarts: number;
  /** Parents whose child could not be started under that id. */
  readonly collisions: readonly ParentLink[];
}

export type MessageBatch =
  | ({ readonly kind: "start"; readonly start: ExecutionStart } & BatchContents)
  | ({ readonly kind: "resume" } & BatchContents)
  /** The instance is over: the messages are consumed without effect. */
  | ({ readonly kind: "ended" } & BatchContents)
  /** Nobody has started this instance, and this batch does not either. */
  | ({ readonly kind: "never-started" } & BatchContents)
  /** The last execution continued as new, and its successor's start is not visible yet. */
  | { readonly kind: "between-executions" };

/** `ledger`: of the current execution; without any event where the instance is new. */
export function classifyBatch(
  items: readonly OrchestratorItem[],
  executionId: number,
  ledger: ExecutionLedger,
): MessageBatch {
  const continuation = items.find((item) => item.type === "ContinueAsNew") ?? null;
  switch (ledger.terminal?.type) {
    case "OrchestrationCompleted":
    case "OrchestrationFailed":
      return { kind: "ended", ...contentsOf(items, null, ledger.parent) };
    case "OrchestrationContinuedAsNew":
      if (continuation === null) return { kind: "between-executions" }; // B3
      return continuing(items, continuation, executionId, ledger.parent);
    default:
      // A continuation that meets a running execution has been delivered before: it counts as one more start (B1).
      if (ledger.eventCount > 0) return { kind: "resume", ...contentsOf(items, null, ledger.parent) };
      return starting(items, continuation, executionId);
  }
}

function starting(
  items: readonly OrchestratorItem[],
  continuation: ContinueAsNew | null,
  executionId: number,
): MessageBatch {
  if (continuation !== null) return continuing(items, continuation, executionId, parentLinkOf(continuation));
  const start = items.find((item) => item.type === "StartOrchestration");
  if (start === undefined) return { kind: "never-started", ...contentsOf(items, null, null) };
  const parent = parentLinkOf(start);
  return {
    kind: "start",
    start: {
      executionId,
      initiatedBy: parent === null ? "client" : "suborchestration",
      name: start.orchestration,
      version: start.version,
      input: start.input,
      parent,
      carried: [],
      customStatus: null,
    },
    ...contentsOf(items, start, parent),
  };
}

function continuing(
  items: readonly OrchestratorItem[],
  continuation: ContinueAsNew,
  executionId: number,
  owner: ParentLink | null,
): MessageBatch {
  const contents = contentsOf(items, continuation, owner);
  const carried = continuation.carryForwardEvents.map(
    ([name, data]): QueueMessage => ({ type: "QueueMessage", instance: continuation.instance, name, data }),
  );
  return {
    kind: "start",
    start: {
      executionId: executionId + 1,
      initiatedBy: "continueAsNew",
      name: continuation.orchestration,
      version: continuation.version,
      input: continuation.input,
      parent: parentLinkOf(continuation) ?? owner,
      carried: continuation.carryForwardEvents,
      customStatus: continuation.initialCustomStatus ?? null,
    },
    ...contents,
    messages: [...carried, ...contents.messages], // B4
  };
}

/** `owner`: the parent that the id belongs to. */
function contentsOf(
  items: readonly OrchestratorItem[],
  accepted: StartOrchestration | ContinueAsNew | null,
  owner: ParentLink | null,
): BatchContents {
  if (!items.some(isStartLike)) return { messages: items, ignoredStarts: 0, collisions: [] };
  const acceptedPlace = accepted === null ? -1 : items.indexOf(accepted); // By place: one object may be queued twice.
  const ignored = items.filter((item, place) => isStartLike(item) && place !== acceptedPlace);
  const collisions: ParentLink[] = [];
  for (const item of ignored) {
    const claimant = item.type === "StartOrchestration" ? parentLinkOf(item) : null;
    if (claimant !== null && !isSameLink(claimant, owner)) collisions.push(claimant); // B2
  }
  return { messages: items.filter((item) => !isStartLike(item)), ignoredStarts: ignored.length, collisions };
}

/** Old data may not name the parent's execution; it then matches any. */
function isSameLink(a: ParentLink, b: ParentLink | null): boolean {
  if (b === null || a.parentInstance !== b.parentInstance || a.parentId !== b.parentId) return false;
  if (a.parentExecutionId === undefined || b.parentExecutionId === undefined) return true;
  return a.parentExecutionId === b.parentExecutionId;
}
