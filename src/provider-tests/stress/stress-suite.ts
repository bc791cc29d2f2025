// provider-tests/stress/stress-suite.ts — several stress runs, one after the other, and whether they passed.
//
// A run passes when every instance completed and it meets all criteria that count. Targets are only told.

import { InvalidOptionsError } from "../../errors.js";
import { STRESS_CONFIGURATIONS, type StressConfiguration, type StressConfigurationName } from "./configurations.js";
import { judge, type Verdict } from "./criterion.js";
import { type OpenStressStore, runStress, type StressResult } from "./run-stress.js";
import { resolveStressConfig, type StressConfig } from "./stress-config.js";

/** One run to be made. */
export interface PlannedRun {
  /** What the store is called in the report. */
  readonly store: string;
  readonly open: OpenStressStore;
  readonly configuration: StressConfigurationName;
  /** Instead of the configuration's own. */
  readonly durationMs?: number;
}

/** One run that was made, and whether it passed. */
export interface StressRun {
  readonly store: string;
  readonly configuration: StressConfigurationName;
  readonly result: StressResult;
  readonly verdicts: readonly Verdict[];
  readonly isPassed: boolean;
}

/** All runs, and whether all of them passed. */
export interface StressReport {
  readonly runs: readonly StressRun[];
  readonly isPassed: boolean;
}

type Made = Pick<StressRun, "store" | "configuration" | "result">;

/**
 * Makes the runs in their order. `onBegin` is told of each before it is made.
 *
 * @throws DUROXIDE_INVALID_OPTIONS for a configuration that there is not, or a duration that is out of range; no run is
 *   made then
 * @example
 * const open = async () => ({ provider: new MemoryProvider() });
 * const report = await runStressSuite([{ store: "memory", open, configuration: "ci-quick" }]);
 * process.stdout.write(formatStressReport(report));
 */
export async function runStressSuite(
  plan: readonly PlannedRun[],
  onBegin: (run: PlannedRun) => void = () => {},
): Promise<StressReport> {
  const runs = plan.map((run) => ({ run, ...configurationOf(run), config: timed(run) }));
  for (const { config } of runs) resolveStressConfig(config); // A mistake in the last is told before the first is made.
  const made: Made[] = [];
  for (const { run, config, store } of runs) {
    onBegin(run);
    made.push({ ...run, result: await runStress(run.open, config, store) });
  }
  return judged(made);
}

function timed(run: PlannedRun): StressConfig {
  const { config } = configurationOf(run);
  return run.durationMs === undefined ? config : { ...config, durationMs: run.durationMs };
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

/** @throws InvalidOptionsError */
function configurationOf({ configuration }: Pick<Made, "configuration">): StressConfiguration {
  if (Object.hasOwn(STRESS_CONFIGURATIONS, configuration)) return STRESS_CONFIGURATIONS[configuration];
  const known = Object.keys(STRESS_CONFIGURATIONS).join(", ");
  throw new InvalidOptionsError(`runStressSuite: there is no configuration '${configuration}'. There are: ${known}.`);
}

function passes({ criterion, isMet }: Verdict): boolean {
  return isMet || criterion.counts === "target";
}
