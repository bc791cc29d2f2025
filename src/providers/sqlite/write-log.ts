// providers/sqlite/write-log.ts — a transaction that is written down, statement by statement, for another connection to execute.
//
//   L1. Only what nobody waits for an answer of can be written down: rows that are inserted, or deleted for sure, and changes of
//       which nobody asks how many rows they met.
//   L2. What it writes nobody can read before it is executed. Of an instance that it does not touch everything can be read.
//   L3. Whoever wants to know more has it executed first, on his own connection.

import type { SqlValue } from "./driver.js";
import type { Tables } from "./statements.js";

/** What it relies on has not happened: nothing of it is executed, and it must be made again. */
export class LogRefused extends Error {
  constructor() {
    super("What was written down relies on what has not happened.");
  }
}

/** How many rows it changes nobody asks. */
export const ANY_NUMBER = -1;

/** The statements that a reader of logs has, and those that it is still to be told of. */
export class StatementNumbers {
  readonly #numbers = new Map<string, number>();
  readonly #texts: string[] = [];
  #untold: string[] = [];

  textOf(number: number): string {
    return this.#texts[number]!;
  }

  numberOf(sql: string): number {
    const known = this.#numbers.get(sql);
    if (known !== undefined) return known;
    const number = this.#texts.push(sql) - 1;
    this.#numbers.set(sql, number);
    this.#untold.push(sql);
    return number;
  }

  /** Those that the reader does not have yet, in the order of their numbers. */
  takeUntold(): readonly string[] {
    const untold = this.#untold;
    if (untold.length > 0) this.#untold = [];
    return untold;
  }
}

export class WriteLog {
  /** Of one statement after the other: its number, how many rows it must change, how many values it has, and those. */
  readonly entries: SqlValue[] = [];
  /** What it writes. L2 */
  tables: Tables = 0;
  /** Where it may make something ready. */
  stirs: Tables = 0;
  readonly #touched = new Map<string, Tables>();
  readonly #numbers: StatementNumbers;

  constructor(numbers: StatementNumbers) {
    this.#numbers = numbers;
  }

  /** A statement with the values from `from` to `to`. */
  add(sql: string, tables: Tables, rows: number, values: readonly SqlValue[], from: number, to: number): void {
    this.tables |= tables;
    const { entries } = this;
    entries.push(this.#numbers.numberOf(sql), rows, to - from);
    for (let place = from; place < to; place += 1) entries.push(values[place]!);
  }

  /** L3. `execute` answers how many rows the statement has changed. False: they were others than expected. */
  replay(execute: (sql: string, values: readonly SqlValue[]) => number): boolean {
    const { entries } = this;
    for (let place = 0; place < entries.length; ) {
      const [number, rows, width] = entries.slice(place, place + 3) as [number, number, number];
      const end = place + 3 + width;
      const changes = execute(this.#numbers.textOf(number), entries.slice(place + 3, end));
      if (rows !== ANY_NUMBER && changes !== rows) return false;
      place = end;
    }
    return true;
  }

  /** Rows of the instance in these tables are written, or will be. */
  touch(instanceId: string, tables: Tables): void {
    this.#touched.set(instanceId, (this.#touched.get(instanceId) ?? 0) | tables);
  }

  touchedOf(instanceId: string): Tables {
    return this.#touched.get(instanceId) ?? 0;
  }
}
