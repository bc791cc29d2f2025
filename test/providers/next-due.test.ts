import { describe, expect, test } from "vitest";
import { NextDue } from "../../src/providers/sqlite/next-due.js";

/** A table that says when something falls due, and counts who asks. */
function table(...answers: readonly (number | null)[]): { look: () => Promise<number | null>; asked: () => number } {
  let asked = 0;
  return {
    look: async () => answers[asked++] ?? null,
    asked: () => asked,
  };
}

const NEVER_ASKED = (): never => {
  throw new Error("It is known already.");
};

describe("when something falls due", () => {
  test("is looked for once, and remembered", async () => {
    const nextDue = new NextDue();
    const { look, asked } = table(500);

    expect(await nextDue.after(100, look)).toBe(500);
    expect(nextDue.after(100, NEVER_ASKED)).toBe(500);
    expect(nextDue.after(499, NEVER_ASKED)).toBe(500);
    expect(asked()).toBe(1);
  });

  test("stays the next, though that time has come, until somebody has seen to it", async () => {
    const nextDue = new NextDue();
    await nextDue.after(100, table(500).look);
    expect(nextDue.after(500, NEVER_ASKED)).toBe(500);
    expect(nextDue.after(600, NEVER_ASKED)).toBe(500);
    expect(nextDue.isAfter(600)).toBe(false);

    nextDue.seenTo(600, 900);
    expect(nextDue.isAfter(600)).toBe(true);
    expect(nextDue.after(600, NEVER_ASKED)).toBe(900);
    nextDue.seenTo(900, null);
    expect(nextDue.after(1_000_000, NEVER_ASKED)).toBeNull();
  });

  test("and is told late, when others have looked since, is not forgotten", () => {
    const nextDue = new NextDue();
    nextDue.seenTo(600, null);
    nextDue.learn(550);

    expect(nextDue.isAfter(600)).toBe(false);
    expect(nextDue.after(600, NEVER_ASKED)).toBe(550);
  });

  test("is looked for by whoever looked before somebody else saw to what had fallen due: it may have been in between", async () => {
    const nextDue = new NextDue();
    nextDue.seenTo(600, 900);
    expect(await nextDue.after(599, table(600).look)).toBe(600);
    expect(await nextDue.after(599, table(null).look)).toBe(900);

    expect(nextDue.after(600, NEVER_ASKED)).toBe(900);
  });

  test("is waited for by those who come while somebody looks for all; if he fails, they hear of it", async () => {
    const nextDue = new NextDue();
    const fails = (): Promise<number | null> => Promise.reject(new Error("the disk"));
    const waits = [nextDue.after(100, fails), nextDue.after(110, NEVER_ASKED)].map((at) =>
      Promise.resolve(at).catch(String),
    );
    expect(await Promise.all(waits)).toEqual(["Error: the disk", "Error: the disk"]);

    const found = [
      nextDue.after(120, table(500).look),
      nextDue.after(120, NEVER_ASKED),
      nextDue.after(90, table(95).look),
    ];
    expect(await Promise.all(found)).toEqual([500, 500, 95]);
  });

  test("is known to whoever sees to it while somebody looks, whatever that one finds", async () => {
    const nextDue = new NextDue();
    const answer = nextDue.after(100, table(800).look);
    nextDue.seenTo(200, 700);

    expect(await answer).toBe(700);
    expect(nextDue.isAfter(699)).toBe(true);
  });

  test("is learned from what is written: earlier than known counts, later does not", async () => {
    const nextDue = new NextDue();
    await nextDue.after(100, table(500).look);
    nextDue.learn(700);
    expect(nextDue.after(100, NEVER_ASKED)).toBe(500);
    nextDue.learn(300);
    expect(nextDue.after(100, NEVER_ASKED)).toBe(300);
  });

  test("is learned where nothing was known to fall due at all", async () => {
    const nextDue = new NextDue();
    expect(await nextDue.after(100, table(null).look)).toBeNull();
    nextDue.learn(400);

    expect(nextDue.after(100, NEVER_ASKED)).toBe(400);
  });

  test("is not learned where nobody has looked: there may be something earlier", async () => {
    const nextDue = new NextDue();
    nextDue.learn(900);

    expect(await nextDue.after(100, table(500).look)).toBe(500);
  });

  test("is the earlier of what is found and what is written during the look", async () => {
    for (const [found, written, first] of [
      [500, 300, 300],
      [300, 500, 300],
      [null, 400, 400],
    ] as const) {
      const nextDue = new NextDue();
      const answer = nextDue.after(100, table(found).look);
      nextDue.learn(written);

      expect(await answer).toBe(first);
      expect(nextDue.after(100, NEVER_ASKED)).toBe(first);
    }
  });

  test("is looked for anew when somebody else has written, also during the look", async () => {
    const nextDue = new NextDue();
    const { look, asked } = table(500, 200, 250);
    await nextDue.after(100, look);
    nextDue.forget();
    expect(await nextDue.after(100, look)).toBe(200);

    nextDue.forget();
    const answer = nextDue.after(100, look);
    nextDue.forget();
    expect(await answer).toBe(250);
    await nextDue.after(100, look);
    expect(asked()).toBe(4);
  });

  test("is not known to be later while somebody looks, nor after a look that failed", async () => {
    const nextDue = new NextDue();
    expect(nextDue.isAfter(100)).toBe(false);
    const looking = nextDue.after(100, table(500).look);
    expect(nextDue.isAfter(100)).toBe(false);
    await looking;
    expect([nextDue.isAfter(499), nextDue.isAfter(500)]).toEqual([true, false]);

    nextDue.forget();
    const failing = nextDue.after(500, () => Promise.reject(new Error("the disk")));
    await expect(failing).rejects.toThrow("the disk");
    expect(nextDue.isAfter(100)).toBe(false);
    expect(await nextDue.after(500, table(900).look)).toBe(900);
  });
});
