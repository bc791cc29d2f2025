// test/golden/programs/state.ts — the key-value store and the custom status.
//
// FROZEN. Never change a program once it is recorded: its histories are those of instances that still run somewhere. Add a
// new one instead.

import { orchestration } from "../../../src/define.js";
import { echo } from "../activities.js";
import type { Golden } from "../golden.js";

const keyValues = orchestration("KeyValues", async (ctx, n: number): Promise<unknown> => {
  const found = ctx.kv.keys();
  ctx.kv.set(`round ${n}`, { n, at: [1, 2.5, null] });
  ctx.kv.setText("text", "not JSON, as it is");
  await ctx.scheduleTimer("1m");
  ctx.kv.set("round 0", "again");
  ctx.kv.delete("text");
  ctx.kv.delete("never there");
  if (n === 1) ctx.kv.clear();
  if (n === 2) return { found, pruned: ctx.kv.pruneUpdatedBefore(await ctx.utcNow()), left: ctx.kv.keys() };
  return ctx.continueAsNew(n + 1);
});

const counter = orchestration("Counter", async (ctx) => {
  for (let n = 0; n < 3; n += 1) {
    ctx.kv.set("count", (ctx.kv.get<number>("count") ?? 0) + 1);
    await ctx.scheduleActivity(echo, ctx.kv.get("count"));
  }
  return ctx.kv.size;
});

const reader = orchestration("Reader", async (ctx) => {
  const [count, missing, stranger] = await ctx.all([
    ctx.readKv<number>("counter", "count"),
    ctx.readKv("counter", "missing"),
    ctx.readKv("nobody", "count"),
  ]);
  const again = await ctx.readKv<number>("counter", "count");
  return { count, missing, stranger, again };
});

const status = orchestration("Status", async (ctx, n: number): Promise<unknown> => {
  const before = ctx.customStatus;
  ctx.setCustomStatus(`step ${n}`);
  ctx.setCustomStatus(`step ${n}, really`);
  await ctx.scheduleActivity(echo, before);
  if (n === 0) return ctx.continueAsNew(1);
  ctx.resetCustomStatus();
  await ctx.scheduleTimer(1);
  ctx.setCustomStatus("");
  return [before, ctx.customStatus];
});

const activities = [echo];

export const state: Readonly<Record<string, Golden>> = {
  "key-values": {
    orchestrations: [keyValues],
    play: async (world) => {
      await world.client.start(keyValues, { instanceId: "key-values", input: 0 });
      await world.ending("key-values");
    },
  },
  "key-values-of-others": {
    orchestrations: [counter, reader],
    activities,
    play: async (world) => {
      await world.client.start(counter, { instanceId: "counter" });
      await world.ending("counter");
      await world.client.start(reader, { instanceId: "reader" });
      await world.ending("reader");
    },
  },
  status: {
    orchestrations: [status],
    activities,
    play: async (world) => {
      await world.client.start(status, { instanceId: "status", input: 0 });
      await world.ending("status");
    },
  },
};
