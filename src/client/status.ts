// client/status.ts — where an instance stands, as a client sees it: from the store's metadata, not from its history.
//
// Only a failure needs the history: the metadata hold its text, the recorded details stand in its last event.

import { ProviderError, unreachable } from "../errors.js";
import { displayMessage, type ErrorDetails } from "../history/error-details.js";
import type { Event } from "../history/event.js";
import { decodePayload } from "../history/payload.js";
import type { InstanceCompletion, InstanceStatus, Provider } from "../provider/provider.js";

/** What is known of every instance that exists. */
export interface InstanceFacts {
  readonly orchestrationName: string;
  /** The version that the current execution is pinned to; `unknown` before the first turn chose one. */
  readonly orchestrationVersion: string;
  /** 1 for the first execution; continue-as-new counts up. */
  readonly executionId: number;
  /** The text that the orchestration set last. Null: none. */
  readonly customStatus: string | null;
  /** Grows by one with every committed turn that changed the custom status. */
  readonly customStatusVersion: number;
}

/** A start is queued, or waits for its time; no turn is committed yet. */
export interface PendingStatus extends InstanceFacts {
  readonly status: "Pending";
}

/** Turns are committed and none of them was the last. Between two executions it reads as running too. */
export interface RunningStatus extends InstanceFacts {
  readonly status: "Running";
}

/** The orchestration returned. Final. */
export interface CompletedStatus extends InstanceFacts {
  readonly status: "Completed";
  /** What it returned, decoded. */
  readonly output: unknown;
}

/** The orchestration threw, was cancelled, or cannot be run. Final. */
export interface FailedStatus extends InstanceFacts {
  readonly status: "Failed";
  /** The recorded failure. A cancelled instance has the kind `Cancelled`. */
  readonly details: ErrorDetails;
  /** The same as text. */
  readonly error: string;
}

/** Where an instance that exists stands. */
export type KnownStatus = PendingStatus | RunningStatus | CompletedStatus | FailedStatus;

/** Where an instance that has come to its end stands. */
export type EndedStatus = CompletedStatus | FailedStatus;

/** What it came to, whatever else is known. */
export type Ending = Pick<CompletedStatus, "status" | "output"> | FailedStatus;

/** Where an instance stands. */
export type OrchestrationStatus = { readonly status: "NotFound" } | KnownStatus;

/** Whether the instance has come to its end. */
export function isEnded(status: OrchestrationStatus): status is EndedStatus {
  return status.status === "Completed" || status.status === "Failed";
}

/** What the store says of an instance, as a client sees it. Reads the history of a failed one, and of no other. */
export async function knownStatus(
  provider: Provider,
  instanceId: string,
  stored: InstanceStatus,
): Promise<KnownStatus> {
  const facts: InstanceFacts = {
    orchestrationName: stored.orchestrationName,
    orchestrationVersion: stored.orchestrationVersion,
    executionId: stored.executionId,
    customStatus: stored.customStatus,
    customStatusVersion: stored.customStatusVersion,
  };
  switch (stored.status) {
    case "Pending":
      return { status: "Pending", ...facts };
    case "Running":
    case "ContinuedAsNew":
      return { status: "Running", ...facts };
    case "Completed":
      return { ...completed(stored), ...facts };
    case "Failed": {
      const details = await failureDetails(provider, instanceId, stored);
      return { status: "Failed", ...facts, details, error: displayMessage(details) };
    }
    default:
      return unreachable(stored.status);
  }
}

export function completed({ output }: InstanceCompletion): Pick<CompletedStatus, "status" | "output"> {
  return { status: "Completed", output: output === null ? null : decodePayload(output) };
}

/**
 * The recorded failure. Where the history cannot be decoded or has lost its end, who is to blame is no longer known:
 * the failure then counts as one of the infrastructure, not worth a retry, with the text that the metadata kept.
 */
async function failureDetails(provider: Provider, instanceId: string, stored: InstanceStatus): Promise<ErrorDetails> {
  const history = await readUnlessCorrupt(provider, instanceId, stored.executionId);
  const last = history.findLast((event) => event.type === "OrchestrationFailed");
  if (last?.type === "OrchestrationFailed") return last.details;
  return {
    category: "infrastructure",
    operation: "read_history",
    message: stored.output ?? "the failure was not recorded",
    retryable: false,
  };
}

async function readUnlessCorrupt(
  provider: Provider,
  instanceId: string,
  executionId: number,
): Promise<readonly Event[]> {
  try {
    return await provider.readWithExecution(instanceId, executionId);
  } catch (error) {
    if (error instanceof ProviderError && error.kind === "corrupt") return [];
    throw error;
  }
}
