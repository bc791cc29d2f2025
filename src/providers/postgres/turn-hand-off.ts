// providers/postgres/turn-hand-off.ts — fetches that wait for turns, and instances that are about to be sent to.
//
//   H1. Whoever waits longest comes first, and gets the instance that is sent to first, if it can replay it.
//   H2. Whoever was reserved is given something or waits on: every offer is settled, or given back.
//   H3. One offer is to fetches that want the same. The others look for themselves at what is left.
//   H4. Where something older is ready, they get that, oldest first, as if they had looked.

import type { Reservation } from "../../provider/kit/work-signal.js";
import type { FetchOrchestrationOptions, LockedOrchestrationItem } from "../../provider/provider.js";
import type { DeliveryPart, Target } from "./deliveries.js";
import { newSecret } from "./lock-token.js";
import type { QueueSignal } from "./queue-signal.js";
import type { SqlValue } from "./session.js";
import type { Store } from "./store.js";
import { type ClaimedTurn, type TurnFetch, type TurnPart, versionColumns, versionsOf } from "./turn-fetch.js";
import { timeIn } from "./work-rows.js";

type Waiting = Reservation<LockedOrchestrationItem, FetchOrchestrationOptions>;

/** An instance that is sent to, and by which lock somebody wants it at once. */
export interface WantedTarget {
  readonly target: Target;
  readonly wish: { readonly secret: string; readonly until: number } | null;
}

interface Offer {
  readonly targets: readonly WantedTarget[];
  /** The parameters from `p_reader` to `p_lapses`. */
  readonly wanted: readonly SqlValue[];
  /** Answers how many got something. */
  settle(parts: readonly DeliveryPart[]): number;
  giveBack(): void;
}

export class TurnHandOff {
  readonly #store: Store;
  readonly #signal: QueueSignal<LockedOrchestrationItem, FetchOrchestrationOptions>;
  readonly #fetch: TurnFetch;
  readonly #opening = new Set<Promise<void>>();

  constructor(store: Store, signal: QueueSignal<LockedOrchestrationItem, FetchOrchestrationOptions>, fetch: TurnFetch) {
    this.#store = store;
    this.#signal = signal;
    this.#fetch = fetch;
  }

  offer(targets: readonly Target[], now: number): Offer {
    const takers = this.#takers(targets, now);
    const wants = takers.flatMap((taker) => taker?.want ?? []);
    const until = timeIn(now, wants[0]?.lockTimeoutMs ?? 0);
    const { min, max } = versionsOf(wants[0]?.capability);
    const wanted = targets.map((target, place) => {
      const wish = takers[place] == null ? null : { secret: newSecret(this.#store.newId), until };
      return { target, wish };
    });
    return {
      targets: wanted,
      wanted: [
        wants.some(({ warm }) => warm !== undefined && warm.size > 0) ? this.#store.id : null,
        versionColumns(min),
        versionColumns(max),
        this.#store.looksBack("messages", now),
      ],
      settle: (parts) => {
        if (!parts.some(({ part }) => part === "older"))
          return this.#give(wanted, takers, parts.filter(isOfTurn), until);
        return this.#giveClaimed(wanted, takers, parts.filter(isOfTurn), until); // H4
      },
      giveBack: () => {
        for (const taker of takers) taker?.giveBack();
      },
    };
  }

  /** Resolves when everybody has what was given to it. */
  async idle(): Promise<void> {
    await Promise.all(this.#opening);
  }

  /** For each target, who is to get it. */
  #takers(targets: readonly Target[], now: number): readonly (Waiting | null)[] {
    const visible = targets.filter((target) => isVisible(target, now)).length;
    const reserved = visible === 0 ? [] : this.#signal.reserve(visible);
    const free = reserved.filter(({ want }) => wantsSame(want, reserved[0]!.want)); // H3
    let given = 0;
    const takers = targets.map((target) => (isVisible(target, now) ? (free[given++] ?? null) : null));
    const taken = new Set(takers);
    for (const waiting of reserved) if (!taken.has(waiting)) waiting.giveBack();
    return takers;
  }

  /** They get the items that were written, and not what one would read of them: the same, and an item never changes. */
  #give(
    targets: readonly WantedTarget[],
    takers: readonly (Waiting | null)[],
    parts: readonly TurnPart[],
    until: number,
  ): number {
    const turns = turnsOf(targets, parts);
    if (turns.size > 0) this.#signal.wakeAt(until);
    for (const [place, taker] of takers.entries()) {
      if (taker === null) continue;
      const turn = turns.get(place + 1);
      if (turn === undefined) {
        taker.giveBack();
        continue;
      }
      this.#handOver(turn, taker);
    }
    return turns.size;
  }

  #giveClaimed(
    targets: readonly WantedTarget[],
    takers: readonly (Waiting | null)[],
    parts: readonly TurnPart[],
    until: number,
  ): number {
    const secrets = targets.flatMap(({ wish }) => wish?.secret ?? []);
    const { turns, isPassed } = this.#fetch.claimOf(parts, secrets, until);
    const claimants = takers.filter((taker) => taker !== null);
    for (const [place, taker] of claimants.entries()) {
      const turn = turns[place];
      if (turn === undefined) taker.giveBack();
      else this.#handOver(turn, taker);
    }
    if (isPassed) this.#signal.notify(claimants.length - turns.length);
    return turns.length;
  }

  #handOver(turn: ClaimedTurn, taker: Waiting): void {
    const locked = this.#fetch.openAtOnce(turn, taker.want);
    if (locked === null) this.#openLater(turn, taker);
    else taker.give(locked);
  }

  #openLater(turn: ClaimedTurn, taker: Waiting): void {
    const opening = this.#open(turn, taker);
    this.#opening.add(opening);
    void opening.finally(() => this.#opening.delete(opening));
  }

  /** Whoever sent to it does not wait for what may have to be read. */
  async #open(turn: ClaimedTurn, taker: Waiting): Promise<void> {
    const locked = await this.#fetch.open(turn, taker.want);
    if (locked === null) taker.giveBack();
    else taker.give(locked);
  }
}

function isOfTurn(part: DeliveryPart): part is TurnPart {
  return part.part !== "lost" && part.part !== "begun" && part.part !== "open" && part.part !== "older";
}

/** Those of one runtime are the same object. */
function wantsSame(one: FetchOrchestrationOptions, other: FetchOrchestrationOptions): boolean {
  if (one.lockTimeoutMs !== other.lockTimeoutMs) return false;
  if (one.capability === other.capability) return true;
  return JSON.stringify(versionsOf(one.capability)) === JSON.stringify(versionsOf(other.capability));
}

/** Those whose messages can all be fetched now. */
function isVisible({ messages }: Target, now: number): boolean {
  return messages.every(({ row }) => row.visible <= now);
}

function turnsOf(targets: readonly WantedTarget[], parts: readonly TurnPart[]): ReadonlyMap<number, ClaimedTurn> {
  const turns = new Map<number, ClaimedTurn>();
  for (const part of parts) {
    if (part.part === "cold" || part.part === "warm") {
      const { target, wish } = targets[part.turn - 1]!;
      const rows = target.messages.map(({ row, item }) => ({ id: 0, a: row.item, item, due: row.due }));
      const messages = rows.sort((one, other) => one.due - other.due);
      turns.set(part.turn, { head: part, secret: wish!.secret, messages, events: [], values: [] });
    } else if (part.part === "event") {
      turns.get(part.turn)?.events.push(part);
    } else if (part.part === "value") {
      turns.get(part.turn)?.values.push(part);
    }
  }
  return turns;
}
