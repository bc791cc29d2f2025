// providers/postgres/turn-hand-off.ts — fetches that wait for turns, and instances that are about to be sent to.
//
//   H1. Whoever waits longest comes first, and gets the instance that is sent to first, if it can replay it.
//   H2. Whoever was reserved is given something or waits on: every offer is settled, or given back.
//   H3. One offer is to fetches that want the same. The others look for themselves at what is left.
//   H4. Where something older is ready, as many of them as that takes get it, oldest first, as if they had looked. Those give way
//       who would get what is sent last.
//   H5. Where a look is owed (`queue-signal.ts`, Q5), others who wait look beside them, as many as there was news for, and so many
//       need not give way. Then it is paid; or owed again, where somebody was in the way or the statement failed. The same where
//       others were in line a moment ago: whoever sends them is heard of only after they are there.
//   H6. Whoever has been foretold what he would get (`foreseen-turns.ts`) has it already. He is given nothing more, and need not
//       give way: he could not look before the statement is over, and then he can in any case. Where others are in line, as many
//       look beside those with foreseen turns as would else have given way. Nobody is foretold anything unless there is somebody
//       to look for each that is known to be in line.

import type { Reservation } from "../../provider/kit/work-signal.js";
import type { FetchOrchestrationOptions, LockedOrchestrationItem, SemVerRange } from "../../provider/provider.js";
import { afterAnswers } from "./after-answers.js";
import type { DeliveryPart, Target } from "./deliveries.js";
import type { ForeseenTurn, ForeseenTurns } from "./foreseen-turns.js";
import { newSecret } from "./lock-token.js";
import type { QueueSignal } from "./queue-signal.js";
import type { SqlValue } from "./session.js";
import type { Store } from "./store.js";
import type { ClaimedTurn, TurnFetch, TurnPart } from "./turn-fetch.js";
import { areSameVersions, versionColumns, versionsOf } from "./versions.js";
import { timeIn } from "./work-rows.js";

type Waiting = Reservation<LockedOrchestrationItem, FetchOrchestrationOptions>;

/** An instance that is sent to, and by which lock somebody wants it at once. */
export interface WantedTarget {
  readonly target: Target;
  readonly wish: {
    readonly secret: string;
    readonly until: number;
    /** He has it already (H6), if it is this. */
    readonly foreseen: ForeseenTurn | null;
  } | null;
}

interface Takers {
  /** For each target, who is to get it. */
  readonly ofTargets: readonly (Waiting | null)[];
  /** Who looks beside them. */
  readonly spares: readonly Waiting[];
  /** For how many fetches a look was owed that the spares make. */
  readonly owed: number;
  /** The spares are enough for all that is known to be in line. H6 */
  readonly areEnough: boolean;
}

/** Somebody has it already. H6 */
export interface Foretold {
  readonly target: Target;
  readonly foreseen: ForeseenTurn;
  /** What he replays. */
  readonly versions: SemVerRange;
}

/** Who gets which of the targets. */
export interface Offer {
  readonly foretold: readonly Foretold[];
  /** What is left to be sent when these have become steps. It must be settled or given back. */
  without(steps: ReadonlySet<Target>): RestOffer;
}

export interface RestOffer {
  readonly targets: readonly WantedTarget[];
  /** There is somebody to look for what is in line, or it is time to. */
  readonly looks: boolean;
  /** Somebody waits, for a target or for what is in line. Where nobody does, whoever only sends need not look. */
  readonly serves: boolean;
  /** The parameters from `p_reader` to `p_claims_until`. */
  readonly wanted: readonly SqlValue[];
  settle(parts: readonly DeliveryPart[]): void;
  giveBack(): void;
}

export class TurnHandOff {
  readonly #store: Store;
  readonly #signal: QueueSignal<LockedOrchestrationItem, FetchOrchestrationOptions>;
  readonly #fetch: TurnFetch;
  readonly #foreseen: ForeseenTurns;
  readonly #opening = new Set<Promise<void>>();
  /** How many were in line lately that nobody here had heard of yet: they are likely to be there again. */
  #expected = 0;

  constructor(
    store: Store,
    signal: QueueSignal<LockedOrchestrationItem, FetchOrchestrationOptions>,
    fetch: TurnFetch,
    foreseen: ForeseenTurns,
  ) {
    this.#store = store;
    this.#signal = signal;
    this.#fetch = fetch;
    this.#foreseen = foreseen;
  }

  offer(targets: readonly Target[], now: number): Offer {
    const takers = this.#takers(targets, now);
    const { ofTargets, spares, areEnough } = takers;
    const wants = [...ofTargets, ...spares].flatMap((taker) => taker?.want ?? []);
    const until = timeIn(now, wants[0]?.lockTimeoutMs ?? 0);
    const versions = versionsOf(wants[0]?.capability);
    const wanted = targets.map((target, place) => {
      const taker = ofTargets[place];
      if (taker == null) return { target, wish: null };
      const secret = newSecret(this.#store.newId);
      // A lock that is over at once would be none.
      const foreseen = areEnough && until > now ? this.#foreseen.of(target, secret, taker.want) : null;
      return { target, wish: { secret, until, foreseen } };
    });
    const foretold = wanted.flatMap(({ target, wish }, place) => {
      if (wish?.foreseen == null) return [];
      ofTargets[place]?.give(wish.foreseen.locked);
      return [{ target, foreseen: wish.foreseen, versions }];
    });
    const isWarm = wants.some(({ warm }) => warm !== undefined && warm.size > 0);
    return { foretold, without: (steps) => this.#rest(wanted, takers, steps, { now, until, versions, isWarm }) };
  }

  #rest(
    all: readonly WantedTarget[],
    takers: Takers,
    steps: ReadonlySet<Target>,
    { now, until, versions, isWarm }: { now: number; until: number; versions: SemVerRange; isWarm: boolean },
  ): RestOffer {
    const { spares, owed } = takers;
    const targets = steps.size === 0 ? all : all.filter(({ target }) => !steps.has(target));
    const ofTargets =
      steps.size === 0 ? takers.ofTargets : takers.ofTargets.filter((_, place) => !steps.has(all[place]!.target));
    const secrets = spares.map(() => newSecret(this.#store.newId));
    const lapses = this.#store.looksBack("messages", now);
    return {
      targets,
      looks: spares.length > 0 || lapses,
      serves: spares.length > 0 || targets.some(({ wish }) => wish !== null),
      wanted: [
        isWarm ? this.#store.id : null,
        versionColumns(versions.min),
        versionColumns(versions.max),
        lapses,
        secrets,
        until,
      ],
      settle: (parts) => this.#settle(targets, { ...takers, ofTargets }, secrets, parts, until),
      giveBack: () => {
        if (targets.some(isForetold)) this.#foreseen.pause();
        for (const [place, taker] of ofTargets.entries()) if (!isForetold(targets[place])) taker?.giveBack();
        for (const spare of spares) spare.giveBack();
        this.#signal.owe(owed); // H5
      },
    };
  }

  /** A step, or a beginning, has found what it expected, or has not. */
  learn({ expected }: ForeseenTurn, isRight: boolean): void {
    const [right, wrong] = isRight ? [1, 0] : [0, 1];
    if (expected === null) this.#foreseen.learnOfStarts(right, wrong);
    else this.#foreseen.learn(right, wrong);
  }

  /** Nobody knows what has become of steps: nothing is foreseen for a while. */
  pause(): void {
    this.#foreseen.pause();
  }

  /** Those who take steps give way to nobody: whether others are in line that somebody should look for. H6 */
  sawLine(isAnybodyInLine: boolean): void {
    this.#expected = isAnybodyInLine ? Math.max(this.#expected, 1) : this.#expected >> 1;
  }

  /** Resolves when everybody has what was given to it. */
  async idle(): Promise<void> {
    await Promise.all(this.#opening);
  }

  #takers(targets: readonly Target[], now: number): Takers {
    const visible = targets.filter((target) => isVisible(target, now)).length;
    if (visible === 0) return { ofTargets: targets.map(() => null), spares: [], owed: 0, areEnough: true };
    const inLine = Math.max(this.#signal.owed, this.#expected);
    const reserved = this.#signal.reserve(visible + (inLine > 0 ? Math.max(inLine, visible) : 0)); // H5, H6
    const free = reserved.filter(({ want }) => wantsSame(want, reserved[0]!.want)); // H3
    let given = 0;
    const ofTargets = targets.map((target) => (isVisible(target, now) ? (free[given++] ?? null) : null));
    const spares = free.slice(given);
    const taken = new Set(free);
    for (const waiting of reserved) if (!taken.has(waiting)) waiting.giveBack();
    const owed = this.#signal.owed > 0 && spares.length > 0 ? this.#signal.takeOwed() : 0;
    return { ofTargets, spares, owed, areEnough: spares.length >= inLine };
  }

  #settle(
    targets: readonly WantedTarget[],
    { ofTargets, spares, owed }: Takers,
    secrets: readonly string[],
    parts: readonly DeliveryPart[],
    until: number,
  ): void {
    this.#learn(targets, parts);
    const turns = parts.filter(isOfTurn);
    const beside = parts.find(({ part }) => part === "beside");
    this.#expected = beside?.n ?? this.#expected >> 1;
    if (beside === undefined) {
      for (const spare of spares) spare.giveBack(); // Nothing at all is in line: what was owed is paid.
      return this.#give(targets, ofTargets, turns, until);
    }
    const places = [...ofTargets.keys()].filter((place) => ofTargets[place] !== null && !isForetold(targets[place]));
    const givingWay = places.slice(places.length - beside.turn); // H4, H6
    const others = ofTargets.map((taker, place) => (givingWay.includes(place) ? null : taker));
    this.#give(
      targets,
      others,
      turns.filter(({ turn }) => turn <= targets.length),
      until,
    );
    this.#giveClaimed(
      [...spares, ...givingWay.map((place) => ofTargets[place]!)],
      [...secrets, ...givingWay.map((place) => targets[place]!.wish!.secret)],
      turns.flatMap((part) => (part.turn > targets.length ? [{ ...part, turn: part.turn - targets.length - 1 }] : [])),
      { until, owed, older: beside.n ?? 0 },
    );
  }

  /** Of beginnings that came too late, or are none, nobody says whether they were right: their acks hear of it. */
  #learn(targets: readonly WantedTarget[], parts: readonly DeliveryPart[]): void {
    const foretold = targets.filter(({ wish }) => wish?.foreseen?.expected != null).length;
    if (foretold === 0) return;
    const unlike = new Set(parts.flatMap(({ part, turn }) => (part === "unlike" ? [turn] : [])));
    this.#foreseen.learn(foretold - unlike.size, unlike.size);
  }

  /** They get the items that were written, and not what one would read of them: the same, and an item never changes. */
  #give(
    targets: readonly WantedTarget[],
    takers: readonly (Waiting | null)[],
    parts: readonly TurnPart[],
    until: number,
  ): void {
    const turns = turnsOf(targets, parts);
    if (turns.size > 0 || targets.some(isForetold)) this.#signal.wakeAt(until);
    for (const [place, taker] of takers.entries()) {
      if (taker === null || isForetold(targets[place])) continue;
      const turn = turns.get(place + 1);
      if (turn === undefined) taker.giveBack();
      else this.#handOver(turn, taker);
    }
  }

  #giveClaimed(
    takers: readonly Waiting[],
    secrets: readonly string[],
    parts: readonly TurnPart[],
    { until, owed, older }: { readonly until: number; readonly owed: number; readonly older: number },
  ): void {
    const { turns, isPassed, isLast, nextAt } = this.#fetch.claimOf(parts, secrets, until);
    for (const [place, taker] of takers.entries()) {
      const turn = turns[place];
      if (turn === undefined) taker.giveBack();
      else this.#handOver(turn, taker);
    }
    const missing = Math.max(takers.length, owed) - turns.length;
    if (nextAt !== null) this.#signal.wakeAt(nextAt);
    if (isPassed) this.#signal.owe(missing);
    else if (!isLast && missing > 0) this.#signal.notify(missing);
    else if (!isLast) this.#signal.owe(Math.max(older - turns.length, 1)); // H6: the next statement has somebody for them.
  }

  /** Whoever has sent hears of it first (`after-answers.ts`). */
  #handOver(turn: ClaimedTurn, taker: Waiting): void {
    const locked = this.#fetch.openAtOnce(turn, taker.want);
    if (locked === null) this.#openLater(turn, taker);
    else afterAnswers(() => taker.give(locked));
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

const NOT_OF_TURNS: ReadonlySet<DeliveryPart["part"]> = new Set(["lost", "begun", "unlike", "open", "beside"]);

function isOfTurn(part: DeliveryPart): part is TurnPart {
  return !NOT_OF_TURNS.has(part.part);
}

function isForetold(target: WantedTarget | undefined): boolean {
  return target?.wish?.foreseen != null;
}

function wantsSame(one: FetchOrchestrationOptions, other: FetchOrchestrationOptions): boolean {
  if (one.lockTimeoutMs !== other.lockTimeoutMs) return false;
  return areSameVersions(versionsOf(one.capability), versionsOf(other.capability));
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
      const messages = [...target.messages]
        .sort((one, other) => one.row.due - other.row.due)
        .map(({ item }) => ({ item }));
      turns.set(part.turn, { head: part, secret: wish!.secret, messages, events: [], values: [] });
    } else if (part.part === "event") {
      turns.get(part.turn)?.events.push(part);
    } else if (part.part === "value") {
      turns.get(part.turn)?.values.push(part);
    }
  }
  return turns;
}
