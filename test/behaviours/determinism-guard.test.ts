// Code that calls what no history records: a new instance is stopped, one that has a history never is.

import { describe, expect, test } from "vitest";
import { activity, orchestration } from "../../src/define.js";
import { onEveryStore } from "./stores.js";

const step = activity("Step", (_ctx, n: number) => n + 1);
/** Looks at the time in every turn, and decides nothing by it. */
const looks = orchestration("Looks", async (ctx, n: number): Promise<number> => {
  const times = [Date.now()];
  const sum = await ctx.scheduleActivity(step, n);
  times.push(Date.now());
  const more = await ctx.waitForEvent<number>("more");
  times.push(Date.now());
  if (sum < 2) return ctx.continueAsNew(sum);
  return sum + more + times.filter((time) => time < 1_000_000).length;
});
const careful = orchestration("Careful", async (ctx): Promise<unknown> => {
  return ctx.scheduleSubOrchestration(looks, 1).catch((error: Error) => error.message);
});
const deployed = { orchestrations: [looks, careful], activities: [step] };

onEveryStore((store) => {
  describe("with the determinism guard", () => {
    test("a new instance fails for good; as a child, its parent hears of it as of any failure", async () => {
      await using world = await store.world();
      const runtime = await world.start(deployed);

      const failure = /^Date\.now\(\) was called in orchestration 'Looks' \(instance 'l'\)/;
      await expect(world.run(looks, { instanceId: "l", input: 1 })).rejects.toThrow(failure);
      expect(await world.run(careful)).toMatch(/^Date\.now\(\) was called in orchestration 'Looks'/);
      await runtime.restart({ determinismGuard: false });
      await world.rest();

      expect(await world.eventTypes("l")).toEqual(["OrchestrationStarted", "OrchestrationFailed"]);
    });

    test("an instance that began without it goes on: replayed, warm, and after continue-as-new", async () => {
      await using world = await store.world();
      const runtime = await world.start({ ...deployed, determinismGuard: false });
      const handle = await world.client.start(looks, { instanceId: "l", input: 0 });
      await world.rest();

      await runtime.restart({ determinismGuard: true });
      await world.client.raiseEvent("l", "more", 10);
      await world.rest();
      await world.client.raiseEvent("l", "more", 20);

      expect(await world.settle(handle.result())).toBe(22);
      expect(await world.provider.admin?.listExecutions("l")).toEqual([1, 2]);
      expect(world.factsOf("nondeterministic-call")).toMatchObject([
        { ref: { instanceId: "l", executionId: 1 }, error: { code: "DUROXIDE_NONDETERMINISTIC_CALL" } },
        { ref: { instanceId: "l", executionId: 2 }, error: { call: "Date.now()" } },
      ]);
    });
  });
});
