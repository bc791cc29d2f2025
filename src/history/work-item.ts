// history/work-item.ts — the messages of the two queues.

import type { ErrorDetails } from "./error-details.js";
import type { CarriedEvent } from "./event.js";

/** Whose child an instance is, and which event asked for it. */
export interface ParentLink {
  readonly parentInstance: string;
  /** The parent's scheduling event. */
  readonly parentId: number;
  readonly parentExecutionId?: number;
}

/** Starts an instance. */
export interface StartOrchestration {
  readonly type: "StartOrchestration";
  readonly instance: string;
  readonly orchestration: string;
  readonly input: string;
  /** Null: the registry that runs it chooses. */
  readonly version: string | null;
  /** Null, as the next: nobody's child. */
  readonly parentInstance: string | null;
  /** The parent's scheduling event. */
  readonly parentId: number | null;
  readonly executionId: number;
  readonly parentExecutionId?: number;
}

/** Starts the next execution of an instance. Queued by the turn that ended the one before. */
export interface ContinueAsNew {
  readonly type: "ContinueAsNew";
  readonly instance: string;
  readonly orchestration: string;
  readonly input: string;
  /** Null: the registry that runs it chooses. */
  readonly version: string | null;
  /** Mailbox messages that nobody took, oldest first. */
  readonly carryForwardEvents: readonly CarriedEvent[];
  /** The custom status as the execution before left it. */
  readonly initialCustomStatus?: string;
  readonly parentInstance?: string;
  readonly parentId?: number;
  readonly parentExecutionId?: number;
}

/** An activity that is to be run. All that the worker queue carries. */
export interface ActivityExecute {
  readonly type: "ActivityExecute";
  readonly instance: string;
  readonly executionId: number;
  /** The scheduling event. */
  readonly id: number;
  readonly name: string;
  readonly input: string;
  readonly sessionId?: string;
  readonly tag?: string;
  /** Ours, beside the reference's fields: a worker need not read the history to know whom it works for. */
  readonly orchestrationName?: string;
  readonly orchestrationVersion?: string;
  /** Ours too: the scheduling event of the first attempt, where a retry policy tries again. */
  readonly retryOf?: number;
}

/** An activity returned. */
export interface ActivityCompleted {
  readonly type: "ActivityCompleted";
  readonly instance: string;
  readonly executionId: number;
  /** The event that scheduled it. */
  readonly id: number;
  readonly result: string;
}

/** An activity threw, or was given up as poison. */
export interface ActivityFailed {
  readonly type: "ActivityFailed";
  readonly instance: string;
  readonly executionId: number;
  /** The event that scheduled it. */
  readonly id: number;
  readonly details: ErrorDetails;
}

/** A timer. Queued when it is created, visible from its time on. */
export interface TimerFired {
  readonly type: "TimerFired";
  readonly instance: string;
  readonly executionId: number;
  /** The event that created it. */
  readonly id: number;
  readonly fireAtMs: number;
}

/** An event that somebody raised, for `waitForEvent`. */
export interface ExternalRaised {
  readonly type: "ExternalRaised";
  readonly instance: string;
  readonly name: string;
  readonly data: string;
}

/** A message for a durable mailbox, for `dequeueEvent`. */
export interface QueueMessage {
  readonly type: "QueueMessage";
  readonly instance: string;
  readonly name: string;
  readonly data: string;
}

/** A child returned. For its parent. */
export interface SubOrchCompleted {
  readonly type: "SubOrchCompleted";
  readonly parentInstance: string;
  readonly parentExecutionId: number;
  readonly parentId: number;
  readonly result: string;
}

/** A child failed or was cancelled. For its parent. */
export interface SubOrchFailed {
  readonly type: "SubOrchFailed";
  readonly parentInstance: string;
  readonly parentExecutionId: number;
  readonly parentId: number;
  readonly details: ErrorDetails;
}

/** Asks an instance to end. */
export interface CancelInstance {
  readonly type: "CancelInstance";
  readonly instance: string;
  readonly reason: string;
}

/** What the orchestrator queue carries. */
export type OrchestratorItem =
  | StartOrchestration
  | ContinueAsNew
  | ActivityCompleted
  | ActivityFailed
  | TimerFired
  | ExternalRaised
  | QueueMessage
  | SubOrchCompleted
  | SubOrchFailed
  | CancelInstance;

/** What either queue carries. */
export type WorkItem = OrchestratorItem | ActivityExecute;

/**
 * The instance that a message is addressed to.
 *
 * @example
 * const late = decodeWorkItem('{"CancelInstance":{"instance":"order-1","reason":"too late"}}');
 * report(targetInstance(late)); // "order-1"
 */
export function targetInstance(item: WorkItem): string {
  return item.type === "SubOrchCompleted" || item.type === "SubOrchFailed" ? item.parentInstance : item.instance;
}

/**
 * Whether the message begins an execution.
 *
 * @example
 * const item = decodeWorkItem('{"QueueMessage":{"instance":"order-1","name":"cart","data":"1"}}');
 * if (isStartLike(item)) report(item.orchestration);
 */
export function isStartLike(item: WorkItem): item is StartOrchestration | ContinueAsNew {
  return item.type === "StartOrchestration" || item.type === "ContinueAsNew";
}
