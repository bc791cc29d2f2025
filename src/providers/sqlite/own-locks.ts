// providers/sqlite/own-locks.ts — the locks that this process has taken, so that its acks need not look for them.
//
//   O1. It is true as long as the epoch of the database lasts: nobody else has written since. Then all of it is forgotten.
//   O2. Whatever happens to a lock but its ack makes it forgotten, too. Of what is not known here the tables tell.

import type { Database } from "./database.js";

interface OwnLock {
  readonly secret: string;
  readonly lockedUntil: number;
}

/** The lock of an instance. */
interface OwnTurn extends OwnLock {
  /** Of the messages of its batch. */
  readonly rows: readonly number[];
}

/** The lock of an activity. */
interface OwnActivity extends OwnLock {
  readonly attempts: number;
}

export class OwnLocks {
  readonly #turns = new Map<string, OwnTurn>();
  readonly #activities = new Map<number, OwnActivity>();
  #epoch = -1;

  /** A write transaction begins. O1 */
  begin({ epoch }: Database): void {
    if (epoch === this.#epoch) return;
    this.#epoch = epoch;
    this.#turns.clear();
    this.#activities.clear();
  }

  lockedTurn(instanceId: string, lock: OwnTurn): void {
    this.#turns.set(instanceId, lock);
  }

  /** Until when this process keeps the instance locked. Null: it does not. */
  turnEnd(instanceId: string): number | null {
    return this.#turns.get(instanceId)?.lockedUntil ?? null;
  }

  /** Ends the lock. Answers the rows of its batch; null: somebody must look. */
  endTurn(instanceId: string, secret: string, now: number): readonly number[] | null {
    const lock = this.#turns.get(instanceId);
    if (!isLive(lock, secret, now)) return null;
    this.#turns.delete(instanceId);
    return lock.rows;
  }

  /** O2 */
  forgetTurn(instanceId: string): void {
    this.#turns.delete(instanceId);
  }

  lockedActivity(id: number, lock: OwnActivity): void {
    this.#activities.set(id, lock);
  }

  /** Ends the lock. Answers how often it was tried; null: somebody must look. */
  endActivity(id: number, secret: string, now: number): number | null {
    const lock = this.#activities.get(id);
    if (!isLive(lock, secret, now)) return null;
    this.#activities.delete(id);
    return lock.attempts;
  }

  /** O2 */
  forgetActivity(id: number): void {
    this.#activities.delete(id);
  }

  /** O2 */
  forgetActivities(): void {
    this.#activities.clear();
  }
}

function isLive<Lock extends OwnLock>(lock: Lock | undefined, secret: string, now: number): lock is Lock {
  return lock !== undefined && lock.secret === secret && lock.lockedUntil > now;
}
