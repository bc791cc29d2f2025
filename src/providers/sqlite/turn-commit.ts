// providers/sqlite/turn-commit.ts — everything that one turn decided, in one transaction.

import { checkOrchestratorItem, checkWorkerItem } from "../../provider/kit/refusals.js";
import { fromColumn, toColumn } from "../../provider/kit/text-column.js";
import { changeOf } from "../../provider/kit/turn-change.js";
import type { TurnCommit } from "../../provider/provider.js";
import { appendEvents } from "./history.js";
import { recordCustomStatus, recordTurn } from "./instances.js";
import type { InstanceFacts } from "./known-instances.js";
import { applyToKv, mergeKv } from "./kv.js";
import { announceRelease, cancelTimer, consumeBatch, enqueueMessage } from "./orchestrator-queue.js";
import type { Transaction } from "./transaction.js";
import { cancelActivity, enqueueActivity } from "./worker-queue.js";

const OPERATION = "ackOrchestrationItem";

/** Whatever it throws, the caller rolls back: the lock is then held as before. */
export function commitTurn(tx: Transaction, lockToken: string, turn: TurnCommit): void {
  const lock = consumeBatch(tx, OPERATION, lockToken);
  const { instanceId } = lock;
  const instance = fromColumn(instanceId);
  recordTurn(tx, lock, turn);
  appendEvents(tx, OPERATION, instance, turn.executionId, turn.events);
  applyEvents(tx, instance, turn);

  const isOver = (turn.metadata.status ?? "Running") !== "Running";
  const goesOn = !isOver && turn.executionId === lock.executionId;
  for (const item of turn.workerItems) {
    checkWorkerItem(OPERATION, item);
    enqueueActivity(tx, item, goesOn && item.executionId === lock.executionId && item.instance === instance);
  }
  for (const item of turn.orchestratorItems) {
    checkOrchestratorItem(OPERATION, item);
    enqueueMessage(tx, item);
  }
  // After what was added: what stands in both lists is gone.
  for (const activity of turn.cancelledActivities) cancelActivity(tx, activity);
  for (const timer of turn.cancelledTimers) cancelTimer(tx, timer);

  const named = factsIn(turn);
  const isAsBefore = goesOn && turn.metadata.pinnedVersion === undefined;
  if (!isOver && (isAsBefore || named !== null)) tx.known.committed(instanceId, lock.secret, named);
  else tx.known.ended(instanceId, lock.secret);
  tx.effects.changed(instance, changeOf(turn, lock.executionId)); // 0 where it has not begun.
  announceRelease(tx, instanceId);
}

/** Null where the turn does not say, or says only a part of it. */
function factsIn({ executionId, metadata }: TurnCommit): InstanceFacts | null {
  const { orchestrationName: name, orchestrationVersion: version, pinnedVersion: pinned } = metadata;
  if (name === undefined || version === undefined) return null;
  return {
    orchestration_name: toColumn(name),
    orchestration_version: toColumn(version),
    current_execution_id: executionId,
    pinned_major: pinned?.major ?? null,
    pinned_minor: pinned?.minor ?? null,
    pinned_patch: pinned?.patch ?? null,
  };
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
