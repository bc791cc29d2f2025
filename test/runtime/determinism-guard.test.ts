// The determinism guard as users meet it: when it is on, what its error looks like, and whom it leaves alone.

import { afterEach, describe, expect, test, vi } from "vitest";
import { Client } from "../../src/client/client.js";
import { activity, orchestration } from "../../src/define.js";
import { NondeterministicCallError } from "../../src/errors.js";
import { MemoryProvider } from "../../src/providers/memory/index.js";
import { formatLogLine, logTo } from "../../src/runtime/log.js";
import { Runtime } from "../../src/runtime/runtime.js";
import { TestWorld } from "../../src/testing/test-world.js";

const looks = orchestration("Looks", async () => Date.now() > 0);
const MESSAGE =
  "Date.now() was called in orchestration 'Looks' (instance 'order-1'): its value would be another one on replay. Use `await ctx.utcNow()`.";

afterEach(() => {
  vi.unstubAllEnvs();
});

describe("the determinism guard", () => {
  test.each<[string, string | undefined, boolean | undefined, "completed" | "failed"]>([
    ["is on where the environment says nothing", undefined, undefined, "failed"],
    ["is on in development", "development", undefined, "failed"],
    ["is off in production", "production", undefined, "completed"],
    ["is on in production, if it is asked for", "production", true, "failed"],
    ["is off in development, if it is not wanted", "development", false, "completed"],
  ])("%s", async (_what, environment, determinismGuard, ending) => {
    vi.stubEnv("NODE_ENV", environment);
    await using world = await TestWorld.open();
    await world.start({ orchestrations: [looks], ...(determinismGuard === undefined ? {} : { determinismGuard }) });

    await world.client.start(looks, { instanceId: "order-1" });
    await world.rest();

    expect(world.factsOf("orchestration-ended")).toMatchObject([{ ending }]);
    expect(world.factsOf("nondeterministic-call")).toEqual([]);
  });

  test("fails the orchestration with an error that says what to use, and shows observers where", async () => {
    await using world = await TestWorld.open();
    await world.start({ orchestrations: [looks] });

    await expect(world.run(looks, { instanceId: "order-1" })).rejects.toMatchObject({
      code: "DUROXIDE_ORCHESTRATION_FAILED",
      message: MESSAGE,
    });
    const error = world.factsOf("orchestration-ended")[0]?.error as Error;
    expect(error).toBeInstanceOf(NondeterministicCallError);
    expect(error).toMatchObject({ call: "Date.now()", orchestrationName: "Looks", instanceId: "order-1" });
    expect(error.stack).toContain("test/runtime/determinism-guard.test.ts");
  });

  test("is each runtime's own: one without it runs beside one that has it", async () => {
    await using strict = await TestWorld.open();
    await using free = await TestWorld.open();
    await strict.start({ orchestrations: [looks] });
    await free.start({ orchestrations: [looks], determinismGuard: false });

    expect(await free.run(looks)).toBe(true);
    await expect(strict.run(looks, { instanceId: "order-1" })).rejects.toThrow(MESSAGE);
  });

  test("leaves activities and observers alone, also those that hear what code traces", async () => {
    const seen: unknown[] = [];
    const work = activity("Work", (ctx) => {
      ctx.trace.info("at work");
      return [typeof Date.now(), typeof Math.random(), typeof crypto.randomUUID()];
    });
    const traces = orchestration("Traces", async (ctx) => {
      ctx.trace.info("hello");
      return ctx.scheduleActivity(work);
    });
    await using world = await TestWorld.open();
    const observers = [
      (fact: { readonly type: string }) => {
        seen.push([fact.type, typeof Date.now(), new Date().getFullYear() > 2_000]);
      },
    ];
    await world.start({ orchestrations: [traces], activities: [work], observers });

    expect(await world.run(traces)).toEqual(["number", "number", "string"]);
    expect(seen.filter((entry) => (entry as unknown[])[0] === "trace")).toEqual([
      ["trace", "number", true],
      ["trace", "number", true],
    ]);
    expect(world.factsOf("observer-failed")).toEqual([]);
  });

  test("leaves the runtime's own clock alone, in real time", async () => {
    const timed = orchestration("Timed", async (ctx) => {
      ctx.trace.info("beginning");
      const before = await ctx.utcNow();
      await ctx.scheduleTimer(1);
      return (await ctx.utcNow()) >= before && (await ctx.newGuid()).length;
    });
    const provider = new MemoryProvider();
    await using _runtime = await Runtime.start({ provider, orchestrations: [timed], determinismGuard: true });

    const handle = await new Client(provider).start(timed);
    expect(await handle.result({ timeoutMs: 10_000 })).toBe(36);
  });

  test("does not speak before assertDeterministic does", async () => {
    await using world = await TestWorld.open();
    const waits = orchestration("Waits", async (ctx) => {
      const now = Math.floor(Date.now() / 1e15);
      return [await ctx.waitForEvent("go"), now];
    });
    const runtime = await world.start({ orchestrations: [waits], determinismGuard: false });
    await world.client.start(waits, { instanceId: "w" });
    await world.rest();
    await runtime.restart({ determinismGuard: true });

    await expect(world.assertDeterministic()).rejects.toThrow(
      "Instance 'w', execution 1: the code uses Date.now, which no history records; use ctx.utcNow instead.",
    );
  });

  test("says on the log what it has let pass, and where", async () => {
    const lines: string[] = [];
    const log = logTo((record) => lines.push(formatLogLine(record)), { level: "warn" });
    const later = orchestration("Later", async (ctx) => [await ctx.waitForEvent("go"), Date.now() > 0]);
    await using world = await TestWorld.open();
    const runtime = await world.start({ orchestrations: [later], observers: [log] });
    const handle = await world.client.start(later, { instanceId: "l" });
    await world.rest();
    await runtime.restart();
    await world.client.raiseEvent("l", "go", 1);

    expect(await world.settle(handle.result())).toEqual([1, true]);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(
      "WARN  duroxide::runtime: Date.now() was called in orchestration 'Later' (instance 'l')",
    );
    expect(lines[0]).toContain("test/runtime/determinism-guard.test.ts");
  });
});
