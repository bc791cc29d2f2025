// test/power-cut/workload.ts — orchestrations of many kinds by a number, what each must come to, and who sets them going.
//
// Activities answer by their input alone, at once: how often one ran cannot be told from its answer. Answers are of many
// sizes, so that rows are of one page and of many. Delays differ, so that turns come one by one and not in step.

import type { Client } from "../../src/client/client.js";
import { activity, orchestration } from "../../src/define.js";
import { messageTo, startOf } from "./evidence.js";

const CHAIN_STEPS = 3;
const FAN_OUT = 4;
const LEGS = 2;
const MESSAGES = 2;
const HOPS = 3;
const MAILBOX = "mail";
/** Of a retried activity: its first call fails, in whichever process it runs. Event ids of the calls: 2, 5. */
const FLAKY_ID = 2;
const RETRY = { maxAttempts: 2, backoff: { kind: "fixed", delay: 5 } } as const;

interface Step {
  readonly n: number;
  readonly step: number;
}

interface Answer {
  readonly value: number;
  readonly filling: string;
}

const answerOf = ({ n, step }: Step): number => n * 10 + step;
const delayMs = (n: number, step: number): number => 1 + ((n * 7 + step * 13) % 40);
const filling = ({ n, step }: Step): string => `${n}.${step};`.repeat(10 + ((n * 331 + step * 977) % 1_500));
const answersOf = (n: number, steps: number): number[] =>
  Array.from({ length: steps }, (_, step) => answerOf({ n, step }));

const work = activity("Work", async (_ctx, step: Step): Promise<Answer> => {
  return { value: answerOf(step), filling: filling(step) };
});

const flaky = activity("Flaky", async ({ activityId }, step: Step): Promise<Answer> => {
  if (activityId === FLAKY_ID) throw new Error(`not yet: ${filling(step)}`);
  return { value: answerOf(step), filling: filling(step) };
});

const chain = orchestration("Chain", async (ctx, n: number): Promise<number[]> => {
  const values: number[] = [];
  for (let step = 0; step < CHAIN_STEPS; step += 1) {
    await ctx.scheduleTimer(delayMs(n, step));
    const { value } = await ctx.scheduleActivity(work, { n, step });
    values.push(value);
    ctx.setCustomStatus(`step ${step}`);
    ctx.kv.set("values", values);
  }
  return ctx.kv.get<number[]>("values") ?? [];
});

const fanOut = orchestration("FanOut", async (ctx, n: number): Promise<number[]> => {
  await ctx.scheduleTimer(delayMs(n, 0));
  const steps = Array.from({ length: FAN_OUT }, (_, step) => ctx.scheduleActivity(work, { n, step }));
  return (await ctx.all(steps)).map(({ value }) => value);
});

const leg = orchestration("Leg", async (ctx, step: Step): Promise<number> => {
  await ctx.scheduleTimer(delayMs(step.n, step.step));
  return (await ctx.scheduleActivity(work, step)).value;
});

const parent = orchestration("Parent", (ctx, n: number) => {
  return ctx.all(Array.from({ length: LEGS }, (_, step) => ctx.scheduleSubOrchestration(leg, { n, step })));
});

const mailbox = orchestration("Mailbox", async (ctx, n: number): Promise<number[]> => {
  const values: number[] = [];
  for (let taken = 0; taken < MESSAGES; taken += 1) {
    const step = await ctx.dequeueEvent<number>(MAILBOX);
    values.push((await ctx.scheduleActivity(work, { n, step })).value);
  }
  return values;
});

const relay = orchestration("Relay", async (ctx, { n, values }: { n: number; values: number[] }): Promise<number[]> => {
  await ctx.scheduleTimer(delayMs(n, values.length));
  const { value } = await ctx.scheduleActivity(work, { n, step: values.length });
  const sofar = [...values, value];
  return sofar.length === HOPS ? sofar : ctx.continueAsNew({ n, values: sofar });
});

const retried = orchestration("Retried", async (ctx, n: number): Promise<number[]> => {
  return [(await ctx.scheduleActivity(flaky, { n, step: 0 }, { retry: RETRY })).value];
});

export const DEFINITIONS = {
  orchestrations: [chain, fanOut, leg, parent, mailbox, relay, retried],
  activities: [work, flaky],
};

interface Kind {
  readonly name: string;
  readonly steps: number;
  readonly input?: (n: number) => unknown;
  readonly messages?: number;
  readonly children?: number;
  readonly executions?: number;
}

const KINDS: readonly Kind[] = [
  { name: "Chain", steps: CHAIN_STEPS },
  { name: "FanOut", steps: FAN_OUT },
  { name: "Parent", steps: LEGS, children: LEGS },
  { name: "Mailbox", steps: MESSAGES, messages: MESSAGES },
  { name: "Relay", steps: HOPS, input: (n) => ({ n, values: [] }), executions: HOPS },
  { name: "Retried", steps: 1 },
];

/** One of the load: what it is, what it is sent, and what must be in the store when all is over. */
export interface Order {
  readonly name: string;
  readonly instanceId: string;
  readonly input: unknown;
  readonly messages: readonly number[];
  readonly output: readonly number[];
  readonly children: number;
  readonly executions: number;
}

/** All kinds take turns. */
export function orderAt(n: number): Order {
  const {
    name,
    steps,
    input = (number) => number,
    messages = 0,
    children = 0,
    executions = 1,
  } = KINDS[n % KINDS.length]!;
  return {
    name,
    instanceId: `${name.toLowerCase()}-${n}`,
    input: input(n),
    messages: Array.from({ length: messages }, (_, step) => step),
    output: answersOf(n, steps),
    children,
    executions,
  };
}

/** Starts it and sends it its messages, as far as that is not done. */
export async function place(
  client: Client,
  { name, instanceId, input, messages }: Order,
  done: ReadonlySet<string>,
): Promise<void> {
  if (!done.has(startOf(instanceId))) await client.start(name, { instanceId, input });
  for (const step of messages) {
    if (done.has(messageTo(instanceId, MAILBOX, JSON.stringify(step)))) continue;
    await client.enqueueEvent(instanceId, MAILBOX, step);
  }
}
