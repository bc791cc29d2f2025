// runtime/execution-start.ts — how a new execution begins, from the message that asks for it to its first event.

import type { StartedPayload } from "../engine/turn.js";
import type { CarriedEvent } from "../history/event.js";
import type { ParentLink } from "../history/work-item.js";

export interface ExecutionStart {
  readonly executionId: number;
  readonly initiatedBy: "client" | "continueAsNew" | "suborchestration";
  readonly name: string;
  /** Null: the registry decides. */
  readonly version: string | null;
  readonly input: string;
  readonly parent: ParentLink | null;
  readonly carried: readonly CarriedEvent[];
  readonly customStatus: string | null;
}

/** `version` is the one that the execution is pinned to from now on. */
export function startedPayload(start: ExecutionStart, version: string): StartedPayload {
  const { parent } = start;
  return {
    type: "OrchestrationStarted",
    name: start.name,
    version,
    input: start.input,
    parentInstance: parent?.parentInstance ?? null,
    parentId: parent?.parentId ?? null,
    ...(parent?.parentExecutionId === undefined ? {} : { parentExecutionId: parent.parentExecutionId }),
    ...(start.carried.length === 0 ? {} : { carryForwardEvents: start.carried }),
    ...(start.customStatus === null ? {} : { initialCustomStatus: start.customStatus }),
  };
}
