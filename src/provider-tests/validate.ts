// provider-tests/validate.ts — runs the suite on a provider, without any test runner.
//
//   V1. Every case gets a result: passed, failed with its error, or skipped with a reason.
//   V2. A case that checks nothing, does not end, or cannot close what it opened has failed.

import { systemClock } from "../clock.js";
import { InvalidOptionsError } from "../errors.js";
import { checkOptions, integerBetween, isFunction } from "../options.js";
import { CaseContext, NotApplicable } from "./case-context.js";
import { CATEGORIES } from "./cases/index.js";
import { checkFactory } from "./check-factory.js";
import { BrokenPromiseError } from "./checks.js";
import type { Category, ProviderCase, ProviderFactory } from "./provider-case.js";

/** What a case came to. */
export type CaseOutcome =
  | { readonly kind: "passed" }
  | { readonly kind: "failed"; readonly error: unknown }
  | { readonly kind: "skipped"; readonly reason: string };

/** One case, and what it came to. */
export interface CaseResult {
  readonly category: string;
  readonly id: string;
  readonly promise: string;
  readonly outcome: CaseOutcome;
  readonly durationMs: number;
}

/** What all cases came to, in their order. */
export interface ValidationReport {
  readonly results: readonly CaseResult[];
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** How the suite is run. */
export interface ValidateOptions {
  /** Names of the categories to run. @default all */
  readonly categories?: readonly string[];
  /** How many cases run at once. @default 1 in virtual time, 8 in real time */
  readonly concurrency?: number;
  /** How long one case may take, in real time. @default 30000 */
  readonly caseTimeoutMs?: number;
  /** Told of every result as it comes. @default nobody is */
  readonly onResult?: (result: CaseResult) => void;
}

/** Many times what the longest case takes, and short enough to wait for. */
export const CASE_TIMEOUT_MS = 30_000;

/** In virtual time a case only computes; in real time it mostly waits. */
const CONCURRENCY = Object.freeze({ virtual: 1, real: 8 });

const OPTION_CHECKS = {
  categories: (value: unknown) =>
    Array.isArray(value) && value.length > 0 ? null : "must be an array of at least one name; leave it out for all",
  concurrency: integerBetween(1, 1_000),
  caseTimeoutMs: integerBetween(1, 3_600_000),
  onResult: isFunction,
};

/**
 * Runs the validation suite on a provider and answers with what every case came to. What is wrong with the provider is in
 * the report.
 *
 * @throws DUROXIDE_INVALID_OPTIONS for an option, or a property of the factory, that is unknown or wrong
 * @example
 * const report = await validate({ open: async ({ clock }) => ({ provider: new MemoryProvider({ clock }) }) });
 * if (report.failed > 0) process.exitCode = 1;
 */
export async function validate(factory: ProviderFactory, options: ValidateOptions = {}): Promise<ValidationReport> {
  checkFactory("validate", factory);
  checkOptions("validate", options, OPTION_CHECKS);
  const todo = chosen(options.categories).flatMap((category) => category.cases.map((it) => ({ category, it })));
  const results: CaseResult[] = new Array(todo.length);
  const waiting = todo.entries();
  const work = async (): Promise<void> => {
    for (const [index, { category, it }] of waiting) {
      const result = await runCase(category, it, factory, options.caseTimeoutMs);
      results[index] = result;
      options.onResult?.(result);
    }
  };
  const concurrency = options.concurrency ?? CONCURRENCY[factory.time ?? "virtual"];
  await Promise.all(Array.from({ length: concurrency }, work));
  return report(results);
}

/**
 * Runs one case. Never rejects.
 *
 * @example
 * const [category] = CATEGORIES;
 * const open = async ({ clock }: { clock: Clock }) => ({ provider: new MemoryProvider({ clock }) });
 * for (const it of category?.cases ?? []) report(await runCase(category!, it, { open }));
 */
export async function runCase(
  category: Category,
  it: ProviderCase,
  factory: ProviderFactory,
  timeoutMs: number = CASE_TIMEOUT_MS,
): Promise<CaseResult> {
  const startedAt = systemClock.now();
  const context = new CaseContext(factory);
  const ran = await within(timeoutMs, outcomeOf(it, context), "The case has not ended: a call of the provider hangs.");
  const closed = await within(
    timeoutMs,
    closingOf(context),
    "The provider, or its store, cannot be closed: that hangs.",
  );
  const outcome = ran.kind === "failed" || closed.kind !== "failed" ? ran : closed; // V2
  const { id, promise } = it;
  return { category: category.name, id, promise, outcome, durationMs: systemClock.now() - startedAt };
}

async function outcomeOf(it: ProviderCase, context: CaseContext): Promise<CaseOutcome> {
  try {
    await it.run(context);
  } catch (error) {
    if (error instanceof NotApplicable) return { kind: "skipped", reason: error.message };
    return { kind: "failed", error };
  }
  if (context.count > 0) return { kind: "passed" };
  return { kind: "failed", error: new BrokenPromiseError("The case checked nothing.") }; // V2
}

async function closingOf(context: CaseContext): Promise<CaseOutcome> {
  try {
    await context.close();
    return { kind: "passed" };
  } catch (error) {
    return { kind: "failed", error };
  }
}

/** The outcome, or the failure to come to one. */
function within(timeoutMs: number, outcome: Promise<CaseOutcome>, otherwise: string): Promise<CaseOutcome> {
  return new Promise((resolve) => {
    const error = new BrokenPromiseError(`${otherwise} (${timeoutMs} ms)`);
    const timer = systemClock.setTimer(timeoutMs, () => resolve({ kind: "failed", error }));
    void outcome.then((value) => {
      timer.clear();
      resolve(value);
    });
  });
}

function chosen(names: readonly string[] | undefined): readonly Category[] {
  if (names === undefined) return CATEGORIES;
  return names.map((name) => {
    const found = CATEGORIES.find((category) => category.name === name);
    if (found !== undefined) return found;
    const known = CATEGORIES.map((category) => category.name).join(", ");
    throw new InvalidOptionsError(`validate: there is no category '${name}'. There are: ${known}.`);
  });
}

function report(results: readonly CaseResult[]): ValidationReport {
  const count = (kind: CaseOutcome["kind"]) => results.filter(({ outcome }) => outcome.kind === kind).length;
  return { results, passed: count("passed"), failed: count("failed"), skipped: count("skipped") };
}
