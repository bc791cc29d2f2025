// providers/postgres/activity-hand-off.ts — fetches that wait for activities, and activities that are about to be scheduled.
//
//   H1. Whoever waits longest comes first, and gets the first that its tags let through. Work of a session is for its owner
//       alone, whom only the store knows: it is not offered.
//   H2. Whoever was reserved is given something or waits on: every offer is settled, or given back.
//   H3. One offer is to fetches that want the same. The others look for themselves at what is left.
//   H4. Where something older is ready, they get that, oldest first, as if they had looked.
//   H5. They get it when everybody has heard of the commit that it comes from (`after-answers.ts`).

import type { ActivityExecute } from "../../history/work-item.js";
import { letsThrough } from "../../provider/kit/tag-filter.js";
import { toColumn } from "../../provider/kit/text-column.js";
import type { Reservation } from "../../provider/kit/work-signal.js";
import type { FetchWorkOptions, LockedWorkItem, TagFilter } from "../../provider/provider.js";
import type { ActivityPart, ActivityQueue } from "./activity-queue.js";
import { wantsSame } from "./activity-queue.js";
import { afterAllAnswers } from "./after-answers.js";
import { activityToken, newSecret } from "./lock-token.js";
import type { QueueSignal } from "./queue-signal.js";
import type { SqlValue } from "./session.js";
import type { Store } from "./store.js";
import type { CommitPart } from "./turn-queue.js";
import type { OfferedActivity, ScheduledActivity } from "./turn-rows.js";
import { timeIn, wantedTags } from "./work-rows.js";

type Waiting = Reservation<LockedWorkItem, FetchWorkOptions>;

/** What is to be scheduled, and who wants which of it. */
export interface Offer {
  readonly activities: readonly OfferedActivity[];
  /** The parameters from `p_wanted` to `p_lapses`. */
  readonly wanted: readonly SqlValue[];
  /** Answers how many got something. */
  settle(parts: readonly CommitPart[]): number;
  /** Nothing came of it. */
  giveBack(): void;
}

export class ActivityHandOff {
  readonly #store: Store;
  readonly #signal: QueueSignal<LockedWorkItem, FetchWorkOptions>;
  readonly #queue: ActivityQueue;
  readonly #settingAside = new Set<Promise<void>>();

  constructor(store: Store, signal: QueueSignal<LockedWorkItem, FetchWorkOptions>, queue: ActivityQueue) {
    this.#store = store;
    this.#signal = signal;
    this.#queue = queue;
  }

  offer(scheduled: readonly ScheduledActivity[], now: number): Offer {
    const takers = this.#takers(scheduled);
    const wants = takers.flatMap((taker) => taker?.want ?? []);
    const { lockTimeoutMs = 0, tagFilter = DEFAULT_TAGS, session } = wants[0] ?? {};
    const until = timeIn(now, lockTimeoutMs);
    const sessionUntil = session === undefined ? null : timeIn(now, session.lockTimeoutMs);
    const activities = scheduled.map((activity, place) => {
      const wish = takers[place] == null ? null : { secret: newSecret(this.#store.newId), until };
      return { ...activity, wish };
    });
    return {
      activities,
      wanted: [
        wantedTags(tagFilter),
        wants.map((want) => (want.session === undefined ? null : toColumn(want.session.ownerId))),
        sessionUntil,
        this.#store.looksBack("activities", now),
      ],
      settle: (parts) => {
        if (!parts.some(({ part }) => part === "older")) return this.#give(activities, takers, parts, until);
        return this.#giveClaimed(activities, takers, parts, Math.min(until, sessionUntil ?? until)); // H4
      },
      giveBack: () => {
        for (const taker of takers) taker?.giveBack();
      },
    };
  }

  /** Resolves when what nobody can read is set aside. */
  async idle(): Promise<void> {
    await Promise.all(this.#settingAside);
  }

  /** For each activity, who is to get it. */
  #takers(scheduled: readonly ScheduledActivity[]): readonly (Waiting | null)[] {
    const offered = scheduled.filter(isOffered);
    if (offered.length === 0) return scheduled.map(() => null);
    const reserved = this.#signal.reserve(offered.length);
    const first = reserved.find(({ want }) => offered.some(({ item }) => takes(want, item)));
    const free = reserved.filter(({ want }) => first !== undefined && wantsSame(want, first.want));
    let given = 0;
    const takers = scheduled.map((activity) => {
      const taker = isOffered(activity) ? free[given] : undefined;
      if (taker === undefined || !takes(taker.want, activity.item)) return null;
      given += 1;
      return taker;
    });
    const taken = new Set(takers);
    for (const waiting of reserved) if (!taken.has(waiting)) waiting.giveBack();
    return takers;
  }

  /** They get the item that was written, and not what one would read of it: the same, and an item never changes. */
  #give(
    activities: readonly OfferedActivity[],
    takers: readonly (Waiting | null)[],
    parts: readonly CommitPart[],
    until: number,
  ): number {
    const rows = rowsOf(activities, parts);
    const over = new Set(parts.flatMap(({ part, turn }) => (part === "over" ? [turn] : [])));
    if (rows.size > 0) this.#signal.wakeAt(until);
    afterAllAnswers(() => this.#handOver(activities, takers, rows, over, until)); // H5
    return rows.size;
  }

  #handOver(
    activities: readonly OfferedActivity[],
    takers: readonly (Waiting | null)[],
    rows: ReadonlyMap<number, number>,
    over: ReadonlySet<number>,
    until: number,
  ): void {
    const isOver = until < this.#store.clock.now(); // The statement took longer than the locks: others may have them by now.
    for (const [place, taker] of takers.entries()) {
      if (taker === null) continue;
      const row = rows.get(place);
      const { wish, item, turn } = activities[place]!;
      if (row === undefined || wish === null || isOver) {
        taker.giveBack();
        continue;
      }
      taker.give({
        item,
        lockToken: activityToken(wish.secret, row, 1),
        attemptCount: 1,
        executionState: over.has(turn) ? "terminated" : "running",
      });
    }
  }

  #giveClaimed(
    activities: readonly OfferedActivity[],
    takers: readonly (Waiting | null)[],
    parts: readonly CommitPart[],
    endsAt: number,
  ): number {
    const secrets = activities.flatMap(({ wish }) => wish?.secret ?? []);
    const claim = this.#queue.claimOf(parts.filter(isClaimed), secrets, endsAt);
    const claimants = takers.filter((taker) => taker !== null);
    afterAllAnswers(() => {
      for (const [place, taker] of claimants.entries()) {
        const work = claim.works.get(place);
        if (work === undefined) taker.giveBack();
        else taker.give(work);
      }
    }); // H5
    if (claim.aside.length > 0) this.#setAside(claim);
    if (claim.isPassed) this.#signal.notify(claimants.length - claim.works.size);
    return claim.works.size;
  }

  /** If that fails, their locks lapse, and the next one tries. */
  #setAside(claim: ReturnType<ActivityQueue["claimOf"]>): void {
    const setting = this.#queue.setAside(claim).catch(() => {});
    this.#settingAside.add(setting);
    void setting.finally(() => this.#settingAside.delete(setting));
  }
}

const DEFAULT_TAGS: TagFilter = { kind: "default-only" };

/** Of those that were given to who wanted them: by place, which row it is. */
function rowsOf(activities: readonly OfferedActivity[], parts: readonly CommitPart[]): ReadonlyMap<number, number> {
  const rows = new Map<number, number>();
  for (const { part, turn, id } of parts) {
    if (part === "given") rows.set(turn - 1, id);
    if (part !== "all") continue;
    for (const [place, { wish }] of activities.entries()) if (wish !== null) rows.set(place, id + place);
  }
  return rows;
}

/** H1 */
function isOffered({ item, isWanted }: ScheduledActivity): boolean {
  return isWanted && item.sessionId === undefined;
}

function takes({ tagFilter = DEFAULT_TAGS }: FetchWorkOptions, { tag }: ActivityExecute): boolean {
  return letsThrough(tagFilter, tag);
}

function isClaimed(part: CommitPart): part is ActivityPart {
  return part.part === "work" || part.part === "next" || part.part === "passed";
}
