// Milliseconds from a number or a short text, wherever code gives a delay. R§4.6.

import { describe, expect, test } from "vitest";
import { durationMs } from "../../src/duration.js";
import { failureOf, NOW, runTurn } from "./drive.js";

describe("a duration", () => {
  test.each<[number | string, number]>([
    [0, 0],
    [1_500, 1_500],
    [1.9, 1],
    ["0ms", 0],
    ["500ms", 500],
    ["30s", 30_000],
    ["1.5s", 1_500],
    ["5m", 300_000],
    ["2h", 7_200_000],
    ["3d", 259_200_000],
    ["1w", 604_800_000],
    [" 5 m ", 300_000],
    ["0.4ms", 0],
    ["32.3s", 32_300],
    ["64.1s", 64_100],
  ])("%j is %d ms", (duration, ms) => {
    expect(durationMs(duration, "timer")).toBe(ms);
  });

  test.each<[unknown]>([
    [-1],
    [Number.NaN],
    [Number.POSITIVE_INFINITY],
    [1e15],
    [""],
    ["soon"],
    ["5"],
    ["-5s"],
    ["1e3ms"],
    ["5 minutes"],
    ["5M"],
    ["999999w"],
    [null],
    [undefined],
    [5n],
    [new Date(0)],
    [{}],
  ])("%s is none, and says what would be", (duration) => {
    expect(() => durationMs(duration as number, "timer")).toThrow(
      expect.objectContaining({ code: "DUROXIDE_INVALID_INPUT", message: expect.stringMatching(/^timer: .*"30s"/) }),
    );
  });

  test("of a thousand years still gives an exact time", async () => {
    const outcome = await runTurn({ code: async (ctx) => ctx.scheduleTimer("52000w") });

    expect(outcome.timers).toEqual([{ id: 2, fireAtMs: NOW + 1 + 52_000 * 604_800_000 }]);
  });

  test("that is none fails the orchestration, which could have caught it", async () => {
    const outcome = await runTurn({ code: async (ctx) => ctx.scheduleTimer("soon") });

    expect(failureOf(outcome)).toMatchObject({ message: expect.stringContaining('timer: "soon" is no duration') });
  });
});
