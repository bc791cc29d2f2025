// providers/sqlite/last-ids.ts — the numbers that this process has last given to rows of the two queues.
//
//   I1. True as long as the epoch of the database lasts: nobody else has inserted any since. A row that gets its number from SQLite makes the
//       last one unknown.
//   I2. A transaction that runs here asks once. One that is written down cannot: it counts on from the last one.

import type { Database } from "./database.js";

const selectLastMessage = "SELECT COALESCE(MAX(id), 0) AS id FROM duroxide_orchestrator_queue";
const selectLastActivity = "SELECT COALESCE(MAX(id), 0) AS id FROM duroxide_worker_queue";

export class LastIds {
  /** Null: nobody knows. */
  #message: number | null = null;
  #activity: number | null = null;
  #epoch = -1;

  /** A write transaction begins. I1, I2 */
  begin({ epoch, isWritingDown }: Database): void {
    if (isWritingDown && epoch === this.#epoch) return;
    this.#epoch = epoch;
    this.#message = null;
    this.#activity = null;
  }

  nextMessage(db: Database): number {
    this.#message ??= db.get<{ readonly id: number }>(selectLastMessage)!.id;
    this.#message += 1;
    return this.#message;
  }

  nextActivity(db: Database): number {
    this.#activity ??= db.get<{ readonly id: number }>(selectLastActivity)!.id;
    this.#activity += 1;
    return this.#activity;
  }

  /** SQLite gives the next one. */
  forgetActivity(): void {
    this.#activity = null;
  }
}
