// runtime/limit-usage.ts — how much of its limits an execution has used so far, and when that is worth a warning.
//
//   U1. What is kept never shrinks: of things that are counted the sum, of single things the largest. So half of a limit
//       is passed once in an execution, and the turn that passes it tells so, whichever process takes it.
//   U2. But for the keys of the key-value store: history does not say how many an execution began with. A process that
//       meets the execution anew counts them anew, and may tell again.

import type { TurnOutcome } from "../engine/turn.js";
import type { Event } from "../history/event.js";
import { eventBytes, payloadLimitOf, payloadOf } from "../history/event-size.js";
import { byteLength, DEFAULT_LIMITS, type Limits, mostBytes } from "../history/limits.js";
import type { Fact, OrchestrationRef } from "../observer.js";

type Used = Readonly<Record<keyof Limits, number>>;

/** Early enough to change the code, or the limit, before the error; late enough that most never see it. */
const NEAR = 0.5;

const LIMITS = Object.keys(DEFAULT_LIMITS) as readonly (keyof Limits)[];

export class LimitUsage {
  readonly #used: Record<keyof Limits, number> = {
    maxPayloadBytes: 0,
    maxHistoryEvents: 0,
    maxHistoryBytes: 0,
    maxCarryForwardEvents: 0,
    maxCustomStatusBytes: 0,
    maxKvKeys: 0,
    maxKvValueBytes: 0,
  };

  get historyEvents(): number {
    return this.#used.maxHistoryEvents;
  }

  get historyBytes(): number {
    return this.#used.maxHistoryBytes;
  }

  used(limit: keyof Limits): number {
    return this.#used[limit];
  }

  snapshot(): Used {
    return { ...this.#used };
  }

  add(event: Event): void {
    this.#used.maxHistoryEvents += 1;
    this.#used.maxHistoryBytes += eventBytes(event);
    const payload = payloadOf(event);
    const limit = payloadLimitOf(event);
    if (mostBytes(payload) > this.#used[limit]) this.#atLeast(limit, byteLength(payload));
  }

  /** What a turn decided that no event says. U2 */
  addTurn({ kvKeyCount, result }: TurnOutcome): void {
    this.#atLeast("maxKvKeys", kvKeyCount);
    if (result.kind === "continuedAsNew") this.#atLeast("maxCarryForwardEvents", result.carried.length);
  }

  #atLeast(limit: keyof Limits, value: number): void {
    if (value > this.#used[limit]) this.#used[limit] = value;
  }
}

/** Adds a warning for each limit of which half was passed in between. U1 */
export function nearLimits(ref: OrchestrationRef, before: Used, now: LimitUsage, limits: Limits, facts: Fact[]): void {
  for (const limit of LIMITS) {
    const near = limits[limit] * NEAR;
    const value = now.used(limit);
    if (value >= near && before[limit] < near)
      facts.push({ type: "limit-near", ref, limit, value, max: limits[limit] });
  }
}
