// test/system/valid-history.ts — what must hold of any history that this runtime wrote.

import { expect } from "vitest";
import { type Event, isTerminal } from "../../src/history/event.js";

const ANSWERS: Readonly<Partial<Record<Event["type"], Event["type"]>>> = {
  ActivityCompleted: "ActivityScheduled",
  ActivityFailed: "ActivityScheduled",
  TimerFired: "TimerCreated",
  SubOrchestrationCompleted: "SubOrchestrationScheduled",
  SubOrchestrationFailed: "SubOrchestrationScheduled",
};

/** Ids count up from 1, every answer has its schedule and no schedule two answers, the end is the end. */
export function expectValidHistory(events: readonly Event[]): void {
  const name = events[0]?.instanceId ?? "?";
  expect(
    events.map(({ eventId }) => eventId),
    name,
  ).toEqual(events.map((_, place) => place + 1));
  expect(events[0]?.type, name).toBe("OrchestrationStarted");
  expect(events.filter(isTerminal).length, `${name}: terminal events`).toBeLessThanOrEqual(1);
  if (events.some(isTerminal)) expect(isTerminal(events.at(-1)!), `${name}: ends with its terminal event`).toBe(true);
  const answered = new Set<number>();
  for (const event of events) {
    const expected = ANSWERS[event.type];
    if (expected === undefined) continue;
    const source = event.sourceEventId ?? 0;
    expect(source, `${name}: event ${event.eventId}`).toBeLessThan(event.eventId);
    expect(events[source - 1]?.type, `${name}: source of event ${event.eventId}`).toBe(expected);
    expect(answered.has(source), `${name}: event ${source} is answered once`).toBe(false);
    answered.add(source);
  }
}
