// providers/sqlite/new-rows.ts — messages and activities that a transaction has made, and not written yet.
//
//   N1. Messages are kept by instance, because they are taken by instance; both in the order in which they came.
//   N2. Those of an instance that somebody has locked are held back: nobody looks at them again in this transaction, unless
//       the lock is given back in it.

import type { ActivityExecute } from "../../history/work-item.js";
import { letsThrough } from "../../provider/kit/tag-filter.js";
import { toNullableColumn } from "../../provider/kit/text-column.js";
import type { TagFilter } from "../../provider/provider.js";
import type { Database } from "./database.js";

const insertMessage = `
  INSERT INTO duroxide_orchestrator_queue
    (instance_id, state, due_at, visible_at, is_start, parent_instance_id, attempt_count, work_item)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)
`;

const insertActivity = `
  INSERT INTO duroxide_worker_queue
    (instance_id, execution_id, activity_id, tag, session_id, held_until, lock_token, attempt_count, enqueued_at, work_item)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
`;

export interface NewMessage {
  readonly isStart: boolean;
  /** Of a start: whose child it is to be, as a column. */
  readonly parentId: string | null;
  readonly text: string;
}

/** Messages that can be fetched at once, but for timers: those may be cancelled. */
export class NewMessages {
  readonly #db: Database;
  readonly #now: number;
  readonly #free = new Map<string, NewMessage[]>();
  readonly #heldBack = new Map<string, NewMessage[]>();
  /** How many there ever were. */
  made = 0;

  constructor(db: Database, now: number) {
    this.#db = db;
    this.#now = now;
  }

  add(instanceId: string, message: NewMessage): void {
    this.made += 1;
    const known = this.#of(instanceId);
    if (known === undefined) this.#free.set(instanceId, [message]);
    else known.push(message);
  }

  hasStart(instanceId: string): boolean {
    return this.#of(instanceId)?.some(({ isStart }) => isStart) ?? false;
  }

  /** The instance whose message came first. Undefined: there is none. */
  first(): string | undefined {
    for (const instanceId of this.#free.keys()) return instanceId;
    return undefined;
  }

  /** Writes those of the instance as one batch, fetched for the first time. Answers with their texts. */
  take(instanceId: string): readonly string[] {
    const messages = this.#free.get(instanceId) ?? [];
    this.#free.delete(instanceId);
    for (const message of messages) this.#write(instanceId, message, "taken", 1);
    return messages.map(({ text }) => text);
  }

  /** N2 */
  holdBack(instanceId: string): void {
    const messages = this.#free.get(instanceId);
    if (messages === undefined) return;
    this.#free.delete(instanceId);
    this.#heldBack.set(instanceId, messages);
  }

  /** The instance is free now. Answers whether there are any for it. */
  release(instanceId: string): boolean {
    const messages = this.#heldBack.get(instanceId);
    if (messages === undefined) return this.#free.has(instanceId);
    this.#heldBack.delete(instanceId);
    this.#free.set(instanceId, messages);
    return true;
  }

  /** So that what is written next for the instance comes after them. */
  writeOf(instanceId: string): void {
    for (const message of this.#of(instanceId) ?? []) this.#write(instanceId, message, "ready", 0);
    this.#free.delete(instanceId);
    this.#heldBack.delete(instanceId);
  }

  writeAll(): void {
    for (const messages of [this.#free, this.#heldBack])
      for (const instanceId of messages.keys()) this.writeOf(instanceId);
  }

  #of(instanceId: string): NewMessage[] | undefined {
    return this.#free.get(instanceId) ?? this.#heldBack.get(instanceId);
  }

  #write(instanceId: string, message: NewMessage, state: "ready" | "taken", attempts: number): void {
    const { isStart, parentId, text } = message;
    const times = [this.#now, this.#now] as const;
    this.#db.run(insertMessage, instanceId, state, ...times, isStart ? 1 : 0, parentId, attempts, text);
  }
}

export interface NewActivity {
  /** As a column. */
  readonly instanceId: string;
  readonly item: ActivityExecute;
  readonly text: string;
  /** Whether its execution is known to run. False: somebody must look. */
  readonly isRunning: boolean;
}

/** Activities that can be fetched at once and belong to no session. */
export class NewActivities {
  readonly #db: Database;
  readonly #now: number;
  #waiting: NewActivity[] = [];
  /** How many there ever were. */
  made = 0;

  constructor(db: Database, now: number) {
    this.#db = db;
    this.#now = now;
  }

  add(activity: NewActivity): void {
    this.made += 1;
    this.#waiting.push(activity);
  }

  /** The oldest that the filter lets through, which is then no longer here. Null: there is none. */
  next(filter: TagFilter): NewActivity | null {
    const place = this.#waiting.findIndex(({ item }) => letsThrough(filter, item.tag));
    return place === -1 ? null : this.#waiting.splice(place, 1)[0]!;
  }

  /** Answers the id of its row. */
  writeTaken(activity: NewActivity, secret: string, lockedUntil: number): number {
    return this.#write(activity, lockedUntil, secret, 1);
  }

  writeAll(): void {
    if (this.#waiting.length === 0) return;
    for (const activity of this.#waiting) this.#write(activity, null, null, 0);
    this.#waiting = [];
  }

  #write({ instanceId, item, text }: NewActivity, heldUntil: number | null, secret: string | null, attempts: number) {
    const { executionId, id, tag } = item;
    const place = [instanceId, executionId, id, toNullableColumn(tag), null] as const;
    return this.#db.insert(insertActivity, ...place, heldUntil, secret, attempts, this.#now, text);
  }
}
