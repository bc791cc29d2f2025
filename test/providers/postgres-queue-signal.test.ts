// News that finds a process busy is looked at later, by a statement that is made anyhow or when the process has time. Late is all
// that it may be: whatever happens in between, somebody looks.

import { describe, expect, test } from "vitest";
import { QueueSignal } from "../../src/providers/postgres/queue-signal.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";

/** A queue with nothing in it, and fetches that wait because they have found that out. */
async function waiting(...groups: readonly string[]) {
  const clock = new VirtualClock();
  const process = { isBusy: false };
  const signal = new QueueSignal<string, undefined>(clock, () => process.isBusy);
  const looks: string[] = [];
  /** What the next looks find out. */
  const finding = { isEmpty: true, isPassed: false };
  const look = (group: string): null => {
    if (signal.come(group, clock.now(), false).kind === "waits") return null;
    looks.push(group);
    signal.looked(group, { as: signal.knowledge, lookedAt: clock.now(), ...finding, nextAt: null });
    return null;
  };
  for (const group of groups) {
    void signal.longPoll({ group, pollTimeoutMs: 60_000, attempt: () => look(group), nextDueAt: () => null });
  }
  await clock.advance(0);
  looks.length = 0;
  return { clock, process, signal, looks, look, finding };
}

describe("news of another process", () => {
  test("is looked at at once where the process is idle, by as many as there is something for", async () => {
    const { clock, signal, looks, finding } = await waiting("a", "a", "a");
    finding.isEmpty = false;
    signal.hear(2);
    await clock.advance(0);
    expect(looks).toEqual(["a", "a"]);
  });

  test("is looked at as soon as a busy process is seen to be idle", async () => {
    const { clock, process, signal, looks } = await waiting("a");
    process.isBusy = true;
    signal.hear(1);
    await clock.advance(50);
    expect(looks).toEqual([]);
    process.isBusy = false;
    await clock.advance(10);
    expect(looks).toEqual(["a"]);
    await clock.advance(1_000);
    expect(looks).toEqual(["a"]);
  });

  test("is looked at after a tenth of a second at the latest, however much more of it comes", async () => {
    const { clock, process, signal, looks } = await waiting("a");
    process.isBusy = true;
    for (let pieces = 0; pieces < 10; pieces += 1) {
      signal.hear(1);
      await clock.advance(10);
    }
    expect(looks).toEqual(["a"]);
  });

  test("is looked at at once where fetches wait that want different things: what one finds says nothing of the others", async () => {
    const { clock, process, signal, looks } = await waiting("a", "b");
    process.isBusy = true;
    signal.hear(1);
    await clock.advance(0);
    expect(looks.toSorted()).toEqual(["a", "b"]);
  });
});

describe("a look that is owed", () => {
  test("is paid by one that began after the news and found nothing", async () => {
    const { clock, process, signal, looks } = await waiting("a");
    process.isBusy = true;
    signal.hear(1);
    const as = signal.knowledge;
    signal.notify(0);
    expect(signal.come("a", clock.now(), true).kind).toBe("looks");
    signal.looked("a", {
      as: { ...as, news: signal.news },
      lookedAt: clock.now(),
      isEmpty: true,
      isPassed: false,
      nextAt: null,
    });
    await clock.advance(1_000);
    expect(looks).toEqual([]);
  });

  test("is not paid by one that began before the news, nor by one that was passed over or left something", async () => {
    for (const found of [
      { isBefore: true, isEmpty: true, isPassed: false },
      { isBefore: false, isEmpty: false, isPassed: true },
      { isBefore: false, isEmpty: false, isPassed: false },
    ]) {
      const { clock, process, signal, looks } = await waiting("a");
      process.isBusy = true;
      signal.notify(0);
      expect(signal.come("a", clock.now(), true).kind).toBe("looks");
      const before = signal.knowledge;
      signal.hear(1);
      const as = found.isBefore ? before : signal.knowledge;
      signal.looked("a", { as, lookedAt: clock.now(), isEmpty: found.isEmpty, isPassed: found.isPassed, nextAt: null });
      await clock.advance(1_000);
      expect(looks).toEqual(["a"]);
    }
  });

  test("is made by whoever takes it over, or is owed again", async () => {
    const { clock, process, signal, looks } = await waiting("a");
    process.isBusy = true;
    signal.hear(3);
    expect(signal.owed).toBe(3);
    expect(signal.takeOwed()).toBe(3);
    await clock.advance(1_000);
    expect(looks).toEqual([]);
    signal.owe(3);
    await clock.advance(100);
    expect(looks).toEqual(["a"]);
  });

  test("is not for one of several kinds of fetches to take over, and all of them make it", async () => {
    const { clock, process, signal, looks, look } = await waiting("a");
    process.isBusy = true;
    signal.hear(1);
    look("b");
    expect(signal.owed).toBe(0);
    looks.length = 0;
    await clock.advance(100);
    expect(looks).toEqual(["a"]);
  });
});

describe("what others had locked", () => {
  test("is looked at again a moment later, by all who were behind", async () => {
    const { clock, signal, looks, look, finding } = await waiting("a", "a");
    signal.notify(0);
    expect(signal.come("a", clock.now(), true).kind).toBe("looks");
    expect(signal.come("a", clock.now(), false).kind).toBe("waits");
    signal.looked("a", { as: signal.knowledge, lookedAt: clock.now(), isEmpty: false, isPassed: true, nextAt: null });
    look("a");
    expect(looks).toEqual([]);
    finding.isEmpty = false;
    await clock.advance(10);
    expect(looks).toEqual(["a", "a"]);
  });
});
