// The text by which an instance tells how far it is, and its version, by which others see that it changed. R§4.11, P§8.

import { describe, expect, test } from "vitest";
import { activity, orchestration } from "../../src/define.js";
import type { OrchestrationContext } from "../../src/engine/orchestration-context.js";
import { DEFAULT_LIMITS } from "../../src/history/limits.js";
import { onEveryStore } from "./stores.js";

const work = activity("Work", async () => {});

interface Told {
  readonly what: string;
  readonly run: (ctx: OrchestrationContext) => Promise<void> | void;
  readonly customStatus: string | null;
  readonly customStatusVersion: number;
}

const TOLD: readonly Told[] = [
  { what: "is none, in version 0, where none was set", run: () => {}, customStatus: null, customStatusVersion: 0 },
  {
    what: "is the one that was set",
    run: (ctx) => ctx.setCustomStatus("step 1"),
    customStatus: "step 1",
    customStatusVersion: 1,
  },
  {
    what: "is none after a reset, and has changed all the same",
    run: (ctx) => {
      ctx.setCustomStatus("step 1");
      ctx.resetCustomStatus();
    },
    customStatus: null,
    customStatusVersion: 1,
  },
  {
    what: "is the last of a turn, which changes it once",
    run: (ctx) => {
      for (const step of ["step 1", "step 2", "step 3"]) ctx.setCustomStatus(step);
    },
    customStatus: "step 3",
    customStatusVersion: 1,
  },
  {
    what: "stays through turns that do not set it",
    run: async (ctx) => {
      ctx.setCustomStatus("processing");
      await ctx.scheduleActivity(work);
    },
    customStatus: "processing",
    customStatusVersion: 1,
  },
  {
    what: "is the one of the latest turn, and every turn that sets it counts",
    run: async (ctx) => {
      ctx.setCustomStatus("step 1");
      await ctx.scheduleActivity(work);
      ctx.setCustomStatus("step 2");
    },
    customStatus: "step 2",
    customStatusVersion: 2,
  },
];

onEveryStore((store) => {
  describe("the custom status of an instance that has ended", () => {
    test.each(TOLD.map((row) => [row.what, row] as const))("%s", async (_what, told) => {
      await using world = await store.world();
      const tells = orchestration("Tells", async (ctx) => told.run(ctx));
      await world.start({ orchestrations: [tells], activities: [work] });
      const handle = await world.client.start(tells, { instanceId: "t" });
      await world.settle(handle.result());

      const { customStatus, customStatusVersion } = told;
      expect(await handle.status()).toMatchObject({ status: "Completed", customStatus, customStatusVersion });
    });

    test("is told with its failure", async () => {
      await using world = await store.world();
      const fails = orchestration("Fails", async (ctx) => {
        ctx.setCustomStatus("about to fail");
        throw new Error("as announced");
      });
      await world.start({ orchestrations: [fails] });
      await world.client.start(fails, { instanceId: "f" });

      expect(await world.settle(world.client.waitForOrchestration("f"))).toMatchObject({
        status: "Failed",
        error: "as announced",
        customStatus: "about to fail",
        customStatusVersion: 1,
      });
    });
  });

  describe.each([
    ["kept in memory", {}],
    ["replayed in every turn", { warmCacheBytes: 0 }],
  ])("the custom status, %s,", (_how, options) => {
    test("is read by the orchestration as it has set it", async () => {
      await using world = await store.world();
      const reads = orchestration("Reads", async (ctx) => {
        const seen = [ctx.customStatus];
        ctx.setCustomStatus("step 1");
        seen.push(ctx.customStatus);
        await ctx.scheduleActivity(work);
        seen.push(ctx.customStatus);
        ctx.setCustomStatus("step 2");
        seen.push(ctx.customStatus);
        await ctx.scheduleActivity(work);
        return seen;
      });
      await world.start({ orchestrations: [reads], activities: [work], ...options });

      expect(await world.run(reads, { instanceId: "r" })).toEqual([null, "step 1", "step 1", "step 2"]);
      expect(await world.client.getStatus("r")).toMatchObject({ customStatus: "step 2", customStatusVersion: 2 });
    });

    test("goes along with continue-as-new, and its version counts on", async () => {
      await using world = await store.world();
      const look = activity("Look", async (ctx) => {
        const status = await world.client.getStatus(ctx.instanceId);
        return status.status === "NotFound" ? null : [status.customStatus, status.customStatusVersion];
      });
      const continues = orchestration("Continues", async (ctx, seen: unknown[]): Promise<unknown[]> => {
        if (ctx.executionId === 1) {
          ctx.setCustomStatus("step A");
          return ctx.continueAsNew([]);
        }
        const now = [...seen, ctx.customStatus, await ctx.scheduleActivity(look)];
        if (ctx.executionId === 2) return ctx.continueAsNew(now);
        ctx.setCustomStatus("step B");
        return now;
      });
      await world.start({ orchestrations: [continues], activities: [look], ...options });

      expect(await world.run(continues, { instanceId: "c", input: [] })).toEqual([
        "step A",
        ["step A", 1],
        "step A",
        ["step A", 1],
      ]);
      expect(await world.client.getStatus("c")).toMatchObject({
        executionId: 3,
        customStatus: "step B",
        customStatusVersion: 2,
      });
    });

    test("can be reset by the next execution, for good", async () => {
      await using world = await store.world();
      const resets = orchestration("Resets", async (ctx): Promise<unknown> => {
        if (ctx.executionId === 1) {
          ctx.setCustomStatus("step A");
          return ctx.continueAsNew();
        }
        if (ctx.executionId === 2) {
          ctx.resetCustomStatus();
          return ctx.continueAsNew();
        }
        return ctx.customStatus;
      });
      await world.start({ orchestrations: [resets], ...options });

      expect(await world.run(resets, { instanceId: "r" })).toBeNull();
      expect(await world.client.getStatus("r")).toMatchObject({ customStatus: null, customStatusVersion: 2 });
    });
  });

  describe("a custom status", () => {
    const { maxCustomStatusBytes } = DEFAULT_LIMITS;

    test.each([
      [262_143, "x"],
      [262_144, "x"],
      [262_144, "ü"],
    ])("of %i bytes passes, made of %s", async (bytes, character) => {
      await using world = await store.world();
      const text = character.repeat(bytes / Buffer.byteLength(character));
      const tells = orchestration("Tells", async (ctx) => {
        ctx.setCustomStatus(text);
        return "done";
      });
      await world.start({ orchestrations: [tells] });

      expect(await world.run(tells, { instanceId: "t" })).toBe("done");
      expect(await world.client.getStatus("t")).toMatchObject({ customStatus: text });
    });

    test.each([
      [262_145, "x"],
      [262_146, "ü"],
    ])("of %i bytes fails the orchestration, and the one before stays", async (bytes, character) => {
      await using world = await store.world();
      const text = character.repeat(bytes / Buffer.byteLength(character));
      const tells = orchestration("Tells", async (ctx) => {
        ctx.setCustomStatus("short");
        await ctx.scheduleActivity(work);
        ctx.setCustomStatus(text);
        return "done";
      });
      await world.start({ orchestrations: [tells], activities: [work] });
      await world.client.start(tells, { instanceId: "t" });

      expect(await world.ending("t")).toEqual({
        status: "Failed",
        output: `Custom status size (${bytes} bytes) exceeds limit (${maxCustomStatusBytes} bytes)`,
      });
      expect(await world.client.getStatus("t")).toMatchObject({ customStatus: "short", customStatusVersion: 1 });
    });
  });
});
