// Long and wide orchestrations, on a real file.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Client } from "../../src/client/client.js";
import { activity, orchestration } from "../../src/define.js";
import { checkHistory } from "../../src/history/valid-history.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";
import { Runtime } from "../../src/runtime/runtime.js";

const STEPS = 10_000;
const WIDTH = 1_500;

const increment = activity("Increment", async (_ctx, n: number) => n + 1);

const longChain = orchestration("LongChain", async (ctx, steps: number) => {
  let n = 0;
  while (n < steps) n = await ctx.scheduleActivity(increment, n);
  return n;
});

const fanOut = orchestration("FanOut", async (ctx, width: number) => {
  const tasks = Array.from({ length: width }, (_, n) => ctx.scheduleActivity(increment, n));
  const results = await Promise.all(tasks);
  return results.reduce((sum, n) => sum + n, 0);
});

test(`an orchestration of ${STEPS} sequential activities completes`, async () => {
  const { client } = await open();
  const handle = await client.start(longChain, { instanceId: "long", input: STEPS });
  expect(await handle.result()).toBe(STEPS);
  const history = await client.readHistory("long");
  expect(history.length).toBe(2 * STEPS + 2);
  checkHistory(history);
}, 300_000);

test(`a fan-out of ${WIDTH} activities joins`, async () => {
  const { client } = await open();
  const handle = await client.start(fanOut, { instanceId: "wide", input: WIDTH });
  expect(await handle.result()).toBe((WIDTH * (WIDTH + 1)) / 2);
  checkHistory(await client.readHistory("wide"));
}, 300_000);

async function open(): Promise<{ client: Client }> {
  const folder = mkdtempSync(join(tmpdir(), "duroxide-scale-"));
  const provider = await SqliteProvider.open(join(folder, "scale.db"));
  const runtime = await Runtime.start({
    provider,
    orchestrations: [longChain, fanOut],
    activities: [increment],
  });
  onTestFinished(async () => {
    await runtime.shutdown();
    await provider[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });
  return { client: new Client(provider) };
}
