// providers/sqlite/own-locks.ts — the locks that this process has taken, so that its acks need not look for them.
//
//   O1. It is true as long as the epoch of the database lasts: nobody else has written since. Then all of it is forgotten.
//   O2. Whatever happens to a lock but its ack makes it forgotten, too. Of what is not known here the tables tell.
//   O3. A lock is found by its token as it was handed out: whoever acks has that very text, and nothing need be read from it.

import type { Database } from "./database.js";
import type { TurnLock } from "./orchestrator-queue.js";

/** The lock of an instance. */
export interface OwnTurn {
  readonly lock: TurnLock;
  readonly token: string;
  readonly lockedUntil: number;
  /** Of the messages of its batch. */
  readonly rows: readonly number[];
}

/** The lock of an activity. */
interface OwnActivity {
  readonly token: string;
  readonly lockedUntil: number;
  readonly attempts: number;
}

export class OwnLocks {
  /** By instance, and by token. O3 */
  readonly #turns = new Map<string, OwnTurn>();
  readonly #turnsByToken = new Map<string, OwnTurn>();
  readonly #activities = new Map<number, OwnActivity>();
  #epoch = -1;

  /** A write transaction begins. O1 */
  begin({ epoch }: Database): void {
    if (epoch === this.#epoch) return;
    this.#epoch = epoch;
    this.#turns.clear();
    this.#turnsByToken.clear();
    this.#activities.clear();
  }

  lockedTurn(turn: OwnTurn): void {
    const { instanceId } = turn.lock;
    this.forgetTurn(instanceId); // One that has expired.
    this.#turns.set(instanceId, turn);
    this.#turnsByToken.set(turn.token, turn);
  }

  /** Until when this process keeps the instance locked. Null: it does not. */
  turnEnd(instanceId: string): number | null {
    return this.#turns.get(instanceId)?.lockedUntil ?? null;
  }

  /** Ends the lock, and answers it; null: somebody must look. */
  endTurn(token: string, now: number): OwnTurn | null {
    const turn = this.#turnsByToken.get(token);
    if (turn === undefined || turn.lockedUntil <= now) return null;
    this.#turnsByToken.delete(token);
    this.#turns.delete(turn.lock.instanceId);
    return turn;
  }

  /** O2 */
  forgetTurn(instanceId: string): void {
    const turn = this.#turns.get(instanceId);
    if (turn === undefined) return;
    this.#turns.delete(instanceId);
    this.#turnsByToken.delete(turn.token);
  }

  lockedActivity(id: number, lock: OwnActivity): void {
    this.#activities.set(id, lock);
  }

  /** Ends the lock. Answers how often it was tried; null: somebody must look. */
  endActivity(id: number, token: string, now: number): number | null {
    const lock = this.#activities.get(id);
    if (lock === undefined || lock.token !== token || lock.lockedUntil <= now) return null;
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
