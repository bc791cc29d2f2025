// providers/running-instance.ts — an instance in the middle of its work, made by hand.

import type { LockedWorkItem, Provider } from "../../src/provider/provider.js";
import { act, NAMED, scheduled, start, started, turn } from "../../src/provider-tests/builders.js";
import { takeTurn, takeWork } from "../../src/provider-tests/steps.js";

/** What a runtime remembers: by which lock each instance was last committed. */
export type Warm = Map<string, string>;

/** An instance that runs and is warm, the activity 2 of which is held. */
export async function running(provider: Provider, name: string, warm: Warm): Promise<LockedWorkItem> {
  await provider.enqueueForOrchestrator(start(name), { ifAbsent: true });
  const { lockToken } = await takeTurn(provider);
  const events = [started(name), scheduled(name, 2)];
  await provider.ackOrchestrationItem(lockToken, turn({ events, workerItems: [act(name, 2)], metadata: NAMED }));
  warm.set(name, lockToken);
  return takeWork(provider);
}
