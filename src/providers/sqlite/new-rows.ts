// providers/sqlite/new-rows.ts — rows that a transaction has made, and not written yet: together they cost fewer statements,
// and what is taken at once is written as taken.
//
//   N1. Messages are kept by instance, because they are taken by instance; both in the order in which they came.
//   N2. Those of an instance that somebody has locked are held back: nobody looks at them again in this transaction, unless
//       the lock is given back in it.
//   N3. Whoever looks into a table writes what is kept for it first.
//   N4. What is taken and used up before it is written is never written: neither message nor lock.

import { encodeWorkItem } from "../../history/codec.js";
import type { Event } from "../../history/event.js";
import type { ActivityExecute, OrchestratorItem } from "../../history/work-item.js";
import { eventTaken } from "../../provider/kit/refusals.js";
import { letsThrough } from "../../provider/kit/tag-filter.js";
import { toNullableColumn } from "../../provider/kit/text-column.js";
import type { TagFilter } from "../../provider/provider.js";
import type { Database } from "./database.js";
import type { SqlValue } from "./driver.js";
import { isConstraintViolation } from "./driver-errors.js";
import type { LastIds } from "./last-ids.js";
import { ManyRows } from "./statements.js";

const insertMessages = new ManyRows(
  `INSERT INTO duroxide_orchestrator_queue
     (id, instance_id, state, due_at, visible_at, is_start, parent_instance_id, attempt_count, work_item)
   VALUES`,
  "(?, ?, ?, ?, ?, ?, ?, ?, ?)",
  "",
);

/** Replaces a lapsed lock. There is no other, in the same transaction. */
const insertLocks = new ManyRows(
  "INSERT INTO duroxide_instance_locks (instance_id, lock_token, locked_until, locked_at) VALUES",
  "(?, ?, ?, ?)",
  `ON CONFLICT (instance_id) DO UPDATE SET
     lock_token = excluded.lock_token, locked_until = excluded.locked_until, locked_at = excluded.locked_at`,
);

const insertActivities = new ManyRows(
  `INSERT INTO duroxide_worker_queue
     (id, instance_id, execution_id, activity_id, tag, held_until, lock_token, attempt_count, enqueued_at, work_item)
   VALUES`,
  "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
  "",
);

/** Fails where the id is taken in this execution: the key is unique. */
const insertEvents = new ManyRows(
  "INSERT INTO duroxide_history (instance_id, execution_id, event_id, event_type, event_data) VALUES",
  "(?, ?, ?, ?, ?)",
  "",
);

export interface NewMessage {
  readonly item: OrchestratorItem;
  readonly isStart: boolean;
  /** Of a start: whose child it is to be, as a column. */
  readonly parentId: string | null;
  /** When it was sent. */
  readonly at: number;
  /** Whether a turn that goes by it may be handed out before it is committed. */
  readonly mayGoAhead: boolean;
}

/** One that stands before its table. */
interface MessageRow {
  readonly id: number;
  readonly instanceId: string;
  readonly message: NewMessage;
  readonly state: "ready" | "taken";
}

/** As above, of a lock. */
interface NewLock {
  readonly instanceId: string;
  readonly secret: string;
  readonly lockedUntil: number;
  readonly lockedAt: number;
}

/** What one fetch takes of them. */
interface TakenMessages {
  readonly messages: readonly OrchestratorItem[];
  readonly rows: readonly number[];
}

/** Messages that can be fetched at once, but for timers: those may be cancelled. And the locks of those that are taken. */
export class NewMessages {
  readonly #db: Database;
  readonly #ids: LastIds;
  readonly #free = new Map<string, NewMessage[]>();
  readonly #heldBack = new Map<string, NewMessage[]>();
  readonly #locks = new Map<string, NewLock>();
  /** By their ids. */
  readonly #rows = new Map<number, MessageRow>();
  /** Whether one of the rows can be fetched. */
  #hasReady = false;
  /** How much has happened to them: made, taken, written or tried to be. */
  happened = 0;

  constructor(db: Database, ids: LastIds) {
    this.#db = db;
    this.#ids = ids;
  }

  /** For the row of a message, whoever writes it: they come in the order of their ids. */
  nextId(): number {
    return this.#ids.nextMessage(this.#db);
  }

  add(instanceId: string, message: NewMessage): void {
    this.happened += 1;
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

  /** The instances that nobody has locked, as far as is known here, in the order of their first messages. */
  inLine(): Iterable<string> {
    return this.#free.keys();
  }

  /** Whether all of the instance may. */
  mayGoAhead(instanceId: string): boolean {
    return this.#free.get(instanceId)?.every((message) => message.mayGoAhead) ?? false;
  }

  /** Whether it was locked in this transaction, and the lock is not written yet. */
  isLocked(instanceId: string): boolean {
    return this.#locks.has(instanceId);
  }

  lock(instanceId: string, secret: string, lockedUntil: number, lockedAt: number): void {
    this.happened += 1;
    this.#locks.set(instanceId, { instanceId, secret, lockedUntil, lockedAt });
  }

  /** Those of the instance as one batch, fetched for the first time. */
  take(instanceId: string): TakenMessages {
    this.happened += 1;
    const messages = this.#free.get(instanceId) ?? [];
    this.#free.delete(instanceId);
    const rows = messages.map((message) => this.#keep(instanceId, message, "taken"));
    return { messages: messages.map(({ item }) => item), rows };
  }

  /** Its lock, and those that were taken under it, are done with. False: they are in the tables. N4 */
  useUp(instanceId: string, rows: readonly number[]): boolean {
    if (!this.#locks.delete(instanceId)) return false;
    this.happened += 1;
    for (const row of rows) this.#rows.delete(row);
    return true;
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
    if (this.#of(instanceId) !== undefined) this.writeAll();
  }

  writeAll(): void {
    for (const messages of [this.#free, this.#heldBack]) {
      for (const [instanceId, those] of messages) for (const message of those) this.#keep(instanceId, message, "ready");
      messages.clear();
    }
    this.writeTaken();
  }

  /** And what was taken under them. */
  writeTaken(): void {
    this.happened += this.#rows.size + this.#locks.size;
    if (this.#rows.size > 0) {
      const values: SqlValue[] = [];
      for (const row of this.#rows.values()) pushMessage(values, row);
      this.#rows.clear();
      this.#db.runMany(insertMessages, values, this.#hasReady);
    }
    this.#hasReady = false;
    if (this.#locks.size > 0) {
      const values: SqlValue[] = [];
      for (const lock of this.#locks.values()) {
        values.push(lock.instanceId, lock.secret, lock.lockedUntil, lock.lockedAt);
      }
      this.#db.runMany(insertLocks, values);
    }
    this.#locks.clear();
  }

  #of(instanceId: string): NewMessage[] | undefined {
    return this.#free.get(instanceId) ?? this.#heldBack.get(instanceId);
  }

  /** Answers the id of its row. */
  #keep(instanceId: string, message: NewMessage, state: MessageRow["state"]): number {
    const id = this.nextId();
    this.#hasReady ||= state === "ready";
    this.#rows.set(id, { id, instanceId, message, state });
    return id;
  }
}

function pushMessage(values: SqlValue[], { id, instanceId, message, state }: MessageRow): void {
  const { item, isStart, parentId, at } = message;
  const attempts = state === "taken" ? 1 : 0;
  values.push(id, instanceId, state, at, at, isStart ? 1 : 0, parentId, attempts, encodeWorkItem(item));
}

export interface NewActivity {
  /** As a column. */
  readonly instanceId: string;
  readonly item: ActivityExecute;
  readonly text: string;
  /** When it was scheduled. */
  readonly at: number;
  /** Whether its execution is known to run. False: somebody must look. */
  readonly isRunning: boolean;
}

/** Activities that can be fetched at once and belong to no session. */
export class NewActivities {
  readonly #db: Database;
  readonly #ids: LastIds;
  #waiting: NewActivity[] = [];
  /** Of the rows that have an id, one after the other. */
  #values: SqlValue[] = [];
  /** How much has happened to them: made, taken, written or tried to be. */
  happened = 0;

  constructor(db: Database, ids: LastIds) {
    this.#db = db;
    this.#ids = ids;
  }

  add(activity: NewActivity): void {
    this.happened += 1;
    this.#waiting.push(activity);
  }

  /** The oldest that the filter lets through, which is then no longer here. Null: there is none. */
  next(filter: TagFilter): NewActivity | null {
    const place = this.#waiting.findIndex(({ item }) => letsThrough(filter, item.tag));
    if (place === -1) return null;
    this.happened += 1;
    return this.#waiting.splice(place, 1)[0]!;
  }

  /** Answers the id of its row. */
  take(activity: NewActivity, secret: string, lockedUntil: number): number {
    return this.#keep(activity, lockedUntil, secret, 1);
  }

  writeAll(): void {
    const hasReady = this.#waiting.length > 0;
    for (const activity of this.#waiting) this.#keep(activity, null, null, 0);
    this.#waiting = [];
    const values = this.#values;
    this.#values = [];
    this.happened += values.length;
    if (values.length > 0) this.#db.runMany(insertActivities, values, hasReady);
  }

  #keep(
    { instanceId, item, text, at }: NewActivity,
    heldUntil: number | null,
    secret: string | null,
    attempts: number,
  ): number {
    const id = this.#ids.nextActivity(this.#db);
    this.#values.push(id, instanceId, item.executionId, item.id, toNullableColumn(item.tag));
    this.#values.push(heldUntil, secret, attempts, at, text);
    return id;
  }
}

/** Events, and who is refused where one is there already. */
export class NewEvents {
  readonly #db: Database;
  /** Of one row after the other. */
  #values: SqlValue[] = [];
  #events: Event[] = [];
  /** By whom each of them was added. */
  #operations: string[] = [];
  /** How much has happened to them: made, taken, written or tried to be. */
  happened = 0;

  constructor(db: Database) {
    this.#db = db;
  }

  /** `instanceId`: as a column; `text`: of the event. */
  add(operation: string, instanceId: string, executionId: number, event: Event, text: string): void {
    this.happened += 1;
    this.#values.push(instanceId, executionId, event.eventId, event.type, text);
    this.#events.push(event);
    this.#operations.push(operation);
  }

  /** @throws ProviderError "duplicate-event" for the first that is there already; then the transaction must be taken back */
  writeAll(): void {
    if (this.#events.length === 0) return;
    this.happened += 1;
    const [values, events, operations] = [this.#values, this.#events, this.#operations];
    this.#values = [];
    this.#events = [];
    this.#operations = [];
    try {
      this.#db.runMany(insertEvents, values);
    } catch (error) {
      if (isConstraintViolation(error)) this.#blame(values, events, operations);
      throw error;
    }
  }

  /** Among those of the statement that failed. */
  #blame(values: readonly SqlValue[], events: readonly Event[], operations: readonly string[]): void {
    const { width } = insertEvents;
    for (let place = this.#db.lastFrom; place < events.length; place += 1) {
      try {
        this.#db.runMany(insertEvents, values.slice(place * width, (place + 1) * width));
      } catch (cause) {
        throw isConstraintViolation(cause) ? eventTaken(operations[place]!, events[place]!, { cause }) : cause;
      }
    }
  }
}
