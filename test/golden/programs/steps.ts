// test/golden/programs/steps.ts — activities one after the other, retried, timed, and the calls that the engine answers.
//
// FROZEN. Never change a program once it is recorded: its histories are those of instances that still run somewhere. Add a
// new one instead.

import { activity, orchestration } from "../../../src/define.js";
import { ActivityFailedError, ActivityTimeoutError } from "../../../src/errors.js";
import { double, fail, stuck } from "../activities.js";
import { type Golden, toItsEnd } from "../golden.js";

const sequence = orchestration("Sequence", async (ctx, n: number) => {
  let value = n;
  for (let step = 0; step < 4; step += 1) value = await ctx.scheduleActivity(double, value);
  return value;
});

const nothing = orchestration("Nothing", async () => {});

const caught = orchestration("Caught", async (ctx) => {
  try {
    return await ctx.scheduleActivity(fail, "no");
  } catch (error) {
    const undone = await ctx.scheduleActivity(double, 21);
    return { message: (error as Error).message, isTyped: error instanceof ActivityFailedError, undone };
  } finally {
    ctx.setCustomStatus("cleaned up");
  }
});

const retryFixed = orchestration("RetryFixed", async (ctx) => {
  const retry = { maxAttempts: 3, backoff: { kind: "fixed", delay: "30s" } } as const;
  return ctx.scheduleActivity(fail, "again", { retry }).catch((error: Error) => error.message);
});

const retryExponential = orchestration("RetryExponential", async (ctx) => {
  const backoff = { kind: "exponential", base: "1s", multiplier: 3, max: "5s" } as const;
  const retry = { maxAttempts: 4, backoff };
  return ctx.scheduleActivity("FailTwice", "x", { retry });
});

const retryLinear = orchestration("RetryLinear", async (ctx) => {
  const retry = { maxAttempts: 3, backoff: { kind: "linear", base: 100 } } as const;
  return ctx.all([
    ctx.scheduleActivity("FailTwice", "a", { retry }),
    ctx.scheduleActivity("FailTwice", "b", { retry: { maxAttempts: 5, backoff: { kind: "none" } } }),
  ]);
});

const retryTimeout = orchestration("RetryTimeout", async (ctx) => {
  const retry = {
    maxAttempts: 2,
    timeout: "1m",
    retryOnTimeout: true,
    backoff: { kind: "fixed", delay: 500 },
  } as const;
  try {
    return await ctx.scheduleActivity(stuck, undefined, { retry });
  } catch (error) {
    return error instanceof ActivityTimeoutError ? "too slow, twice" : "?";
  }
});

const retryChoosy = orchestration("RetryChoosy", async (ctx) => {
  const shouldRetry = (error: Error, n: number): boolean => n < 2 && error.message.startsWith("maybe");
  return ctx
    .scheduleActivity(fail, "maybe", { retry: { maxAttempts: 9, shouldRetry, backoff: { kind: "none" } } })
    .catch((error: Error) => error.message);
});

const timers = orchestration("Timers", async (ctx) => {
  const order: string[] = [];
  const note = async (delay: string | number): Promise<void> => {
    await ctx.scheduleTimer(delay);
    order.push(String(delay));
  };
  await Promise.all([note("2h"), note("1h"), note(0), note("90d")]);
  return order;
});

const systemCalls = orchestration("SystemCalls", async (ctx) => {
  const [now, guid] = await Promise.all([ctx.utcNow(), ctx.newGuid()]);
  await ctx.scheduleTimer("1d");
  const later = await ctx.utcNow();
  const raced = await ctx.race([ctx.utcNow(), ctx.scheduleActivity(double, 1)]);
  return { passed: later - now, guidLength: guid.length, other: (await ctx.newGuid()) === guid, raced: raced.index };
});

const sessionsAndTags = orchestration("SessionsAndTags", async (ctx) => {
  const first = await ctx.scheduleActivity(double, 1, { sessionId: "sitzung ü" });
  const both = await ctx.all([
    ctx.scheduleActivity(double, first, { sessionId: "sitzung ü", tag: "gpu" }),
    ctx.scheduleActivity(double, first, { tag: "gpu" }),
  ]);
  return both;
});

function failTwice() {
  const calls = new Map<string, number>();
  return activity("FailTwice", (_ctx, key: string) => {
    const n = (calls.get(key) ?? 0) + 1;
    calls.set(key, n);
    if (n < 3) throw new Error(`attempt ${n} of ${key}`);
    return `${key} at last`;
  });
}

const activities = [double, fail, stuck];

export const steps: Readonly<Record<string, Golden>> = {
  sequence: { orchestrations: [sequence], activities, play: toItsEnd("sequence", "Sequence", 1) },
  nothing: { orchestrations: [nothing], play: toItsEnd("nothing", "Nothing") },
  caught: { orchestrations: [caught], activities, play: toItsEnd("caught", "Caught") },
  "retry-fixed": { orchestrations: [retryFixed], activities, play: toItsEnd("retry-fixed", "RetryFixed") },
  "retry-exponential": {
    orchestrations: [retryExponential],
    activities: [failTwice()],
    play: toItsEnd("retry-exponential", "RetryExponential"),
  },
  "retry-linear": {
    orchestrations: [retryLinear],
    activities: [failTwice()],
    play: toItsEnd("retry-linear", "RetryLinear"),
  },
  "retry-timeout": { orchestrations: [retryTimeout], activities, play: toItsEnd("retry-timeout", "RetryTimeout") },
  "retry-choosy": { orchestrations: [retryChoosy], activities, play: toItsEnd("retry-choosy", "RetryChoosy") },
  timers: { orchestrations: [timers], play: toItsEnd("timers", "Timers") },
  "system-calls": { orchestrations: [systemCalls], activities, play: toItsEnd("system-calls", "SystemCalls") },
  "sessions-and-tags": {
    orchestrations: [sessionsAndTags],
    activities,
    options: { tagFilter: { kind: "default-and", tags: ["gpu"] } },
    play: toItsEnd("sessions-and-tags", "SessionsAndTags"),
  },
};
