// providers/sqlite/turn-commit.ts — everything that one turn decided, in one transaction.

import { checkOrchestratorItem, checkWorkerItem } from "../../provider/kit/refusals.js";
import type { TurnCommit } from "../../provider/provider.js";
import { appendEvents } from "./history.js";
import { recordCustomStatus, recordTurn } from "./instances.js";
import { applyToKv, mergeKv } from "./kv.js";
import { announceRelease, cancelTimer, consumeBatch, enqueueMessage } from "./orchestrator-queue.js";
import type { Transaction } from "./transaction.js";
import { cancelActivity, enqueueActivity } from "./worker-queue.js";

const OPERATION = "ackOrchestrationItem";

/** Whatever it throws, the caller rolls back: the lock is then held as before. */
export function commitTurn(tx: Transaction, lockToken: string, turn: TurnCommit): void {
  const instance = consumeBatch(tx, OPERATION, lockToken);
  recordTurn(tx, instance, lockToken, turn);
  appendEvents(tx, OPERATION, instance, turn.executionId, turn.events);
  applyEvents(tx, instance, turn);

  for (const item of turn.workerItems) {
    checkWorkerItem(OPERATION, item);
    enqueueActivity(tx, item);
  }
  for (const item of turn.orchestratorItems) {
    checkOrchestratorItem(OPERATION, item);
    enqueueMessage(tx, item);
  }
  // After what was added: what stands in both lists is gone.
  for (const activity of turn.cancelledActivities) cancelActivity(tx, activity);
  for (const timer of turn.cancelledTimers) cancelTimer(tx, timer);

  tx.effects.changedInstances.add(instance);
  announceRelease(tx, instance);
}

/** The two kinds of events that the store looks into: custom status and key-value pairs. */
function applyEvents(tx: Transaction, instance: string, { events, metadata }: TurnCommit): void {
  let customStatus: string | null | undefined;
  for (const event of events) {
    if (event.type === "CustomStatusUpdated") customStatus = event.status;
    else applyToKv(tx, instance, event);
  }
  if (customStatus !== undefined) recordCustomStatus(tx, instance, customStatus);
  if (metadata.status !== undefined && metadata.status !== "Running") mergeKv(tx, instance);
}
