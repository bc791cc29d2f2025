// history/valid-history.ts — what must hold of the history of one execution, whoever wrote it and however it came here.
//
//   V1. It begins with OrchestrationStarted, which stands nowhere else; ids count up from 1 without a gap.
//   V2. All events are of one instance and one execution.
//   V3. What answers or gives up something names it: an earlier event of the right kind. Nothing is answered or given up
//       twice, and nothing that an earlier turn answered is given up.
//   V4. There is at most one terminal event, and it is the last. (The original wrote the breadcrumbs of activities after it.)
//   V5. A timer fires at the time that it was created for; a child that nobody named is named after its event.
//   V6. What is given up was dropped by the code, or falls with the end: then the end is near, and of the kind that is named.
//   V7. There is at most one cancel request. The turn that it comes with is the last, and fails the execution.
//   V8. A parent is named together with the event that asked. Only what continues as new carries messages over: they
//       arrive first, in order.
//
// Replay is more lenient: it goes on wherever that is safe. This is for whoever wants to know whether all is well.

import { InvalidHistoryError, messageOf } from "../errors.js";
import { decodeEvent, encodeEvent } from "./codec.js";
import { type Event, type EventOf, type EventType, INITIAL_EVENT_ID, INITIAL_EXECUTION_ID } from "./event.js";
import { VERSION } from "./limits.js";
import { isEventType, type Nature, natureOf } from "./nature.js";

/**
 * What is wrong with the history of an execution, in the order of its events; empty: nothing.
 *
 * @example
 * for (const problem of historyProblems(await client.readHistory("order-1"))) report(problem);
 */
export function historyProblems(events: readonly Event[]): readonly string[] {
  if (!Array.isArray(events)) return ["the history is no list of events"];
  const stored = Array.from(events, asStored); // Holes are no events either.
  const strangers = stored.flatMap((event, place) => {
    return typeof event === "string" ? [`what stands at place ${place + 1} is no event${event}`] : [];
  });
  if (strangers.length > 0) return strangers;
  if (events.length === 0) return [EMPTY];
  const inspection = new Inspection(stored as Event[]);
  for (const [place, event] of (stored as Event[]).entries()) inspection.see(place, event);
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
  if (problems.length === 0) return events;
  const first = asStored(Array.isArray(events) ? events[0] : undefined);
  throw new InvalidHistoryError(typeof first === "string" ? null : first.instanceId, problems);
}

/** The event as a store would give it back; or a text: why no store could keep it. Reading it may throw anything. */
function asStored(event: unknown): Event | string {
  try {
    const type = (event as { readonly type?: unknown } | null | undefined)?.type;
    if (typeof type !== "string" || !isEventType(type)) return "";
    return decodeEvent(encodeEvent(event as Event));
  } catch (cause) {
    return `: ${messageOf(cause)}`;
  }
}

const EMPTY = "the history is empty: nothing is recorded under that id and execution, or the file is empty";

/** The kind of event that each kind names as its source. */
const SOURCES: Readonly<Partial<Record<EventType, EventType>>> = {
  ActivityCompleted: "ActivityScheduled",
  ActivityFailed: "ActivityScheduled",
  ActivityCancelRequested: "ActivityScheduled",
  TimerFired: "TimerCreated",
  SubOrchestrationCompleted: "SubOrchestrationScheduled",
  SubOrchestrationFailed: "SubOrchestrationScheduled",
  SubOrchestrationCancelRequested: "SubOrchestrationScheduled",
  ExternalSubscribedCancelled: "ExternalSubscribed",
  ExternalSubscribedPersistentCancelled: "ExternalSubscribedPersistent",
};

/** Given up by code. */
const DROPPED = "dropped_future";

/** In whose name an activity is given up with each end. */
const ENDS: Readonly<Partial<Record<EventType, string>>> = {
  OrchestrationCompleted: "orchestration_terminal_completed",
  OrchestrationFailed: "orchestration_terminal_failed",
  OrchestrationContinuedAsNew: "orchestration_terminal_continued_as_new",
};

type Breadcrumb = EventOf<
  | "ActivityCancelRequested"
  | "SubOrchestrationCancelRequested"
  | "ExternalSubscribedCancelled"
  | "ExternalSubscribedPersistentCancelled"
>;

function isBreadcrumb(event: Event): event is Breadcrumb {
  return natureOf(event) === "breadcrumb";
}

function fallsWithEnd(event: Event): boolean {
  return isBreadcrumb(event) && event.reason !== DROPPED;
}

interface Settled {
  readonly event: Event;
  readonly turn: number;
}

class Inspection {
  readonly problems: string[] = [];
  readonly #events: readonly Event[];
  readonly #first: Event;
  /** Where the execution ends; -1: it does not. */
  readonly #end: number;
  /** Where what falls with the end begins. */
  readonly #endFrom: number;
  readonly #seen = new Map<number, Event>();
  readonly #answered = new Map<number, Settled>();
  readonly #cancelled = new Map<number, Settled>();
  #cancelRequest: Event | null = null;
  #isCancelTurnOver = false;
  /** Counts batches of arrivals, as far as a history tells them apart. */
  #turn = 0;
  #before: Nature | null = null;

  constructor(events: readonly Event[]) {
    this.#events = events;
    this.#first = events[0]!;
    this.#end = events.findIndex((event) => natureOf(event) === "end");
    const last = events.findLastIndex((event, place) => place < this.#end && !fallsWithEnd(event));
    this.#endFrom = last + 1;
  }

  see(place: number, event: Event): void {
    const nature = natureOf(event);
    if (nature === "arrival" && this.#before !== "arrival" && this.#before !== "start") this.#turn += 1;
    this.#before = nature;
    this.#seePlace(place, event);
    this.#seeOrigin(event);
    this.#seeSource(event);
    this.#seeEnd(place, event);
    this.#seeContents(event);
    if (isBreadcrumb(event)) this.#seeReason(place, event);
    this.#seeCancel(place, event);
    if (place === 0 && event.type === "OrchestrationStarted") this.#seeStart(event);
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
    const expected = SOURCES[event.type];
    if (expected === undefined) {
      if (source !== null) this.#say(event, `names event ${source} as its source, but answers nothing`);
      return;
    }
    if (source === null) return this.#say(event, `does not say which ${expected} it is about`);
    const found = this.#seen.get(source);
    if (found === undefined) return this.#say(event, `is about event ${source}, which does not stand before it`);
    if (found.type !== expected)
      return this.#say(event, `is about event ${source} (${found.type}), expected ${expected}`);
    this.#seeSettled(event, source, isBreadcrumb(event) ? this.#cancelled : this.#answered);
  }

  /** An answer may come after all: the cancel request lost the race. Code may drop what has just arrived. */
  #seeSettled(event: Event, source: number, settled: Map<number, Settled>): void {
    const before = settled.get(source);
    const answer = this.#answered.get(source);
    if (before !== undefined)
      this.#say(event, `is about event ${source}, as event ${before.event.eventId} (${before.event.type}) was`);
    else if (answer !== undefined && answer.turn < this.#turn)
      this.#say(event, `gives up event ${source}, which event ${answer.event.eventId} has answered`);
    if (before === undefined) settled.set(source, { event, turn: this.#turn });
  }

  /** V4 */
  #seeEnd(place: number, event: Event): void {
    const end = this.#events[this.#end];
    if (end === undefined || place <= this.#end) return;
    const isOriginals = event.type === "ActivityCancelRequested" && event.reason !== DROPPED;
    if (!isOriginals) this.#say(event, `follows the end, event ${end.eventId} (${end.type})`);
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
      const expected = childNames(event);
      if (!expected.includes(event.instance))
        this.#say(event, `names its child '${event.instance}', not '${expected[0]}'`);
    }
  }

  /** V6 */
  #seeReason(place: number, event: Breadcrumb): void {
    if (event.reason === DROPPED) return;
    const end = this.#events[this.#end];
    const expected = reasonAtEnd(event, end);
    if (expected === null) return this.#say(event, `gives up its child for '${event.reason}', not '${DROPPED}'`);
    if (end === undefined) {
      return this.#say(event, `is written for '${event.reason}', but the execution does not end`);
    }
    if (event.reason !== expected) {
      return this.#say(event, `is written for '${event.reason}', but the end is event ${end.eventId} (${end.type})`);
    }
    const stray = this.#events[this.#endFrom - 1];
    if (place < this.#endFrom && stray !== undefined)
      this.#say(event, `belongs to the end, but event ${stray.eventId} (${stray.type}) follows it`);
  }

  /** V7 */
  #seeCancel(place: number, event: Event): void {
    const request = this.#cancelRequest;
    if (event.type === "OrchestrationCancelRequested") {
      if (request !== null) this.#say(event, `repeats event ${request.eventId}`);
      else this.#seeCancelEnd(event);
      this.#cancelRequest ??= event;
      return;
    }
    if (request === null || (this.#end >= 0 && place >= this.#end)) return;
    if (natureOf(event) !== "arrival") this.#isCancelTurnOver = true;
    // What was asked for after the request can have been answered in the same turn only: a system call.
    else if (this.#isCancelTurnOver && (event.sourceEventId ?? 0) < request.eventId)
      this.#say(event, `arrives after the turn of the cancel request, event ${request.eventId}, which is the last`);
  }

  #seeCancelEnd(event: Event): void {
    const end = this.#events[this.#end];
    if (end === undefined) this.#say(event, "asks to cancel, but the execution does not end");
    else if (end.type !== "OrchestrationFailed")
      this.#say(event, `asks to cancel, but the end is event ${end.eventId} (${end.type})`);
  }

  /** V8 */
  #seeStart(start: EventOf<"OrchestrationStarted">): void {
    const { parentInstance, parentId, parentExecutionId } = start;
    const carryForwardEvents = start.carryForwardEvents ?? []; // On the wire, null is none.
    if ((parentInstance === null) !== (parentId === null))
      this.#say(start, "names a parent without the event that asked, or that event without the parent");
    if (parentInstance === null && parentExecutionId !== undefined)
      this.#say(start, "names an execution of its parent, but no parent");
    if (start.executionId < INITIAL_EXECUTION_ID) this.#say(start, `is of execution ${start.executionId}`);
    const isFirst = start.executionId === INITIAL_EXECUTION_ID;
    if (isFirst && carryForwardEvents.length > 0) this.#say(start, "carries messages over, but nothing went before");
    if (isFirst && start.initialCustomStatus !== undefined)
      this.#say(start, "carries a custom status over, but nothing went before");
    // An execution that never came to run its code has recorded nothing of what it got.
    if (this.#events[1]?.type === "OrchestrationFailed") return;
    const lost = carryForwardEvents.findIndex(([name, data], nth) => !isMessage(this.#events[nth + 1], name, data));
    if (lost >= 0) this.#say(start, `carries message ${lost + 1} over, which does not arrive as event ${lost + 2}`);
  }

  #say(event: Event, what: string): void {
    this.problems.push(`event ${event.eventId} (${event.type}) ${what}`);
  }
}

/** What may stand in the name of a child that nobody named. The original came to name the execution late. */
function childNames({ executionId, eventId }: Event): readonly string[] {
  const byEvent = `sub::${eventId}`;
  return executionId === INITIAL_EXECUTION_ID ? [byEvent] : [`sub::${executionId}_${eventId}`, byEvent];
}

/** Why this would be given up if it fell with the end; null: it never does. */
function reasonAtEnd(event: Breadcrumb, end: Event | undefined): string | null {
  switch (event.type) {
    case "ActivityCancelRequested":
      return end === undefined ? event.reason : (ENDS[end.type] ?? "");
    case "SubOrchestrationCancelRequested":
      return null;
    default:
      return "orchestration_terminal";
  }
}

function isMessage(event: Event | undefined, name: string, data: string): boolean {
  return event?.type === "ExternalEventPersistent" && event.name === name && event.data === data;
}
