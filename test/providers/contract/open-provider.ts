// contract/open-provider.ts — what a provider hands to the contract tests: a fresh, empty store in virtual time.

import type { Provider } from "../../../src/provider/provider.js";
import type { VirtualClock } from "../../../src/testing/virtual-clock.js";

export interface TestProvider {
  readonly provider: Provider;
  /** The clock that the provider lives by. */
  readonly clock: VirtualClock;
  /** Overwrites every stored event of the instance with something that cannot be decoded. Absent: it cannot happen. */
  corruptHistory?(instance: string): Promise<void>;
}

/** Opens a store that shares nothing with any other. The contract tests close it. */
export type OpenProvider = () => Promise<TestProvider>;
