// testing/check-world.ts — whether everything that a store holds could be replayed by the code that is deployed.

import { type Divergence, InvalidInputError, ManagementNotAvailableError, ReplayDivergedError } from "../errors.js";
import { type Event, INITIAL_EXECUTION_ID } from "../history/event.js";
import type { KvEntry } from "../history/kv-entry.js";
import type { Limits } from "../history/limits.js";
import { checkHistory } from "../history/valid-history.js";
import type { Provider } from "../provider/provider.js";
import type { Registry } from "../runtime/registry.js";
import { checkDeterministic } from "./assert-deterministic.js";
import { kvAfter } from "./kv-after.js";
import { resolveFor, startOf } from "./replay.js";

/** The code of a runtime, as far as replays depend on it. */
export interface Deployment {
  readonly registry: Registry;
  readonly limits: Limits;
}

/** @throws ReplayDivergedError with all that diverge */
export async function checkWorld(provider: Provider, deployments: readonly Deployment[]): Promise<void> {
  const { admin } = provider;
  if (admin === null) throw new ManagementNotAvailableError(provider.name);
  const divergences: Divergence[] = [];
  for (const instance of (await admin.listInstances()).toReversed()) {
    const executions = await admin.listExecutions(instance);
    // Where executions were pruned, nobody knows what they left in the key-value store for the next.
    if (executions[0] !== INITIAL_EXECUTION_ID) continue;
    let kv: ReadonlyMap<string, KvEntry> = new Map();
    for (const executionId of executions) {
      const events = checkHistory(await provider.readWithExecution(instance, executionId));
      divergences.push(...(await divergencesOf(events, kv, deployments)));
      kv = kvAfter(events, kv);
    }
  }
  if (divergences.length > 0) throw new ReplayDivergedError(divergences);
}

/** Every deployment that has the code may be the one that goes on. */
async function divergencesOf(
  events: readonly Event[],
  kv: ReadonlyMap<string, KvEntry>,
  deployments: readonly Deployment[],
): Promise<readonly Divergence[]> {
  const candidates = deployments.flatMap(({ registry, limits }) => {
    const resolved = resolveFor(events, registry);
    return resolved === null ? [] : [{ events, kv, limits, handler: resolved.handler }];
  });
  if (candidates.length === 0) {
    const { instanceId, name, version } = startOf(events);
    throw new InvalidInputError(
      `Instance '${instanceId}' is of orchestration '${name}' ${version}, which no runtime of this world has.`,
    );
  }
  for (const subject of candidates) {
    try {
      await checkDeterministic(subject);
    } catch (error) {
      if (error instanceof ReplayDivergedError) return error.divergences;
      throw error;
    }
  }
  return [];
}
