// soak/soak-load.mjs — what a soak works on: the rich load, and orchestrations that never end by themselves.

import { orchestration } from "duroxide-ts";
import * as rich from "../kills/rich-load.mjs";

export { activities, drive, expected, start, tags, usualFacts } from "../kills/rich-load.mjs";

/** Each execution counts one beat: as many beats as executions, whoever dies. */
const eternal = orchestration("Eternal", async (ctx, beatMs) => {
  ctx.kv.set("beats", (ctx.kv.get("beats") ?? 0) + 1);
  ctx.setCustomStatus(`beat ${ctx.executionId}`);
  await ctx.scheduleActivity("Double", ctx.executionId);
  await ctx.scheduleTimer(beatMs);
  return ctx.continueAsNew(beatMs);
});

export const orchestrations = [...rich.orchestrations, eternal];
