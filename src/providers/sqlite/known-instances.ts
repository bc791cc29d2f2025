// providers/sqlite/known-instances.ts — what this process last wrote of an instance, so that its next fetch need not read it.
//
//   K1. It is true exactly as long as the instance's last commit is the one it was remembered with: whoever else writes a
//       turn, appends or deletes changes that. So whoever uses it compares first, and a commit that was taken back does no
//       harm. Within an epoch of the database nobody else writes: what was remembered in it need not be compared.
//   K2. Bounded: the oldest are forgotten.
//   K3. Of an instance that was started here, and of which the tables had no trace before, they have nothing but messages and
//       perhaps a lock of ours, until a turn of it is committed, something is appended, it is started again, or its
//       lock becomes another matter. It is known in the epoch of its start only.

import type { StartIdentity } from "../../provider/kit/start-identity.js";
import type { Database } from "./database.js";

/** Of an instance whose current execution runs. */
export interface InstanceFacts {
  readonly orchestration_name: string;
  readonly orchestration_version: string;
  readonly current_execution_id: number;
  readonly pinned_major: number | null;
  readonly pinned_minor: number | null;
  readonly pinned_patch: number | null;
}

interface Committed {
  readonly secret: string;
  readonly facts: InstanceFacts;
  readonly epoch: number;
}

interface Starting {
  readonly identity: StartIdentity;
  readonly epoch: number;
}

const MOST = 2_000;

export class KnownInstances {
  readonly #fetched = new Map<string, InstanceFacts | null>();
  readonly #committed = new Map<string, Committed>();
  readonly #starting = new Map<string, Starting>();
  #epoch = -1;

  /** A write transaction begins. */
  begin({ epoch }: Database): void {
    this.#epoch = epoch;
  }

  /** It was fetched under the lock with this secret. Null: it has never had a turn. */
  fetched(secret: string, facts: InstanceFacts | null): void {
    this.#fetched.set(secret, facts);
    forgetOldest(this.#fetched); // K2
  }

  /** A turn of it was committed under that lock, and it goes on. `named`: what the turn says that it is, where it does. */
  committed(instanceId: string, secret: string, named: InstanceFacts | null): void {
    const before = this.#fetched.get(secret);
    const facts = before === null ? named : named === null ? before : undefined;
    if (facts == null) return this.ended(instanceId, secret);
    this.#fetched.delete(secret);
    this.#starting.delete(instanceId);
    this.#committed.set(instanceId, { secret, facts, epoch: this.#epoch });
    forgetOldest(this.#committed); // K2
  }

  /** A turn of it was committed under that lock, and it does not go on as it was. */
  ended(instanceId: string, secret: string): void {
    this.#fetched.delete(secret);
    this.forget(instanceId);
  }

  /** Something else than a turn has happened to it, or to its lock. */
  forget(instanceId: string): void {
    this.#committed.delete(instanceId);
    this.#starting.delete(instanceId);
  }

  /** Which of its starts comes first is for the tables to tell: by their time. K3 */
  anotherStart(instanceId: string): void {
    this.#starting.delete(instanceId);
  }

  /** It was started, and nothing was known of it before. K3 */
  started(instanceId: string, identity: StartIdentity): void {
    this.#starting.set(instanceId, { identity, epoch: this.#epoch });
    forgetOldest(this.#starting); // K2
  }

  /** Of an instance that has not begun, `epoch` being that of the database. Null: somebody must look. K3 */
  starting(instanceId: string, epoch: number): StartIdentity | null {
    const known = this.#starting.get(instanceId);
    return known !== undefined && known.epoch === epoch ? known.identity : null;
  }

  /** What was committed in this epoch: nobody has touched it since. Null: somebody must look. */
  current(instanceId: string): Committed | null {
    const known = this.#committed.get(instanceId);
    return known !== undefined && known.epoch === this.#epoch ? known : null;
  }

  /** Null: nobody knows. K1 */
  asOf(instanceId: string, lastCommit: string | null): InstanceFacts | null {
    const known = this.#committed.get(instanceId);
    return known !== undefined && known.secret === lastCommit ? known.facts : null;
  }
}

function forgetOldest(map: Map<string, unknown>): void {
  if (map.size <= MOST) return;
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
}
