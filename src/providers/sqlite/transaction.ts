// providers/sqlite/transaction.ts — what every operation is handed: the open database, one time, and a list of who to tell.

import { Effects } from "../../provider/kit/effects.js";
import type { Database } from "./database.js";

/** One operation's view of the open transaction, which it may share with others. */
export class Transaction {
  readonly effects = new Effects();

  constructor(
    readonly db: Database,
    /** Read once: everything in one transaction happens at one time. */
    readonly now: number,
    readonly newToken: () => string,
  ) {}

  /** The time that is `delayMs` away, as an integer that columns can hold. */
  timeIn(delayMs: number): number {
    return Math.min(this.now + Math.ceil(delayMs), Number.MAX_SAFE_INTEGER);
  }
}
