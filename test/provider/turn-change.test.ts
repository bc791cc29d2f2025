import { describe, expect, test } from "vitest";
import { changeOf } from "../../src/provider/kit/turn-change.js";
import type { TurnCommit } from "../../src/provider/provider.js";
import {
  completed,
  kvAllCleared,
  kvCleared,
  kvSet,
  NAMED,
  scheduled,
  started,
  statusSet,
  turn,
} from "../../src/provider-tests/builders.js";

describe("what watchers of an instance hear of a turn", () => {
  test.each<[string, Partial<TurnCommit>]>([
    ["decides nothing", {}],
    ["begins it", { events: [started("a")], metadata: NAMED }],
    ["schedules work", { events: [scheduled("a", 2)] }],
    ["says that it runs", { metadata: { status: "Running" } }],
  ])("that %s: a turn, after which only histories differ", (_, fields) => {
    expect(changeOf(turn(fields))).toBe("turn");
  });

  test.each<[string, Partial<TurnCommit>, string | null]>([
    ["completes it", { events: [completed("a", 2)], metadata: { status: "Completed", output: "done" } }, "done"],
    ["completes it with nothing", { metadata: { status: "Completed" } }, null],
    ["completes it and sets a value", { events: [kvSet("a", 2, "k", "v")], metadata: { status: "Completed" } }, null],
  ])("that %s: its output", (_, fields, output) => {
    expect(changeOf(turn(fields), 1)).toEqual({ output });
  });

  test.each([
    ["of an execution that is not the current one", 2],
    ["of an instance that had not begun", 0],
    ["where nobody knows the current execution", undefined],
  ])("that completes, %s: a change like others", (_, currentExecutionId) => {
    expect(changeOf(turn({ executionId: 1, metadata: { status: "Completed" } }), currentExecutionId)).toBe("state");
  });

  test.each<[string, Partial<TurnCommit>]>([
    ["fails it", { metadata: { status: "Failed" } }],
    ["continues it as new", { metadata: { status: "ContinuedAsNew" } }],
    ["sets its custom status", { events: [scheduled("a", 2), statusSet("a", 3, "busy")] }],
    ["takes its custom status back", { events: [statusSet("a", 2, null)] }],
    ["sets a value", { events: [kvSet("a", 2, "k", "v")] }],
    ["removes a value", { events: [kvCleared("a", 2, "k")] }],
    ["removes all values", { events: [kvAllCleared("a", 2), scheduled("a", 3)] }],
  ])("that %s: a change of what clients can ask for", (_, fields) => {
    expect(changeOf(turn(fields))).toBe("state");
  });
});
