// providers/sqlite/transaction.ts — what every operation is handed: the open database, one time, and a list of who to tell.
//
//   T1. Everything in one transaction happens at one time. One that was left open for a while goes on at another.
//   T2. Rows may be made and not written yet: whoever takes one writes it as taken, which is one write instead of two.
//       They come after every row that is written, and are written before anybody looks for them in the tables, and before
//       the commit.

import { Effects } from "../../provider/kit/effects.js";
import type { Database } from "./database.js";
import { GoneRows } from "./gone-rows.js";
import type { KnownInstances } from "./known-instances.js";
import type { LastIds } from "./last-ids.js";
import { NewActivities, NewEvents, NewMessages } from "./new-rows.js";
import type { OwnLocks } from "./own-locks.js";
import { tablesIn } from "./statements.js";

const VALUES = tablesIn("duroxide_kv_store, duroxide_kv_delta");
const ALL_BUT_VALUES = ~VALUES;

/** One flush of the group commit: shared by the operations that are in it. */
export class Transaction {
  readonly effects = new Effects();
  readonly newMessages: NewMessages;
  readonly newActivities: NewActivities;
  readonly newEvents: NewEvents;
  readonly gone: GoneRows;
  /** Whether messages and locks whose time has come by now were seen to. */
  isDueReady = false;
  /** As above, of activities. */
  isHeldReleased = false;
  /** Told when the next message falls due, by whoever has seen to those that have. Null: nobody wants to know. */
  onDueReady: ((nextAt: number | null) => void) | null = null;
  /** As above, of activities. */
  onHeldReleased: ((nextAt: number | null) => void) | null = null;

  constructor(
    readonly db: Database,
    /** T1 */
    public now: number,
    readonly newToken: () => string,
    readonly known: KnownInstances,
    readonly own: OwnLocks,
    readonly ids: LastIds,
  ) {
    own.begin(db);
    known.begin(db);
    ids.begin(db);
    this.gone = new GoneRows(db);
    db.keep(this.gone);
    this.newMessages = new NewMessages(db, ids);
    this.newActivities = new NewActivities(db, ids);
    this.newEvents = new NewEvents(db);
  }

  /** Rows of the instance are written, or will be; but for its values. */
  touch(instanceId: string): void {
    this.db.touch(instanceId, ALL_BUT_VALUES);
  }

  /** As above, of its values. */
  touchKv(instanceId: string): void {
    this.db.touch(instanceId, VALUES);
  }

  /** How much has happened so far. As long as it stays the same, nothing has. */
  get changes(): number {
    const { newMessages, newActivities, newEvents } = this;
    return this.db.changes + newMessages.happened + newActivities.happened + newEvents.happened + this.gone.count;
  }

  /** T2 */
  writeNewRows(): void {
    this.newEvents.writeAll();
    this.newMessages.writeAll();
    this.newActivities.writeAll();
  }

  /** The time that is `delayMs` away, as an integer that columns can hold. */
  timeIn(delayMs: number): number {
    return Math.min(this.now + Math.ceil(delayMs), Number.MAX_SAFE_INTEGER);
  }
}
