import { describe, expect, test } from "vitest";
import { timeOrderedId } from "../src/time-ordered-id.js";

const UUID_7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** The milliseconds in its first 48 bits. */
function timeOf(id: string): number {
  return Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16);
}

describe("an id that is ordered by time", () => {
  test("is a UUID of version 7, with its time in the first 48 bits", () => {
    const now = 1_763_243_210_987;
    const id = timeOrderedId(now);

    expect(id).toMatch(UUID_7);
    expect(timeOf(id)).toBe(now);
  });

  test("sorts as text by the time at which it was made", () => {
    const times = [0, 1, 15, 16, 255, 256, 65_535, 65_536, 1_700_000_000_000, 1_700_000_000_001, 2 ** 47, 2 ** 48 - 1];
    const ids = times.map(timeOrderedId);

    expect(ids.toSorted()).toEqual(ids);
  });

  test("is no other's, though the clock stands still", () => {
    const ids = new Set(Array.from({ length: 10_000 }, () => timeOrderedId(1_700_000_000_000)));

    expect(ids.size).toBe(10_000);
  });

  test.each<[string, number, number]>([
    ["before the epoch", -1, 0],
    ["long before the epoch", Number.MIN_SAFE_INTEGER, 0],
    ["between two milliseconds", 1_700_000_000_000.9, 1_700_000_000_000],
    ["too late for 48 bits", 2 ** 48 + 5, 5],
    ["at the end of all clocks", Number.MAX_SAFE_INTEGER, 2 ** 48 - 1],
  ])("is one also where the clock is %s", (_, now, time) => {
    const id = timeOrderedId(now);

    expect(id).toMatch(UUID_7);
    expect(timeOf(id)).toBe(time);
  });
});
