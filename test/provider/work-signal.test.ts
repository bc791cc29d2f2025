import { describe, expect, test } from "vitest";
import { WorkSignal } from "../../src/provider/kit/work-signal.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";

describe("when all waiting fetches are woken", () => {
  test("those that have waited longest are not always the first to look", async () => {
    const clock = new VirtualClock();
    const signal = new WorkSignal(clock);
    let lookers: string[] = [];
    const polls = ["old", "new"].flatMap((who) =>
      Array.from({ length: 16 }, () =>
        signal.longPoll({
          group: "same",
          pollTimeoutMs: 60_000,
          attempt: () => {
            lookers.push(who);
            return null;
          },
          nextDueAt: () => null,
        }),
      ),
    );
    await clock.advance(0);

    const firsts: (string | undefined)[] = [];
    for (let round = 0; round < 40; round += 1) {
      lookers = [];
      signal.notify();
      await clock.advance(0);
      expect(lookers).toHaveLength(32);
      firsts.push(lookers[0]);
    }

    for (let round = 0; round + 6 <= firsts.length; round += 1) {
      expect(new Set(firsts.slice(round, round + 6)), `rounds from ${round} on`).toEqual(new Set(["old", "new"]));
    }
    signal.close();
    await Promise.all(polls);
  });

  test("as many as there is work for are woken, oldest first", async () => {
    const clock = new VirtualClock();
    const signal = new WorkSignal(clock);
    const lookers: number[] = [];
    const polls = [1, 2, 3].map((n) =>
      signal.longPoll({
        group: "same",
        pollTimeoutMs: 60_000,
        attempt: () => {
          lookers.push(n);
          return null;
        },
        nextDueAt: () => null,
      }),
    );
    await clock.advance(0);
    signal.notify(2);
    await clock.advance(0);

    expect(lookers).toEqual([1, 2, 3, 1, 2]);
    signal.close();
    await Promise.all(polls);
  });
});
