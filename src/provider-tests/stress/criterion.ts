// provider-tests/stress/criterion.ts — what a result must be like to pass, as data.

import type { StressResult } from "./run-stress.js";

/** What can be asked of a result. */
export type StressMetric =
  | "successRate"
  | "completed"
  | "failed"
  | "failedInfrastructure"
  | "orchPerSec"
  | "avgLatencyMs";

/** One condition on one number of a result. */
export interface Criterion {
  readonly metric: StressMetric;
  readonly is: "above" | "at least" | "at most" | "below";
  readonly value: number;
  /** The value is a factor: of the same number of this configuration's run on the same store. */
  readonly timesThatOf?: string;
  /** Asked of this store only, by the name that the plan gives it. */
  readonly onlyOn?: string;
  /** `pass`: a run that does not meet it has not passed. `target`: it is only told. */
  readonly counts: "pass" | "target";
}

/** What became of a criterion. `limit` is null where the run that it compares with was not made: it is then not judged. */
export interface Verdict {
  readonly criterion: Criterion;
  readonly actual: number;
  readonly limit: number | null;
  readonly isMet: boolean;
}

/** `reference`: the result of another configuration on the same store; null: there is none. */
export function judge(
  criterion: Criterion,
  result: StressResult,
  reference: (configuration: string) => StressResult | null,
): Verdict {
  const { metric, value, timesThatOf } = criterion;
  const actual = result[metric];
  const compared = timesThatOf === undefined ? null : reference(timesThatOf);
  const limit = timesThatOf === undefined ? value : compared === null ? null : value * compared[metric];
  return { criterion, actual, limit, isMet: limit === null || holds(criterion.is, actual, limit) };
}

function holds(is: Criterion["is"], actual: number, limit: number): boolean {
  switch (is) {
    case "above":
      return actual > limit;
    case "at least":
      return actual >= limit;
    case "at most":
      return actual <= limit;
    case "below":
      return actual < limit;
  }
}
