// providers/sqlite/statements.ts — the texts of statements: which tables they meet, and each of them prepared once.

import type { SqliteConnection, SqliteStatement } from "./driver.js";

/** Tables, one bit each. */
export type Tables = number;

/** What is known of a text. */
export interface Known {
  /** Null: it was not needed here yet. */
  statement: SqliteStatement | null;
  readonly tables: Tables;
  /** In which of them it may make something ready. What is deleted is not. */
  readonly stirs: Tables;
  /** It writes nothing. */
  readonly isReading: boolean;
}

const STIRRING = /^\s*(INSERT|UPDATE)/;
const READING = /^\s*(SELECT|WITH|PRAGMA data_version)/;

const TABLE_BITS = new Map<string, Tables>();

/** Of a statement, or of a name. */
export function tablesIn(sql: string): Tables {
  let tables = 0;
  for (const [name] of sql.matchAll(/duroxide_\w+/g)) {
    const bit = TABLE_BITS.get(name) ?? 1 << TABLE_BITS.size;
    TABLE_BITS.set(name, bit);
    tables |= bit;
  }
  return tables;
}

/** Those of one connection. */
export class Statements {
  readonly #connection: SqliteConnection;
  readonly #known = new Map<string, Known>();

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
  }

  known(sql: string): Known {
    let known = this.#known.get(sql);
    if (known === undefined) {
      const tables = tablesIn(sql);
      known = { statement: null, tables, stirs: STIRRING.test(sql) ? tables : 0, isReading: READING.test(sql) };
      this.#known.set(sql, known);
    }
    return known;
  }

  prepared(sql: string, known: Known = this.known(sql)): SqliteStatement {
    known.statement ??= this.#connection.prepare(sql);
    return known.statement;
  }

  clear(): void {
    this.#known.clear();
  }
}

/** A statement for many rows: `before` and `after` stand around as many copies of `row` as there are rows. */
export class ManyRows {
  readonly #texts: string[] = [];
  /** How many values a row has. */
  readonly width: number;

  constructor(
    readonly before: string,
    readonly row: string,
    readonly after: string,
  ) {
    this.width = row.split("?").length - 1;
  }

  sql(size: number): string {
    let text = this.#texts[size];
    if (text === undefined) {
      text = `${this.before} ${Array.from({ length: size }, () => this.row).join(", ")} ${this.after}`;
      this.#texts[size] = text;
    }
    return text;
  }
}
