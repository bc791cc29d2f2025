// test/golden/programs/endings.ts — every way in which an execution fails, by its own doing or another's.
//
// FROZEN. Never change a program once it is recorded: its histories are those of instances that still run somewhere. Add a
// new one instead.

import { orchestration } from "../../../src/define.js";
import { type DuroxideError, MisuseError } from "../../../src/errors.js";
import { fail, stuck } from "../activities.js";
import { type Golden, toItsEnd } from "../golden.js";

const throws = orchestration("Throws", async (ctx, what: string) => {
  if (what === "text") throw "only a text";
  if (what === "object") throw { code: 7 };
  if (what === "activity") return ctx.scheduleActivity(fail, "the activity fails");
  if (what === "misuse") throw new MisuseError("in words of its own");
  throw new RangeError(`an error: ${what}`);
});

/** Our own words about what is wrong may change, so that they must not get into an output. */
const codeOf = (error: unknown): string => (error as DuroxideError).code;
const refused = orchestration("Refused", async (ctx) => {
  const codes: string[] = [];
  for (const use of [
    () => ctx.scheduleTimer("soon"),
    () => ctx.scheduleActivity(fail, 12n as never),
    () => ctx.waitForEvent(""),
    () => ctx.kv.set("", 1),
    () => ctx.race([]),
  ]) {
    try {
      await use();
    } catch (error) {
      codes.push(codeOf(error));
    }
  }
  await ctx.scheduleTimer(1);
  return codes;
});

const foreign = orchestration("Foreign", async (ctx) => {
  await ctx.scheduleTimer(1);
  await new Promise(() => {});
});

const talkative = orchestration("Talkative", async (ctx) => {
  ctx.setCustomStatus("short");
  await ctx.scheduleTimer(1);
  ctx.setCustomStatus("x".repeat(200));
  await ctx.scheduleTimer(1);
});

const hoarder = orchestration("Hoarder", async (ctx) => {
  for (let n = 0; n < 5; n += 1) {
    ctx.kv.set(`key ${n}`, n);
    await ctx.scheduleTimer(1);
  }
});

const child = orchestration("Waiter", async (ctx) => ctx.waitForEvent("never"));
const cancelled = orchestration("Cancelled", async (ctx) =>
  Promise.all([
    ctx.scheduleActivity(stuck),
    ctx.scheduleTimer("1d"),
    ctx.waitForEvent("never"),
    ctx.dequeueEvent("never"),
    ctx.scheduleSubOrchestration(child),
  ]),
);

const unknownActivity = orchestration("UnknownActivity", async (ctx) =>
  ctx.scheduleActivity("Nobody", 1).catch(() => "never told"),
);
const unknownChild = orchestration("UnknownChild", async (ctx) => {
  await ctx.scheduleTimer(1);
  return ctx.scheduleSubOrchestration("Nobody", 1);
});

const steadfast = orchestration("Changed", async (ctx) => {
  const first = await ctx.waitForEvent("first");
  return ctx.scheduleActivity(fail, first as never);
});
/** What was deployed over it. Not part of what is replayed. */
const changed = orchestration("Changed", async (ctx) => ctx.dequeueEvent("other"));

const activities = [stuck, fail];
const impatience = { maxAttempts: 2, unregisteredBackoff: { baseMs: 10, maxMs: 20 } };

export const endings: Readonly<Record<string, Golden>> = {
  throws: {
    orchestrations: [throws],
    activities,
    play: async (world) => {
      for (const what of ["error", "text", "object", "activity", "misuse"]) {
        await toItsEnd(`throws-${what}`, "Throws", what)(world);
      }
    },
  },
  refused: { orchestrations: [refused], play: toItsEnd("refused", "Refused") },
  "foreign-await": { orchestrations: [foreign], play: toItsEnd("foreign-await", "Foreign") },
  "limit-of-status": {
    orchestrations: [talkative],
    options: { limits: { maxCustomStatusBytes: 100 } },
    play: toItsEnd("limit-of-status", "Talkative"),
  },
  "limit-of-keys": {
    orchestrations: [hoarder],
    options: { limits: { maxKvKeys: 3 } },
    play: toItsEnd("limit-of-keys", "Hoarder"),
  },
  cancelled: {
    orchestrations: [cancelled, child],
    activities,
    play: async (world) => {
      await world.client.start(cancelled, { instanceId: "cancelled" });
      await world.advance("1m");
      await world.client.raiseEvent("cancelled", "unexpected", 1);
      await world.client.cancel("cancelled", "no longer needed: \ud83d");
      await world.ending("cancelled");
      await world.advance("1m");
      await world.client.start(child, { instanceId: "cancelled-at-once" });
      await world.client.cancel("cancelled-at-once");
      await world.ending("cancelled-at-once");
    },
  },
  poison: {
    orchestrations: [unknownActivity, unknownChild],
    activities,
    options: impatience,
    play: async (world) => {
      await toItsEnd("unknown-activity", "UnknownActivity")(world);
      await toItsEnd("unknown-child", "UnknownChild")(world);
    },
  },
  "code-changed": {
    orchestrations: [steadfast],
    activities,
    play: async (world, runtime) => {
      await world.client.start(steadfast, { instanceId: "code-changed" });
      await world.rest();
      await runtime.restart({ orchestrations: [changed] });
      await world.advance("1m");
      await world.client.raiseEvent("code-changed", "first", 1);
      await world.ending("code-changed");
    },
  },
};
