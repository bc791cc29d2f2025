// provider/kit/turn-change.ts — what a committed turn changes for those who watch its instance.

import type { InstanceChange, TurnCommit } from "../provider.js";

/**
 * What to tell the watchers of an instance whose turn was committed: whoever waits for its end need not look after each of
 * its steps, nor after the last. `currentExecutionId`: of the instance, after the commit. Where nobody knows it, or the turn was
 * one of another execution, a completion is a change like others, because it may not be the instance's.
 *
 * @example
 * const watchers = new InstanceWatchers();
 * const committed = (instance: string, turn: TurnCommit) => watchers.changed(instance, changeOf(turn));
 */
export function changeOf({ executionId, metadata, events }: TurnCommit, currentExecutionId?: number): InstanceChange {
  const isOfInstance = executionId === currentExecutionId;
  if (metadata.status === "Completed" && isOfInstance) return { output: metadata.output ?? null };
  if (metadata.status !== undefined && metadata.status !== "Running") return "state";
  return events.some(({ type }) => STATE_EVENTS.has(type)) ? "state" : "turn";
}

const STATE_EVENTS: ReadonlySet<string> = new Set([
  "CustomStatusUpdated",
  "KeyValueSet",
  "KeyValueCleared",
  "KeyValuesCleared",
]);
