// What must hold of a history, rule by rule; that every history which is written holds to it; and what damage goes unseen.

import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { cancelled, orchestrationFailed } from "../../src/history/error-details.js";
import type { Event, EventPayload } from "../../src/history/event.js";
import { natureOf } from "../../src/history/nature.js";
import { checkHistory, historyProblems } from "../../src/history/valid-history.js";
import { importHistory } from "../../src/testing/exported-history.js";
import {
  activityDone,
  activityDropped,
  childScheduled,
  eventArrived,
  eventOf,
  historyOf,
  queueSubscribed,
  scheduled,
  started,
  subscribed,
  timerCreated,
  timerFired,
} from "../engine/drive.js";
import { randomRun } from "../engine/random-run.js";

const GOLDEN = new URL("../golden-original/", import.meta.url);
const completed: EventPayload = { type: "OrchestrationCompleted", output: "1" };
const failed: EventPayload = { type: "OrchestrationFailed", details: orchestrationFailed("x") };
const cancelledEnd: EventPayload = { type: "OrchestrationFailed", details: cancelled("why") };
const continued: EventPayload = { type: "OrchestrationContinuedAsNew", input: "1" };
const cancelRequest: EventPayload = { type: "OrchestrationCancelRequested", reason: "why" };
const message: EventPayload = { type: "ExternalEventPersistent", name: "q", data: "1" };
const activityGivenUp = (reason: string): EventPayload => ({ type: "ActivityCancelRequested", reason });
const childGivenUp = (reason: string): EventPayload => ({ type: "SubOrchestrationCancelRequested", reason });
const waitGivenUp = (reason: string): EventPayload => ({ type: "ExternalSubscribedCancelled", reason });
const dequeueGivenUp = (reason: string): EventPayload => ({ type: "ExternalSubscribedPersistentCancelled", reason });
const utcNow = scheduled("__duroxide_syscall:utc_now_ms", "");
const carrying: EventPayload = { ...started, carryForwardEvents: [["q", "1"]] } as EventPayload;

type Damage = [what: string, events: readonly Event[], problems: string | readonly string[]];

describe("a history that breaks a rule: everything that is wrong is told", () => {
  test.each<Damage>([
    ["no event", [], "the history is empty: nothing is recorded under that id and execution, or the file is empty"],
    ["no start", historyOf(scheduled("A")), "event 1 (ActivityScheduled) is first, but OrchestrationStarted must be"],
    [
      "two starts",
      historyOf(started, scheduled("A"), started),
      "event 3 (OrchestrationStarted) starts the execution once more",
    ],
    [
      "a first id other than 1",
      [eventOf(2, started)],
      "event 2 (OrchestrationStarted) stands where event 1 is expected",
    ],
    [
      "a gap in the ids",
      [eventOf(1, started), eventOf(3, scheduled("A"))],
      "event 3 (ActivityScheduled) stands where event 2 is expected",
    ],
    [
      "ids that run backwards",
      [eventOf(1, started), eventOf(3, scheduled("A")), eventOf(2, timerCreated)],
      [
        "event 3 (ActivityScheduled) stands where event 2 is expected",
        "event 2 (TimerCreated) stands where event 3 is expected",
      ],
    ],
    [
      "an event of another instance",
      [eventOf(1, started), { ...eventOf(2, timerCreated), instanceId: "other" }],
      "event 2 (TimerCreated) belongs to instance 'other', not 'test-instance'",
    ],
    [
      "an event of another execution",
      [eventOf(1, started), { ...eventOf(2, timerCreated), executionId: 2 }],
      "event 2 (TimerCreated) belongs to execution 2, not 1",
    ],
    [
      "an event of no engine version",
      [eventOf(1, started), { ...eventOf(2, timerCreated), duroxideVersion: "new" }],
      "event 2 (TimerCreated) has no engine version: 'new'",
    ],
  ])("identity: %s", (_, events, problems) => {
    expect(historyProblems(events)).toEqual([problems].flat());
  });

  test.each<Damage>([
    [
      "an answer to nothing",
      historyOf(started, scheduled("A"), activityDone(1)),
      "event 3 (ActivityCompleted) does not say which ActivityScheduled it is about",
    ],
    [
      "a decision that names a source",
      historyOf(started, scheduled("A"), [timerCreated, 2]),
      "event 3 (TimerCreated) names event 2 as its source, but answers nothing",
    ],
    [
      "an answer to what is not there",
      historyOf(started, scheduled("A"), [activityDone(1), 7]),
      "event 3 (ActivityCompleted) is about event 7, which does not stand before it",
    ],
    [
      "an answer before the question",
      historyOf(started, [activityDone(1), 3], scheduled("A")),
      "event 2 (ActivityCompleted) is about event 3, which does not stand before it",
    ],
    [
      "an answer of the wrong kind",
      historyOf(started, timerCreated, [activityDone(1), 2]),
      "event 3 (ActivityCompleted) is about event 2 (TimerCreated), expected ActivityScheduled",
    ],
    [
      "a second answer",
      historyOf(started, scheduled("A"), [activityDone(1), 2], [activityDone(2), 2]),
      "event 4 (ActivityCompleted) is about event 2, as event 3 (ActivityCompleted) was",
    ],
    [
      "a failure after a success",
      historyOf(
        started,
        scheduled("A"),
        [activityDone(1), 2],
        [{ type: "ActivityFailed", details: orchestrationFailed("x") }, 2],
      ),
      "event 4 (ActivityFailed) is about event 2, as event 3 (ActivityCompleted) was",
    ],
    [
      "given up twice",
      historyOf(started, scheduled("A"), timerCreated, [activityDropped, 2], [activityDropped, 2]),
      "event 5 (ActivityCancelRequested) is about event 2, as event 4 (ActivityCancelRequested) was",
    ],
    [
      "given up long after its answer",
      historyOf(
        started,
        scheduled("A"),
        timerCreated,
        [activityDone(1), 2],
        scheduled("B"),
        [timerFired, 3],
        [activityDropped, 2],
      ),
      "event 7 (ActivityCancelRequested) gives up event 2, which event 4 has answered",
    ],
    [
      "a wait given up as if it were an activity",
      historyOf(started, subscribed("E"), [activityDropped, 2]),
      "event 3 (ActivityCancelRequested) is about event 2 (ExternalSubscribed), expected ActivityScheduled",
    ],
    [
      "a timer that fires at another time",
      historyOf(started, timerCreated, [{ type: "TimerFired", fireAtMs: 7 }, 2]),
      "event 3 (TimerFired) fires at 7, but event 2 was created for 1000",
    ],
    [
      "a child that is named after another event",
      historyOf(started, childScheduled("C", "sub::3")),
      "event 2 (SubOrchestrationScheduled) names its child 'sub::3', not 'sub::2'",
    ],
  ])("answers: %s", (_, events, problems) => {
    expect(historyProblems(events)).toEqual([problems].flat());
  });

  test.each<Damage>([
    [
      "something after the end",
      historyOf(started, completed, scheduled("A")),
      "event 3 (ActivityScheduled) follows the end, event 2 (OrchestrationCompleted)",
    ],
    [
      "two ends",
      historyOf(started, completed, failed),
      "event 3 (OrchestrationFailed) follows the end, event 2 (OrchestrationCompleted)",
    ],
    [
      "something dropped after the end",
      historyOf(started, scheduled("A"), completed, [activityDropped, 2]),
      "event 4 (ActivityCancelRequested) follows the end, event 3 (OrchestrationCompleted)",
    ],
    [
      "an activity given up with another end",
      historyOf(started, scheduled("A"), [activityGivenUp("orchestration_terminal_failed"), 2], completed),
      "event 3 (ActivityCancelRequested) is written for 'orchestration_terminal_failed', but the end is event 4 (OrchestrationCompleted)",
    ],
    [
      "an activity given up for a reason that nobody has",
      historyOf(started, scheduled("A"), [activityGivenUp("boredom"), 2], completed),
      "event 3 (ActivityCancelRequested) is written for 'boredom', but the end is event 4 (OrchestrationCompleted)",
    ],
    [
      "an activity given up with an end that does not come",
      historyOf(started, scheduled("A"), [activityGivenUp("orchestration_terminal_failed"), 2]),
      "event 3 (ActivityCancelRequested) is written for 'orchestration_terminal_failed', but the execution does not end",
    ],
    [
      "a wait given up with an end that does not come",
      historyOf(started, subscribed("E"), [waitGivenUp("orchestration_terminal"), 2]),
      "event 3 (ExternalSubscribedCancelled) is written for 'orchestration_terminal', but the execution does not end",
    ],
    [
      "a wait given up with the end, before the end is near",
      historyOf(
        started,
        queueSubscribed("q"),
        [dequeueGivenUp("orchestration_terminal"), 2],
        scheduled("A"),
        continued,
      ),
      "event 3 (ExternalSubscribedPersistentCancelled) belongs to the end, but event 4 (ActivityScheduled) follows it",
    ],
    [
      "a child given up with the end",
      historyOf(started, childScheduled("C", "c"), [childGivenUp("orchestration_terminal_failed"), 2], failed),
      "event 3 (SubOrchestrationCancelRequested) gives up its child for 'orchestration_terminal_failed', not 'dropped_future'",
    ],
  ])("the end: %s", (_, events, problems) => {
    expect(historyProblems(events)).toEqual([problems].flat());
  });

  test.each<Damage>([
    [
      "repeated",
      historyOf(started, cancelRequest, cancelRequest, cancelledEnd),
      "event 3 (OrchestrationCancelRequested) repeats event 2",
    ],
    [
      "without an end",
      historyOf(started, scheduled("A"), cancelRequest),
      "event 3 (OrchestrationCancelRequested) asks to cancel, but the execution does not end",
    ],
    [
      "that is not heeded",
      historyOf(started, cancelRequest, completed),
      "event 2 (OrchestrationCancelRequested) asks to cancel, but the end is event 3 (OrchestrationCompleted)",
    ],
    [
      "that another turn follows",
      historyOf(started, scheduled("A"), cancelRequest, scheduled("B"), [activityDone(1), 2], cancelledEnd),
      "event 5 (ActivityCompleted) arrives after the turn of the cancel request, event 3, which is the last",
    ],
  ])("a cancel request %s", (_, events, problems) => {
    expect(historyProblems(events)).toEqual([problems].flat());
  });

  test.each<Damage>([
    [
      "a parent, but not its event",
      historyOf({ ...started, parentInstance: "p" } as EventPayload),
      "event 1 (OrchestrationStarted) names a parent without the event that asked, or that event without the parent",
    ],
    [
      "an execution of no parent",
      historyOf({ ...started, parentExecutionId: 1 } as EventPayload),
      "event 1 (OrchestrationStarted) names an execution of its parent, but no parent",
    ],
    ["execution 0", inExecution(0, historyOf(started)), "event 1 (OrchestrationStarted) is of execution 0"],
    [
      "messages carried over from nowhere",
      historyOf(carrying, message),
      "event 1 (OrchestrationStarted) carries messages over, but nothing went before",
    ],
    [
      "a custom status carried over from nowhere",
      historyOf({ ...started, initialCustomStatus: "x" } as EventPayload),
      "event 1 (OrchestrationStarted) carries a custom status over, but nothing went before",
    ],
    [
      "a message that is carried over and does not arrive",
      inExecution(2, historyOf(carrying, queueSubscribed("q"))),
      "event 1 (OrchestrationStarted) carries message 1 over, which does not arrive as event 2",
    ],
    [
      "a message that changes on its way",
      inExecution(2, historyOf(carrying, { ...message, data: "2" } as EventPayload)),
      "event 1 (OrchestrationStarted) carries message 1 over, which does not arrive as event 2",
    ],
  ])("the start: %s", (_, events, problems) => {
    expect(historyProblems(events)).toEqual([problems].flat());
  });

  test("all of it is told at once, in the order of the events, and thrown with the name of the instance", () => {
    const events = historyOf(started, [activityDone(1), 9], completed, cancelRequest);

    expect(() => checkHistory(events)).toThrow(
      expect.objectContaining({
        code: "DUROXIDE_INVALID_HISTORY",
        instanceId: "test-instance",
        problems: [
          "event 2 (ActivityCompleted) is about event 9, which does not stand before it",
          "event 4 (OrchestrationCancelRequested) follows the end, event 3 (OrchestrationCompleted)",
          "event 4 (OrchestrationCancelRequested) asks to cancel, but the end is event 3 (OrchestrationCompleted)",
        ],
      }),
    );
  });

  test("is told without the name of an instance, where no event says one", () => {
    expect(() => checkHistory([])).toThrow(
      expect.objectContaining({ instanceId: null, message: expect.stringMatching(/^The history is empty: .*\.$/) }),
    );
  });

  test.each<[string, unknown, string]>([
    ["no list", null, "the history is no list of events"],
    ["a list of nothing", [undefined], "what stands at place 1 is no event"],
    ["an event of no known kind", [eventOf(1, started), { type: "toString" }], "what stands at place 2 is no event"],
    [
      "an event without what it must have",
      [eventOf(1, started), eventOf(2, { type: "ActivityScheduled", name: "A" } as never)],
      "what stands at place 2 is no event: event 2: ActivityScheduled.input: expected a string, got nothing",
    ],
    [
      "an event with what no store can keep",
      [eventOf(1, started), eventOf(Number.NaN, timerCreated)],
      "what stands at place 2 is no event: event: event_id: expected a whole number from 0 to 2^53-1, got NaN",
    ],
  ])("what is none at all is told, not thrown over: %s", (_, events, problem) => {
    expect(historyProblems(events as never)).toEqual([problem]);
    expect(() => checkHistory(events as never)).toThrow(expect.objectContaining({ problems: [problem] }));
  });
});

describe("a history that is merely unusual is valid", () => {
  test.each<[string, readonly Event[]]>([
    [
      "an answer after its activity was given up",
      historyOf(started, scheduled("A"), timerCreated, [timerFired, 3], [activityDropped, 2], [activityDone(1), 2]),
    ],
    [
      "an activity dropped in the turn that brought its answer",
      historyOf(
        started,
        scheduled("A"),
        timerCreated,
        [timerFired, 3],
        [activityDone(1), 2],
        [activityDropped, 2],
        completed,
      ),
    ],
    [
      "activities given up after the end, as the original does",
      historyOf(started, scheduled("A"), completed, [activityGivenUp("orchestration_terminal_completed"), 2]),
    ],
    [
      "everything given up with the end",
      historyOf(
        started,
        scheduled("A"),
        subscribed("E"),
        queueSubscribed("q"),
        cancelRequest,
        [waitGivenUp("orchestration_terminal"), 3],
        [dequeueGivenUp("orchestration_terminal"), 4],
        [activityGivenUp("orchestration_terminal_failed"), 2],
        cancelledEnd,
      ),
    ],
    [
      "decisions in the turn of a cancel request, and a system call",
      historyOf(
        started,
        scheduled("A"),
        cancelRequest,
        [activityDone(1), 2],
        utcNow,
        [activityDone(1), 5],
        scheduled("B"),
        [activityGivenUp("orchestration_terminal_failed"), 7],
        cancelledEnd,
      ),
    ],
    ["a cancel request that a system failure overtook", historyOf(started, cancelRequest, failed)],
    ["events that nobody waits for", historyOf(started, timerCreated, eventArrived("E", 1), message)],
    ["a child with a name of its own", historyOf(started, childScheduled("C", "child-7"))],
    ["a child of a later execution", inExecution(3, historyOf(started, childScheduled("C", "sub::3_2")))],
    [
      "a child of a later execution, as the original used to name it",
      inExecution(3, historyOf(started, childScheduled("C", "sub::2"))),
    ],
    [
      "no messages carried over, in the words of the wire",
      historyOf({ ...started, carryForwardEvents: null } as never),
    ],
    ["messages carried over", inExecution(2, historyOf(carrying, message, completed))],
    ["messages carried over to an execution that never ran", inExecution(2, historyOf(carrying, failed))],
  ])("%s", (_, events) => {
    expect(historyProblems(events)).toEqual([]);
  });
});

describe("every history that is written is valid", () => {
  test.each(readdirSync(GOLDEN).filter((file) => file !== "work-items.jsonl"))("by the original: %s", (file) => {
    const text = readFileSync(new URL(file, GOLDEN), "utf8");
    expect(importHistory(text).length).toBe(text.trim().split("\n").length);
  });

  test("by random programs", async () => {
    for (let seed = 1; seed <= 200; seed += 1) {
      const { history } = await randomRun(seed);
      expect(historyProblems(history), `seed ${seed}`).toEqual([]);
    }
  });
});

describe("damage", () => {
  const seeds = Array.from({ length: 60 }, (_, n) => n + 1);

  test("an event that is missing, doubled or misplaced is found; only a missing tail is not, since it may be yet to come", async () => {
    let unseen = 0;
    for (const seed of seeds) {
      const { history } = await randomRun(seed);
      for (const [place, event] of history.entries()) {
        const [before, after] = [history.slice(0, place), history.slice(place + 1)];
        const isLast = after.length === 0;
        const where = `seed ${seed}, event ${event.eventId}`;
        expect(historyProblems([...before, event, event, ...after]), `${where} doubled`).not.toEqual([]);
        if (!isLast) {
          const swapped = [...before, after[0]!, event, ...after.slice(1)];
          expect(historyProblems(swapped), `${where} swapped with the next`).not.toEqual([]);
        }
        if (isLast && historyProblems(before).length === 0) unseen += 1;
        else expect(historyProblems([...before, ...after]), `${where} missing`).not.toEqual([]);
      }
    }
    expect(unseen).toBeGreaterThan(0);
  });

  /** What a doubled event may mean, where whoever doubled it has numbered everything anew. */
  const MAY_STAND_TWICE: Readonly<Record<string, string>> = {
    decision: "code may ask for the same thing twice",
    ExternalEvent: "somebody may raise the same event twice",
    ExternalEventPersistent: "somebody may send the same message twice",
  };

  test("an event that is doubled so that all ids fit is found, unless it may well have happened twice", async () => {
    for (const seed of seeds) {
      const { history } = await randomRun(seed);
      for (const [place, event] of history.entries()) {
        const doubled = renumbered([...history.slice(0, place + 1), event, ...history.slice(place + 1)], place + 1);
        const isPlausible = natureOf(event) in MAY_STAND_TWICE || event.type in MAY_STAND_TWICE;
        if (!isPlausible) expect(historyProblems(doubled), `seed ${seed}, event ${event.eventId}`).not.toEqual([]);
      }
    }
  });
});

/** Ids from 1 on; sources behind that place move along. */
function renumbered(events: readonly Event[], place: number): Event[] {
  return events.map((event, at) => {
    const source = event.sourceEventId;
    return { ...event, eventId: at + 1, sourceEventId: source !== null && source > place ? source + 1 : source };
  });
}

function inExecution(executionId: number, events: readonly Event[]): readonly Event[] {
  return events.map((event) => ({ ...event, executionId }));
}
