import { describe, expect, test } from "vitest";
import type { TurnOutcome, TurnResult } from "../../src/engine/turn.js";
import { cancelled, orchestrationFailed } from "../../src/history/error-details.js";
import type { EventPayload } from "../../src/history/event.js";
import { DEFAULT_LIMITS } from "../../src/history/limits.js";
import { ExecutionLedger } from "../../src/runtime/execution-ledger.js";
import { failedTurn } from "../../src/runtime/failed-turn.js";
import { routeToParent } from "../../src/runtime/parent-route.js";
import { turnCommit } from "../../src/runtime/turn-commit.js";
import { findBreach } from "../../src/runtime/turn-limits.js";
import { TestWorld } from "../../src/testing/test-world.js";
import { history, INSTANCE, started } from "./events.js";

const PARENT = { parentInstance: "parent", parentId: 7, parentExecutionId: 2 };
const turn = { instance: INSTANCE, executionId: 3, name: "Order", version: "1.2.0", parent: null };
const childTurn = { ...turn, parent: PARENT };

const waiting: TurnResult = { kind: "waiting" };
const completed: TurnResult = { kind: "completed", output: '"ok"' };
const failed: TurnResult = { kind: "failed", details: orchestrationFailed("boom") };
const cancelledResult: TurnResult = { kind: "cancelled", reason: "enough", details: cancelled("enough") };
const continued: TurnResult = {
  kind: "continuedAsNew",
  input: "2",
  version: null,
  carried: [["inbox", "a"]],
  customStatus: "busy",
};

function outcomeOf(result: TurnResult, changes: Partial<TurnOutcome> = {}): TurnOutcome {
  return {
    result,
    events: [],
    activities: [],
    timers: [],
    children: [],
    detached: [],
    cancelledActivities: [],
    cancelledTimers: [],
    cancelledChildren: [],
    droppedMessages: [],
    kvKeyCount: 0,
    ...changes,
  };
}

/** One of everything. */
const busy: Partial<TurnOutcome> = {
  activities: [{ id: 2, name: "Charge", input: "5", sessionId: "s", tag: "gpu" }],
  timers: [{ id: 3, fireAtMs: 9_000 }],
  children: [{ id: 4, instance: `${INSTANCE}::sub::4`, name: "Child", input: "1", version: "2.0.0" }],
  detached: [{ instance: "free", name: "Free", input: "0", version: null }],
  cancelledActivities: [10],
  cancelledTimers: [11],
  cancelledChildren: [{ instance: "kid", reason: "parent canceled" }],
};

describe("a turn that goes on", () => {
  test("starts what it decided, in the name of its execution", () => {
    const commit = turnCommit(turn, outcomeOf(waiting, busy));

    expect(commit.workerItems).toEqual([
      {
        type: "ActivityExecute",
        instance: INSTANCE,
        executionId: 3,
        id: 2,
        name: "Charge",
        input: "5",
        sessionId: "s",
        tag: "gpu",
        orchestrationName: "Order",
        orchestrationVersion: "1.2.0",
      },
    ]);
    expect(commit.orchestratorItems).toEqual([
      { type: "TimerFired", instance: INSTANCE, executionId: 3, id: 3, fireAtMs: 9_000 },
      {
        type: "StartOrchestration",
        instance: `${INSTANCE}::sub::4`,
        orchestration: "Child",
        input: "1",
        version: "2.0.0",
        parentInstance: INSTANCE,
        parentId: 4,
        executionId: 1,
        parentExecutionId: 3,
      },
      {
        type: "StartOrchestration",
        instance: "free",
        orchestration: "Free",
        input: "0",
        version: null,
        parentInstance: null,
        parentId: null,
        executionId: 1,
      },
      { type: "CancelInstance", instance: "kid", reason: "parent canceled" },
    ]);
    expect(commit.cancelledActivities).toEqual([{ instance: INSTANCE, executionId: 3, id: 10 }]);
    expect(commit.cancelledTimers).toEqual([{ instance: INSTANCE, executionId: 3, id: 11 }]);
  });

  test("says nothing of its status, and who it is only with its first event", () => {
    expect(turnCommit(childTurn, outcomeOf(waiting)).metadata).toEqual({});
    expect(turnCommit(childTurn, outcomeOf(waiting, { events: history(started(PARENT)) })).metadata).toEqual({
      orchestrationName: "Order",
      orchestrationVersion: "1.0.0",
      parentInstanceId: "parent",
      pinnedVersion: { major: 0, minor: 1, patch: 30 },
    });
  });
});

describe("a turn that ends its execution", () => {
  test.each([
    ["completed", completed],
    ["failed", failed],
    ["cancelled", cancelledResult],
    ["continued as new", continued],
  ])("and was %s starts nothing but what is detached", (_how, result) => {
    const commit = turnCommit(turn, outcomeOf(result, busy));
    const startedInstances = commit.orchestratorItems.flatMap((item) =>
      item.type === "StartOrchestration" ? [item.instance] : [],
    );

    expect(commit.workerItems).toEqual([]);
    expect(startedInstances).toEqual(["free"]);
    expect(commit.orchestratorItems.some((item) => item.type === "TimerFired")).toBe(false);
    expect(commit.orchestratorItems).toContainEqual({
      type: "CancelInstance",
      instance: "kid",
      reason: "parent canceled",
    });
  });

  test.each([
    ["its output", completed, { type: "SubOrchCompleted", ...PARENT, result: '"ok"' }],
    ["its failure", failed, { type: "SubOrchFailed", ...PARENT, details: orchestrationFailed("boom") }],
    ["its cancellation", cancelledResult, { type: "SubOrchFailed", ...PARENT, details: cancelled("enough") }],
  ])("tells %s to the execution that asked for it", (_what, result, message) => {
    expect(turnCommit(childTurn, outcomeOf(result)).orchestratorItems).toEqual([message]);
  });

  test.each([
    [completed, { status: "Completed", output: '"ok"' }],
    [failed, { status: "Failed", output: "boom" }],
    [cancelledResult, { status: "Failed", output: "canceled: enough" }],
    [continued, { status: "ContinuedAsNew", output: "2" }],
  ])("says so in its metadata: $kind", (result, metadata) => {
    expect(turnCommit(turn, outcomeOf(result)).metadata).toEqual(metadata);
  });

  test("hands its messages, its status and its parent to the next execution", () => {
    expect(turnCommit(childTurn, outcomeOf(continued)).orchestratorItems).toEqual([
      {
        type: "ContinueAsNew",
        instance: INSTANCE,
        orchestration: "Order",
        input: "2",
        version: null,
        carryForwardEvents: [["inbox", "a"]],
        initialCustomStatus: "busy",
        ...PARENT,
      },
    ]);
  });
});

describe("the way to a parent", () => {
  test("leads to the execution that the link names", async () => {
    await using world = await TestWorld.open();

    expect(await routeToParent(world.provider, PARENT)).toEqual(PARENT);
  });

  test("leads to the parent's current execution where old data names none, and nowhere if it is gone", async () => {
    await using world = await TestWorld.open();
    await world.provider.appendWithExecution("parent", 5, history(started()));
    const { parentExecutionId, ...old } = PARENT;

    expect(await routeToParent(world.provider, old)).toEqual({ ...old, parentExecutionId: 5 });
    expect(await routeToParent(world.provider, { ...old, parentInstance: "nobody" })).toBeNull();
  });
});

describe("a limit", () => {
  const limits = { ...DEFAULT_LIMITS, maxCustomStatusBytes: 4, maxKvValueBytes: 4, maxKvKeys: 2 };
  const set = (value: string): EventPayload => ({ type: "KeyValueSet", key: "k", value, lastUpdatedAtMs: 0 });
  const status = (text: string): EventPayload => ({ type: "CustomStatusUpdated", status: text });

  test.each([
    ["custom status", status("1234"), status("12345"), "Custom status size (5 bytes) exceeds limit (4 bytes)"],
    ["value", set("1234"), set("12345"), "KV value for key 'k' (5 bytes) exceeds limit (4 bytes)"],
  ])("on the size of a %s passes what is exactly at it", (_what, fits, breaks, message) => {
    expect(findBreach(outcomeOf(waiting, { events: history(fits) }), limits)).toBeNull();
    expect(findBreach(outcomeOf(waiting, { events: history(breaks) }), limits)).toEqual(orchestrationFailed(message));
  });

  test("on the number of keys counts all of them, but only against a turn that sets one", () => {
    const setting = { events: history(set("1")) };

    expect(findBreach(outcomeOf(waiting, { ...setting, kvKeyCount: 2 }), limits)).toBeNull();
    expect(findBreach(outcomeOf(waiting, { kvKeyCount: 3 }), limits)).toBeNull();
    expect(findBreach(outcomeOf(waiting, { ...setting, kvKeyCount: 3 }), limits)).toEqual(
      orchestrationFailed("KV key count (3) exceeds limit (2)"),
    );
  });

  test("on carried messages fails the orchestration instead of losing some", () => {
    const breach = findBreach(outcomeOf(continued), { ...DEFAULT_LIMITS, maxCarryForwardEvents: 0 });

    expect(breach).toMatchObject({ message: expect.stringContaining("carry over 1 queue messages") });
    expect(findBreach(outcomeOf(continued), { ...DEFAULT_LIMITS, maxCarryForwardEvents: 1 })).toBeNull();
  });
});

describe("a failure that the code has no say in", () => {
  const details = orchestrationFailed("too large");

  test("of a new execution is its second event", () => {
    const outcome = failedTurn({
      instance: INSTANCE,
      executionId: 2,
      nowMs: 50,
      details,
      ledger: new ExecutionLedger(INSTANCE),
      started: { ...started(), type: "OrchestrationStarted" } as never,
    });

    expect(outcome.events.map(({ eventId, type, executionId }) => [eventId, type, executionId])).toEqual([
      [1, "OrchestrationStarted", 2],
      [2, "OrchestrationFailed", 2],
    ]);
  });

  test("gives up what is in flight, and nothing else", () => {
    const ledger = new ExecutionLedger(
      INSTANCE,
      history(
        started(),
        { type: "ActivityScheduled", name: "Done", input: "" },
        { type: "ActivityScheduled", name: "Open", input: "" },
        { type: "ActivityScheduled", name: "Dropped", input: "" },
        { type: "TimerCreated", fireAtMs: 5 },
        { type: "TimerCreated", fireAtMs: 6 },
        { type: "SubOrchestrationScheduled", name: "Child", instance: "sub::7", input: "" },
        { type: "SubOrchestrationScheduled", name: "Child", instance: "named", input: "" },
        { type: "SubOrchestrationScheduled", name: "Child", instance: "done", input: "" },
        { type: "ActivityCompleted", result: "", source: 2 },
        { type: "ActivityCancelRequested", reason: "dropped_future", source: 4 },
        { type: "TimerFired", fireAtMs: 6, source: 6 },
        { type: "SubOrchestrationCancelRequested", reason: "dropped_future", source: 8 },
        { type: "SubOrchestrationCompleted", result: "", source: 9 },
      ),
    );
    const outcome = failedTurn({ instance: INSTANCE, executionId: 1, nowMs: 50, details, ledger, started: null });

    expect(outcome.events.map(({ eventId, type, sourceEventId }) => [eventId, type, sourceEventId])).toEqual([
      [15, "ActivityCancelRequested", 3],
      [16, "OrchestrationFailed", null],
    ]);
    expect(outcome.cancelledActivities).toEqual([3]);
    expect(outcome.cancelledTimers).toEqual([5]);
    expect(outcome.cancelledChildren.map(({ instance }) => instance)).toEqual([`${INSTANCE}::sub::7`]);
  });
});
