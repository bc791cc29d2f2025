import { describe, expect, test } from "vitest";
import type { Event } from "../../src/history/event.js";
import type { CancelInstance, ContinueAsNew, OrchestratorItem, QueueMessage } from "../../src/history/work-item.js";
import { ExecutionLedger } from "../../src/runtime/execution-ledger.js";
import { classifyBatch, type MessageBatch } from "../../src/runtime/message-batch.js";
import { history, INSTANCE, started, startMessage } from "./events.js";

const PARENT = { parentInstance: "parent", parentId: 7, parentExecutionId: 2 };

const cancel: CancelInstance = { type: "CancelInstance", instance: INSTANCE, reason: "enough" };
const continuation: ContinueAsNew = {
  type: "ContinueAsNew",
  instance: INSTANCE,
  orchestration: "Order",
  input: "2",
  version: "1.1.0",
  carryForwardEvents: [
    ["inbox", "a"],
    ["inbox", "b"],
  ],
  initialCustomStatus: "busy",
};

function message(data: string): QueueMessage {
  return { type: "QueueMessage", instance: INSTANCE, name: "inbox", data };
}

function classify(items: readonly OrchestratorItem[], events: readonly Event[] = [], executionId = 1): MessageBatch {
  return classifyBatch(items, executionId, new ExecutionLedger(INSTANCE, events));
}

const running = history(started());
const completed = history(started(), { type: "OrchestrationCompleted", output: "1" });
const continued = history(started(), { type: "OrchestrationContinuedAsNew", input: "2" });

describe("a start for an instance without a history", () => {
  test("starts its first execution, with the other messages in order", () => {
    const batch = classify([cancel, startMessage({ version: "2.0.0", input: "5" }), message("m")]);

    expect(batch).toEqual({
      kind: "start",
      start: {
        executionId: 1,
        initiatedBy: "client",
        name: "Order",
        version: "2.0.0",
        input: "5",
        parent: null,
        carried: [],
        customStatus: null,
      },
      messages: [cancel, message("m")],
      ignoredStarts: 0,
      collisions: [],
    });
  });

  test("counts as a child's where it names a parent", () => {
    expect(classify([startMessage(PARENT)])).toMatchObject({
      start: { initiatedBy: "suborchestration", parent: PARENT },
    });
  });

  test("wins over later ones, and tells the parents that came too late", () => {
    const batch = classify([startMessage({ input: "first" }), startMessage(PARENT), startMessage({ input: "third" })]);

    expect(batch).toMatchObject({ start: { input: "first" }, ignoredStarts: 2, collisions: [PARENT] });
  });

  test("tells nobody where the same parent's start is delivered twice", () => {
    expect(classify([startMessage(PARENT), startMessage(PARENT)])).toMatchObject({ ignoredStarts: 1, collisions: [] });
  });
});

describe("a start for an instance that runs", () => {
  test("is ignored, whatever it asks for", () => {
    const batch = classify([startMessage({ orchestration: "Other", version: "9.0.0" }), cancel], running);

    expect(batch).toEqual({ kind: "resume", messages: [cancel], ignoredStarts: 1, collisions: [] });
  });

  test("tells a parent that the id is taken", () => {
    expect(classify([startMessage(PARENT)], running)).toMatchObject({ kind: "resume", collisions: [PARENT] });
  });

  test("is a redelivery, and tells nobody, where it comes from the parent it belongs to", () => {
    expect(classify([startMessage(PARENT)], history(started(PARENT)))).toMatchObject({ collisions: [] });
  });

  test("collides where the same parent asks again in its next execution", () => {
    const again = { ...PARENT, parentExecutionId: 3 };

    expect(classify([startMessage(again)], history(started(PARENT)))).toMatchObject({ collisions: [again] });
  });

  test("is taken for a redelivery where old data does not name the parent's execution", () => {
    const { parentExecutionId, ...old } = PARENT;

    expect(classify([startMessage(PARENT)], history(started(old)))).toMatchObject({ collisions: [] });
  });
});

describe("a continuation", () => {
  test("starts the next execution; what it carries comes before what is new", () => {
    const batch = classify([message("new"), continuation], continued, 4);

    expect(batch).toMatchObject({
      kind: "start",
      start: { executionId: 5, initiatedBy: "continueAsNew", input: "2", version: "1.1.0", customStatus: "busy" },
      messages: [message("a"), message("b"), message("new")],
    });
  });

  test("goes before a start that was there first", () => {
    const batch = classify([startMessage({ input: "duplicate" }), continuation], continued);

    expect(batch).toMatchObject({ start: { input: "2" }, ignoredStarts: 1 });
  });

  test("keeps the parent, from the message or else from the history before it", () => {
    const child = history(started(PARENT), { type: "OrchestrationContinuedAsNew", input: "2" });

    expect(classify([{ ...continuation, ...PARENT }], continued)).toMatchObject({ start: { parent: PARENT } });
    expect(classify([continuation], child)).toMatchObject({ start: { parent: PARENT } });
  });

  test("that is delivered again to the execution it started is ignored", () => {
    expect(classify([continuation, cancel], running)).toMatchObject({
      kind: "resume",
      messages: [cancel],
      ignoredStarts: 1,
    });
  });
});

describe("messages for an instance that is not running", () => {
  test("are consumed without effect once it has ended", () => {
    const failed = history(started(), { type: "OrchestrationCompleted", output: "" });

    for (const ended of [completed, failed]) {
      expect(classify([cancel, startMessage(), continuation], ended).kind).toBe("ended");
    }
  });

  test("still tell a parent that the id is taken once it has ended", () => {
    expect(classify([startMessage(PARENT)], completed)).toMatchObject({ kind: "ended", collisions: [PARENT] });
  });

  test("wait between two executions", () => {
    expect(classify([message("m"), cancel, startMessage()], continued)).toEqual({ kind: "between-executions" });
  });

  test("have no effect where it never started", () => {
    expect(classify([cancel]).kind).toBe("never-started");
  });

  test("are the engine's business where the history lacks its beginning", () => {
    expect(classify([cancel], history({ type: "TimerCreated", fireAtMs: 5 })).kind).toBe("resume");
  });
});
