// testing/locked-instance.ts — takes one instance out of a store, as a runtime would, to write into it.

import { InvalidInputError } from "../errors.js";
import type { LockedOrchestrationItem, Provider } from "../provider/provider.js";

/** Nobody else works on the store, and whoever writes is done at once. */
const LOCK_TIMEOUT_MS = 30_000;

/** Fetches the instance. Others that come first are given back as they were. */
export async function lockInstance(provider: Provider, instance: string): Promise<LockedOrchestrationItem> {
  const others: string[] = [];
  try {
    for (;;) {
      const locked = await provider.fetchOrchestrationItem({ lockTimeoutMs: LOCK_TIMEOUT_MS });
      if (locked === null) throw new InvalidInputError(`Instance '${instance}' cannot be seeded: somebody holds it.`);
      if (locked.item.instance === instance) return locked;
      others.push(locked.lockToken);
    }
  } finally {
    for (const lockToken of others) await provider.abandonOrchestrationItem(lockToken, { ignoreAttempt: true });
  }
}
