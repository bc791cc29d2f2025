// engine/turn.ts — what goes into one turn of the engine, and what comes out.

import type { ErrorDetails } from "../history/error-details.js";
import type { CarriedEvent, Event, EventOf } from "../history/event.js";
import type { KvEntry } from "../history/kv-entry.js";
import type { OrchestratorItem } from "../history/work-item.js";
import type { Action } from "./action.js";
import type { OrchestrationContext } from "./orchestration-context.js";
import type { CallWatch, WatchedExecution } from "./watched-calls.js";

/** User code as the engine sees it: text in, text out; a throw is a failure. */
export type OrchestrationHandler = (ctx: OrchestrationContext, input: string) => Promise<string>;

export type TraceLevel = "debug" | "info" | "warn" | "error";

/** One execution, before its first turn in this process. */
export interface ExecutionInit {
  readonly instance: string;
  readonly executionId: number;
  readonly handler: OrchestrationHandler;
  /** Committed events from the beginning. Empty: the execution is new, and `started` says how it starts. */
  readonly history: readonly Event[];
  readonly started: StartedPayload | null;
  /** Values as of the end of the previous execution. */
  readonly kvSnapshot: ReadonlyMap<string, KvEntry>;
  /** The only randomness an orchestration can reach; recorded. */
  readonly newGuid: () => string;
  readonly trace: (level: TraceLevel, message: string) => void;
  /** Code went on between two turns. Told at most once: the next turn, whatever it is for, fails the execution. */
  readonly onForeignAwait?: (message: string) => void;
  /** For replay checks: told what code asks for where history records this decision. A throw ends the turn. */
  readonly onMatch?: (action: Action | undefined, recorded: Event) => void;
  /** Makes the one who is told of calls whose answers no history records. They are noticed while `watchCalls` says so. */
  readonly watch?: (execution: WatchedExecution) => CallWatch;
}

export type StartedPayload = Omit<
  EventOf<"OrchestrationStarted">,
  "eventId" | "sourceEventId" | "instanceId" | "executionId" | "timestampMs" | "duroxideVersion"
>;

export interface TurnInput {
  readonly nowMs: number;
  /** Completion-like messages, in order. Start-like ones are the runtime's business. */
  readonly messages: readonly OrchestratorItem[];
}

export interface ActivityToStart {
  readonly id: number;
  readonly name: string;
  readonly input: string;
  readonly sessionId?: string;
  readonly tag?: string;
  /** The event of the first attempt, where a retry policy tries again. */
  readonly retryOf?: number;
}

export interface TimerToStart {
  readonly id: number;
  readonly fireAtMs: number;
}

export interface ChildToStart {
  readonly id: number;
  /** The child's full instance id. */
  readonly instance: string;
  readonly name: string;
  readonly input: string;
  readonly version: string | null;
}

export interface DetachedToStart {
  readonly instance: string;
  readonly name: string;
  readonly input: string;
  readonly version: string | null;
}

export interface ChildToCancel {
  readonly instance: string;
  readonly reason: string;
}

/** A message that was consumed without becoming an event, and why. */
export interface DroppedMessage {
  readonly message: OrchestratorItem;
  readonly why: "other-execution" | "duplicate" | "no-matching-schedule" | "cancel-repeated" | "wrong-queue";
}

/** What the execution came to. */
export type TurnResult =
  | { readonly kind: "waiting" }
  | { readonly kind: "completed"; readonly output: string }
  /** `error`: what the function threw, where it is to blame. */
  | { readonly kind: "failed"; readonly details: ErrorDetails; readonly error?: unknown }
  | { readonly kind: "cancelled"; readonly reason: string; readonly details: ErrorDetails }
  | {
      readonly kind: "continuedAsNew";
      readonly input: string;
      readonly version: string | null;
      /** Mailbox messages that nobody took, oldest first. */
      readonly carried: readonly CarriedEvent[];
      readonly customStatus: string | null;
    };

/** Everything one turn decided. `events` is the whole delta, terminal event included, numbered and stamped. */
export interface TurnOutcome {
  readonly result: TurnResult;
  readonly events: readonly Event[];
  readonly activities: readonly ActivityToStart[];
  readonly timers: readonly TimerToStart[];
  readonly children: readonly ChildToStart[];
  readonly detached: readonly DetachedToStart[];
  readonly cancelledActivities: readonly number[];
  readonly cancelledTimers: readonly number[];
  readonly cancelledChildren: readonly ChildToCancel[];
  readonly droppedMessages: readonly DroppedMessage[];
  /** Distinct keys in the key-value store after this turn. */
  readonly kvKeyCount: number;
}
