import { describe, expect, test } from "vitest";
import { setSharedTimer } from "../../src/runtime/shared-timers.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";

describe("timers of one length", () => {
  test("come when each of them would have come by itself, in their order, and cost one", async () => {
    const clock = new VirtualClock();
    const began = clock.now();
    const came: string[] = [];
    const set = (name: string): void =>
      void setSharedTimer(clock, 100, () => void came.push(`${name} at ${clock.now() - began}`));
    set("first");
    set("second");
    await clock.advance(30);
    set("third");
    expect(clock.pendingTimers).toBe(1);

    await clock.advance(70);
    expect(came).toEqual(["first at 100", "second at 100"]);
    await clock.advance(29);
    expect(came).toHaveLength(2);
    await clock.advance(1);
    expect(came).toEqual(["first at 100", "second at 100", "third at 130"]);
    expect(clock.pendingTimers).toBe(0);
  });

  test("do not come once they are cleared, and clearing twice or late does nothing", async () => {
    const clock = new VirtualClock();
    const came: string[] = [];
    const timers = ["a", "b", "c"].map((name) => setSharedTimer(clock, 100, () => void came.push(name)));
    timers[0]?.clear();
    timers[0]?.clear();
    await clock.advance(100);
    timers[1]?.clear();

    expect(came).toEqual(["b", "c"]);
    expect(clock.pendingTimers).toBe(0);
  });

  test("leave no timer behind when the last of them is cleared", () => {
    const clock = new VirtualClock();
    const timers = [1, 2].map(() => setSharedTimer(clock, 100, () => {}));
    for (const timer of timers) timer.clear();

    expect(clock.pendingTimers).toBe(0);
  });

  test("may set and clear others, also of their own length, as they come", async () => {
    const clock = new VirtualClock();
    const began = clock.now();
    const came: string[] = [];
    const note = (name: string): void => void came.push(`${name} at ${clock.now() - began}`);
    const again = (): void => {
      note("again");
      if (came.length < 3) setSharedTimer(clock, 100, again);
    };
    setSharedTimer(clock, 100, () => {
      note("clears the next");
      next.clear();
    });
    const next = setSharedTimer(clock, 100, () => note("next"));
    await clock.advance(10);
    setSharedTimer(clock, 100, again);

    await clock.advance(1_000);
    expect(came).toEqual(["clears the next at 100", "again at 110", "again at 210"]);
    expect(clock.pendingTimers).toBe(0);
  });

  test("of another length, or by another clock, are not theirs", async () => {
    const [clock, other] = [new VirtualClock(), new VirtualClock()];
    const came: string[] = [];
    setSharedTimer(clock, 100, () => void came.push("long"));
    setSharedTimer(clock, 50, () => void came.push("short"));
    setSharedTimer(other, 50, () => void came.push("other clock"));
    await clock.advance(60);

    expect(came).toEqual(["short"]);
    expect([clock.pendingTimers, other.pendingTimers]).toEqual([1, 1]);
  });
});
