// provider-tests/stress — presses a store with many instances at once, and tells what it bears.

export { STRESS_CONFIGURATIONS, type StressConfiguration, type StressConfigurationName } from "./configurations.js";
export type { Criterion, StressMetric, Verdict } from "./criterion.js";
export type { ResourceUse } from "./resource-monitor.js";
export {
  type OpenStressStore,
  runStress,
  type StressResult,
  type StressStore,
  type StressStoreOptions,
} from "./run-stress.js";
export {
  LARGE_PAYLOAD_DEFAULTS,
  type LargePayloadStressConfig,
  PARALLEL_DEFAULTS,
  type ParallelStressConfig,
  type PressureOptions,
  type ResolvedLargePayloadConfig,
  type ResolvedParallelConfig,
  type ResolvedStressConfig,
  type StressConfig,
} from "./stress-config.js";
export { formatStressReport, formatStressTable } from "./stress-report.js";
export { type PlannedRun, runStressSuite, type StressReport, type StressRun } from "./stress-suite.js";
