// test/golden/programs/branches.ts — work in parallel: combinators of ours and of the language, and what loses.
//
// FROZEN. Never change a program once it is recorded: its histories are those of instances that still run somewhere. Add a
// new one instead.

import { orchestration } from "../../../src/define.js";
import type { OrchestrationContext } from "../../../src/engine/orchestration-context.js";
import { TaskCancelledError } from "../../../src/errors.js";
import { echo, fail, stuck } from "../activities.js";
import { type Golden, toItsEnd } from "../golden.js";

const fanOut = orchestration("FanOut", async (ctx, width: number) => {
  const parts = Array.from({ length: width }, (_, n) => ctx.scheduleActivity(echo, n));
  const results = await Promise.all(parts);
  return results.length;
});

const allNamed = orchestration("AllNamed", async (ctx) =>
  ctx.all({
    echo: ctx.scheduleActivity(echo, "a"),
    timer: ctx.scheduleTimer(5),
    code: async () => 7,
    constructor: () => 8,
  }),
);

const allFails = orchestration("AllFails", async (ctx) => {
  try {
    return await ctx.all([ctx.scheduleActivity(stuck), ctx.scheduleActivity(fail, "first"), ctx.waitForEvent("never")]);
  } catch (error) {
    return (error as Error).message;
  }
});

const raceTimer = orchestration("RaceTimer", async (ctx) => {
  const first = await ctx.race([ctx.scheduleActivity(stuck), ctx.scheduleTimer("10s"), ctx.dequeueEvent("never")]);
  return { index: first.index, after: await ctx.scheduleActivity(echo, "after") };
});

const raceNamed = orchestration("RaceNamed", async (ctx) => {
  const first = await ctx.race({ answer: ctx.waitForEvent<string>("answer"), late: ctx.scheduleTimer("3d") });
  return first.winner === "answer" ? first.value : "late";
});

const nativeRace = orchestration("NativeRace", async (ctx) => {
  const winner = await Promise.race([ctx.scheduleActivity(echo, "fast"), ctx.scheduleTimer("1d").then(() => "slow")]);
  const any = await Promise.any([ctx.scheduleActivity(fail, "no"), ctx.scheduleTimer(1).then(() => "yes")]);
  const settled = await Promise.allSettled([ctx.scheduleActivity(fail, "no"), ctx.scheduleActivity(echo, 1)]);
  return [winner, any, ...settled.map(({ status }) => status)];
});

async function chain(ctx: OrchestrationContext, name: string): Promise<string> {
  const seen: unknown[] = [];
  for (let n = 0; n < 3; n += 1) {
    seen.push(await ctx.scheduleActivity(echo, `${name}${n}`));
    if (name === "b") await ctx.scheduleTimer(10);
  }
  return seen.join("");
}

const nested = orchestration("Nested", async (ctx) => {
  const log: string[] = [];
  const result = await ctx.all({
    inner: () =>
      ctx.race([
        async () => {
          try {
            await chain(ctx, "b");
            await ctx.waitForEvent("never");
          } catch (error) {
            log.push(error instanceof TaskCancelledError ? "b lost" : "?");
            throw error;
          }
        },
        () => chain(ctx, "a"),
      ]),
    outer: async () => [await chain(ctx, "c"), await Promise.all([chain(ctx, "d"), chain(ctx, "e")])],
  });
  return { result, log };
});

const dropped = orchestration("Dropped", async (ctx) => {
  const work = ctx.scheduleActivity(stuck);
  const wait = ctx.waitForEvent("a");
  const queue = ctx.dequeueEvent("b");
  const timer = ctx.scheduleTimer("1d");
  await ctx.scheduleTimer(1);
  for (const task of [work, wait, queue, timer]) task.cancel();
  const errors = await Promise.allSettled([work, wait, queue, timer]);
  await ctx.scheduleActivity(echo, 1);
  return errors.map(({ status }) => status);
});

const forgotten = orchestration("Forgotten", async (ctx) => {
  void ctx.scheduleActivity(stuck);
  void ctx.waitForEvent("never");
  void ctx.dequeueEvent("never");
  void ctx.scheduleTimer("1w");
  return ctx.scheduleActivity(echo, "done");
});

const helper = orchestration("Helper", async (ctx) => {
  const helping = (async () => {
    await ctx.scheduleTimer(5);
    throw new Error("helper failed");
  })();
  helping.catch(() => {});
  const first = await ctx.scheduleActivity(echo, 1);
  return [first, await helping.catch((error: Error) => error.message)];
});

const activities = [echo, fail, stuck];

export const branches: Readonly<Record<string, Golden>> = {
  "fan-out": { orchestrations: [fanOut], activities, play: toItsEnd("fan-out", "FanOut", 12) },
  "all-named": { orchestrations: [allNamed], activities, play: toItsEnd("all-named", "AllNamed") },
  "all-fails": { orchestrations: [allFails], activities, play: toItsEnd("all-fails", "AllFails") },
  "race-timer": { orchestrations: [raceTimer], activities, play: toItsEnd("race-timer", "RaceTimer") },
  "race-named": {
    orchestrations: [raceNamed],
    play: async (world) => {
      await world.client.start(raceNamed, { instanceId: "answered" });
      await world.client.start(raceNamed, { instanceId: "late" });
      await world.advance("1h");
      await world.client.raiseEvent("answered", "answer", "42 ✓");
      await world.ending("answered");
      await world.ending("late");
    },
  },
  "native-race": { orchestrations: [nativeRace], activities, play: toItsEnd("native-race", "NativeRace") },
  nested: { orchestrations: [nested], activities, play: toItsEnd("nested", "Nested") },
  dropped: { orchestrations: [dropped], activities, play: toItsEnd("dropped", "Dropped") },
  forgotten: { orchestrations: [forgotten], activities, play: toItsEnd("forgotten", "Forgotten") },
  helper: { orchestrations: [helper], activities, play: toItsEnd("helper", "Helper") },
};
