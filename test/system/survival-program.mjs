// Runs every case of survival-cases.mjs: first one by one, with a control orchestration after each, then all at once.
// `node survival-program.mjs <memory | file> <runtime options as JSON>`; one line of JSON for each case, then one for the
// end. Whether the process survives, and ends by itself, is its exit code.

import { activity, Client, orchestration, Runtime } from "duroxide-ts";
import { MemoryProvider } from "duroxide-ts/memory";
import { SqliteProvider } from "duroxide-ts/sqlite";
import { afterFailure, cases, echo, fail, slow } from "./survival-cases.mjs";

const [, , store, settings] = process.argv;

const control = orchestration("Control", async (ctx, word) => {
  const reply = await ctx.scheduleActivity(echo, word);
  await ctx.scheduleTimer(1);
  return reply;
});
const stuck = activity("Stuck", () => new Promise(() => {}));
const waitsForEver = orchestration("WaitsForEver", async (ctx) => ctx.scheduleActivity(stuck));

/** What observers have been told: kept rejections and turns by instance, and which facts there were at all. */
const kept = new Map();
const turns = new Map();
const facts = new Set();
const waiters = new Set();

function observe(fact) {
  facts.add(fact.type);
  if (fact.type === "rejection-kept") kept.set(fact.instanceId, [...(kept.get(fact.instanceId) ?? []), fact.message]);
  if (fact.type === "turn-committed") turns.set(fact.ref.instanceId, (turns.get(fact.ref.instanceId) ?? 0) + 1);
  if (fact.type === "activity-started") facts.add(`${fact.type}: ${fact.ref.activityName}`);
  if (fact.type === "turn-abandoned") facts.add(`${fact.type}: ${fact.why}`);
  for (const waiter of waiters) waiter();
}

/** Resolves when it is true: looked at after every fact. */
function until(isTrue) {
  return new Promise((resolve) => {
    const look = () => {
      if (!isTrue()) return;
      waiters.delete(look);
      resolve();
    };
    waiters.add(look);
    look();
  });
}

const observers = [
  () => {
    throw new Error("an observer that throws");
  },
  async () => {
    throw new Error("an observer that rejects");
  },
  observe,
];

const provider = store === "memory" ? new MemoryProvider() : await SqliteProvider.open(store);
const runtime = await Runtime.start({
  provider,
  orchestrations: [control, waitsForEver, ...Object.entries(cases).map(([name, { run }]) => orchestration(name, run))],
  activities: [echo, fail, slow, afterFailure, stuck, ...Object.values(cases).flatMap((one) => one.activities ?? [])],
  activityCancellationGraceMs: 50,
  determinismGuard: false, // As in production: with it, most of what is foreign would be stopped before it begins.
  observers,
  ...JSON.parse(settings),
});
const client = new Client(provider);

for (const name of Object.keys(cases)) {
  const ending = await play(name, name);
  const isAlive = (await play("Control", `control after ${name}`, "alive")).output === "alive";
  print({ name, ...ending, isAlive, kept: kept.get(name) ?? [] });
}
const again = await Promise.all(Object.keys(cases).map(async (name) => [name, await play(name, `${name}, again`)]));
await client.start(waitsForEver, { instanceId: "waits for ever" });
await until(() => facts.has("activity-started: Stuck"));
const isAlive = (await play("Control", "last control", "alive")).output === "alive";
const outcome = await runtime.shutdown({ graceMs: 0 });
const listeners = ["unhandledRejection", "rejectionHandled"].map((name) => process.listenerCount(name));
print({ again: Object.fromEntries(again), isAlive, outcome, listeners, facts: [...facts].sort() });

/** Runs one instance to its end, and answers how that was. */
async function play(name, instanceId, input) {
  const { act, aftermath } = cases[name] ?? {};
  const world = { client, instanceId, until, kept, turns };
  await client.start(name, { instanceId, input });
  await act?.(world);
  const ended = await client.waitForOrchestration(instanceId, { timeoutMs: 20_000 });
  await aftermath?.(world);
  if (ended.status === "Completed") return { status: ended.status, output: ended.output };
  const { details, error } = ended;
  const kind = details.kind?.type ?? details.kind;
  return {
    status: ended.status,
    error: error.slice(0, 400),
    errorLength: error.length,
    category: details.category,
    kind,
  };
}

function print(report) {
  process.stdout.write(`${JSON.stringify(report)}\n`);
}
