// test/behaviours/events-of.ts — the events of one kind in a history, with their type.

import type { Event, EventOf, EventType } from "../../src/history/event.js";

export function eventsOf<T extends EventType>(history: readonly Event[], type: T): EventOf<T>[] {
  return history.filter((event): event is EventOf<T> => event.type === type);
}
