// bench/lib/measured-process.mjs — what the runner and a measured process agree on.
//
//   M1. One process measures one round of one thing: argv is one JSON object, stdout one line, an array of metrics.
//   M2. A number that was not measured is not printed: a metric that is no finite number is an error.
//   M3. Whatever goes wrong ends the process with a code other than 0, and is told on stderr.

import { quantile } from "../report.mjs";

/**
 * @typedef {{ metric: string, value: number, unit: string }} Metric
 * @typedef {{ kind: "sqlite", durability: "full" | "process-crash", folder: string }
 *   | { kind: "postgres", url: string, schema: string }} StoreSpec
 */

/** @type {(measure: (args: Record<string, unknown>) => Promise<readonly Metric[]>) => Promise<never>} */
export async function runMeasured(measure) {
  try {
    const metrics = await measure(JSON.parse(process.argv[2] ?? "{}"));
    await new Promise((resolve) => process.stdout.write(`${JSON.stringify(metrics)}\n`, resolve));
    process.exit(0);
  } catch (error) {
    console.error(error); // M3
    process.exit(1);
  }
}

/** @returns {Metric} */
export function metric(name, value, unit) {
  if (!Number.isFinite(value)) throw new Error(`${name} was not measured: ${value}`); // M2
  return { metric: name, value, unit };
}

/** @returns {Metric[]} */
export function latencyMetrics(latenciesMs, name = "latency") {
  return [
    metric(`${name}-p50`, quantile(latenciesMs, 0.5), "ms"),
    metric(`${name}-p99`, quantile(latenciesMs, 0.99), "ms"),
    metric(`${name}-max`, quantile(latenciesMs, 1), "ms"),
  ];
}

/** A benchmark of wrong results measures nothing. */
export function expectEqual(actual, expected, what) {
  if (actual !== expected) throw new Error(`${what} is ${JSON.stringify(actual)}, not ${JSON.stringify(expected)}`);
}
