import { afterEach, describe, expect, test, vi } from "vitest";
import { holding, systemClock } from "../src/clock.js";

describe("the system's clock", () => {
  afterEach(() => {
    vi.restoreAllMocks();
  });

  test("tells the wall clock's time", () => {
    const before = Date.now();
    const now = systemClock.now();
    const after = Date.now();
    expect(now).toBeGreaterThanOrEqual(before - 1);
    expect(now).toBeLessThanOrEqual(after + 1);
  });

  test("goes on at its own pace when the wall clock is set back", async () => {
    const before = systemClock.now();
    vi.spyOn(Date, "now").mockReturnValue(before - 3_600_000);

    const after = systemClock.now();
    expect(after).toBeGreaterThanOrEqual(before);
    await new Promise<void>((resolve) => systemClock.setTimer(5, resolve));
    expect(systemClock.now()).toBeGreaterThan(after);
  });

  test("follows the wall clock when that is set forward, within a millisecond", async () => {
    const later = Date.now() + 5_000;
    vi.spyOn(Date, "now").mockReturnValue(later);
    await new Promise((resolve) => systemClock.setTimer(2, () => resolve(null)));
    expect(systemClock.now()).toBeGreaterThanOrEqual(later - 1);
  });

  test("is held by nothing", () => {
    const work = Promise.resolve("done");
    expect(holding(systemClock, work)).toBe(work);
  });
});
