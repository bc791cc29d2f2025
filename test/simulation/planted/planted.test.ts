// The simulation has teeth: ten bugs, each planted in a copy of the sources, are found. A bug that is no longer found means
// that the simulation no longer goes where it was.

import { describe, expect, test } from "vitest";
import { PLANTED_BUGS } from "./bugs.js";
import { findPlanted } from "./plant.js";

const MOST_SEEDS = 2_000;

describe("planted bugs", () => {
  test("there are ten of them, each with a name of its own", () => {
    expect(new Set(PLANTED_BUGS.map(({ name }) => name)).size).toBe(10);
  });

  for (const bug of PLANTED_BUGS) {
    test(`are found: ${bug.name}`, async () => {
      expect(await findPlanted(bug, MOST_SEEDS)).toMatch(/^seed \d+: /);
    }, 600_000);
  }
});
