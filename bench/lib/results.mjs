// bench/lib/results.mjs — what was measured, round by round, and the medians of it.

/** @typedef {{ workload: string, store: string, metric: string, value: number, unit: string, rounds: number[], system: string, version: string }} Result */

export class Results {
  /** @type {Map<string, Result>} */
  #results = new Map();

  /** Takes what one round of an experiment found. */
  add({ workload, store, system, version }, metrics) {
    for (const { metric, value, unit } of metrics) {
      const key = keyOf(workload.name, store, system, metric);
      const known = this.#results.get(key);
      const rounds = [...(known?.rounds ?? []), value];
      const median = medianOf(rounds);
      this.#results.set(key, { workload: workload.name, store, metric, value: median, unit, rounds, system, version });
    }
  }

  /** The median of the rounds; undefined if it was not measured. */
  value(workload, store, system, metric) {
    return this.#results.get(keyOf(workload, store, system, metric))?.value;
  }

  /** In the order in which they were first measured. */
  all() {
    return [...this.#results.values()];
  }
}

function keyOf(...parts) {
  return JSON.stringify(parts);
}

/** Of an even number, the mean of the two in the middle. */
function medianOf(numbers) {
  const sorted = numbers.toSorted((one, other) => one - other);
  const middle = sorted.length / 2;
  return (sorted[Math.floor(middle - 0.5)] + sorted[Math.floor(middle)]) / 2;
}
