// providers/postgres/known-instances.ts — instances whose last turn this provider has committed: what the store would say of them.
//
//   K1. An instance is known from the answer to its commit until it is to be handed out again: as soon as that is certain, and not
//       when it is done. What is not known for certain is not known.
//   K2. What is known may be out of date: others commit, too. Whoever relies on it has the store compare the last commit.
//   K3. Those that have ended are forgotten, and those that nobody was handed in a long time. That the former have begun is still known
//       for a while: a start of them is none.
//   K4. The store has handed an instance only to who can replay its version. What else can, only the store knows.

import { isTerminal } from "../../history/event.js";
import { toColumn } from "../../provider/kit/text-column.js";
import type { LockedOrchestrationItem, SemVerRange, TurnCommit } from "../../provider/provider.js";
import { turnLock } from "./lock-token.js";
import { areSameVersions, includesVersion } from "./versions.js";

export interface KnownInstance {
  /** The token by which its last turn was committed. */
  readonly lockToken: string;
  readonly name: string;
  readonly version: string;
  readonly executionId: number;
}

interface Entry extends KnownInstance {
  /** Whether it had a history before that turn. */
  readonly hasBegun: boolean;
  /** Whether its history had come to an end before that turn. */
  readonly hasEnded: boolean;
  /** Its version is among these. Null: it is not among those of whoever has had it last. K4 */
  readonly versions: SemVerRange | null;
  /** Whether that turn is in the store, and has left no messages there, such as timers: whoever is handed it has those, too. */
  readonly isAlone: boolean;
}

/** More than are in flight at once, in most processes. K3 */
const MOST_KNOWN = 10_000;

export class KnownInstances {
  /** By id, as stored; those that were handed out last come last. */
  readonly #entries = new Map<string, Entry>();
  /** Those that have ended last, and as many before them. K3 */
  #endedLast = new Set<string>();
  #endedBefore = new Set<string>();

  /** For somebody who replays these versions. `id`: as stored. */
  get(id: string, versions: SemVerRange): KnownInstance | null {
    const entry = this.#entries.get(id);
    if (entry?.isAlone !== true || entry.versions === null) return null;
    return areSameVersions(entry.versions, versions) ? entry : null; // K4
  }

  /** It was handed out here, and may have begun. `id`: as stored. */
  has(id: string): boolean {
    return this.#entries.has(id) || this.#endedLast.has(id) || this.#endedBefore.has(id);
  }

  /** Somebody who replays these versions has it, and may commit a turn of it. */
  handedOut({ item, lockToken }: LockedOrchestrationItem, versions: SemVerRange): void {
    const { instance, orchestrationName: name, version, executionId } = item;
    const id = toColumn(instance);
    this.#entries.delete(id);
    const hasBegun = item.warmAsOf !== null || item.history.length > 0;
    const hasEnded = item.history.some(isTerminal);
    this.#entries.set(id, { lockToken, name, version, executionId, hasBegun, hasEnded, versions, isAlone: false });
    if (this.#entries.size <= MOST_KNOWN) return;
    for (const oldest of this.#entries.keys()) {
      this.#entries.delete(oldest);
      return;
    }
  }

  /** The current execution of the instance that is handed out by this token. Undefined: nobody knows, or it has none. */
  currentExecution(lockToken: string): number | undefined {
    const entry = this.#entries.get(turnLock(lockToken).id);
    return entry?.lockToken === lockToken && entry.hasBegun ? entry.executionId : undefined;
  }

  #hasEnded(id: string): void {
    this.#endedLast.add(id);
    if (this.#endedLast.size < MOST_KNOWN / 2) return;
    this.#endedBefore = this.#endedLast;
    this.#endedLast = new Set();
  }

  /** This turn is in the store. `isAlone`: no messages to its instance are. */
  committed(lockToken: string, { executionId, metadata }: TurnCommit, isAlone: boolean): void {
    const { id } = turnLock(lockToken);
    const entry = this.#entries.get(id);
    if (entry === undefined || entry.lockToken !== lockToken) return;
    const { status = "Running", orchestrationName, orchestrationVersion, pinnedVersion } = metadata;
    const isOver = entry.hasEnded && executionId === entry.executionId;
    if (status !== "Running" || isOver || executionId < entry.executionId) {
      this.#entries.delete(id);
      this.#hasEnded(id); // K3
      return;
    }
    const isNamed = orchestrationName !== undefined && orchestrationVersion !== undefined;
    const name = isNamed ? orchestrationName : entry.name;
    const version = isNamed ? orchestrationVersion : entry.version;
    const isIncluded = pinnedVersion === undefined || includesVersion(entry.versions, pinnedVersion);
    const versions = isIncluded ? entry.versions : null;
    const state = { hasBegun: true, hasEnded: false, versions, isAlone };
    this.#entries.set(id, { lockToken, name, version, executionId, ...state });
  }
}
