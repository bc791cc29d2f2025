// test/fuzz/mutation.ts — damage to histories: events lost, doubled, out of place, altered, cut off, or of another history.

import fc from "fast-check";
import type { Event, EventType } from "../../src/history/event.js";
import { anyEvent, anyInteger, anyText } from "../history/arbitrary-history.js";

/** Places are taken modulo the length of what they are in; -1 is the last one. */
export type Mutation =
  | { readonly kind: "drop"; readonly at: number }
  | { readonly kind: "duplicate"; readonly at: number; readonly to: number }
  | { readonly kind: "move"; readonly at: number; readonly to: number }
  | { readonly kind: "swap"; readonly at: number; readonly with: number }
  | { readonly kind: "truncate"; readonly at: number }
  | { readonly kind: "splice"; readonly at: number; readonly from: number }
  | { readonly kind: "retype"; readonly at: number; readonly as: Event }
  | { readonly kind: "alter"; readonly at: number; readonly field: number; readonly value: unknown }
  | { readonly kind: "resource"; readonly at: number; readonly source: number }
  | { readonly kind: "giveUp"; readonly at: number; readonly to: number };

type CancelType = Extract<EventType, `${string}CancelRequested` | `${string}Cancelled`>;

const place = fc.nat(200);

const anyAlteration: fc.Arbitrary<Mutation> = fc.record({
  kind: fc.constant("alter" as const),
  at: fc.oneof(place, fc.constant(-1)),
  field: place,
  value: fc.oneof(anyText, anyInteger, fc.nat(12), fc.constantFrom("null", '"changed"', "a", "b", "1.0.0")),
});

const anyMutation: fc.Arbitrary<Mutation> = fc.oneof(
  fc.record({ kind: fc.constant("drop" as const), at: place }),
  fc.record({ kind: fc.constant("duplicate" as const), at: place, to: place }),
  fc.record({ kind: fc.constant("move" as const), at: place, to: place }),
  fc.record({ kind: fc.constant("swap" as const), at: place, with: place }),
  fc.record({ kind: fc.constant("truncate" as const), at: place }),
  fc.record({ kind: fc.constant("splice" as const), at: place, from: place }),
  fc.record({ kind: fc.constant("retype" as const), at: place, as: anyEvent }),
  { weight: 4, arbitrary: anyAlteration },
  fc.record({ kind: fc.constant("resource" as const), at: place, source: fc.nat(20) }),
  fc.record({ kind: fc.constant("giveUp" as const), at: place, to: place }),
);

/** Damage, and whether somebody has numbered the events anew afterwards, so that one must look closer to see it. */
export interface Damage {
  readonly mutations: readonly Mutation[];
  readonly isRenumbered: boolean;
}

export const anyDamage: fc.Arbitrary<Damage> = fc.record({
  mutations: fc.array(anyMutation, { minLength: 1, maxLength: 3 }),
  isRenumbered: fc.boolean(),
});

/** The history as the damage leaves it; perhaps the same. `other`: where spliced pieces come from. */
export function damaged(
  events: readonly Event[],
  { mutations, isRenumbered }: Damage,
  other: readonly Event[],
): Event[] {
  const result = mutations.reduce((history, mutation) => mutated(history, mutation, other), [...events]);
  return isRenumbered ? renumbered(result) : result;
}

function mutated(events: readonly Event[], mutation: Mutation, other: readonly Event[]): Event[] {
  if (events.length === 0) return [];
  const at = (mutation.at + events.length) % events.length;
  const event = events[at]!;
  switch (mutation.kind) {
    case "drop":
      return events.toSpliced(at, 1);
    case "duplicate":
      return events.toSpliced(mutation.to % events.length, 0, event);
    case "move":
      return events.toSpliced(at, 1).toSpliced(mutation.to % events.length, 0, event);
    case "swap": {
      const place = mutation.with % events.length;
      return events.with(at, events[place]!).with(place, event);
    }
    case "truncate":
      return events.slice(0, at);
    case "splice":
      return [...events.slice(0, at), ...other.slice(mutation.from % (other.length + 1))];
    case "retype": {
      const { eventId, sourceEventId, instanceId, executionId, timestampMs, duroxideVersion } = event;
      const envelope = { eventId, sourceEventId, instanceId, executionId, timestampMs, duroxideVersion };
      return events.with(at, { ...mutation.as, ...envelope });
    }
    case "alter":
      return events.with(at, altered(event, mutation.field, mutation.value));
    case "resource":
      return events.with(at, { ...event, sourceEventId: mutation.source });
    case "giveUp":
      return events.toSpliced(mutation.to % (events.length + 1), 0, givenUp(event));
  }
}

/** A note that code has given the event up: a lie, where it has not. */
function givenUp(event: Event): Event {
  const { eventId, instanceId, executionId, timestampMs, duroxideVersion } = event;
  const envelope = { eventId: eventId + 1_000, sourceEventId: eventId, instanceId, executionId, timestampMs };
  const type = CANCELS[event.type] ?? "ActivityCancelRequested";
  return { ...envelope, duroxideVersion, type, reason: "dropped_future" };
}

const CANCELS: Readonly<Partial<Record<EventType, CancelType>>> = {
  ActivityScheduled: "ActivityCancelRequested",
  SubOrchestrationScheduled: "SubOrchestrationCancelRequested",
  ExternalSubscribed: "ExternalSubscribedCancelled",
  ExternalSubscribedPersistent: "ExternalSubscribedPersistentCancelled",
};

/** Another value of the same kind in one of its fields: what a reader of the wire would let pass. */
function altered(event: Event, field: number, value: unknown): Event {
  const fields = Object.entries(event).filter(([name, old]) => name !== "type" && typeof old === typeof value);
  const own = fields.filter(([name]) => !ENVELOPE.includes(name));
  // Mostly what the event is about: nobody looks at most of the rest.
  const choice = field % 5 === 0 || own.length === 0 ? fields : own;
  if (choice.length === 0) return event;
  return { ...event, [choice[field % choice.length]![0]]: value };
}

const ENVELOPE = ["eventId", "sourceEventId", "instanceId", "executionId", "timestampMs", "duroxideVersion"];

/** Counted from 1 again, with those that answer something following along. */
function renumbered(events: readonly Event[]): Event[] {
  const ids = new Map(events.map(({ eventId }, place) => [eventId, place + 1]));
  return events.map((event, place) => {
    const { sourceEventId: source } = event;
    return { ...event, eventId: place + 1, sourceEventId: source === null ? null : (ids.get(source) ?? source) };
  });
}
