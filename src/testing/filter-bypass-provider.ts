// testing/filter-bypass-provider.ts — a provider that hands out what the caller said it cannot replay.

import { ProviderWrapper } from "../provider/kit/provider-wrapper.js";
import type { FetchOrchestrationOptions, LockedOrchestrationItem, Provider } from "../provider/provider.js";
import { checkedProvider } from "./checked-provider.js";

/**
 * Fetches without the capability filter, so that a runtime's own check of versions has something to refuse.
 *
 * @throws DUROXIDE_INVALID_OPTIONS for a provider that is none
 * @example
 * const provider = new FilterBypassProvider(new MemoryProvider({ clock }));
 * await seedInstanceWithPinnedVersion(provider, "from-the-future", "99.0.0");
 * await using runtime = await Runtime.start({ provider, clock, orchestrations, activities });
 */
export class FilterBypassProvider extends ProviderWrapper {
  constructor(inner: Provider) {
    super(checkedProvider("new FilterBypassProvider", inner));
  }

  override fetchOrchestrationItem(options: FetchOrchestrationOptions): Promise<LockedOrchestrationItem | null> {
    const { capability: _ignored, ...unfiltered } = options;
    return super.fetchOrchestrationItem(unfiltered);
  }
}
