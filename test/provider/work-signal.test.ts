import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { type LongPoll, WorkSignal } from "../../src/provider/kit/work-signal.js";
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

/** A long poll of a test: what it answered, and how often it has looked. */
interface Watched {
  readonly answer: Promise<string | null>;
  /** Undefined: it has not ended. */
  readonly ended: () => string | null | undefined;
  readonly looks: () => number;
  readonly ends: () => number;
}

type Look = Promise<string | null> | string | null;

interface WatchedPoll extends Partial<Omit<LongPoll<string, string>, "attempt">> {
  /** The n-th look, from 1 on. */
  readonly attempt?: (nth: number, looks: () => void) => Look;
}

function watch(signal: WorkSignal<string, string>, poll: WatchedPoll = {}): Watched {
  let ended: string | null | undefined;
  let looks = 0;
  let ends = 0;
  const answer = signal.longPoll({
    group: "same",
    pollTimeoutMs: 60_000,
    nextDueAt: () => null,
    ...poll,
    attempt: (told) => {
      looks += 1;
      return poll.attempt?.(looks, told) ?? null;
    },
    onEnd: () => {
      ends += 1;
    },
  });
  answer.then(
    (value) => {
      ended = value;
    },
    () => {},
  );
  return { answer, ended: () => ended, looks: () => looks, ends: () => ends };
}

function open(): { readonly clock: VirtualClock; readonly signal: WorkSignal<string, string> } {
  const clock = new VirtualClock();
  return { clock, signal: new WorkSignal(clock) };
}

/** A promise, and how to settle it. */
function later<T>(): { readonly promise: Promise<T>; readonly settle: (value: T) => void } {
  let settle!: (value: T) => void;
  const promise = new Promise<T>((resolve) => {
    settle = resolve;
  });
  return { promise, settle };
}

describe("a waiting fetch that is reserved", () => {
  test("answers what it is given, as it wants it, and does not look any more", async () => {
    const { signal } = open();
    const poll = watch(signal, { want: "something blue" });

    const [reservation] = signal.reserve(1);
    expect(reservation?.want).toBe("something blue");
    reservation?.give("the sky");

    expect(await poll.answer).toBe("the sky");
    expect([poll.looks(), poll.ends()]).toEqual([1, 1]);
  });

  test("does not count among those who wait, of whom the smallest group counts", async () => {
    const { signal } = open();
    expect(signal.waiting).toBe(0);
    const polls = ["a", "a", "a", "b", "b"].map((group) => watch(signal, { group }));
    expect(signal.waiting).toBe(2);
    const reserved = signal.reserve(1);
    expect(signal.waiting).toBe(1);
    for (const reservation of reserved) reservation.giveBack();
    expect(signal.waiting).toBe(2);
    signal.close();
    await Promise.all(polls.map(({ answer }) => answer));

    expect(signal.waiting).toBe(0);
  });

  test("is reserved by one at a time, and woken by nobody", async () => {
    const { clock, signal } = open();
    const poll = watch(signal);
    const [reservation] = signal.reserve();

    expect(signal.reserve()).toEqual([]);
    signal.notify();
    await clock.advance(0);
    expect([poll.looks(), poll.ended()]).toEqual([1, undefined]);
    reservation?.give("work");
    expect(await poll.answer).toBe("work");
  });

  test("waits again when it is given back, without another look, and can be reserved again", async () => {
    const { clock, signal } = open();
    const poll = watch(signal);
    signal.reserve()[0]?.giveBack();
    await clock.advance(0);
    expect([poll.looks(), poll.ended()]).toEqual([1, undefined]);

    signal.reserve()[0]?.give("work");
    expect(await poll.answer).toBe("work");
  });

  test("looks for itself when it is given back after there may have been more work", async () => {
    const { clock, signal } = open();
    const poll = watch(signal, { attempt: (nth) => (nth === 1 ? null : "late work") });
    const [reservation] = signal.reserve();
    signal.notify(1);
    reservation?.giveBack();

    await clock.advance(0);
    expect([poll.looks(), poll.ended()]).toEqual([2, "late work"]);
  });

  test.each(["its deadline", "its caller", "the closing of its provider"])(
    "is not ended by %s before its fate is known: what was taken for it is not lost",
    async (what) => {
      for (const fate of ["given", "given back"]) {
        const { clock, signal } = open();
        const caller = new AbortController();
        const poll = watch(signal, { pollTimeoutMs: 100, signal: caller.signal });
        const [reservation] = signal.reserve();
        await clock.advance(what === "its deadline" ? 200 : 0);
        if (what === "its caller") caller.abort();
        if (what === "the closing of its provider") signal.close();
        await clock.advance(0);
        expect(poll.ended(), `${fate}, before`).toBeUndefined();

        if (fate === "given") reservation?.give("work");
        else reservation?.giveBack();
        expect(await poll.answer, fate).toBe(fate === "given" ? "work" : null);
        expect([poll.looks(), poll.ends()], fate).toEqual([1, 1]);
        expect(clock.pendingTimers, fate).toBe(0);
      }
    },
  );

  test("and given back has its deadline as before, to the millisecond", async () => {
    const { clock, signal } = open();
    const poll = watch(signal, { pollTimeoutMs: 100 });
    const [reservation] = signal.reserve();
    await clock.advance(50);
    reservation?.giveBack();

    await clock.advance(49);
    expect(poll.ended()).toBeUndefined();
    await clock.advance(1);
    expect(poll.ended()).toBeNull();
  });

  test("is one of those whom a notify would wake: so many of each group, oldest first", () => {
    const { signal } = open();
    for (const want of ["a1", "a2", "a3"]) watch(signal, { group: "a", want });
    watch(signal, { group: "b", want: "b1" });

    expect(signal.reserve(2).map(({ want }) => want)).toEqual(["a1", "a2", "b1"]);
    expect(signal.reserve(0)).toEqual([]);
    expect(signal.reserve(2).map(({ want }) => want)).toEqual(["a3"]);
  });

  test("is not always the same one that comes first, where all of them are", () => {
    const { signal } = open();
    for (const want of ["old", "middle", "new"]) watch(signal, { want });

    const firsts = new Set<string | undefined>();
    for (let round = 0; round < 6; round += 1) {
      const reserved = signal.reserve();
      firsts.add(reserved[0]?.want);
      for (const reservation of reserved) reservation.giveBack();
    }
    expect(firsts).toEqual(new Set(["old", "middle", "new"]));
  });
});

describe("a fetch that joins those who wait", () => {
  test("does not look, because they have found nothing, and is served like them", async () => {
    const { clock, signal } = open();
    const first = watch(signal, { joins: true });
    const second = watch(signal, { joins: true });
    const other = watch(signal, { joins: true, group: "other" });
    await clock.advance(0);
    expect([first.looks(), second.looks(), other.looks()]).toEqual([1, 0, 1]);

    signal.notify(2);
    await clock.advance(0);
    expect([first.looks(), second.looks()]).toEqual([2, 1]);
    signal.reserve(1)[0]?.give("work");
    signal.reserve(1)[0]?.give("more work");
    expect(new Set(await Promise.all([first.answer, second.answer]))).toEqual(new Set(["work", "more work"]));
  });

  test("ends at its own deadline, and with its own caller", async () => {
    const { clock, signal } = open();
    watch(signal, { joins: true });
    const caller = new AbortController();
    const brief = watch(signal, { joins: true, pollTimeoutMs: 50 });
    const impatient = watch(signal, { joins: true, signal: caller.signal });
    await clock.advance(49);
    expect([brief.ended(), impatient.ended()]).toEqual([undefined, undefined]);
    caller.abort();
    await clock.advance(1);

    expect([brief.ended(), impatient.ended()]).toEqual([null, null]);
    expect([brief.looks(), impatient.looks()]).toEqual([0, 0]);
  });

  test("looks for itself while those who waited look, or are looked for", async () => {
    const { clock, signal } = open();
    const look = later<string | null>();
    watch(signal, { joins: true, attempt: (nth) => (nth === 2 ? look.promise : null) });
    signal.notify(1);
    const beside = watch(signal, { joins: true });
    expect(beside.looks()).toBe(1);
    look.settle(null);
    await clock.advance(0);

    const reserved = signal.reserve();
    expect(reserved).toHaveLength(2);
    expect(watch(signal, { joins: true }).looks()).toBe(1);
    for (const reservation of reserved) reservation.giveBack();
    expect(watch(signal, { joins: true }).looks()).toBe(0);
  });

  test("looks where it may find other things than they", async () => {
    const { signal } = open();
    watch(signal);
    expect(await watch(signal, { attempt: () => "mine" }).answer).toBe("mine");
  });
});

describe("a look that does not happen at once", () => {
  test("has seen what was told before it, once it says that it looks", async () => {
    const { clock, signal } = open();
    const look = later<void>();
    const poll = watch(signal, {
      attempt: async (_, looks) => {
        await look.promise;
        looks();
        return null;
      },
    });
    signal.notify(1);
    look.settle();
    await clock.advance(0);

    expect(poll.looks()).toBe(1);
  });

  test("is repeated where something was told after it, and before its end", async () => {
    const { clock, signal } = open();
    const look = later<void>();
    const poll = watch(signal, {
      attempt: async (nth, looks) => {
        looks();
        if (nth > 1) return "found";
        await look.promise;
        return null;
      },
    });
    signal.notify(1);
    look.settle();
    await clock.advance(0);

    expect([poll.looks(), poll.ended()]).toEqual([2, "found"]);
  });

  test("and whose caller gives up leaves what it was told of to the next in line", async () => {
    const { clock, signal } = open();
    const due = later<number | null>();
    const caller = new AbortController();
    const first = watch(signal, { signal: caller.signal, nextDueAt: () => due.promise });
    signal.notify(1);
    const next = watch(signal);
    caller.abort();
    due.settle(null);
    await clock.advance(0);

    expect([first.ended(), next.looks()]).toEqual([null, 2]);
  });
});

describe("the timers of those who wait", () => {
  test("are one for all deadlines, and everybody ends at its own", async () => {
    const { clock, signal } = open();
    const began = clock.now();
    const timeouts = [70, 10, 300, 10, 40, 299, 301];
    const ends = timeouts.map((pollTimeoutMs) =>
      watch(signal, { pollTimeoutMs, joins: true }).answer.then(() => clock.now() - began),
    );
    expect(clock.pendingTimers).toBe(1);
    await clock.advance(20);
    expect(clock.pendingTimers).toBe(1);

    await clock.advance(400);
    expect(await Promise.all(ends)).toEqual(timeouts);
    expect(clock.pendingTimers).toBe(0);
  });

  test("are gone when the last wait has ended, however it has", async () => {
    const { clock, signal } = open();
    const polls = [watch(signal), watch(signal, { nextDueAt: () => clock.now() + 1_000 })];
    expect(clock.pendingTimers).toBe(2);

    for (const reservation of signal.reserve()) reservation.give("work");
    await Promise.all(polls.map(({ answer }) => answer));
    expect(clock.pendingTimers).toBe(0);
    signal.wakeAt(clock.now() + 500);
    expect(clock.pendingTimers).toBe(0);
  });
});

describe("whoever began a wait", () => {
  test("hears of its end once, however it ends", async () => {
    const broken = new Error("broken");
    const fails = (): never => {
      throw broken;
    };
    const endings: readonly [WatchedPoll, (signal: WorkSignal<string, string>, caller: AbortController) => void][] = [
      [{ attempt: () => "at once" }, () => {}],
      [{ attempt: fails }, () => {}],
      [{ attempt: () => Promise.reject(broken) }, () => {}],
      [{ nextDueAt: fails }, () => {}],
      [{ nextDueAt: () => Promise.reject(broken) }, () => {}],
      [{ pollTimeoutMs: 0 }, () => {}],
      [{ pollTimeoutMs: 10 }, () => {}],
      [{}, (_, caller) => caller.abort()],
      [{}, (signal) => signal.close()],
      [{}, (signal) => signal.reserve()[0]?.give("given")],
    ];
    for (const [poll, end] of endings) {
      const { clock, signal } = open();
      const caller = new AbortController();
      const watched = watch(signal, { ...poll, signal: caller.signal });
      end(signal, caller);
      await clock.advance(10);
      await watched.answer.catch((error: unknown) => expect(error).toBe(broken));
      expect(watched.ends()).toBe(1);
      expect(clock.pendingTimers).toBe(0);
    }
  });
});

describe("whoever waits by the same signal as others", () => {
  test("gives up with them, in one queue and all groups, and nobody else does", async () => {
    const { clock, signal } = open();
    const caller = new AbortController();
    const together = ["a", "a", "b"].map((group) => watch(signal, { group, signal: caller.signal }));
    const apart = watch(signal, { group: "a", signal: new AbortController().signal });
    await clock.advance(0);
    caller.abort();
    await clock.advance(0);

    expect(together.map(({ ended }) => ended())).toEqual([null, null, null]);
    expect(apart.ended()).toBeUndefined();
  });

  test("may wait again and again: it is listened to once, and for as long as the provider is open", async () => {
    const { clock, signal } = open();
    const caller = new AbortController();
    for (let times = 0; times < 50; times += 1) {
      const poll = watch(signal, { signal: caller.signal });
      signal.reserve()[0]?.give("work");
      expect(await poll.answer).toBe("work");
    }
    expect(getEventListeners(caller.signal, "abort").length).toBeLessThanOrEqual(1);

    const last = watch(signal, { signal: caller.signal });
    signal.close();
    await clock.advance(0);
    expect(last.ended()).toBeNull();
    expect(getEventListeners(caller.signal, "abort")).toEqual([]);
  });

  test("does not keep signals for ever: those of thousands of callers are let go", async () => {
    const { signal } = open();
    const callers = Array.from({ length: 3_000 }, () => new AbortController());
    for (const caller of callers) {
      const poll = watch(signal, { signal: caller.signal });
      signal.reserve()[0]?.give("work");
      await poll.answer;
    }

    const listenedTo = callers.filter((caller) => getEventListeners(caller.signal, "abort").length > 0);
    expect(listenedTo.length).toBeLessThanOrEqual(1_000);
  });
});
