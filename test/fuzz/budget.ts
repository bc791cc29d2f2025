// test/fuzz/budget.ts — how often properties are tried, from which seed, and what must hold after each of them.
//
// FUZZ_RUNS=20 tries everything twenty times as often, FUZZ_SEED=7 tries other values. A failure prints seed and path.

import { afterEach, expect, vi } from "vitest";

const FACTOR = positive("FUZZ_RUNS", 1);
const SEED = positive("FUZZ_SEED", 20_261_116);

/** Minutes for what takes seconds: other tests run at the same time. */
vi.setConfig({ testTimeout: 180_000 * Math.max(1, FACTOR) });

/** For `fc.assert`. All files together take less than a minute by default. */
export function tries(numRuns: number): { readonly numRuns: number; readonly seed: number } {
  return { numRuns: Math.ceil(numRuns * FACTOR), seed: SEED };
}

/** What every object of the process inherits from. */
const PROTOTYPES = [Object.prototype, Array.prototype, Function.prototype, String.prototype] as const;
const untouched = PROTOTYPES.map((prototype) => Reflect.ownKeys(prototype));

afterEach(() => {
  expect(PROTOTYPES.map((prototype) => Reflect.ownKeys(prototype))).toEqual(untouched);
});

function positive(name: string, byDefault: number): number {
  const text = process.env[name];
  const value = text === undefined ? byDefault : Number(text);
  if (value > 0 && Number.isFinite(value)) return value;
  throw new Error(`${name} must be a positive number, not '${text}'.`);
}
