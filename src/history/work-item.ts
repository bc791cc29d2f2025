// history/work-item.ts — the messages of the two queues.

import type { ErrorDetails } from "./error-details.js";
import type { CarriedEvent } from "./event.js";

export interface ParentLink {
  readonly parentInstance: string;
  /** The parent's scheduling event. */
  readonly parentId: number;
  readonly parentExecutionId?: number;
}

export interface StartOrchestration {
  readonly type: "StartOrchestration";
  readonly instance: string;
  readonly orchestration: string;
  readonly input: string;
  readonly version: string | null;
  readonly parentInstance: string | null;
  readonly parentId: number | null;
  readonly executionId: number;
  readonly parentExecutionId?: number;
}

export interface ContinueAsNew {
  readonly type: "ContinueAsNew";
  readonly instance: string;
  readonly orchestration: string;
  readonly input: string;
  readonly version: string | null;
  readonly carryForwardEvents: readonly CarriedEvent[];
  readonly initialCustomStatus?: string;
  readonly parentInstance?: string;
  readonly parentId?: number;
  readonly parentExecutionId?: number;
}

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
}

export interface ActivityCompleted {
  readonly type: "ActivityCompleted";
  readonly instance: string;
  readonly executionId: number;
  readonly id: number;
  readonly result: string;
}

export interface ActivityFailed {
  readonly type: "ActivityFailed";
  readonly instance: string;
  readonly executionId: number;
  readonly id: number;
  readonly details: ErrorDetails;
}

export interface TimerFired {
  readonly type: "TimerFired";
  readonly instance: string;
  readonly executionId: number;
  readonly id: number;
  readonly fireAtMs: number;
}

export interface ExternalRaised {
  readonly type: "ExternalRaised";
  readonly instance: string;
  readonly name: string;
  readonly data: string;
}

export interface QueueMessage {
  readonly type: "QueueMessage";
  readonly instance: string;
  readonly name: string;
  readonly data: string;
}

export interface SubOrchCompleted {
  readonly type: "SubOrchCompleted";
  readonly parentInstance: string;
  readonly parentExecutionId: number;
  readonly parentId: number;
  readonly result: string;
}

export interface SubOrchFailed {
  readonly type: "SubOrchFailed";
  readonly parentInstance: string;
  readonly parentExecutionId: number;
  readonly parentId: number;
  readonly details: ErrorDetails;
}

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

/** The instance that a message is addressed to. */
export function targetInstance(item: WorkItem): string {
  return item.type === "SubOrchCompleted" || item.type === "SubOrchFailed" ? item.parentInstance : item.instance;
}

export function isStartLike(item: WorkItem): item is StartOrchestration | ContinueAsNew {
  return item.type === "StartOrchestration" || item.type === "ContinueAsNew";
}
