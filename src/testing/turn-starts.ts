// testing/turn-starts.ts — where the turns of an execution begin, as far as its history tells.
//
// Where arrivals follow something that code did, a new batch begins. Where they follow other arrivals, nobody can tell; and
// answers to system calls may have come from within the turn.

import { isInlineCall } from "../engine/system-calls.js";
import type { Event } from "../history/event.js";
import { natureOf } from "../history/nature.js";

/** The places of the first events of the turns, ascending: 0, and wherever else one surely begins. */
export function turnStarts(events: readonly Event[]): number[] {
  const systemCalls = new Set<number>();
  const starts: number[] = [];
  for (const [place, event] of events.entries()) {
    if (event.type === "ActivityScheduled" && isInlineCall(event.name)) systemCalls.add(event.eventId);
    if (place === 0 || (isByCode(events[place - 1]!) && isArrival(event, systemCalls))) starts.push(place);
  }
  return starts;
}

function isArrival(event: Event, systemCalls: ReadonlySet<number>): boolean {
  return natureOf(event) === "arrival" && !systemCalls.has(event.sourceEventId ?? 0);
}

function isByCode(event: Event): boolean {
  const nature = natureOf(event);
  return nature === "decision" || nature === "breadcrumb";
}
