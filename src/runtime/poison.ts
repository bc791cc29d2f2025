// runtime/poison.ts — the failures of work that has been tried too often: what is recorded, and why.

import { encodeWorkItem } from "../history/codec.js";
import { displayMessage, type ErrorDetails, type PoisonMessageType } from "../history/error-details.js";
import { CORRUPT_HISTORY_EVENT_ID, ENGINE_VERSION } from "../history/event.js";
import type { OrchestrationItem, TurnCommit } from "../provider/provider.js";
import { emptyCommit } from "./turn-commit.js";

/** How often the batch was fetched, and how often it may be. */
export interface Attempts {
  readonly attemptCount: number;
  readonly maxAttempts: number;
}

/** `obstacle`: what kept this runtime from doing the work; null where it tried and never came to an end. */
export function poisonDetails(
  item: OrchestrationItem,
  executionId: number,
  attempts: Attempts,
  obstacle: string | null,
): ErrorDetails {
  const { instance } = item;
  const message = obstacle ?? `[${item.messages.map(encodeWorkItem).join(",")}]`;
  return poison(attempts, { type: "Orchestration", instance, executionId }, message);
}

export function corruptHistoryDetails(item: OrchestrationItem, executionId: number, attempts: Attempts): ErrorDetails {
  const { instance } = item;
  const error = item.historyError ?? "";
  return poison(attempts, { type: "FailedDeserialization", instance, executionId, error }, error);
}

/**
 * Fails an execution whose history nobody can read: one event, under an id beyond those of any real history. What is in
 * flight cannot be known, nor whose child it is.
 */
export function corruptHistoryCommit(item: OrchestrationItem, details: ErrorDetails, nowMs: number): TurnCommit {
  const { instance, executionId } = item;
  return {
    ...emptyCommit(executionId, []),
    events: [
      {
        type: "OrchestrationFailed",
        details,
        eventId: CORRUPT_HISTORY_EVENT_ID,
        sourceEventId: null,
        instanceId: instance,
        executionId,
        timestampMs: nowMs,
        duroxideVersion: ENGINE_VERSION,
      },
    ],
    metadata: { status: "Failed", output: displayMessage(details) },
  };
}

function poison(attempts: Attempts, messageType: PoisonMessageType, message: string): ErrorDetails {
  return { category: "poison", ...attempts, messageType, message };
}
