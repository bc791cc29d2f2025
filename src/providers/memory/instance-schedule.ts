// providers/memory/instance-schedule.ts — which instances can be fetched, oldest first, and when that will change.
//
//   I1. Whoever changes an instance's messages or its lock places it anew.
//   I2. Time changes things too, and nobody calls: `#changes` knows when, and every question first looks there.

import type { InstanceRecord } from "./instance-record.js";
import { isOlder } from "./message-list.js";
import { SortedList } from "./sorted-list.js";

/** An instance that can be fetched, by its oldest visible message. */
interface Ready {
  readonly instance: InstanceRecord;
  readonly dueAt: number;
  readonly seq: number;
}

/** An instance that looks different from a certain time on: its lock ends, or a message becomes visible. */
interface Change {
  readonly instance: InstanceRecord;
  readonly at: number;
  readonly seq: number;
}

export class InstanceSchedule {
  readonly #ready = new SortedList<Ready>(isOlder);
  readonly #changes = new SortedList<Change>((a, b) => (a.at === b.at ? a.seq < b.seq : a.at < b.at));
  readonly #places = new Map<InstanceRecord, { readonly ready: Ready | null; readonly change: Change | null }>();
  #lastSeq = 0;

  /** Answers whether the instance can be fetched. */
  place(instance: InstanceRecord, now: number): boolean {
    this.remove(instance);
    const oldest = instance.isLocked(now) ? null : instance.messages.firstVisible(now);
    const changesAt = nextChangeOf(instance, now);
    if (oldest === null && changesAt === null) return false;

    this.#lastSeq += 1;
    const ready = oldest && { instance, dueAt: oldest.dueAt, seq: oldest.seq };
    const change = changesAt === null ? null : { instance, at: changesAt, seq: this.#lastSeq };
    if (ready !== null) this.#ready.add(ready);
    if (change !== null) this.#changes.add(change);
    this.#places.set(instance, { ready, change });
    return ready !== null;
  }

  remove(instance: InstanceRecord): void {
    const place = this.#places.get(instance);
    if (place === undefined) return;
    if (place.ready !== null) this.#ready.remove(place.ready);
    if (place.change !== null) this.#changes.remove(place.change);
    this.#places.delete(instance);
  }

  /** Unlocked instances with a visible message, oldest message first. Place none while you walk through them. */
  *readyAt(now: number): Iterable<InstanceRecord> {
    this.#catchUp(now);
    for (const { instance } of this.#ready) yield instance;
  }

  /** When the passing of time alone may make another instance ready; null: never. */
  nextChangeAfter(now: number): number | null {
    this.#catchUp(now);
    return this.#changes.first?.at ?? null;
  }

  #catchUp(now: number): void {
    for (let next = this.#changes.first; next !== null && next.at <= now; next = this.#changes.first) {
      this.place(next.instance, now); // I2
    }
  }
}

function nextChangeOf({ lock, messages }: InstanceRecord, now: number): number | null {
  if (lock === null || lock.lockedUntil <= now) return messages.nextVisibleAt(now);
  return messages.isEmpty ? null : lock.lockedUntil;
}
