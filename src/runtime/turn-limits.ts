// runtime/turn-limits.ts — whether what a turn decided may be stored at all. A turn that breaks a limit is replaced whole
// by a failure (see failed-turn.ts), so nothing oversized is ever committed.

import type { TurnOutcome } from "../engine/turn.js";
import { type ErrorDetails, limitExceeded, orchestrationFailed } from "../history/error-details.js";
import type { Event } from "../history/event.js";
import { eventBytes } from "../history/event-size.js";
import { cutFailure, failureText } from "../history/failure-size.js";
import { byteLength, type Limits, mostBytes, payloadBreach } from "../history/limits.js";
import type { LimitUsage } from "./limit-usage.js";

/**
 * The first limit that the decisions of a turn break, as the failure to record; null: none. What is exactly at a limit
 * passes, and so does what arrived: whoever sent it was held to a limit of its own.
 */
export function findBreach(outcome: TurnOutcome, limits: Limits): ErrorDetails | null {
  const message =
    firstBreach(outcome.events, limits, statusBreach) ??
    firstBreach(outcome.events, limits, kvValueBreach) ??
    kvCountBreach(outcome, limits) ??
    carryForwardBreach(outcome, limits) ??
    firstBreach(outcome.events, limits, payloadBreachOf);
  return message === null ? tooLongFailure(outcome, limits) : orchestrationFailed(message);
}

/**
 * What is to be recorded instead of a turn that would make its history too long; null: it would not. A turn that ends the
 * execution is measured alone: nothing follows, and what was done so far is not lost over its last step.
 */
export function findHistoryBreach(outcome: TurnOutcome, before: LimitUsage, limits: Limits): ErrorDetails | null {
  const goesOn = outcome.result.kind === "waiting";
  const events = outcome.events.length + (goesOn ? before.historyEvents : 0);
  if (events > limits.maxHistoryEvents) return historyTooLong("maxHistoryEvents", events, "events", limits);
  const bytesWith = (sizeOf: (text: string) => number): number =>
    outcome.events.reduce((sum, event) => sum + eventBytes(event, sizeOf), goesOn ? before.historyBytes : 0);
  if (bytesWith(mostBytes) <= limits.maxHistoryBytes) return null;
  const bytes = bytesWith(byteLength);
  return bytes > limits.maxHistoryBytes ? historyTooLong("maxHistoryBytes", bytes, "bytes", limits) : null;
}

function historyTooLong(limit: keyof Limits, size: number, unit: string, limits: Limits): ErrorDetails {
  const message = `History size (${size} ${unit}) exceeds limit (${limits[limit]} ${unit}). Let the orchestration continue as new (ctx.continueAsNew) before its history grows so long, or raise limits.${limit}.`;
  return limitExceeded(limit, message);
}

function firstBreach(
  events: readonly Event[],
  limits: Limits,
  breachOf: (event: Event, limits: Limits) => string | null,
): string | null {
  for (const event of events) {
    const breach = breachOf(event, limits);
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

function payloadBreachOf(event: Event, { maxPayloadBytes }: Limits): string | null {
  switch (event.type) {
    case "ActivityScheduled":
      return payloadBreach(event.input, `Input of activity '${event.name}'`, maxPayloadBytes);
    case "SubOrchestrationScheduled":
      return payloadBreach(event.input, `Input of sub-orchestration '${event.name}'`, maxPayloadBytes);
    case "OrchestrationChained":
      return payloadBreach(event.input, `Input of orchestration '${event.name}'`, maxPayloadBytes);
    case "OrchestrationContinuedAsNew":
      return payloadBreach(event.input, "Input of continue-as-new", maxPayloadBytes);
    case "OrchestrationCompleted":
      return payloadBreach(event.output, "Output of the orchestration", maxPayloadBytes);
    default:
      return null;
  }
}

/** The failure with which the turn ends, cut; null: it is short enough, or there is none. */
function tooLongFailure({ result }: TurnOutcome, { maxPayloadBytes }: Limits): ErrorDetails | null {
  if (!("details" in result)) return null;
  const cut = cutFailure(result.details, maxPayloadBytes);
  return failureText(cut) === failureText(result.details) ? null : cut;
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
