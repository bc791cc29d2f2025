// test/golden/activities.ts — activities that golden orchestrations call by these definitions.
//
// FROZEN, as to their names: histories have recorded them. What they do matters only while a history is recorded.

import { activity } from "../../src/define.js";

export const echo = activity("Echo", (_ctx, value: unknown) => value);

export const double = activity("Double", (_ctx, n: number) => n * 2);

export const fail = activity("Fail", (ctx, why: string): string => {
  throw new Error(`${why}, as activity ${ctx.activityId}`);
});

/** Ends only when it is cancelled. */
export const stuck = activity("Stuck", (ctx) => {
  return new Promise<void>((resolve) => ctx.signal.addEventListener("abort", () => resolve()));
});
