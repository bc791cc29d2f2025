// test/golden/programs/families.ts — children, detached orchestrations, versions.
//
// FROZEN. Never change a program once it is recorded: its histories are those of instances that still run somewhere. Add a
// new one instead.

import { orchestration } from "../../../src/define.js";
import { OrchestrationFailedError } from "../../../src/errors.js";
import { type Golden, toItsEnd } from "../golden.js";

const child = orchestration("Child", async (ctx, word: string) => {
  if (word === "fail") throw new Error("the child fails");
  if (word === "wait") await ctx.waitForEvent("never");
  return `${word} by ${ctx.instanceId}`;
});

const parent = orchestration("Parent", async (ctx) => {
  const auto = await ctx.scheduleSubOrchestration(child, "auto");
  const [named, other] = await ctx.all([
    ctx.scheduleSubOrchestration(child, "named", { instanceId: "named-child" }),
    ctx.scheduleSubOrchestration<string>("Child", "by name"),
  ]);
  ctx.startOrchestration(child, { instanceId: "detached-child", input: "detached" });
  return [auto, named, other];
});

const catching = orchestration("Catching", async (ctx) => {
  try {
    return await ctx.scheduleSubOrchestration(child, "fail");
  } catch (error) {
    return error instanceof OrchestrationFailedError ? [error.instanceId, error.message] : "?";
  }
});

const failing = orchestration("Failing", async (ctx) => ctx.scheduleSubOrchestration(child, "fail"));

const impatient = orchestration("Impatient", async (ctx) => {
  const first = await ctx.race({ child: ctx.scheduleSubOrchestration(child, "wait"), late: ctx.scheduleTimer("1h") });
  return first.winner;
});

const leaving = orchestration("Leaving", async (ctx) => {
  void ctx.scheduleSubOrchestration(child, "wait");
  await ctx.scheduleTimer(1);
  return "gone";
});

const twin = orchestration("Twin", async (ctx) => {
  const one = await ctx.scheduleSubOrchestration(child, "one", { instanceId: "taken" });
  return [
    one,
    await ctx.scheduleSubOrchestration(child, "two", { instanceId: "taken" }).catch((e: Error) => e.message),
  ];
});

const generations = orchestration("Generations", async (ctx, n: number): Promise<unknown> => {
  await ctx.scheduleTimer(1);
  const grandchild = await ctx.scheduleSubOrchestration(child, `generation ${n}`);
  return n < 2 ? ctx.continueAsNew(n + 1) : grandchild;
});

const ancestor = orchestration("Ancestor", async (ctx) => ctx.scheduleSubOrchestration(generations, 0));

const upgradeV1 = orchestration({ name: "Upgrade", version: "1.0.0" }, async (ctx, n: number): Promise<unknown> => {
  await ctx.scheduleTimer(1);
  return ctx.continueAsNew(n + 1, { version: "2.1.0" });
});
const upgradeV2 = orchestration({ name: "Upgrade", version: "2.1.0" }, async (ctx, n: number): Promise<unknown> => {
  if (n > 1) return `${n} in ${ctx.orchestrationVersion}`;
  const old = ctx.scheduleSubOrchestration<string>("Upgrade", 5, { version: "2.0.0" });
  return [await old, await ctx.scheduleSubOrchestration(child, "newest")];
});
const upgradeV20 = orchestration({ name: "Upgrade", version: "2.0.0" }, async (_ctx, n: number): Promise<unknown> => n);

export const families: Readonly<Record<string, Golden>> = {
  parent: { orchestrations: [parent, child], play: toItsEnd("parent", "Parent") },
  "child-fails": {
    orchestrations: [catching, failing, child],
    play: async (world) => {
      await toItsEnd("catching", "Catching")(world);
      await toItsEnd("failing", "Failing")(world);
    },
  },
  "child-dropped": {
    orchestrations: [impatient, leaving, child],
    play: async (world) => {
      await toItsEnd("impatient", "Impatient")(world);
      await toItsEnd("leaving", "Leaving")(world);
    },
  },
  "child-id-taken": { orchestrations: [twin, child], play: toItsEnd("twin", "Twin") },
  "child-continues": { orchestrations: [ancestor, generations, child], play: toItsEnd("ancestor", "Ancestor") },
  versions: {
    orchestrations: [upgradeV1, upgradeV2, upgradeV20, child],
    play: async (world) => {
      await world.client.start("Upgrade", { instanceId: "upgrade", input: 0, version: "1.0.0" });
      await world.ending("upgrade");
    },
  },
};
