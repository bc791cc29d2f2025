// providers/sqlite/write-log.ts — a transaction that is written down, statement by statement, for another connection to execute.
//
//   L1. Only what nobody waits for an answer of can be written down: rows that are inserted, or deleted for sure, and changes of
//       which nobody asks how many rows they met.
//   L2. What it writes nobody can read before it is executed. Of an instance that it does not touch everything can be read.
//   L3. Whoever wants to know more has it executed first, on his own connection.
//   L4. It crosses between threads as one text, of all its texts, and one list of numbers, which says what is where: to hand over
//       thousands of values one by one would take longer than to make them.

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

/** How values stand among the numbers: one that is an integer from 0 up as itself, and the others so. L4 */
export const NULL = Number.NaN;
/** Before any other number. */
export const NUMBER = Number.POSITIVE_INFINITY;
/** Of a text its length, and it is the next of the texts. */
export const lengthAs = (length: number): number => -1 - length;

/** What crosses. L4 */
export interface PackedLog {
  readonly numbers: Float64Array;
  readonly text: string;
}

export class WriteLog {
  /** Of one statement after the other: its number, how many rows it must change, how many values it has, and those. L4 */
  readonly #numbers: number[] = [];
  readonly #texts: string[] = [];
  /** What it writes. L2 */
  tables: Tables = 0;
  /** Where it may make something ready. */
  stirs: Tables = 0;
  readonly #touched = new Map<string, Tables>();
  readonly #statements: StatementNumbers;

  constructor(statements: StatementNumbers) {
    this.#statements = statements;
  }

  /**
   * A statement with the values from `from` to `to`.
   *
   * @throws LogRefused where one of them is none that can be bound
   */
  add(sql: string, tables: Tables, rows: number, values: readonly SqlValue[], from: number, to: number): void {
    this.tables |= tables;
    const numbers = this.#numbers;
    numbers.push(this.#statements.numberOf(sql), rows, to - from);
    for (let place = from; place < to; place += 1) {
      const value = values[place]!;
      if (typeof value === "string") {
        numbers.push(lengthAs(value.length));
        this.#texts.push(value);
      } else if (value === null) {
        numbers.push(NULL);
      } else if (typeof value === "number") {
        if (!(value >= 0 && Number.isInteger(value))) numbers.push(NUMBER);
        numbers.push(value);
      } else {
        throw new LogRefused(); // Whoever runs it himself finds out what is wrong with it.
      }
    }
  }

  packed(): PackedLog {
    return { numbers: new Float64Array(this.#numbers), text: this.#texts.join("") };
  }

  /** L3. `execute` answers how many rows the statement has changed. False: they were others than expected. */
  replay(execute: (sql: string, values: readonly SqlValue[]) => number): boolean {
    const numbers = this.#numbers;
    let nextText = 0;
    for (let place = 0; place < numbers.length; ) {
      const [number, rows, width] = numbers.slice(place, place + 3) as [number, number, number];
      place += 3;
      const values: SqlValue[] = [];
      while (values.length < width) {
        const at = numbers[place]!;
        place += 1;
        if (at >= 0 && at !== NUMBER) values.push(at);
        else if (at < 0) values.push(this.#texts[nextText++]!);
        else if (at === NUMBER) values.push(numbers[place++]!);
        else values.push(null);
      }
      const changes = execute(this.#statements.textOf(number), values);
      if (rows !== ANY_NUMBER && changes !== rows) return false;
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
