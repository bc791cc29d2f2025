// provider/kit/instance-watchers.ts — the in-process half of a WakeSource: who waits for news of which instance.
//
//   I1. A completion is told to those who had begun to watch before it was on its way. To others it might be about an instance of that
//       id that is gone, told late: they hear that something has changed.

import { LinkedSet } from "../../linked-set.js";
import type { InstanceChange, WakeSource } from "../provider.js";

interface Watcher {
  readonly listener: (change: InstanceChange) => void;
  /** Which one it was of all. */
  readonly nr: number;
}

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
  readonly #watchers = new Map<string, LinkedSet<Watcher>>();
  #lastNr = 0;
  #changes = 0;

  watchInstance(instance: string, listener: (change: InstanceChange) => void): () => void {
    const watchers = this.#watchers.get(instance) ?? new LinkedSet<Watcher>();
    this.#watchers.set(instance, watchers);
    this.#lastNr += 1;
    const place = watchers.add({ listener, nr: this.#lastNr });
    return () => {
      watchers.delete(place);
      if (watchers.size === 0 && this.#watchers.get(instance) === watchers) this.#watchers.delete(instance);
    };
  }

  /** Which one came last, of all that have ever begun to watch. */
  get lastNr(): number {
    return this.#lastNr;
  }

  get changes(): number {
    return this.#changes;
  }

  /** Whether nobody waits: then changes of other processes need not be looked for. */
  get isEmpty(): boolean {
    return this.#watchers.size === 0;
  }

  /** A commit changed this instance. `asOf`: who had come last when it was sent, where its answer may be late. I1 */
  changed(instance: string, change: InstanceChange = "state", asOf = this.#lastNr): void {
    this.#changes += 1;
    const watchers = this.#watchers.get(instance);
    if (watchers === undefined) return;
    for (const { listener, nr } of watchers.values())
      tell(listener, typeof change === "object" && nr > asOf ? "state" : change);
  }

  /** A commit of somebody else changed something. */
  anythingChanged(): void {
    this.#changes += 1;
    for (const watchers of [...this.#watchers.values()])
      for (const { listener } of watchers.values()) tell(listener, "state");
  }
}

/** What is committed stays committed, whatever a listener makes of it, and the others hear of it, too. */
function tell(listener: Watcher["listener"], change: InstanceChange): void {
  try {
    listener(change);
  } catch {
    // Its own affair.
  }
}
