// testing/started-instances.ts — remembers what was started through it: a store lists no instance before its first turn.

import type { OrchestratorItem, StartOrchestration } from "../history/work-item.js";
import { ProviderWrapper } from "../provider/kit/provider-wrapper.js";
import type { EnqueueOptions, EnqueueOutcome } from "../provider/provider.js";

export class StartedInstances extends ProviderWrapper {
  readonly #starts = new Map<string, StartOrchestration>();

  override async enqueueForOrchestrator(item: OrchestratorItem, options?: EnqueueOptions): Promise<EnqueueOutcome> {
    const outcome = await super.enqueueForOrchestrator(item, options);
    if (item.type === "StartOrchestration" && outcome === "enqueued") this.#starts.set(item.instance, item);
    return outcome;
  }

  /** The starts of those that wait for their first turn, oldest first. */
  async pending(): Promise<readonly StartOrchestration[]> {
    const starts = [...this.#starts.values()];
    const statuses = await Promise.all(starts.map(({ instance }) => this.inner.getInstanceStatus(instance)));
    return starts.filter((_, place) => statuses[place]?.status === "Pending");
  }
}
