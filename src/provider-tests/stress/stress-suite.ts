// provider-tests/stress/stress-suite.ts — several stress runs, one after the other, and whether they passed.
//
// A run passes when every instance completed and it meets all criteria that count. Targets are only told.

import { STRESS_CONFIGURATIONS, type StressConfiguration, type StressConfigurationName } from "./configurations.js";
import { judge, type Verdict } from "./criterion.js";
import { type OpenStressStore, runStress, type StressResult } from "./run-stress.js";

/** One run to be made. */
export interface PlannedRun {
  /** What the store is called in the report. */
  readonly store: string;
  readonly open: OpenStressStore;
  readonly configuration: StressConfigurationName;
  /** Instead of the configuration's own. */
  readonly durationMs?: number;
}

export interface StressRun {
  readonly store: string;
  readonly configuration: StressConfigurationName;
  readonly result: StressResult;
  readonly verdicts: readonly Verdict[];
  readonly isPassed: boolean;
}

export interface StressReport {
  readonly runs: readonly StressRun[];
  readonly isPassed: boolean;
}

type Made = Pick<StressRun, "store" | "configuration" | "result">;

/**
 * Makes the runs in their order. `onBegin` is told of each before it is made.
 *
 * @throws DUROXIDE_INVALID_OPTIONS for a duration that is out of range
 * @example
 * const open = async () => ({ provider: new MemoryProvider() });
 * const report = await runStressSuite([{ store: "memory", open, configuration: "ci-quick" }]);
 * process.stdout.write(formatStressReport(report));
 */
export async function runStressSuite(
  plan: readonly PlannedRun[],
  onBegin: (run: PlannedRun) => void = () => {},
): Promise<StressReport> {
  const made: Made[] = [];
  for (const run of plan) {
    onBegin(run);
    const { config } = configurationOf(run);
    const timed = run.durationMs === undefined ? config : { ...config, durationMs: run.durationMs };
    made.push({ ...run, result: await runStress(run.open, timed) });
  }
  return judged(made);
}

/** The verdicts on runs that were made. */
export function judged(made: readonly Made[]): StressReport {
  const runs = made.map(({ store, configuration, result }): StressRun => {
    const onSameStore = made.filter((other) => other.store === store);
    const reference = (name: string) => onSameStore.find((other) => other.configuration === name)?.result ?? null;
    const verdicts = configurationOf({ configuration })
      .criteria.filter(({ onlyOn }) => onlyOn === undefined || onlyOn === store)
      .map((criterion) => judge(criterion, result, reference));
    const isPassed = result.successRate === 100 && verdicts.every((verdict) => passes(verdict));
    return { store, configuration, result, verdicts, isPassed };
  });
  return { runs, isPassed: runs.every((run) => run.isPassed) };
}

function configurationOf({ configuration }: Pick<Made, "configuration">): StressConfiguration {
  return STRESS_CONFIGURATIONS[configuration];
}

function passes({ criterion, isMet }: Verdict): boolean {
  return isMet || criterion.counts === "target";
}
