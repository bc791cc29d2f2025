// duroxide-ts/testing — for users' tests: time that obeys, stores that misbehave on demand, and instances out of nothing.

export { checkHistory, historyProblems } from "../history/valid-history.js";
export { assertDeterministic } from "./assert-deterministic.js";
export {
  ControlledProvider,
  type ControlledProviderOptions,
  type FetchWindow,
  type Gate,
  type GatePoint,
  type Polling,
} from "./controlled-provider.js";
export { exportHistory, type History, importHistory } from "./exported-history.js";
export { FailingProvider } from "./failing-provider.js";
export { FilterBypassProvider } from "./filter-bypass-provider.js";
export { type ImportOptions, importInstance } from "./import-instance.js";
export { type MockedActivity, type MockedCall, type MockImplementation, mockActivity } from "./mock-activity.js";
export type { CrashOptions, CrashPoint } from "./mortality.js";
export { PoisonInjectingProvider } from "./poison-injecting-provider.js";
export { type ReplayedCode, type ReplayOptions, replay } from "./replay.js";
export type { Replayed } from "./replay-check.js";
export * from "./seeds.js";
export { TestRuntime, type TestRuntimeStart } from "./test-runtime.js";
export { type StoreTools, TestWorld, type TestWorldOptions } from "./test-world.js";
export { VirtualClock } from "./virtual-clock.js";
