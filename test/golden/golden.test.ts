// Histories that earlier versions have recorded, replayed by this one: what ran then must still run, for ever.

import { describe, expect, test } from "vitest";
import type { TurnResult } from "../../src/engine/turn.js";
import { type Event, type EventOf, type EventType, isTerminal } from "../../src/history/event.js";
import { natureOf } from "../../src/history/nature.js";
import { assertDeterministic } from "../../src/testing/assert-deterministic.js";
import { exportHistory } from "../../src/testing/exported-history.js";
import { replay } from "../../src/testing/replay.js";
import type { Replayed } from "../../src/testing/replay-check.js";
import { executionOf, type Recording, runLive } from "../engine/live-run.js";
import { GOLDENS } from "./programs.js";
import { record } from "./record.js";
import { type GoldenExecution, goldenExecutions } from "./recorded.js";

const EXECUTIONS = goldenExecutions();
/** What was recorded although nobody had code for it failed without any. */
const RUN = EXECUTIONS.filter((each): each is GoldenExecution & Recording => each.handler !== null);

describe("the golden histories", () => {
  test("are there for every program: record a new one with npm run golden:record -- --new <name>", () => {
    expect(new Set(EXECUTIONS.map(({ golden }) => golden))).toEqual(new Set(Object.values(GOLDENS)));
  });

  test("show every kind of event", () => {
    const shown = new Set(EXECUTIONS.flatMap(({ events }) => events.map(({ type }) => type)));
    expect([...shown].sort()).toEqual(Object.keys(EVERY_TYPE).sort());
  });

  test("show every kind of failure that an execution of ours can end with, but for a history beyond its limits", () => {
    const failures = EXECUTIONS.flatMap(({ events }) => failureOf(events) ?? []);
    expect([...new Set(failures.map(kindOf))].sort()).toEqual([
      "Cancelled",
      "Nondeterminism",
      "OrchestrationFailed",
      "Panicked",
      "poison",
    ]);
  });
});

describe("the recorder", () => {
  test("never writes over what is recorded, nor without a program", async () => {
    await expect(record(["sequence"])).rejects.toThrow("'sequence' is recorded already, for ever.");
    await expect(record(["constructor"])).rejects.toThrow("There is no golden program 'constructor'.");
  });
});

describe("a golden history", () => {
  test.each(EXECUTIONS)("$file: is written as it was", ({ text, events }) => {
    expect(exportHistory(events)).toBe(text);
  });

  test.each(RUN)("$file: replays, whole and to the end of every turn, and ends as recorded", async (execution) => {
    const { golden, events, kv } = execution;
    const options = { kv, ...(golden.options?.limits === undefined ? {} : { limits: golden.options.limits }) };

    const { status } = await replay(events, golden.orchestrations, options);
    expect(events.find(isTerminal)?.type).toBe(ENDS[status]);
    await assertDeterministic(events, golden.orchestrations, options);
  });

  test.each(RUN)("$file: run anew on what arrived, is written once more", async (execution) => {
    const { events } = execution;
    const until = endOfCode(execution);
    const live = await runLive(execution, until);

    expect(exportHistory(live.events.slice(0, until))).toBe(exportHistory(events.slice(0, until)));
    if (until === events.length) expect(live.events).toHaveLength(events.length);
  });

  test.each(RUN)("$file: cut at the end of any turn, waits for what came next", async (execution) => {
    const { events } = execution;
    const { turnEnds } = await runLive(execution, endOfCode(execution));
    for (const at of turnEnds) {
      const history = events.slice(0, at);
      const { result, events: added } = await executionOf(execution, history).turn({ nowMs: 0, messages: [] });
      expect({ result, added }, `cut after event ${at}`).toEqual({ result: { kind: "waiting" }, added: [] });
    }
  });

  test.each(RUN.filter(({ predecessor }) => predecessor !== null))(
    "$file: begins with what the execution before it leads to",
    async ({ events, predecessor }) => {
      const { name, version, input, carryForwardEvents = [], initialCustomStatus = null } = startOf(events);
      const { result } = await runLive(predecessor as Recording);

      expect(result).toEqual<TurnResult>({
        kind: "continuedAsNew",
        input,
        version: startOf(predecessor!.events).version === version ? null : version,
        carried: carryForwardEvents,
        customStatus: initialCustomStatus,
      });
      expect(name).toBe(startOf(predecessor!.events).name);
    },
  );
});

const ENDS: Readonly<Record<Replayed["status"], EventType | undefined>> = {
  waiting: undefined,
  completed: "OrchestrationCompleted",
  failed: "OrchestrationFailed",
  cancelled: "OrchestrationFailed",
  continuedAsNew: "OrchestrationContinuedAsNew",
};

function startOf(events: readonly Event[]): EventOf<"OrchestrationStarted"> {
  return events[0] as EventOf<"OrchestrationStarted">;
}

function failureOf(events: readonly Event[]): EventOf<"OrchestrationFailed"> | null {
  const end = events.find(isTerminal);
  return end?.type === "OrchestrationFailed" ? end : null;
}

function kindOf({ details }: EventOf<"OrchestrationFailed">): string {
  if (details.category === "configuration") return details.kind;
  return details.category === "application" ? details.kind.type : details.category;
}

/** How much of the history its code has written: all of it, unless the runtime ended the execution in mid-turn. */
function endOfCode({ golden, events }: GoldenExecution): number {
  const failure = failureOf(events);
  if (failure === null) return events.length;
  if (failure.details.category === "application" && golden.options?.limits === undefined) return events.length;
  return events.findLastIndex((event) => natureOf(event) === "decision") + 1;
}

/** The compiler asks for those that are missing. */
const EVERY_TYPE: Readonly<Record<EventType, true>> = {
  OrchestrationStarted: true,
  OrchestrationCompleted: true,
  OrchestrationFailed: true,
  OrchestrationContinuedAsNew: true,
  OrchestrationCancelRequested: true,
  ActivityScheduled: true,
  ActivityCompleted: true,
  ActivityFailed: true,
  ActivityCancelRequested: true,
  TimerCreated: true,
  TimerFired: true,
  ExternalSubscribed: true,
  ExternalEvent: true,
  ExternalSubscribedCancelled: true,
  ExternalSubscribedPersistent: true,
  ExternalEventPersistent: true,
  ExternalSubscribedPersistentCancelled: true,
  SubOrchestrationScheduled: true,
  SubOrchestrationCompleted: true,
  SubOrchestrationFailed: true,
  SubOrchestrationCancelRequested: true,
  OrchestrationChained: true,
  CustomStatusUpdated: true,
  KeyValueSet: true,
  KeyValueCleared: true,
  KeyValuesCleared: true,
};
