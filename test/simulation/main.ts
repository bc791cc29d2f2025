// test/simulation/main.ts — `npm run simulate -- --seeds 500 [--from N] [--first]`; `--seed N` repeats one, with a trace.
// `--store memory|sqlite|sqlite-shared`: where everything is kept; in memory unless told otherwise.
// `--first`: ends with the first seed that goes wrong.

import { parseArgs } from "node:util";
import { type SimulationResult, simulate } from "./simulation.js";
import { STORES, type StoreKind } from "./store.js";

const { values } = parseArgs({
  options: {
    seeds: { type: "string" },
    from: { type: "string" },
    seed: { type: "string" },
    first: { type: "boolean" },
    store: { type: "string" },
  },
});

const store = storeKind(values.store ?? "memory");
if (values.seed !== undefined) {
  const trace = (line: string): void => void process.stdout.write(`${line}\n`);
  const result = await simulate({ seed: wholeNumber("seed", values.seed), store, trace });
  tell(result);
  process.exitCode = result.problems.length === 0 ? 0 : 1;
} else {
  await simulateMany(wholeNumber("from", values.from ?? "1"), wholeNumber("seeds", values.seeds ?? "500"));
}

async function simulateMany(from: number, count: number): Promise<void> {
  const beganAt = performance.now();
  const totals = { steps: 0, instances: 0, kills: 0, virtualMs: 0 };
  let failed = 0;
  let done = 0;
  for (let seed = from; seed < from + count; seed += 1) {
    const result = await simulate({ seed, store });
    done += 1;
    for (const name of Object.keys(totals) as (keyof typeof totals)[]) totals[name] += result[name];
    if (result.problems.length === 0) continue;
    failed += 1;
    tell(result);
    if (values.first === true) break;
  }
  const seconds = (performance.now() - beganAt) / 1_000;
  const { steps, instances, kills, virtualMs } = totals;
  process.stdout.write(
    `${done} seeds from ${from} in ${seconds.toFixed(1)} s: ${instances} instances, ${steps} steps, ${kills} kills, ` +
      `${Math.round(virtualMs / 3_600_000)} hours of virtual time; ${failed} seeds failed.\n`,
  );
  process.exitCode = failed === 0 ? 0 : 1;
}

function tell({ seed, problems }: SimulationResult): void {
  for (const problem of problems) process.stdout.write(`seed ${seed}: ${problem}\n`);
}

function wholeNumber(name: string, text: string): number {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  process.stderr.write(`--${name} must be a whole number, not '${text}'.\n`);
  process.exit(2);
}

function storeKind(name: string): StoreKind {
  const kind = STORES.find((known) => known === name);
  if (kind !== undefined) return kind;
  process.stderr.write(`--store must be one of ${STORES.join(", ")}, not '${name}'.\n`);
  process.exit(2);
}
