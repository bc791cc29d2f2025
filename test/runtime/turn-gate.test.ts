import { describe, expect, test } from "vitest";
import { throughTurnGate } from "../../src/runtime/turn-gate.js";

/** The slice of an earlier test is over. */
async function rested(): Promise<void> {
  for (let rounds = 0; rounds < 3; rounds += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** A turn that takes so many microtasks. */
async function microtasks(count: number): Promise<void> {
  for (let done = 0; done < count; done += 1) await null;
}

async function turnsOfTheEventLoop(count: number): Promise<void> {
  for (let done = 0; done < count; done += 1) await new Promise((resolve) => setImmediate(resolve));
}

describe("turns of one process", () => {
  test("run in the order in which they came, and never two at a time, whatever they wait for", async () => {
    await rested();
    const log: string[] = [];
    const turn = (name: string, work: () => Promise<void>) =>
      throughTurnGate(async () => {
        log.push(`${name} begins`);
        await work();
        log.push(`${name} ends`);
        return name;
      });

    const answers = await Promise.all([
      turn("slow", () => turnsOfTheEventLoop(5)),
      turn("quick", () => microtasks(0)),
      turn("next", () => new Promise((resolve) => setImmediate(resolve))),
      turn("last", () => microtasks(20)),
    ]);

    expect(answers).toEqual(["slow", "quick", "next", "last"]);
    expect(log).toEqual(answers.flatMap((name) => [`${name} begins`, `${name} ends`]));
  });

  test("are not overtaken by one that comes as another ends", async () => {
    await rested();
    const log: string[] = [];
    const first = throughTurnGate(() => microtasks(3));
    const second = throughTurnGate(async () => void log.push("second"));
    const third = first.then(() => throughTurnGate(async () => void log.push("third")));
    await Promise.all([second, third]);

    expect(log).toEqual(["second", "third"]);
  });

  test("go on after one that fails, which is told of its failure", async () => {
    await rested();
    const bug = new Error("bug");
    const fails = async (): Promise<never> => {
      await microtasks(2);
      throw bug;
    };
    const outcomes = await Promise.allSettled([
      throughTurnGate(fails),
      throughTurnGate(async () => "second"),
      throughTurnGate(fails),
      throughTurnGate(async () => "fourth"),
    ]);

    expect(outcomes).toEqual([
      { status: "rejected", reason: bug },
      { status: "fulfilled", value: "second" },
      { status: "rejected", reason: bug },
      { status: "fulfilled", value: "fourth" },
    ]);
    expect(await throughTurnGate(async () => "later")).toBe("later");
  });

  test.each(["all at once", "one after the other"])("let the event loop in after a slice of them: %s", async (how) => {
    await rested();
    let turns = 0;
    let turnsBeforeEventLoop = -1;
    const turn = () =>
      throughTurnGate(async () => {
        turns += 1;
      });
    setImmediate(() => {
      turnsBeforeEventLoop = turns;
    });

    if (how === "all at once") await Promise.all(Array.from({ length: 500 }, turn));
    else for (let count = 0; count < 500; count += 1) await turn();

    expect(turns).toBe(500);
    expect(turnsBeforeEventLoop).toBeGreaterThan(0);
    expect(turnsBeforeEventLoop).toBeLessThanOrEqual(64);
  });

  test("do not wait for the event loop where it comes round by itself", async () => {
    await rested();
    let yields = 0;
    for (let count = 0; count < 200; count += 1) {
      await throughTurnGate(async () => {});
      let hasTurned = false;
      const turned = new Promise<void>((resolve) =>
        setImmediate(() => {
          hasTurned = true;
          resolve();
        }),
      );
      await throughTurnGate(async () => {});
      if (hasTurned) yields += 1;
      await turned;
    }

    expect(yields).toBe(0);
  });
});
