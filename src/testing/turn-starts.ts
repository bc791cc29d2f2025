// testing/turn-starts.ts — where the turns of an execution begin, as far as its history tells. Turns that brought nothing but
// arrivals merge with the next.

import type { Event } from "../history/event.js";
import { ExecutionLedger } from "../runtime/execution-ledger.js";

/** The places of the first events of the turns: 0, and every arrival that follows something else. */
export function turnStarts(events: readonly Event[]): number[] {
  const ledger = new ExecutionLedger(events[0]?.instanceId ?? "");
  const starts: number[] = [];
  for (const [place, event] of events.entries()) {
    const before = ledger.turns;
    ledger.add(event);
    if (ledger.turns > before) starts.push(place);
  }
  return starts;
}
