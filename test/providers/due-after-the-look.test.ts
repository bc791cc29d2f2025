// Real clocks move while a fetch looks, and real timers may fire a moment early. What falls due between the look and the
// wait must still end the wait.

import { describe, expect, onTestFinished, test } from "vitest";
import type { Clock, Timer } from "../../src/clock.js";
import type { Provider } from "../../src/provider/provider.js";
import { MemoryProvider } from "../../src/providers/memory/index.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";

const DUE = 1_000_000;

/** Stands just before the time until a timer is set; then every look at it moves it on by a millisecond. */
class CreepingClock implements Clock {
  #now = DUE - 100;
  #isCreeping = false;
  readonly #callbacks = new Set<() => void>();

  now(): number {
    if (this.#isCreeping) this.#now += 1;
    return this.#now;
  }

  setTimer(delayMs: number, callback: () => void): Timer {
    const fire = (): void => {
      if (this.#callbacks.delete(fire)) callback();
    };
    this.#callbacks.add(fire);
    if (this.#isCreeping && delayMs <= 1) setImmediate(fire);
    return { clear: () => void this.#callbacks.delete(fire) };
  }

  /** Fires all timers, a little before their time. */
  fireEarlyBy(ms: number): void {
    this.#now = DUE - ms;
    this.#isCreeping = true;
    for (const fire of [...this.#callbacks]) fire();
  }
}

describe.each<[string, (clock: Clock) => Promise<Provider>]>([
  ["memory", async (clock) => new MemoryProvider({ clock })],
  ["sqlite", (clock) => SqliteProvider.open(":memory:", { clock })],
])("a fetch that waits on the %s provider", (_, open) => {
  test.each([1, 2, 3, 4])("gets a message that falls due right after its look, %i ms later", async (earlyByMs) => {
    const clock = new CreepingClock();
    const provider = await open(clock);
    onTestFinished(() => provider[Symbol.asyncDispose]());
    await provider.enqueueForOrchestrator(
      {
        type: "StartOrchestration",
        instance: "i",
        orchestration: "O",
        input: "null",
        version: null,
        parentInstance: null,
        parentId: null,
        executionId: 1,
      },
      { delayMs: 100 },
    );
    const fetching = provider.fetchOrchestrationItem({ lockTimeoutMs: 10_000, pollTimeoutMs: 10_000 });
    await new Promise((resolve) => setImmediate(resolve));

    clock.fireEarlyBy(earlyByMs);

    expect((await fetching)?.item.instance).toBe("i");
  });
});
