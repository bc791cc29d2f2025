import { describe, expect, test } from "vitest";
import { Breath } from "../../src/runtime/breath.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";

/** Time that a test moves within one turn of the event loop. */
class Stopwatch extends VirtualClock {
  passedMs = 0;

  override now(): number {
    return super.now() + this.passedMs;
  }
}

function open(): { readonly breath: Breath; readonly clock: Stopwatch } {
  const clock = new Stopwatch();
  return { breath: new Breath(clock), clock };
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

describe("a store that answers at once", () => {
  test("is left alone for a while, then everybody waits until the event loop has turned", async () => {
    const { breath, clock } = open();
    expect(breath.take()).toBeNull();
    breath.answered(breath.turn);
    clock.passedMs = 9;
    expect(breath.take()).toBeNull();
    clock.passedMs = 10;

    const pause = breath.take();
    expect(pause).toBeInstanceOf(Promise);
    expect(breath.take()).toBe(pause);
    let hasTurned = false;
    setImmediate(() => {
      hasTurned = true;
    });
    await pause;
    await nextTurn();
    expect(hasTurned).toBe(true);
    expect(breath.take()).toBeNull();
  });

  test("cannot starve the event loop, however many calls are made", async () => {
    const breath = new Breath({ now: () => performance.now(), setTimer: () => ({ clear: () => {} }) });
    let hasFired = false;
    setTimeout(() => {
      hasFired = true;
    }, 1);

    for (let calls = 0; calls < 50_000_000 && !hasFired; calls += 1) {
      const pause = breath.take();
      if (pause !== null) await pause;
      const { turn } = breath;
      await null; // The store answers.
      breath.answered(turn);
    }

    expect(hasFired).toBe(true);
  });

  test("is given its whole while anew whenever the event loop has turned by itself", async () => {
    const { breath, clock } = open();
    for (let rounds = 0; rounds < 5; rounds += 1) {
      expect(breath.take()).toBeNull();
      breath.answered(breath.turn);
      clock.passedMs += 9;
      expect(breath.take()).toBeNull();
      await nextTurn();
    }
  });
});

describe("a store that answers after the event loop has turned", () => {
  test("is never paused for, however long the turns of the event loop take", async () => {
    const { breath, clock } = open();
    for (let rounds = 0; rounds < 10; rounds += 1) {
      expect(breath.take()).toBeNull();
      const { turn } = breath;
      clock.passedMs += 1_000;
      expect(breath.take()).toBeNull();
      await nextTurn();
      breath.answered(turn);
      expect(breath.take()).toBeNull();
    }
  });
});
