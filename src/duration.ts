// duration.ts — milliseconds from a number or a short text.

import { InvalidInputError, messageOf } from "./errors.js";

/** Milliseconds, or a text such as `"500ms"`, `"30s"`, `"5m"`, `"2h"`, `"3d"`, `"1w"`. */
export type Duration = number | string;

const UNIT_MS: ReadonlyMap<string, number> = new Map([
  ["ms", 1],
  ["s", 1_000],
  ["m", 60_000],
  ["h", 3_600_000],
  ["d", 86_400_000],
  ["w", 604_800_000],
]);

/** Longer than a thousand years is a mistake, and would leave the range of exact integers. */
const LONGEST_MS = 1_000 * 366 * 86_400_000;

/** @throws DUROXIDE_INVALID_INPUT for anything that is no duration, negative, or beyond a thousand years */
export function durationMs(duration: Duration, what: string): number {
  const ms = typeof duration === "string" ? parse(duration) : typeof duration === "number" ? duration : Number.NaN;
  if (!(ms >= 0 && ms <= LONGEST_MS)) {
    throw new InvalidInputError(
      `${what}: ${describe(duration)} is no duration. Give milliseconds from 0 up, or a text such as "30s", "5m" or "3d".`,
    );
  }
  return Math.trunc(ms) + 0; // -0 is 0.
}

function parse(text: string): number {
  const match = /^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)\s*$/.exec(text);
  // Rounded, because 32.3 × 1000 is a little less than 32300.
  return match === null ? Number.NaN : Math.round(Number(match[1]) * UNIT_MS.get(match[2]!)!);
}

function describe(duration: unknown): string {
  return typeof duration === "string" ? `"${duration}"` : messageOf(duration);
}
