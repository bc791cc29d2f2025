// providers/sqlite/gone-rows.ts — rows that a transaction has removed and not deleted yet: many go with one statement.
//
//   R1. Each of them is there: whoever removes one knows it for sure. Where fewer go than should, somebody was wrong, and
//       the transaction is taken back.

import type { Database, KeptWrites } from "./database.js";
import type { SqlValue } from "./driver.js";
import { ManyRows, type Tables, tablesIn } from "./statements.js";

interface Departure {
  readonly table: Tables;
  readonly statement: ManyRows;
}

function departure(table: string, key: string): Departure {
  return { table: tablesIn(table), statement: new ManyRows(`DELETE FROM ${table} WHERE ${key} IN (`, "?", ")") };
}

const MESSAGES = departure("duroxide_orchestrator_queue", "id");
const LOCKS = departure("duroxide_instance_locks", "instance_id");
const ACTIVITIES = departure("duroxide_worker_queue", "id");

/** R1. Never the fault of the call that made them be written. */
export class RowsMissing extends Error {
  constructor(wanted: number, found: number) {
    super(`Of ${wanted} rows to delete ${found} were there.`);
  }
}

export class GoneRows implements KeptWrites {
  readonly #db: Database;
  readonly #keys = new Map<Departure, SqlValue[]>();
  tables: Tables = 0;
  /** How many are not deleted yet. */
  count = 0;

  constructor(db: Database) {
    this.#db = db;
  }

  message(id: number): void {
    this.#add(MESSAGES, id);
  }

  /** Of an instance. */
  lock(instanceId: string): void {
    this.#add(LOCKS, instanceId);
  }

  activity(id: number): void {
    this.#add(ACTIVITIES, id);
  }

  write(tables: Tables): void {
    for (const [departure, keys] of this.#keys) {
      if ((departure.table & tables) === 0) continue;
      this.#keys.delete(departure);
      this.tables &= ~departure.table;
      const gone = this.#db.runMany(departure.statement, keys);
      this.count -= gone;
      if (gone !== keys.length) throw new RowsMissing(keys.length, gone); // R1
    }
  }

  #add(departure: Departure, key: SqlValue): void {
    this.count += 1;
    this.tables |= departure.table;
    const keys = this.#keys.get(departure);
    if (keys === undefined) this.#keys.set(departure, [key]);
    else keys.push(key);
  }
}
