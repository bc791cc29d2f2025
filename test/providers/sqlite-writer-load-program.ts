// A worker and a client on a store whose thread writes: chains from 0 to `most`, a hundred in flight. Each line that it prints is true
// on the disk by then.

import { activity, Client, orchestration, Runtime } from "../../src/index.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";

const [file, most] = process.argv.slice(2) as [string, string];
const IN_FLIGHT = 100;
const STEPS = 3;

const step = activity("Step", (_ctx, n: number) => n + 1);
const chain = orchestration("Chain", async (ctx, n: number) => {
  let value = n;
  for (let steps = 0; steps < STEPS; steps += 1) value = await ctx.scheduleActivity(step, value);
  return value;
});

const tell = (line: string): void => void process.stdout.write(`${line}\n`);
const provider = await SqliteProvider.open(file, {
  durability: "process-crash",
  writerThread: "always",
  startsGoAhead: "always",
});
const slots = { orchestrationConcurrency: IN_FLIGHT, workerConcurrency: IN_FLIGHT };
/** Short ones, so that what a dead process held is soon taken over. */
const locks = { orchestratorLockTimeoutMs: 500, workerLockTimeoutMs: 500, workerLockRenewalBufferMs: 200 };
const runtime = await Runtime.start({ provider, orchestrations: [chain], activities: [step], ...slots, ...locks });
const client = new Client(provider);
let next = 0;

async function runChains(): Promise<void> {
  while (next < Number(most)) {
    const nr = next;
    next += 1;
    const handle = await client.start(chain, { instanceId: String(nr), input: nr });
    tell(`started ${nr}`);
    tell(`ended ${nr} ${await handle.result()}`);
  }
}

await Promise.all(Array.from({ length: IN_FLIGHT }, runChains));
await runtime.shutdown();
await provider.close();
tell("done");
