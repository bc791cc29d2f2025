// The original's recorded histories, replayed by this engine against the same orchestrations written in TypeScript.

import { describe, expect, test } from "vitest";
import { Execution } from "../../src/engine/execution.js";
import type { TurnOutcome } from "../../src/engine/turn.js";
import type { Event } from "../../src/history/event.js";
import type { OrchestratorItem } from "../../src/history/work-item.js";
import { handlerOf } from "./drive.js";
import { histories, orchestrations, readHistory, startOf } from "./golden.js";
import { nextBatch } from "./recorded-arrivals.js";

describe("a history recorded by the original", () => {
  test("is there for every orchestration that was recorded", () => {
    const names = new Set(histories.map(({ events }) => startOf(events).name));
    expect([...names].sort()).toEqual(Object.keys(orchestrations).sort());
  });

  test.each(histories)("$file: replayed from its last turn, ends with the recorded decisions", async ({ events }) => {
    const end = endOf(events);
    const execution = executionOf(events, events.slice(0, end));

    const outcome = await execution.turn({ nowMs: 0, messages: [] });

    expect(outcome.events.map(decision)).toEqual(events.slice(end).map(decision));
    expect(outcome.activities).toEqual([]);
  });

  test.each(histories)("$file: run live on the recorded arrivals, takes the recorded decisions", async ({ events }) => {
    const execution = executionOf(events, []);
    const produced: Event[] = [];
    let messages: OrchestratorItem[] = carriedMessages(events);
    for (;;) {
      const outcome = await execution.turn({ nowMs: 0, messages });
      produced.push(...outcome.events);
      messages = nextBatch(events, produced.length);
      if (outcome.result.kind !== "waiting") break;
      expect(messages.length, `no arrival after event ${produced.length}`).toBeGreaterThan(0);
    }
    expect(produced.map(decision)).toEqual(events.map(decision));
  });

  test.each(histories)("$file: every prefix at a turn's end replays without a new decision", async ({ events }) => {
    const execution = executionOf(events, []);
    const boundaries: number[] = [];
    let outcome: TurnOutcome = await execution.turn({ nowMs: 0, messages: carriedMessages(events) });
    for (let at = outcome.events.length; outcome.result.kind === "waiting"; at += outcome.events.length) {
      boundaries.push(at);
      outcome = await execution.turn({ nowMs: 0, messages: nextBatch(events, at) });
    }
    for (const at of boundaries) {
      const replayed = await executionOf(events, events.slice(0, at)).turn({ nowMs: 0, messages: [] });
      expect(replayed.events, `prefix of ${at} events`).toEqual([]);
      expect(replayed.result.kind).toBe("waiting");
    }
  });

  test("carries the messages that nobody took into the next execution", async () => {
    for (const [file, next] of [
      ["can-can-1.jsonl", "can-can-2.jsonl"],
      ["can-can-2.jsonl", "can-can-3.jsonl"],
    ] as const) {
      const events = readHistory(file);
      const { result } = await executionOf(events, events.slice(0, endOf(events))).turn({ nowMs: 0, messages: [] });
      const successor = startOf(readHistory(next));
      expect(result).toMatchObject({
        kind: "continuedAsNew",
        input: successor.input,
        carried: successor.carryForwardEvents,
        customStatus: successor.initialCustomStatus,
      });
    }
  });
});

function executionOf(events: readonly Event[], history: readonly Event[]): Execution {
  const { eventId, sourceEventId, instanceId, executionId, timestampMs, duroxideVersion, ...started } = startOf(events);
  return new Execution({
    instance: instanceId,
    executionId,
    handler: handlerOf(orchestrations[started.name]!),
    history,
    started: history.length === 0 ? started : null,
    kvSnapshot: new Map(),
    newGuid: () => "00000000-0000-4000-8000-000000000000",
    trace: () => {},
  });
}

/** Where the decisions that end the execution begin: after the last arrival and what it led to. */
function endOf(events: readonly Event[]): number {
  let end = events.length;
  while (
    /Cancelled$|ActivityCancelRequested|^Orchestration(Completed|Failed|ContinuedAsNew)$/.test(events[end - 1]!.type)
  ) {
    end -= 1;
  }
  return end;
}

function carriedMessages(events: readonly Event[]): OrchestratorItem[] {
  const { instanceId, carryForwardEvents = [] } = startOf(events);
  return carryForwardEvents.map(([name, data]) => ({ type: "QueueMessage", instance: instanceId, name, data }));
}

/** The event without what legitimately differs: times, recorded randomness, and the original's stack trace. */
function decision(event: Event): unknown {
  const { timestampMs, ...rest } = event;
  switch (rest.type) {
    case "TimerCreated":
      return { ...rest, fireAtMs: 0 };
    case "KeyValueSet":
      return { ...rest, lastUpdatedAtMs: 0 };
    case "ActivityCompleted":
      return rest.instanceId === "g-Sys" ? { ...rest, result: "" } : rest;
    case "OrchestrationFailed":
      return rest.instanceId === "g-Boom" ? { ...rest, details: rest.details.category } : rest;
    default:
      return rest;
  }
}
