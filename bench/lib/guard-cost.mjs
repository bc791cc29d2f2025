// bench/lib/guard-cost.mjs — one round of bench/determinism-guard.mjs: what watched calls cost in code that is no
// orchestration's while a runtime lives, and what chains cost. The environment says whether that runtime has the guard:
// NODE_ENV=production means that it has not. All of it in CPU time, which depends least on who else runs.

import { Runtime } from "duroxide-ts";
import { MemoryProvider } from "duroxide-ts/memory";
import { quantile } from "../report.mjs";
import { runChain } from "./chains.mjs";
import { doAll } from "./load.mjs";
import { expectEqual, metric, runMeasured } from "./measured-process.mjs";
import { CONTENTS } from "./orchestrations.mjs";
import { RUNTIME_OPTIONS } from "./settings.mjs";
import { withRuntime } from "./store.mjs";

const CALLS = {
  "Date.now()": () => Date.now(),
  "new Date()": () => new Date(),
  "performance.now()": () => performance.now(),
  "Math.random()": () => Math.random(),
  "crypto.randomUUID()": () => crypto.randomUUID(),
  "setTimeout and clearTimeout": () => clearTimeout(setTimeout(nothing, 1_000)),
};
/** The first of them warm up. */
const SAMPLES = 16;
const WARM_UPS = 4;
const STARTS = 20;
const IN_FLIGHT = 100;

await runMeasured(async ({ store, callsPerSample = 50_000, chains = 2_000 }) => {
  const provider = new MemoryProvider();
  const starts = [];
  for (let n = 0; n < STARTS; n += 1) starts.push(await cpuOf(() => startAndStop(provider)));
  const runtime = await Runtime.start({ provider });
  const calls = [];
  for (const [name, call] of Object.entries(CALLS)) {
    calls.push(metric(name, (await cpuOfCall(call, callsPerSample)) * 1_000, "ns"));
  }
  await runtime.shutdown();
  const chain = await withRuntime(store, { ...CONTENTS, ...RUNTIME_OPTIONS.W1 }, async ({ client }) => {
    const run = (count) => doAll(count, IN_FLIGHT, (nr) => runChain(client, nr));
    await run(chains / 4);
    return (await cpuOf(() => run(chains))) / chains;
  });
  const start = metric("start and shutdown of a runtime", quantile(starts, 0.5), "µs");
  return [...calls, start, metric("a chain of W1", chain, "µs")];
});

async function startAndStop(provider) {
  await (await Runtime.start({ provider })).shutdown();
}

/** The median of the samples, in microseconds. */
async function cpuOfCall(call, calls) {
  let answers = 0;
  const repeat = () => {
    for (let n = 0; n < calls; n += 1) if (call() !== null) answers += 1;
  };
  const samples = [];
  for (let n = 0; n < SAMPLES; n += 1) samples.push((await cpuOf(repeat)) / calls);
  expectEqual(answers, SAMPLES * calls, "the number of answers");
  return quantile(samples.slice(WARM_UPS), 0.5);
}

/** In microseconds, of all threads. */
async function cpuOf(work) {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

function nothing() {}
