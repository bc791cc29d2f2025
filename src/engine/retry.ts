// engine/retry.ts — an activity tried again by the orchestration: every attempt and every pause is in the history.
//
//   Y1. Only the application's failures are tried again; whatever else goes wrong ends the call or the orchestration.
//   Y2. A pause of zero creates no timer.
//   Y3. With a timeout, the activity is scheduled before the timer that limits it.

import { durationMs } from "../duration.js";
import { ActivityFailedError, ActivityTimeoutError, InvalidOptionsError } from "../errors.js";
import { checkOptions, integerBetween, isBoolean, isFunction, isObject, oneOf } from "../options.js";
import { race, scoped } from "./combinators.js";
import type { DurableTask } from "./durable-task.js";
import type { Execution } from "./execution.js";
import type { Backoff, OrchestrationContext, RetryPolicy } from "./orchestration-context.js";

const DEFAULT_ATTEMPTS = 3;
const DEFAULT_BACKOFF: Backoff = { kind: "exponential" };
const DEFAULT_BASE_MS = 100;
const DEFAULT_MULTIPLIER = 2;
const DEFAULT_MAX_MS = 30_000;

/** Durations are checked where they are read, in words of their own. */
const unchecked = (): null => null;
const POLICY_CHECKS = {
  maxAttempts: integerBetween(1, Number.MAX_SAFE_INTEGER),
  backoff: isObject,
  timeout: unchecked,
  retryOnTimeout: isBoolean,
  shouldRetry: isFunction,
};
const BACKOFF_CHECKS = {
  kind: oneOf("none", "fixed", "linear", "exponential"),
  delay: unchecked,
  base: unchecked,
  max: unchecked,
  multiplier: isMultiplier,
};

export function retrying<T>(
  execution: Execution,
  ctx: OrchestrationContext,
  activityName: string,
  policy: RetryPolicy,
  schedule: () => DurableTask<T>,
): DurableTask<T> {
  checkOptions(`retry of activity '${activityName}'`, policy, POLICY_CHECKS);
  const maxAttempts = policy.maxAttempts ?? DEFAULT_ATTEMPTS;
  const pauseMs = pauses(policy.backoff ?? DEFAULT_BACKOFF, activityName);
  const timeoutMs = policy.timeout === undefined ? null : durationMs(policy.timeout, "retry timeout");
  const attempt = (): Promise<T> =>
    timeoutMs === null ? schedule() : limited(execution, ctx, schedule, timeoutMs, activityName);

  return scoped(execution, async () => {
    for (let n = 1; ; n += 1) {
      try {
        return await attempt();
      } catch (error) {
        if (n >= maxAttempts || !isWorthRetrying(error, n, policy)) throw error;
        ctx.trace.warn(`Activity '${activityName}' attempt ${n}/${maxAttempts} failed: ${error.message}. Retrying...`);
        const pause = pauseMs(n);
        if (pause > 0) await ctx.scheduleTimer(pause); // Y2
      }
    }
  });
}

/** The pause after the n-th attempt failed. */
function pauses(backoff: Backoff, activityName: string): (n: number) => number {
  const what = `backoff of activity '${activityName}'`;
  checkOptions(what, backoff, BACKOFF_CHECKS);
  switch (backoff.kind) {
    case "none":
      return () => 0;
    case "fixed": {
      const delayMs = durationMs(backoff.delay, what);
      return () => delayMs;
    }
    case "linear": {
      const baseMs = durationMs(backoff.base, what);
      const maxMs = durationMs(backoff.max ?? DEFAULT_MAX_MS, what);
      return (n) => Math.min(baseMs * n, maxMs);
    }
    case "exponential": {
      const baseMs = durationMs(backoff.base ?? DEFAULT_BASE_MS, what);
      const maxMs = durationMs(backoff.max ?? DEFAULT_MAX_MS, what);
      const multiplier = backoff.multiplier ?? DEFAULT_MULTIPLIER;
      return (n) => Math.trunc(Math.min(baseMs * multiplier ** (n - 1), maxMs));
    }
    default:
      throw new InvalidOptionsError(
        `${what}: option 'kind' is missing; say "none", "fixed", "linear" or "exponential".`,
      );
  }
}

function isMultiplier(value: unknown): string | null {
  return typeof value === "number" && value >= 1 && value <= 1_000 ? null : "must be a number from 1 to 1000";
}

async function limited<T>(
  execution: Execution,
  ctx: OrchestrationContext,
  schedule: () => DurableTask<T>,
  timeoutMs: number,
  activityName: string,
): Promise<T> {
  const branches = [schedule(), ctx.scheduleTimer(timeoutMs)]; // Y3
  const first = (await race(execution, branches)) as { readonly index: number; readonly value: T };
  if (first.index === 1) throw new ActivityTimeoutError(activityName, timeoutMs);
  return first.value;
}

function isWorthRetrying(error: unknown, n: number, policy: RetryPolicy): error is Error {
  const isTimeout = error instanceof ActivityTimeoutError;
  if (!(error instanceof ActivityFailedError || (isTimeout && policy.retryOnTimeout === true))) return false; // Y1
  return policy.shouldRetry?.(error, n) ?? true;
}
