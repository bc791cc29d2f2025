// runtime/services.ts — what every part of one runtime is handed.

import type { Clock } from "../clock.js";
import type { Fact } from "../observer.js";
import type { Provider } from "../provider/provider.js";
import type { ResolvedRuntimeOptions } from "./options.js";
import type { Registry } from "./registry.js";

export interface RuntimeServices {
  readonly runtimeId: string;
  readonly provider: Provider;
  readonly clock: Clock;
  /** Unique ids: lock tokens are the provider's, guids and runtime ids come from here. */
  readonly newId: () => string;
  readonly options: ResolvedRuntimeOptions;
  readonly registry: Registry;
  readonly emit: (fact: Fact) => void;
}
