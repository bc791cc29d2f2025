// Where an instance stands, from before its start to long after its end. R§7.3.

import { describe, expect, test } from "vitest";
import { activity, orchestration } from "../../src/define.js";
import { onEveryStore } from "./stores.js";

const fail = activity("Fail", async (): Promise<string> => {
  throw new Error("intentional failure");
});
const failing = orchestration("Failing", async (ctx) => ctx.scheduleActivity(fail));
const succeeding = orchestration("Succeeding", async () => "fine");
const waiting = orchestration("Waiting", async (ctx) => ctx.waitForEvent("never"));

const FAILED = {
  status: "Failed",
  error: "intentional failure",
  details: { category: "application", kind: { type: "OrchestrationFailed" }, message: "intentional failure" },
};

onEveryStore((store) => {
  describe("the status", () => {
    test("of an instance that nobody has started is NotFound", async () => {
      await using world = await store.world();
      await world.start({ orchestrations: [succeeding] });

      expect(await world.client.getStatus("nobody")).toEqual({ status: "NotFound" });
    });

    test("is Running as long as an activity takes", async () => {
      await using world = await store.world();
      const endless = activity("Endless", (ctx): Promise<string> => {
        return new Promise((_resolve, reject) => ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason)));
      });
      const blocked = orchestration("Blocked", async (ctx) => ctx.scheduleActivity(endless));
      await world.start({ orchestrations: [blocked], activities: [endless] });
      await world.client.start(blocked, { instanceId: "b" });

      for (const duration of ["500ms", "10m"] as const) {
        await world.advance(duration);
        expect(await world.client.getStatus("b")).toEqual({
          status: "Running",
          orchestrationName: "Blocked",
          orchestrationVersion: "1.0.0",
          executionId: 1,
          customStatus: null,
          customStatusVersion: 0,
        });
      }
    });

    test("is Failed with the reason, and stays so", async () => {
      await using world = await store.world();
      await world.start({ orchestrations: [failing], activities: [fail] });
      await world.client.start(failing, { instanceId: "f" });

      expect(await world.settle(world.client.waitForOrchestration("f"))).toMatchObject(FAILED);
      await world.advance("1d");
      expect(await world.client.getStatus("f")).toMatchObject(FAILED);
    });

    test("is that of the last execution", async () => {
      await using world = await store.world();
      const counts = orchestration("Counts", async (ctx, n: number): Promise<string> => {
        return n < 2 ? ctx.continueAsNew(n + 1) : `done: ${n}`;
      });
      await world.start({ orchestrations: [counts] });
      await world.run(counts, { instanceId: "c", input: 0 });

      expect(await world.client.getStatus("c")).toMatchObject({
        status: "Completed",
        output: "done: 2",
        executionId: 3,
      });
      expect((await world.client.readHistory("c"))[0]).toMatchObject({ type: "OrchestrationStarted", input: "2" });
    });

    test("of a cancelled instance is Failed, with who cancelled it", async () => {
      await using world = await store.world();
      await world.start({ orchestrations: [waiting] });
      await world.client.start(waiting, { instanceId: "w" });
      await world.rest();
      await world.client.cancel("w", "test cancellation");

      expect(await world.settle(world.client.waitForOrchestration("w"))).toMatchObject({
        status: "Failed",
        error: "canceled: test cancellation",
        details: { category: "application", kind: { type: "Cancelled", reason: "test cancellation" } },
      });
    });

    test("goes from NotFound over Pending and Running to Completed, and stays there", async () => {
      await using world = await store.world();
      const quick = orchestration("Quick", async (ctx) => {
        await ctx.scheduleTimer("1s");
        return "quick";
      });
      const statusOf = async () => (await world.client.getStatus("q")).status;
      expect(await statusOf()).toBe("NotFound");
      await world.client.start(quick, { instanceId: "q" });
      expect(await statusOf()).toBe("Pending");
      await world.start({ orchestrations: [quick] });
      await world.advance("50ms");
      expect(await statusOf()).toBe("Running");
      await world.advance("1s");
      expect(await world.client.getStatus("q")).toMatchObject({ status: "Completed", output: "quick" });
      await world.advance("30d");

      expect(await world.client.getStatus("q")).toMatchObject({ status: "Completed", output: "quick" });
    });

    test("of one instance is not that of another", async () => {
      await using world = await store.world();
      await world.start({ orchestrations: [succeeding, failing, waiting], activities: [fail] });
      for (const definition of [succeeding, failing, waiting]) {
        await world.client.start(definition, { instanceId: definition.name });
      }
      await world.advance("1s");

      expect(await world.client.getStatus("Succeeding")).toMatchObject({ status: "Completed", output: "fine" });
      expect(await world.client.getStatus("Failing")).toMatchObject(FAILED);
      expect(await world.client.getStatus("Waiting")).toMatchObject({ status: "Running" });
    });
  });
});
