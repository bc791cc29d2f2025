// provider-tests/stress/configurations.ts — the named stress runs, and what passing them means.

import type { Criterion } from "./criterion.js";
import type { StressStoreOptions } from "./run-stress.js";
import { LARGE_PAYLOAD_DEFAULTS, PARALLEL_DEFAULTS, type PressureOptions, type StressConfig } from "./stress-config.js";

/** A stress run that has a name. */
export interface StressConfiguration {
  readonly config: StressConfig;
  readonly criteria: readonly Criterion[];
  /** How the store must be opened for it, where that matters. */
  readonly store?: StressStoreOptions;
}

const KiB = 1_024;

const allSucceed: Criterion = { metric: "successRate", is: "at least", value: 100, counts: "pass" };
const someComplete: Criterion = { metric: "completed", is: "above", value: 0, counts: "pass" };
const noneFails: Criterion = { metric: "failed", is: "at most", value: 0, counts: "pass" };
const noInfrastructureFailure: Criterion = { metric: "failedInfrastructure", is: "at most", value: 0, counts: "pass" };
/** With fewer slots the activities' own delay allows less. */
const highPerformance: readonly Criterion[] = [
  { metric: "orchPerSec", is: "at least", value: 50, counts: "target" },
  { metric: "avgLatencyMs", is: "below", value: 100, counts: "target" },
];

function faster(than: number): Criterion {
  return { metric: "orchPerSec", is: "above", value: than, counts: "pass" };
}

function slots(count: number): PressureOptions {
  return { orchestrationConcurrency: count, workerConcurrency: count };
}

/** Every named configuration. Those of PostgreSQL run on any other store as well. */
export const STRESS_CONFIGURATIONS = Object.freeze({
  /** Whether the harness works at all, in a second. */
  "infra-check": {
    config: { maxConcurrent: 1, durationMs: 1_000, tasksPerInstance: 2, activityDelayMs: 5, ...slots(1) },
    criteria: [someComplete, noneFails],
  },
  "infra-check-large-payload": {
    config: {
      workload: "large-payload",
      maxConcurrent: 2,
      durationMs: 1_000,
      activityDelayMs: 5,
      orchestrationConcurrency: 1,
      workerConcurrency: 1,
      smallBytes: 5 * KiB,
      mediumBytes: 10 * KiB,
      largeBytes: 20 * KiB,
      activityCount: 10,
      subOrchestrations: 2,
    },
    criteria: [someComplete, noneFails, { metric: "successRate", is: "above", value: 90, counts: "pass" }],
  },
  "ci-quick": {
    config: { maxConcurrent: 5, durationMs: 2_000, tasksPerInstance: 2, activityDelayMs: 5, ...slots(1) },
    criteria: [allSucceed],
  },
  baseline: {
    config: { ...PARALLEL_DEFAULTS, ...slots(1) },
    criteria: [
      allSucceed,
      { metric: "orchPerSec", is: "at least", value: 10, onlyOn: "sqlite-file", counts: "pass" },
      { metric: "avgLatencyMs", is: "below", value: 200, counts: "pass" },
    ],
  },
  concurrency: {
    config: { ...PARALLEL_DEFAULTS, ...slots(2) },
    criteria: [
      allSucceed,
      { metric: "orchPerSec", is: "at least", value: 1.3, timesThatOf: "baseline", counts: "pass" },
      { metric: "orchPerSec", is: "at least", value: 15, counts: "pass" },
    ],
  },
  "large-payload": { config: LARGE_PAYLOAD_DEFAULTS, criteria: [allSucceed] },
  "sqlite-suite-1-1": { config: { ...PARALLEL_DEFAULTS, durationMs: 30_000, ...slots(1) }, criteria: [allSucceed] },
  "sqlite-suite-2-2": { config: { ...PARALLEL_DEFAULTS, durationMs: 30_000, ...slots(2) }, criteria: [allSucceed] },
  "pg-light": {
    config: { maxConcurrent: 10, durationMs: 5_000, tasksPerInstance: 3, activityDelayMs: 5, ...slots(2) },
    criteria: [allSucceed, noInfrastructureFailure, faster(1)],
  },
  "pg-standard": {
    config: { ...PARALLEL_DEFAULTS, ...slots(2) },
    criteria: [allSucceed, noInfrastructureFailure],
  },
  "pg-high-concurrency": {
    config: { ...PARALLEL_DEFAULTS, maxConcurrent: 50, durationMs: 30_000, tasksPerInstance: 10, ...slots(4) },
    criteria: [allSucceed, noInfrastructureFailure, faster(2)],
  },
  "pg-pool-limits": {
    config: { ...PARALLEL_DEFAULTS, maxConcurrent: 30, ...slots(4) },
    criteria: [allSucceed],
    store: { maxConnections: 5 },
  },
  "pg-long": {
    config: { ...PARALLEL_DEFAULTS, durationMs: 300_000, ...slots(2) },
    criteria: [allSucceed, faster(1.5)],
  },
  "pg-stress": { config: { ...PARALLEL_DEFAULTS, ...slots(8) }, criteria: [allSucceed, ...highPerformance] },
} satisfies Record<string, StressConfiguration>);

/** The names of the configurations. */
export type StressConfigurationName = keyof typeof STRESS_CONFIGURATIONS;
