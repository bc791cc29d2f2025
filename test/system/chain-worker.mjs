// A worker process for the crash tests: chains of five activities of 50 to 200 ms, from the word "go" until it is killed.

import { setTimeout as pause } from "node:timers/promises";
import { activity, orchestration, Runtime } from "duroxide-ts";
import { SqliteProvider } from "duroxide-ts/sqlite";

const [, , file, settings] = process.argv;

const step = activity("Step", async (_ctx, { chain, n }) => {
  await pause(50 + ((chain * 31 + n * 57) % 151));
  return chain * 10 + n;
});

const chain = orchestration("Chain", async (ctx, number) => {
  const results = [];
  for (let n = 0; n < 5; n += 1) results.push(await ctx.scheduleActivity(step, { chain: number, n }));
  return results;
});

process.once("message", async () => {
  const provider = await SqliteProvider.open(file);
  await Runtime.start({ provider, orchestrations: [chain], activities: [step], ...JSON.parse(settings) });
});
process.send?.("booted");
