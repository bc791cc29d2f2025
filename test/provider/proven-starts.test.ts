import { describe, expect, test } from "vitest";
import { ProvenStarts, type StartsGoAhead } from "../../src/provider/kit/proven-starts.js";

/** How often a round of starts begins, and how long it is. */
const [STORED_FIRST, ROUND] = [64, 2_048];

/** Where a round of starts is when the first of them is asked for: a text of one character stands for its code. */
const at = (place: number): string => String.fromCharCode(place);

function starts({ when = "proven", place = STORED_FIRST }: { when?: StartsGoAhead; place?: number } = {}) {
  return new ProvenStarts(when, () => at(place));
}

function take(proven: ProvenStarts, name: string, times: number): void {
  for (let time = 0; time < times; time += 1) proven.taken({ orchestrationName: name });
}

/** What the next starts of it are told. */
function ask(proven: ProvenStarts, name: string, times: number): boolean[] {
  return Array.from({ length: times }, () => proven.mayGoAhead(name));
}

describe("a start may go ahead", () => {
  test("when the first turn of its orchestration has been taken a hundred times, and not before", () => {
    const proven = starts();
    expect(proven.mayGoAhead("Order")).toBe(false);
    take(proven, "Order", 99);
    expect(proven.mayGoAhead("Order")).toBe(false);
    take(proven, "Order", 1);
    expect(proven.mayGoAhead("Order")).toBe(true);
    take(proven, "Order", 500);
    expect(proven.mayGoAhead("Order")).toBe(true);
  });

  test("each for itself: what was taken of others does not count", () => {
    const proven = starts();
    take(proven, "Order", 100);
    take(proven, "order", 99);
    expect([proven.mayGoAhead("order"), proven.mayGoAhead("Invoice"), proven.mayGoAhead("Order")]).toEqual([
      false,
      false,
      true,
    ]);
  });

  test.each([
    ["always", true],
    ["never", false],
  ] as const)("%s, where that is what one is told", (when, mayGoAhead) => {
    const proven = starts({ when, place: 0 });
    expect(ask(proven, "Order", ROUND)).toEqual(new Array(ROUND).fill(mayGoAhead));
    take(proven, "Order", 100);
    expect(ask(proven, "Order", ROUND)).toEqual(new Array(ROUND).fill(mayGoAhead));
  });
});

describe("some are stored first all the same", () => {
  const round = [...new Array(STORED_FIRST).fill(false), ...new Array(ROUND - STORED_FIRST).fill(true)];

  test("64 in a row of each 2,048", () => {
    const proven = starts({ place: 0 });
    take(proven, "Order", 100);
    expect(ask(proven, "Order", 2 * ROUND + 1)).toEqual([...round, ...round, false]);
  });

  test.each([0, 63, 64, 2_000, ROUND - 1])("beginning anywhere in a round: at place %i", (place) => {
    const proven = starts({ place });
    take(proven, "Order", 100);
    expect(ask(proven, "Order", ROUND)).toEqual([...round.slice(place), ...round.slice(0, place)]);
  });

  test("wherever the ids of processes are random: any place of a round is as likely as any other", () => {
    // Ids as they are by default: random once for each process, and then counted.
    const firsts = Array.from({ length: 20_000 }, (_, process) => {
      const source = Buffer.from(`${process}:${(process * 2_654_435_761) % 2 ** 32}`).toString("base64url");
      const proven = new ProvenStarts("proven", () => `${source}-b7`);
      take(proven, "Order", 100);
      return proven.mayGoAhead("Order");
    });
    const storedFirst = firsts.filter((mayGoAhead) => !mayGoAhead).length;
    expect(storedFirst).toBeGreaterThan(20_000 / 32 / 1.5);
    expect(storedFirst).toBeLessThan((20_000 / 32) * 1.5);
  });

  test("of all orchestrations together; those that are not proven do not count", () => {
    const proven = starts({ place: STORED_FIRST - 2 });
    take(proven, "Order", 100);
    take(proven, "Invoice", 100);
    ask(proven, "Unknown", 10);
    expect([proven.mayGoAhead("Order"), proven.mayGoAhead("Invoice")]).toEqual([false, false]);
    expect([proven.mayGoAhead("Order"), proven.mayGoAhead("Invoice")]).toEqual([true, true]);
  });

  test("from a place that is drawn once, when the first proven one comes", () => {
    let drawn = 0;
    const proven = new ProvenStarts("proven", () => {
      drawn += 1;
      return at(STORED_FIRST);
    });
    take(proven, "Order", 100);
    ask(proven, "Unknown", 10);
    expect(drawn).toBe(0);
    ask(proven, "Order", 2 * ROUND);
    expect(drawn).toBe(1);
  });
});

test("of a thousand orchestrations it is known; more are not proven, however often they begin", () => {
  const proven = starts();
  for (let nr = 0; nr < 1_000; nr += 1) proven.taken({ orchestrationName: `${nr}` });
  take(proven, "one too many", 1_000);
  take(proven, "999", 99);
  expect([proven.mayGoAhead("one too many"), proven.mayGoAhead("999")]).toEqual([false, true]);
});
