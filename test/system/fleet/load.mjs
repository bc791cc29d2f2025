// fleet/load.mjs — what the fleet works on: every kind of orchestration by a number, and what it must come to.
//
// Workers register the definitions; the driver computes `expected` by itself, without them. Activities take 20 to 200 ms, and
// answer, by their input alone: a second run of one cannot be told from the first.

import { setTimeout as pause } from "node:timers/promises";
import { activity, orchestration } from "duroxide-ts";

export const tags = ["red", "blue"];

const CHAIN_STEPS = 5;
const FAN_OUT = 5;
const LEGS = 2;
const LEG_STEPS = 2;
const SESSION_STEPS = 4;
/** Two instances each share a session. */
const INSTANCES_PER_SESSION = 2;
const TAGGED_STEPS = 4;
const TIMERS = 3;
const HOPS = 3;
/** Event ids of an activity that is retried: 2, 6, 10. The first two calls fail, in whichever process they run. */
const FLAKY_FAILURES = 2;
const LAST_FLAKY_ID = 6;
const RETRY = { maxAttempts: FLAKY_FAILURES + 1, backoff: { kind: "fixed", delay: 50 } };

const resultOf = (n, step) => n * 100 + step;
const runMs = (n, step) => 20 + ((n * 31 + step * 57) % 181);
const delayMs = (n, step) => 200 + ((n * 97 + step * 613) % 1_801);
const resultsOf = (n, steps) => Array.from({ length: steps }, (_, step) => resultOf(n, step));

const work = activity("Work", async (_ctx, { n, step }) => {
  await pause(runMs(n, step));
  return resultOf(n, step);
});

const flaky = activity("Flaky", async ({ activityId }, { n, step }) => {
  await pause(runMs(n, step));
  if (activityId <= LAST_FLAKY_ID) throw new Error("not yet");
  return resultOf(n, step);
});

async function inSequence(steps, call) {
  const results = [];
  for (let step = 0; step < steps; step += 1) results.push(await call(step));
  return results;
}

const chain = orchestration("Chain", (ctx, n) =>
  inSequence(CHAIN_STEPS, (step) => ctx.scheduleActivity(work, { n, step })),
);

const fanOut = orchestration("FanOut", (ctx, n) =>
  ctx.all(Array.from({ length: FAN_OUT }, (_, step) => ctx.scheduleActivity(work, { n, step }))),
);

const leg = orchestration("Leg", (ctx, { n, leg: number }) =>
  inSequence(LEG_STEPS, (step) => ctx.scheduleActivity(work, { n, step: number * LEG_STEPS + step })),
);
const parent = orchestration("Parent", (ctx, n) =>
  ctx.all(Array.from({ length: LEGS }, (_, number) => ctx.scheduleSubOrchestration(leg, { n, leg: number }))),
);

const inSession = orchestration("InSession", (ctx, { n, sessionId }) =>
  inSequence(SESSION_STEPS, (step) => ctx.scheduleActivity(work, { n, step }, { sessionId })),
);

const tagged = orchestration("Tagged", (ctx, n) =>
  inSequence(TAGGED_STEPS, (step) => ctx.scheduleActivity(work, { n, step }, { tag: tags[step % tags.length] })),
);

const withTimers = orchestration("WithTimers", (ctx, n) =>
  inSequence(TIMERS, async (step) => {
    await ctx.scheduleTimer(delayMs(n, step));
    return ctx.scheduleActivity(work, { n, step });
  }),
);

const retried = orchestration("Retried", (ctx, n) => ctx.scheduleActivity(flaky, { n, step: 0 }, { retry: RETRY }));

const relay = orchestration("Relay", async (ctx, { n, results }) => {
  const sofar = [...results, await ctx.scheduleActivity(work, { n, step: results.length })];
  return sofar.length === HOPS ? sofar : ctx.continueAsNew({ n, results: sofar });
});

export const activities = [work, flaky];
export const orchestrations = [chain, fanOut, leg, parent, inSession, tagged, withTimers, retried, relay];

const legResults = (n, number) => resultsOf(n, LEGS * LEG_STEPS).slice(number * LEG_STEPS, (number + 1) * LEG_STEPS);

const KINDS = [
  { name: "Chain", output: (n) => resultsOf(n, CHAIN_STEPS) },
  { name: "FanOut", output: (n) => resultsOf(n, FAN_OUT) },
  { name: "Parent", output: (n) => [legResults(n, 0), legResults(n, 1)], children: LEGS },
  { name: "InSession", output: (n) => resultsOf(n, SESSION_STEPS), input: (n) => ({ n, sessionId: sessionOf(n) }) },
  { name: "Tagged", output: (n) => resultsOf(n, TAGGED_STEPS) },
  { name: "WithTimers", output: (n) => resultsOf(n, TIMERS) },
  { name: "Retried", output: (n) => resultOf(n, 0), failures: FLAKY_FAILURES },
  { name: "Relay", output: (n) => resultsOf(n, HOPS), input: (n) => ({ n, results: [] }), executions: HOPS },
];

function sessionOf(n) {
  return `session-${Math.floor(n / (KINDS.length * INSTANCES_PER_SESSION))}`;
}

/** The n-th orchestration of the load: all kinds take turns. */
export function orchestrationAt(n) {
  const {
    name,
    output,
    input = (number) => number,
    children = 0,
    failures = 0,
    executions = 1,
  } = KINDS[n % KINDS.length];
  const expected = { output: output(n), children, failures, executions };
  return { name, instanceId: `${name.toLowerCase()}-${n}`, input: input(n), expected };
}
