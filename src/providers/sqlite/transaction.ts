// providers/sqlite/transaction.ts — what every operation is handed: the open database, one time, and a list of who to tell.

import type { Database } from "./database.js";

/** What an operation made possible. Told to those who wait, once it is committed. */
export class Effects {
  /** How many messages, and how many activities, can be fetched that could not before. */
  readyMessages = 0;
  readyActivities = 0;
  /** When the next of them can be, by the passing of time. */
  nextMessageAt = Number.POSITIVE_INFINITY;
  nextActivityAt = Number.POSITIVE_INFINITY;
  readonly changedInstances = new Set<string>();
  /** What was lost, and somebody must hear of. */
  readonly warnings: string[] = [];

  messageAt(timeMs: number): void {
    this.nextMessageAt = Math.min(this.nextMessageAt, timeMs);
  }

  activityAt(timeMs: number): void {
    this.nextActivityAt = Math.min(this.nextActivityAt, timeMs);
  }
}

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
