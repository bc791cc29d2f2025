// history/valid-history.ts — what must hold of the history of one execution, whoever wrote it and however it came here.
//
//   V1. It begins with OrchestrationStarted, which stands nowhere else; ids count up from 1 without a gap.
//   V2. All events are of one instance and one execution.
//   V3. What answers or gives up something names it: an earlier event of the right kind. Nothing is answered twice, and
//       nothing that is answered is given up afterwards.
//   V4. There is at most one cancel request and one terminal event, and the terminal event is the last.
//   V5. A timer fires at the time that it was created for; a child that nobody named is named after its event.
//
// Replay is more lenient: it goes on wherever that is safe. This is for whoever wants to know whether all is well.

import { InvalidHistoryError } from "../errors.js";
import { type Event, type EventType, INITIAL_EVENT_ID, isTerminal } from "./event.js";
import { VERSION } from "./limits.js";

/** What is wrong with a history, in the order of its events; empty: nothing. */
export function historyProblems(events: readonly Event[]): readonly string[] {
  if (events.length === 0) return ["the history is empty"];
  const inspection = new Inspection(events[0]!);
  for (const [place, event] of events.entries()) inspection.see(place, event);
  return inspection.problems;
}

/**
 * Returns the events, unless something is wrong with them.
 *
 * @throws DUROXIDE_INVALID_HISTORY with everything that is wrong
 * @example
 * checkHistory(await client.readHistory("order-1"));
 */
export function checkHistory(events: readonly Event[]): readonly Event[] {
  const problems = historyProblems(events);
  if (problems.length > 0) throw new InvalidHistoryError(events[0]?.instanceId ?? "?", problems);
  return events;
}

/** The kind of event that each kind names as its source, and what the naming means. */
const SOURCES: Readonly<Partial<Record<EventType, { readonly of: EventType; readonly as: "answer" | "cancel" }>>> = {
  ActivityCompleted: { of: "ActivityScheduled", as: "answer" },
  ActivityFailed: { of: "ActivityScheduled", as: "answer" },
  ActivityCancelRequested: { of: "ActivityScheduled", as: "cancel" },
  TimerFired: { of: "TimerCreated", as: "answer" },
  SubOrchestrationCompleted: { of: "SubOrchestrationScheduled", as: "answer" },
  SubOrchestrationFailed: { of: "SubOrchestrationScheduled", as: "answer" },
  SubOrchestrationCancelRequested: { of: "SubOrchestrationScheduled", as: "cancel" },
  ExternalSubscribedCancelled: { of: "ExternalSubscribed", as: "cancel" },
  ExternalSubscribedPersistentCancelled: { of: "ExternalSubscribedPersistent", as: "cancel" },
};

class Inspection {
  readonly problems: string[] = [];
  readonly #first: Event;
  readonly #seen = new Map<number, Event>();
  readonly #answered = new Map<number, Event>();
  readonly #cancelled = new Map<number, Event>();
  #cancelRequest: Event | null = null;
  #terminal: Event | null = null;

  constructor(first: Event) {
    this.#first = first;
  }

  see(place: number, event: Event): void {
    this.#seePlace(place, event);
    this.#seeOrigin(event);
    this.#seeSource(event);
    this.#seeEnd(event);
    this.#seeContents(event);
    this.#seen.set(event.eventId, event);
  }

  /** V1 */
  #seePlace(place: number, event: Event): void {
    const expected = INITIAL_EVENT_ID + place;
    if (event.eventId !== expected) this.#say(event, `stands where event ${expected} is expected`);
    if (place === 0 && event.type !== "OrchestrationStarted")
      this.#say(event, "is first, but OrchestrationStarted must be");
    if (place > 0 && event.type === "OrchestrationStarted") this.#say(event, "starts the execution once more");
  }

  /** V2 */
  #seeOrigin(event: Event): void {
    const { instanceId, executionId } = this.#first;
    if (event.instanceId !== instanceId)
      this.#say(event, `belongs to instance '${event.instanceId}', not '${instanceId}'`);
    if (event.executionId !== executionId) {
      this.#say(event, `belongs to execution ${event.executionId}, not ${executionId}`);
    }
    if (!VERSION.test(event.duroxideVersion)) this.#say(event, `has no engine version: '${event.duroxideVersion}'`);
  }

  /** V3 */
  #seeSource(event: Event): void {
    const source = event.sourceEventId;
    const rule = SOURCES[event.type];
    if (rule === undefined) {
      if (source !== null) this.#say(event, `names event ${source} as its source, but answers nothing`);
      return;
    }
    if (source === null) return this.#say(event, `does not say which ${rule.of} it is about`);
    const found = this.#seen.get(source);
    if (found === undefined) return this.#say(event, `is about event ${source}, which does not stand before it`);
    if (found.type !== rule.of)
      return this.#say(event, `is about event ${source} (${found.type}), expected ${rule.of}`);
    this.#seeSettled(event, source, rule.as === "answer" ? this.#answered : this.#cancelled);
  }

  #seeSettled(event: Event, source: number, settled: Map<number, Event>): void {
    const before = settled.get(source);
    const answer = this.#answered.get(source);
    if (before !== undefined)
      this.#say(event, `is about event ${source}, as event ${before.eventId} (${before.type}) was`);
    else if (answer !== undefined)
      this.#say(event, `gives up event ${source}, which event ${answer.eventId} has answered`);
    settled.set(source, before ?? event);
  }

  /** V4 */
  #seeEnd(event: Event): void {
    if (this.#terminal !== null)
      this.#say(event, `follows the end, event ${this.#terminal.eventId} (${this.#terminal.type})`);
    if (event.type === "OrchestrationCancelRequested") {
      if (this.#cancelRequest !== null) this.#say(event, `repeats event ${this.#cancelRequest.eventId}`);
      this.#cancelRequest ??= event;
    }
    if (isTerminal(event)) this.#terminal ??= event;
  }

  /** V5 */
  #seeContents(event: Event): void {
    if (event.type === "TimerFired") {
      const created = this.#seen.get(event.sourceEventId ?? 0);
      if (created?.type === "TimerCreated" && created.fireAtMs !== event.fireAtMs) {
        this.#say(
          event,
          `fires at ${event.fireAtMs}, but event ${created.eventId} was created for ${created.fireAtMs}`,
        );
      }
    }
    if (event.type === "SubOrchestrationScheduled" && event.instance.startsWith("sub::")) {
      const suffix = event.executionId === 1 ? `${event.eventId}` : `${event.executionId}_${event.eventId}`;
      if (event.instance !== `sub::${suffix}`)
        this.#say(event, `names its child '${event.instance}', not 'sub::${suffix}'`);
    }
  }

  #say(event: Event, what: string): void {
    this.problems.push(`event ${event.eventId} (${event.type}) ${what}`);
  }
}
