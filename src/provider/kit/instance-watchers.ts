// provider/kit/instance-watchers.ts — the in-process half of a WakeSource: who waits for news of which instance.

import { LinkedSet } from "../../linked-set.js";
import type { InstanceChange, WakeSource } from "../provider.js";

type Listener = (change: InstanceChange) => void;

/**
 * A `WakeSource` within one process: knows who waits for which instance, and is told by the provider what it commits.
 *
 * @example
 * const watchers = new InstanceWatchers(); // the provider's `wake`
 * const stop = watchers.watchInstance("order-1", () => report("look again"));
 * watchers.changed("order-1"); // after each commit
 * stop();
 */
export class InstanceWatchers implements WakeSource {
  readonly #listeners = new Map<string, LinkedSet<Listener>>();

  watchInstance(instance: string, listener: (change: InstanceChange) => void): () => void {
    const listeners = this.#listeners.get(instance) ?? new LinkedSet<Listener>();
    this.#listeners.set(instance, listeners);
    const place = listeners.add(listener);
    return () => {
      listeners.delete(place);
      if (listeners.size === 0 && this.#listeners.get(instance) === listeners) this.#listeners.delete(instance);
    };
  }

  /** Whether nobody waits: then changes of other processes need not be looked for. */
  get isEmpty(): boolean {
    return this.#listeners.size === 0;
  }

  /** A commit changed this instance. */
  changed(instance: string, change: InstanceChange = "state"): void {
    const listeners = this.#listeners.get(instance);
    if (listeners !== undefined) for (const listener of listeners.values()) tell(listener, change);
  }

  /** A commit of somebody else changed something. */
  anythingChanged(): void {
    for (const listeners of [...this.#listeners.values()])
      for (const listener of listeners.values()) tell(listener, "state");
  }
}

/** What is committed stays committed, whatever a listener makes of it, and the others hear of it, too. */
function tell(listener: Listener, change: InstanceChange): void {
  try {
    listener(change);
  } catch {
    // Its own affair.
  }
}
