// duroxide-ts/testing — for users' tests: time that obeys, stores that misbehave on demand, and instances out of nothing.

export {
  ControlledProvider,
  type ControlledProviderOptions,
  type FetchWindow,
  type Gate,
  type GatePoint,
  type Polling,
} from "./controlled-provider.js";
export { FailingProvider } from "./failing-provider.js";
export { FilterBypassProvider } from "./filter-bypass-provider.js";
export { PoisonInjectingProvider } from "./poison-injecting-provider.js";
export * from "./seeds.js";
export { VirtualClock } from "./virtual-clock.js";
