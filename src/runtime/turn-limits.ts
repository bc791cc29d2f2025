// runtime/turn-limits.ts — whether what a turn decided may be stored at all. A turn that breaks a limit is replaced whole
// by a failure (see failed-turn.ts), so nothing oversized is ever committed.

import type { TurnOutcome } from "../engine/turn.js";
import { type ErrorDetails, orchestrationFailed } from "../history/error-details.js";
import type { Event } from "../history/event.js";
import { byteLength, type Limits } from "../history/limits.js";

/** The first limit that the turn breaks, as the failure to record; null: none. What is exactly at a limit passes. */
export function findBreach(outcome: TurnOutcome, limits: Limits): ErrorDetails | null {
  const message =
    firstBreach(outcome.events, (event) => statusBreach(event, limits)) ??
    firstBreach(outcome.events, (event) => kvValueBreach(event, limits)) ??
    kvCountBreach(outcome, limits) ??
    carryForwardBreach(outcome, limits);
  return message === null ? null : orchestrationFailed(message);
}

function firstBreach(events: readonly Event[], breachOf: (event: Event) => string | null): string | null {
  for (const event of events) {
    const breach = breachOf(event);
    if (breach !== null) return breach;
  }
  return null;
}

function statusBreach(event: Event, limits: Limits): string | null {
  if (event.type !== "CustomStatusUpdated" || event.status === null) return null;
  return tooLarge("Custom status size", event.status, limits.maxCustomStatusBytes);
}

function kvValueBreach(event: Event, limits: Limits): string | null {
  if (event.type !== "KeyValueSet") return null;
  return tooLarge(`KV value for key '${event.key}'`, event.value, limits.maxKvValueBytes);
}

function tooLarge(what: string, text: string, limit: number): string | null {
  const bytes = byteLength(text);
  return bytes > limit ? `${what} (${bytes} bytes) exceeds limit (${limit} bytes)` : null;
}

/** Only a turn that sets something can be to blame: the limit may have been lowered since. */
function kvCountBreach(outcome: TurnOutcome, limits: Limits): string | null {
  if (outcome.kvKeyCount <= limits.maxKvKeys) return null;
  if (!outcome.events.some((event) => event.type === "KeyValueSet")) return null;
  return `KV key count (${outcome.kvKeyCount}) exceeds limit (${limits.maxKvKeys})`;
}

function carryForwardBreach({ result }: TurnOutcome, limits: Limits): string | null {
  if (result.kind !== "continuedAsNew" || result.carried.length <= limits.maxCarryForwardEvents) return null;
  return `Continue-as-new would carry over ${result.carried.length} queue messages that nobody took, which exceeds limit (${limits.maxCarryForwardEvents}). Take more of them before continuing as new, or raise limits.maxCarryForwardEvents.`;
}
