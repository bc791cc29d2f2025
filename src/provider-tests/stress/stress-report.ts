// provider-tests/stress/stress-report.ts — what the runs brought, as text: the comparison, what they cost, what they met.

import type { StressMetric, Verdict } from "./criterion.js";
import type { StressReport, StressRun } from "./stress-suite.js";

/**
 * The whole report for a terminal. Its last line is `N configurations, all at 100 %`, or what failed.
 *
 * @example
 * const open = async () => ({ provider: await MyProvider.open() });
 * const pressed = await runStressSuite([{ store: "my store", open, configuration: "ci-quick" }]);
 * process.stdout.write(`${formatStressReport(pressed)}\n`);
 */
export function formatStressReport(report: StressReport): string {
  const { runs } = report;
  return [formatStressTable(runs), failureLines(runs), resourceTable(runs), criteriaLines(runs), closingLine(report)]
    .filter((part) => part !== "")
    .join("\n\n");
}

/**
 * One line a run, under a line of headings.
 *
 * @example
 * const open = async () => ({ provider: await MyProvider.open() });
 * const { runs } = await runStressSuite([{ store: "my store", open, configuration: "ci-quick" }]);
 * process.stdout.write(`${formatStressTable(runs)}\n`);
 */
export function formatStressTable(runs: readonly StressRun[]): string {
  return table([
    [
      "Provider",
      "Config",
      "Completed",
      "Failed",
      "Infra",
      "Config",
      "App",
      "Success %",
      "Orch/s",
      "Activity/s",
      "Avg latency",
    ],
    ...runs.map(({ store, configuration, result }) => [
      store,
      configuration,
      `${result.completed}`,
      `${result.failed}`,
      `${result.failedInfrastructure}`,
      `${result.failedConfiguration}`,
      `${result.failedApplication}`,
      percent(result.successRate),
      result.orchPerSec.toFixed(1),
      result.activitiesPerSec.toFixed(1),
      `${result.avgLatencyMs.toFixed(1)} ms`,
    ]),
  ]);
}

function resourceTable(runs: readonly StressRun[]): string {
  return table([
    ["Provider", "Config", "RSS average", "RSS peak", "CPU average", "CPU peak"],
    ...runs.map(({ store, configuration, result: { resources } }) => [
      store,
      configuration,
      mebibytes(resources.rssAverageBytes),
      mebibytes(resources.rssPeakBytes),
      `${resources.cpuAveragePercent.toFixed(0)} %`,
      `${resources.cpuPeakPercent.toFixed(0)} %`,
    ]),
  ]);
}

function failureLines(runs: readonly StressRun[]): string {
  return runs.flatMap((run) => run.result.failures.map((failure) => `${nameOf(run)}: ${failure}`)).join("\n");
}

function criteriaLines(runs: readonly StressRun[]): string {
  const lines = runs.flatMap((run) => run.verdicts.map((verdict) => `${nameOf(run)}: ${inWords(verdict)}`));
  return lines.join("\n");
}

const METRICS: Readonly<Record<StressMetric, string>> = {
  successRate: "success %",
  completed: "completed",
  failed: "failed",
  failedInfrastructure: "infrastructure failures",
  orchPerSec: "orch/s",
  avgLatencyMs: "average latency in ms",
};

function inWords({ criterion, actual, limit, isMet }: Verdict): string {
  const { metric, is, value, timesThatOf, counts } = criterion;
  const wanted = timesThatOf === undefined ? `${value}` : `${value} times that of ${timesThatOf}`;
  const outcome = limit === null ? `not judged: ${timesThatOf} was not run` : isMet ? "met" : "not met";
  const kind = counts === "target" ? "target: " : "";
  return `${kind}${METRICS[metric]} ${is} ${wanted}: ${outcome} (${rounded(actual)})`;
}

function closingLine({ runs }: StressReport): string {
  const below = runs.filter(({ result }) => result.successRate !== 100);
  const missed = runs.filter((run) => !run.isPassed && run.result.successRate === 100);
  const names = below.map((run) => `${nameOf(run)} (${percent(run.result.successRate)} %)`).join(", ");
  const success = below.length === 0 ? "all at 100 %" : `${below.length} below 100 %: ${names}`;
  const unmet = missed.length === 0 ? "" : `; criteria not met by ${missed.map(nameOf).join(", ")}`;
  return `${runs.length} ${runs.length === 1 ? "configuration" : "configurations"}, ${success}${unmet}`;
}

function nameOf({ store, configuration }: StressRun): string {
  return `${store} ${configuration}`;
}

/** 99.99 % is not 100 %. */
function percent(value: number): string {
  return (Math.floor(value * 100) / 100).toFixed(2);
}

function rounded(value: number): string {
  return `${Math.round(value * 10) / 10}`;
}

function mebibytes(bytes: number): string {
  return `${(bytes / 1_048_576).toFixed(0)} MiB`;
}

/** Columns as wide as their widest cell: the first two, which are names, to the left, the others to the right. */
function table(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const line = (row: readonly string[]): string =>
    row.map((cell, column) => (column < 2 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!))).join("  ");
  const [headings, ...body] = rows.map(line);
  return [headings, "-".repeat(headings!.length), ...body].join("\n");
}
