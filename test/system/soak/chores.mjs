// soak/chores.mjs — what an operator does all day while the load runs: deletes what is over, prunes what never ends, and
// removes by force what runs. Each chore goes on until it is told to stop, and answers with problems.
//
//   C1. Nothing is deleted before whoever waits for it has seen it.
//   C2. A tree that was deleted by force is gone, whatever its workers were doing, and stays gone.

import { setTimeout as pause } from "node:timers/promises";
import { asProblems } from "../kills/oracles.mjs";

/** Whatever an operator waits for has come by then. */
const WAITING = { timeoutMs: 60_000 };

const SWEEP_EVERY_MS = 3_000;
/** C1. Those whose end nobody tells: trees that were still ending, and instances that others launched. */
const KEPT_MS = 60_000;
const SWEPT_AT_ONCE = 500;

const ETERNALS = 5;
const BEAT_MS = 500;
const PRUNE_EVERY_MS = 5_000;
const KEPT_EXECUTIONS = 3;

const DOOM_EVERY_MS = 1_000;
const DOOMED_DEPTH = 2;

/** Whether it was time, and not the end, that ended the pause. */
export function passes(ms, signal) {
  return pause(ms, true, { signal }).catch(() => false);
}

/** `takeSeen()`: the ids of those whose end was seen since it was last asked. C1 */
export async function sweep(client, signal, takeSeen) {
  while (await passes(SWEEP_EVERY_MS, signal)) {
    await client.deleteInstanceBulk({ instanceIds: takeSeen() });
    await deleteEnded(client, Date.now() - KEPT_MS);
  }
  return [];
}

/** Deletes what ended before that time. */
export async function deleteEnded(client, completedBeforeMs) {
  let deleted;
  do {
    deleted = (await client.deleteInstanceBulk({ completedBeforeMs, limit: SWEPT_AT_ONCE })).instancesDeleted;
  } while (deleted > 0);
}

/** Lets some instances continue as new all along, prunes them, and ends them at last. */
export async function keepEternals(client, signal) {
  const ids = Array.from({ length: ETERNALS }, (_, n) => `eternal-${n}`);
  for (const instanceId of ids) await client.start("Eternal", { instanceId, input: BEAT_MS });
  while (await passes(PRUNE_EVERY_MS, signal)) {
    await client.pruneExecutionsBulk({ instanceIds: ids }, { keepLast: KEPT_EXECUTIONS });
  }
  return (await Promise.all(ids.map((id) => endEternal(client, id)))).flat();
}

async function endEternal(client, id) {
  await client.cancel(id);
  const { executionId } = await client.waitForOrchestration(id, WAITING);
  await client.pruneExecutions(id, { keepLast: KEPT_EXECUTIONS });
  const beats = await client.getKvValue(id, "beats");
  const executions = await client.listExecutions(id);
  const problems = [];
  // The cancellation may have come before the last execution took its first turn.
  if (beats !== executionId && beats !== executionId - 1)
    problems.push(`${id}: ${beats} beats in ${executionId} executions`);
  if (executions.length > KEPT_EXECUTIONS) problems.push(`${id}: ${executions.length} executions after pruning`);
  return asProblems("wrong", problems);
}

/** C2 */
export async function doom(client, signal) {
  const problems = [];
  for (let n = 0; await passes(DOOM_EVERY_MS, signal); n += 1) {
    const instanceId = `doomed-${n}`;
    await client.start("Patient", { instanceId, input: DOOMED_DEPTH });
    await client.waitForStatusChange(instanceId, WAITING);
    await client.deleteInstance(instanceId, { force: true });
    const { status } = await client.getStatus(instanceId);
    if (status !== "NotFound")
      problems.push({ kind: "wrong", message: `${instanceId} is ${status} after its deletion` });
  }
  return problems;
}
