// provider-tests/stress/stress-config.ts — how hard a stress run presses, and what it assumes otherwise.

import { InvalidOptionsError } from "../../errors.js";
import { checkOptions, integerBetween, type OptionCheck, oneOf } from "../../options.js";

/** What both workloads have in common. */
export interface PressureOptions {
  /** Instances under way at once. */
  readonly maxConcurrent?: number;
  /** How long new ones are started. */
  readonly durationMs?: number;
  /** How long every activity takes. */
  readonly activityDelayMs?: number;
  /** Slots of the runtime, as in its options. */
  readonly orchestrationConcurrency?: number;
  readonly workerConcurrency?: number;
  /** After which an instance counts as failed. */
  readonly waitTimeoutMs?: number;
}

/** Many small instances: each fans out to activities and joins them. */
export interface ParallelStressConfig extends PressureOptions {
  /** @default "parallel" */
  readonly workload?: "parallel";
  /** Activities of every instance. @default 5 */
  readonly tasksPerInstance?: number;
}

/** Few large ones: long histories with large inputs and outputs, and sub-orchestrations. */
export interface LargePayloadStressConfig extends PressureOptions {
  readonly workload: "large-payload";
  /** @default 10 KiB */
  readonly smallBytes?: number;
  /** @default 50 KiB */
  readonly mediumBytes?: number;
  /** @default 100 KiB */
  readonly largeBytes?: number;
  /** Activities that run one after the other, before the sub-orchestrations. @default 20 */
  readonly activityCount?: number;
  /** @default 5 */
  readonly subOrchestrations?: number;
}

/** How a store is pressed. All of it optional; the defaults are those of the workload. */
export type StressConfig = ParallelStressConfig | LargePayloadStressConfig;

/** A configuration of small instances, filled in. */
export type ResolvedParallelConfig = Required<ParallelStressConfig>;
/** A configuration of large instances, filled in. */
export type ResolvedLargePayloadConfig = Required<LargePayloadStressConfig>;
/** How a store was pressed: a configuration, filled in. */
export type ResolvedStressConfig = ResolvedParallelConfig | ResolvedLargePayloadConfig;

const KiB = 1_024;

/** As the original's stress tests, so that figures can be compared. */
export const PARALLEL_DEFAULTS: ResolvedParallelConfig = Object.freeze({
  workload: "parallel",
  maxConcurrent: 20,
  durationMs: 10_000,
  tasksPerInstance: 5,
  activityDelayMs: 10,
  orchestrationConcurrency: 2,
  workerConcurrency: 2,
  waitTimeoutMs: 60_000,
});

/** Likewise. One slot each: it is the size that presses, not the number. */
export const LARGE_PAYLOAD_DEFAULTS: ResolvedLargePayloadConfig = Object.freeze({
  workload: "large-payload",
  maxConcurrent: 5,
  durationMs: 10_000,
  activityDelayMs: 5,
  orchestrationConcurrency: 1,
  workerConcurrency: 1,
  waitTimeoutMs: 120_000,
  smallBytes: 10 * KiB,
  mediumBytes: 50 * KiB,
  largeBytes: 100 * KiB,
  activityCount: 20,
  subOrchestrations: 5,
});

/** @throws InvalidOptionsError */
export function resolveStressConfig(config: StressConfig): ResolvedStressConfig {
  const isLarge = config?.workload === "large-payload";
  checkOptions("runStress", config, isLarge ? LARGE_PAYLOAD_CHECKS : PARALLEL_CHECKS);
  if (config === undefined) throw new InvalidOptionsError("runStress: a configuration is missing.");
  return config.workload === "large-payload"
    ? { ...LARGE_PAYLOAD_DEFAULTS, ...given(config) }
    : { ...PARALLEL_DEFAULTS, ...given(config) };
}

/** An option that is undefined counts as not given. */
function given<T extends object>(config: T): T {
  return Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined)) as T;
}

const DAY_MS = 86_400_000;
const isCount = integerBetween(1, 100_000);
const isTime = integerBetween(0, DAY_MS);
const isSize = integerBetween(1, 16 * KiB * KiB);

const PRESSURE_CHECKS: Readonly<Record<keyof PressureOptions, OptionCheck>> = {
  maxConcurrent: isCount,
  durationMs: integerBetween(1, DAY_MS),
  activityDelayMs: isTime,
  orchestrationConcurrency: isCount,
  workerConcurrency: isCount,
  waitTimeoutMs: isTime,
};

const isWorkload = oneOf("parallel", "large-payload");

const PARALLEL_CHECKS: Readonly<Record<keyof ParallelStressConfig, OptionCheck>> = {
  ...PRESSURE_CHECKS,
  workload: isWorkload,
  tasksPerInstance: isCount,
};

const LARGE_PAYLOAD_CHECKS: Readonly<Record<keyof LargePayloadStressConfig, OptionCheck>> = {
  ...PRESSURE_CHECKS,
  workload: isWorkload,
  smallBytes: isSize,
  mediumBytes: isSize,
  largeBytes: isSize,
  activityCount: integerBetween(0, 100_000),
  subOrchestrations: integerBetween(0, 100_000),
};
