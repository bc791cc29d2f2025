// How turns are told to the store.

import { describe, expect, test } from "vitest";
import type { SemVerRange } from "../../src/provider/provider.js";
import { turn } from "../../src/provider-tests/builders.js";
import { type TurnCall, turnColumns } from "../../src/providers/postgres/turn-rows.js";
import { ALL_VERSIONS, versionColumns } from "../../src/providers/postgres/versions.js";

const ONE: SemVerRange = { min: { major: 1, minor: 0, patch: 0 }, max: { major: 1, minor: 9, patch: 0 } };
const NINE: SemVerRange = { min: { major: 9, minor: 0, patch: 0 }, max: { major: 9, minor: 9, patch: 0 } };

function stepOf(id: string, versions: SemVerRange): TurnCall {
  const lock = { id, secret: `secret of ${id}` };
  const step = { expected: "last", done: [{ id: 1, secret: "done" }], versions };
  return { lockToken: `token of ${id}`, lock, turn: turn(), eventData: [], bytes: 0, step };
}

/** `p_min` and `p_max`. */
function versionsIn(calls: readonly TurnCall[]): readonly unknown[] {
  return turnColumns(calls).slice(9, 11);
}

describe("which versions in line matter beside steps", () => {
  test.each([
    ["those of the steps, if they are the same", [ONE, { ...ONE }], ONE],
    ["all, if the last one differs", [ONE, NINE], ALL_VERSIONS],
    ["all, if the first one differs", [NINE, ONE, ONE], ALL_VERSIONS],
    ["all, if one in between differs", [ONE, NINE, ONE], ALL_VERSIONS],
  ])("%s", (_, ofSteps, expected) => {
    const calls = ofSteps.map((versions, index) => stepOf(`i${index}`, versions));
    expect(versionsIn(calls)).toEqual([versionColumns(expected.min), versionColumns(expected.max)]);
  });
});
