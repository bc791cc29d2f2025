// provider/is-provider.ts — whether what was handed in for a provider is one: told before anything starts, not by every loop.

import { hasMethods, type OptionCheck } from "../options.js";

/** For `checkOptions`: ends the sentence "option 'provider' …". */
export const isProvider: OptionCheck = (value) => {
  if (value instanceof Promise) return "is a promise: await it first, as in `await SqliteProvider.open(file)`";
  return hasMethods(value, "enqueueForOrchestrator", "fetchOrchestrationItem", "fetchWorkItem")
    ? null
    : "must be a provider, such as `new MemoryProvider()` or `await SqliteProvider.open(file)`";
};
