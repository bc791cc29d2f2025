// How runtimes wait for work: with stores that can wait, and with those that answer at once. R§6.3, P§3.

import { describe, expect, test } from "vitest";
import { activity, orchestration } from "../../src/define.js";
import type { Provider } from "../../src/provider/provider.js";
import { DEFAULT_RUNTIME_OPTIONS } from "../../src/runtime/options.js";
import type { TestWorld } from "../../src/testing/test-world.js";
import { altered } from "../altered.js";
import { onEveryStore } from "./stores.js";

const hello = activity("Hello", (_ctx, name: string) => `Hello, ${name}!`);
const greet = orchestration("Greet", async (ctx, name: string) => ctx.scheduleActivity(hello, name));
const code = { orchestrations: [greet], activities: [hello] };
/** One slot of each kind, so that its looks can be counted. */
const oneSlot = { orchestrationConcurrency: 1, workerConcurrency: 1 };

interface Looks {
  readonly provider: Provider;
  /** When the orchestrator queue was looked into, in milliseconds since the world began. */
  readonly atMs: number[];
  readonly pollTimeoutsMs: Set<number | undefined>;
}

/** The world's store, with a note of every look. `waits`: whether it waits for work as it is told to. */
function watched(world: TestWorld, { waits }: { readonly waits: boolean }): Looks {
  const startMs = world.clock.now();
  const atMs: number[] = [];
  const pollTimeoutsMs = new Set<number | undefined>();
  const provider = altered(world.provider, {
    fetchOrchestrationItem(options) {
      atMs.push(world.clock.now() - startMs);
      pollTimeoutsMs.add(options.pollTimeoutMs);
      return world.provider.fetchOrchestrationItem(waits ? options : { ...options, pollTimeoutMs: 0 });
    },
    fetchWorkItem: (options) => world.provider.fetchWorkItem(waits ? options : { ...options, pollTimeoutMs: 0 }),
  });
  return { provider, atMs, pollTimeoutsMs };
}

onEveryStore((store) => {
  describe("on a store that waits for work", () => {
    test("no step of an orchestration waits for a poll, with the default options", async () => {
      await using world = await store.world();
      const { longPollTimeoutMs, minPollIntervalMs } = DEFAULT_RUNTIME_OPTIONS;
      await world.start({ ...code, longPollTimeoutMs, minPollIntervalMs });
      await world.advance(100_250);
      const startMs = world.clock.now();

      expect(await world.run(greet, { input: "Ada" })).toBe("Hello, Ada!");
      expect(world.clock.now()).toBe(startMs);
    });

    test("an idle runtime looks once in the time that it lets the store wait, and work ends the wait", async () => {
      await using world = await store.world();
      const { provider, atMs, pollTimeoutsMs } = watched(world, { waits: true });
      await world.start({ ...code, ...oneSlot, provider, longPollTimeoutMs: 1_000, minPollIntervalMs: 100 });
      await world.advance(2_500);
      expect(atMs).toEqual([0, 1_000, 2_000]);

      expect(await world.run(greet, { input: "Ada" })).toBe("Hello, Ada!");
      expect(atMs.slice(3)).toEqual([2_500, 2_500]);
      expect([...pollTimeoutsMs]).toEqual([1_000]);
    });
  });

  describe("on a store that answers at once that there is nothing", () => {
    test.each([
      ["by default", {}, 100],
      ["as it is told", { minPollIntervalMs: 50 }, 50],
    ])("a runtime looks again after its poll interval: %s", async (_what, options, intervalMs) => {
      await using world = await store.world();
      const { provider, atMs } = watched(world, { waits: false });
      await world.start({ ...code, ...oneSlot, ...options, provider });
      await world.advance(4 * intervalMs - 1);
      expect(atMs).toEqual([0, 1, 2, 3].map((n) => n * intervalMs));

      const startMs = world.clock.now();
      expect(await world.run(greet, { input: "Ada" })).toBe("Hello, Ada!");
      // A start, an activity and its completion: three looks, each at most an interval away.
      expect(world.clock.now() - startMs).toBeGreaterThan(0);
      expect(world.clock.now() - startMs).toBeLessThanOrEqual(3 * intervalMs);
    });
  });
});
