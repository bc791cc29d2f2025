// How the messages of a batch become events, before any code runs. Catalogue A5, A13, A19.

import { describe, expect, test } from "vitest";
import type { ErrorDetails } from "../../src/history/error-details.js";
import type { OrchestratorItem } from "../../src/history/work-item.js";
import {
  activityDone,
  activityFailed,
  type Code,
  childCompleted,
  childFailed,
  childScheduled,
  completed,
  DoubtedDriver,
  Driver,
  eventArrived,
  expectNondeterminism,
  failureOf,
  fired,
  historyOf,
  INSTANCE,
  outputOf,
  queued,
  raised,
  runTurn,
  scheduled,
  started,
  subscribed,
  summary,
  timerCreated,
} from "./drive.js";

/** Waits for whatever the first two requests bring. */
const activity: Code = async (ctx) => {
  const result = await ctx.scheduleActivity("A");
  await ctx.waitForEvent("never");
  return result;
};
const timer: Code = async (ctx) => ctx.scheduleTimer(1);
const child: Code = async (ctx) => ctx.scheduleSubOrchestration("C");

describe("a message", () => {
  test.each<[string, Code, OrchestratorItem, object]>([
    ["TimerFired", timer, fired(2), { type: "TimerFired", sourceEventId: 2 }],
    [
      "SubOrchCompleted",
      child,
      childCompleted(2, "r"),
      { type: "SubOrchestrationCompleted", result: '"r"', sourceEventId: 2 },
    ],
    ["SubOrchFailed", child, childFailed(2, "no"), { type: "SubOrchestrationFailed", sourceEventId: 2 }],
    ["ActivityCompleted", activity, completed(2, "r"), { type: "ActivityCompleted", result: '"r"', sourceEventId: 2 }],
    ["ActivityFailed", activity, activityFailed(2, "no"), { type: "ActivityFailed", sourceEventId: 2 }],
    [
      "ExternalRaised",
      async (ctx) => ctx.waitForEvent("MyEvent"),
      raised("MyEvent", "event-data"),
      { type: "ExternalEvent", name: "MyEvent", data: '"event-data"', sourceEventId: null },
    ],
    [
      "QueueMessage",
      async (ctx) => ctx.dequeueEvent("q"),
      queued("q", 7),
      { type: "ExternalEventPersistent", name: "q", data: "7", sourceEventId: null },
    ],
  ])("%s becomes one event, numbered before what code decides", async (_, code, message, event) => {
    const driver = new DoubtedDriver({ code });
    await driver.turn();
    const outcome = await driver.turn(message);

    expect(outcome.events[0]).toMatchObject({ eventId: 3, ...event });
    expect(outcome.events.filter(({ type }) => type === outcome.events[0]?.type)).toHaveLength(1);
    expect(outcome.droppedMessages).toEqual([]);
  });

  test("that nobody waits for is recorded all the same if it is an event", async () => {
    const outcome = await runTurn({
      code: async () => "done",
      history: historyOf(started),
      messages: [raised("nobody", 1)],
    });

    expect(summary(outcome.events)).toEqual(["ExternalEvent(2)", "OrchestrationCompleted(3)"]);
    expect(outputOf(outcome)).toBe("done");
  });

  test("of another execution is dropped", async () => {
    const message = completed(2, "late", 999);
    const outcome = await runTurn({
      code: activity,
      history: historyOf(started, scheduled("A")),
      messages: [message],
    });

    expect(outcome).toMatchObject({ events: [], droppedMessages: [{ message, why: "other-execution" }] });
  });

  test.each<[string, OrchestratorItem]>([
    ["an activity's", completed(2, "late")],
    ["an activity's failure", activityFailed(2, "late")],
    ["a timer's", fired(3)],
    ["a child's", childCompleted(4, "late")],
    ["a child's failure", childFailed(4, "late")],
  ])("of the execution before is dropped, though its id fits: %s", async (_, message) => {
    const outcome = await runTurn({
      code: async (ctx) =>
        Promise.all([ctx.scheduleActivity("A"), ctx.scheduleTimer(1), ctx.scheduleSubOrchestration("C")]),
      history: historyOf(started, scheduled("A"), timerCreated, childScheduled("C", "sub::4")),
      executionId: 2,
      messages: [message],
    });

    expect(outcome.result).toEqual({ kind: "waiting" });
    expect(outcome).toMatchObject({ events: [], droppedMessages: [{ message, why: "other-execution" }] });
  });

  test.each<[string, OrchestratorItem]>([
    ["an activity", completed(99, 1)],
    ["a failed activity", activityFailed(99, "no")],
    ["a timer", fired(99)],
    ["a child", childCompleted(99, 1)],
    ["a failed child", childFailed(99, "no")],
  ])("for %s that nobody scheduled is dropped, and the instance lives", async (_, message) => {
    const outcome = await runTurn({ code: activity, history: historyOf(started, scheduled("A")), messages: [message] });

    expect(outcome.result).toEqual({ kind: "waiting" });
    expect(outcome).toMatchObject({ events: [], droppedMessages: [{ message, why: "no-matching-schedule" }] });
  });

  test.each<[string, OrchestratorItem]>([
    ["an activity", completed(99, "nobody's")],
    ["a timer", fired(99)],
    ["a child", childCompleted(99, "nobody's")],
  ])("for %s does not keep a function from returning that scheduled nothing", async (_, message) => {
    const outcome = await runTurn({ code: async () => "done", history: historyOf(started), messages: [message] });

    expect(outputOf(outcome)).toBe("done");
    expect(summary(outcome.events)).toEqual(["OrchestrationCompleted(2)"]);
    expect(outcome.droppedMessages).toEqual([{ message, why: "no-matching-schedule" }]);
  });

  test("for a wait's event is dropped: events are matched by name", async () => {
    const outcome = await runTurn({
      code: async (ctx) => ctx.waitForEvent("E"),
      history: historyOf(started, subscribed("E")),
      messages: [completed(2, 1)],
    });

    expect(outcome).toMatchObject({ events: [], droppedMessages: [{ why: "no-matching-schedule" }] });
  });

  test("that belongs elsewhere is dropped", async () => {
    const message: OrchestratorItem = {
      type: "StartOrchestration",
      instance: INSTANCE,
      orchestration: "TestOrch",
      input: "null",
      version: null,
      parentInstance: null,
      parentId: null,
      executionId: 1,
    };
    const outcome = await runTurn({ code: activity, history: historyOf(started, scheduled("A")), messages: [message] });

    expect(outcome).toMatchObject({ events: [], droppedMessages: [{ message, why: "wrong-queue" }] });
  });
});

describe("a second answer", () => {
  test.each<[string, OrchestratorItem]>([
    ["the same", completed(2, "again")],
    ["a failure", activityFailed(2, "no")],
  ])("to a schedule that history has answered is dropped: %s", async (_, message) => {
    const outcome = await runTurn({
      code: activity,
      history: historyOf(started, scheduled("A"), [activityDone("first"), 2], subscribed("never")),
      messages: [message, message],
    });

    expect(outcome.events).toEqual([]);
    expect(outcome.droppedMessages).toEqual([
      { message, why: "duplicate" },
      { message, why: "duplicate" },
    ]);
  });

  test("after a failure is dropped, whatever it says", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        const first = await ctx.scheduleActivity("A").catch((error: Error) => error.message);
        await ctx.scheduleTimer(1);
        return first;
      },
    });
    await driver.turn();
    await driver.turn(activityFailed(2, "first"));

    expect(await driver.turn(completed(2, "no, it worked"))).toMatchObject({
      events: [],
      droppedMessages: [{ why: "duplicate" }],
    });
    expect(outputOf(await driver.turn(fired(4)))).toBe("first");
  });

  test("in the same batch is dropped: the first wins", async () => {
    const driver = new DoubtedDriver({ code: async (ctx) => ctx.scheduleActivity("A") });
    await driver.turn();
    const outcome = await driver.turn(completed(2, "first"), completed(2, "second"), activityFailed(2, "third"));

    expect(outputOf(outcome)).toBe("first");
    expect(summary(outcome.events)).toEqual(["ActivityCompleted(3<2)", "OrchestrationCompleted(4)"]);
    expect(outcome.droppedMessages).toHaveLength(2);
  });
});

describe("equal events", () => {
  test("in a batch are all recorded", async () => {
    const outcome = await runTurn({
      code: async (ctx) => ctx.waitForEvent("other"),
      history: historyOf(started, subscribed("other")),
      messages: [raised("E", "same"), raised("E", "same"), queued("E", "same"), queued("E", "same")],
    });

    expect(summary(outcome.events)).toEqual([
      "ExternalEvent(3)",
      "ExternalEvent(4)",
      "ExternalEventPersistent(5)",
      "ExternalEventPersistent(6)",
    ]);
    for (const event of outcome.events) expect(event).toMatchObject({ name: "E", data: '"same"' });
  });

  test("that history has already are recorded again", async () => {
    const outcome = await runTurn({
      code: async (ctx) => ctx.waitForEvent("other"),
      history: historyOf(started, subscribed("other"), eventArrived("E", "same")),
      messages: [raised("E", "same")],
    });

    expect(summary(outcome.events)).toEqual(["ExternalEvent(4)"]);
  });
});

describe("a batch", () => {
  test("with several answers delivers them one at a time, in order", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        const log: unknown[] = [];
        const watch = async (name: string) => {
          log.push([name, await ctx.scheduleActivity(name), await ctx.newGuid().then(() => name)]);
        };
        await Promise.all(["A", "B", "C"].map(watch));
        return log.map((entry) => (entry as unknown[])[0]);
      },
    });
    await driver.turn();
    const outcome = await driver.turn(completed(4, "c"), completed(2, "a"), completed(3, "b"));

    expect(summary(outcome.events).slice(0, 6)).toEqual([
      "ActivityCompleted(5<4)",
      "ActivityCompleted(6<2)",
      "ActivityCompleted(7<3)",
      "ActivityScheduled(8)",
      "ActivityScheduled(9)",
      "ActivityScheduled(10)",
    ]);
    expect(outputOf(outcome)).toEqual(["C", "A", "B"]);
  });

  test("with the answers of two activities records both", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => Promise.all([ctx.scheduleActivity("A"), ctx.scheduleActivity("B"), ctx.scheduleTimer(1)]),
    });
    await driver.turn();
    const outcome = await driver.turn(completed(2, "a"), completed(3, "b"));

    expect(summary(outcome.events)).toEqual(["ActivityCompleted(5<2)", "ActivityCompleted(6<3)"]);
    expect(outcome.events).toMatchObject([{ result: '"a"' }, { result: '"b"' }]);
  });

  test("that changes nothing makes an empty turn", async () => {
    const driver = new DoubtedDriver({ code: activity });
    await driver.turn();

    expect(await driver.turn()).toMatchObject({ result: { kind: "waiting" }, events: [] });
    expect(await driver.turn(completed(77, 1))).toMatchObject({ result: { kind: "waiting" }, events: [] });
  });

  test("answers what code never looks at, and the function still returns", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        ctx.scheduleActivity("Ignored");
        await ctx.scheduleTimer(1);
        return "done";
      },
    });
    await driver.turn();
    const outcome = await driver.turn(completed(2, "unseen"), fired(3));

    expect(outputOf(outcome)).toBe("done");
    expect(summary(outcome.events)).toEqual(["ActivityCompleted(4<2)", "TimerFired(5<3)", "OrchestrationCompleted(6)"]);
  });

  test("goes on being recorded after the message that ends the function", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        ctx.scheduleActivity("Slow");
        await ctx.scheduleActivity("Fast");
        return "done";
      },
    });
    await driver.turn();
    const outcome = await driver.turn(completed(3, 1), completed(2, 1), raised("E", 1));

    expect(summary(outcome.events)).toEqual([
      "ActivityCompleted(4<3)",
      "ActivityCompleted(5<2)",
      "ExternalEvent(6)",
      "OrchestrationCompleted(7)",
    ]);
  });
});

describe("a failure that is not the application's own", () => {
  const infrastructure: ErrorDetails = {
    category: "infrastructure",
    operation: "execute",
    message: "disk",
    retryable: false,
  };
  const configuration: ErrorDetails = {
    category: "configuration",
    kind: "Nondeterminism",
    resource: "",
    message: "elsewhere",
  };
  const poison: ErrorDetails = {
    category: "poison",
    attemptCount: 11,
    maxAttempts: 10,
    messageType: { type: "Activity", instance: INSTANCE, executionId: 1, activityName: "A", activityId: 2 },
    message: "{}",
  };

  test.each([infrastructure, configuration, poison])(
    "ends the turn before any code can catch it: %j",
    async (details) => {
      let attempts = 0;
      const driver = new Driver({
        code: async (ctx) => {
          await Promise.all([
            ctx.scheduleActivity("A"),
            ctx.scheduleSubOrchestration("C"),
            ctx.waitForEvent("E"),
          ]).catch(() => {
            attempts += 1;
          });
        },
      });
      await driver.turn();
      const before = [...driver.history];
      const outcome = await driver.turn(raised("E", 1), activityFailed(2, details), completed(77, 1));
      const byChild = await runTurn({
        code: async () => attempts++,
        history: before,
        messages: [childFailed(3, details)],
      });

      expect(failureOf(outcome)).toEqual(details);
      expect(failureOf(byChild)).toEqual(details);
      expect(attempts).toBe(0);
      expect(summary(outcome.events)).toEqual(["ExternalEvent(5)", "ActivityFailed(6<2)", "OrchestrationFailed(7)"]);
      expect(outcome.cancelledChildren).toMatchObject([{ instance: `${INSTANCE}::sub::3` }]);
      expect(summary(byChild.events)).toEqual([
        "SubOrchestrationFailed(5<3)",
        "ActivityCancelRequested(6<2)",
        "OrchestrationFailed(7)",
      ]);
    },
  );

  test("decides the same in a warm execution as in one replayed from scratch, whatever is open", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        const first = await ctx.race([ctx.scheduleTimer(1), ctx.scheduleActivity("Loser")]);
        await Promise.all([
          ctx.waitForEvent("E"),
          ctx.dequeueEvent("q"),
          ctx.scheduleActivity("A"),
          ctx.scheduleTimer(9),
        ]);
        return first;
      },
    });
    await driver.turn();
    await driver.turn(fired(2));

    expect(failureOf(await driver.turn(activityFailed(7, infrastructure)))).toEqual(infrastructure);
  });

  test("that is the first of several is the one that counts, whatever comes after it", async () => {
    const history = historyOf(started, scheduled("A"), scheduled("B"), timerCreated);
    const code: Code = async (ctx) => {
      await Promise.all([ctx.scheduleActivity("A"), ctx.scheduleActivity("B"), ctx.scheduleTimer(1)]);
    };
    const first = await runTurn({
      code,
      history,
      messages: [activityFailed(2, infrastructure), activityFailed(3, poison)],
    });
    const beforeAnother = await runTurn({
      code,
      history,
      messages: [activityFailed(2, infrastructure), activityFailed(3, "the application's own")],
    });
    const mismatch = await runTurn({ code, history, messages: [activityFailed(2, infrastructure), completed(4, 1)] });

    expect(failureOf(first)).toEqual(infrastructure);
    expect(failureOf(beforeAnother)).toEqual(infrastructure);
    expectNondeterminism(mismatch, "completion kind mismatch");
  });

  test("wins over a cancel request in its batch", async () => {
    const outcome = await runTurn({
      code: activity,
      history: historyOf(started, scheduled("A")),
      messages: [{ type: "CancelInstance", instance: INSTANCE, reason: "stop" }, activityFailed(2, infrastructure)],
    });

    expect(failureOf(outcome)).toEqual(infrastructure);
  });
});

describe("an application's failure", () => {
  test.each<[string, Code, OrchestratorItem]>([
    ["an activity", async (ctx) => ctx.scheduleActivity("A"), activityFailed(2, "business rule violated")],
    ["a child", child, childFailed(2, "business rule violated")],
  ])("of %s reaches code, which fails with it", async (_, code, message) => {
    const driver = new DoubtedDriver({ code });
    await driver.turn();

    expect(failureOf(await driver.turn(message))).toEqual({
      category: "application",
      kind: { type: "OrchestrationFailed" },
      message: "business rule violated",
      retryable: false,
    });
  });
});

describe("an answer of the wrong kind", () => {
  test.each<[string, Code, ReturnType<typeof historyOf>, OrchestratorItem]>([
    ["activity for timer", timer, historyOf(started, timerCreated), completed(2, 1)],
    ["timer for activity", activity, historyOf(started, scheduled("A")), fired(2)],
    ["child for activity", activity, historyOf(started, scheduled("A")), childCompleted(2, 1)],
    ["child for timer", timer, historyOf(started, timerCreated), childCompleted(2, 1)],
    ["timer for child", child, historyOf(started, childScheduled("C", "sub::2")), fired(2)],
    ["failed activity for timer", timer, historyOf(started, timerCreated), activityFailed(2, "no")],
    ["failed child for activity", activity, historyOf(started, scheduled("A")), childFailed(2, "no")],
  ])("is nondeterminism: %s", async (_, code, history, message) => {
    const outcome = await runTurn({ code, history, messages: [message] });

    expectNondeterminism(outcome, "completion kind mismatch for id=2");
    expect(outcome.events.at(-1)).toMatchObject({ type: "OrchestrationFailed" });
  });
});
