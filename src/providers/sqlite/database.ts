// providers/sqlite/database.ts — one connection: transactions, prepared statements, and patience with other processes.
//
//   D1. `write` takes the write lock before it reads anything, so what it decides on is still true when it commits.
//   D2. `read` sees one snapshot and takes no write lock.
//   D3. A failed transaction has changed nothing.
//   D4. While another process holds the lock, the event loop runs: the library waits for moments only, the rest of the
//       waiting is asynchronous, and one of the waiting tries for all of them.

import { type Clock, sleep } from "../../clock.js";
import { ProviderError } from "../../errors.js";
import { loadDriver, type SqliteConnection, type SqliteStatement, type SqlValue } from "./driver.js";
import { busyError, isBusy, toProviderError } from "./driver-errors.js";
import type { SqliteSettings } from "./options.js";

/** How long the library itself may block the event loop for another process's lock: about the length of a commit. */
const DRIVER_BUSY_TIMEOUT_MS = 20;
const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 100;

export class Database {
  readonly #connection: SqliteConnection;
  readonly #file: string;
  readonly #clock: Clock;
  readonly #busyTimeoutMs: number;
  readonly #statements = new Map<string, SqliteStatement>();
  readonly #closing = new AbortController();
  #pause: Promise<void> | null = null;

  private constructor(connection: SqliteConnection, file: string, { clock, busyTimeoutMs }: SqliteSettings) {
    this.#connection = connection;
    this.#file = file;
    this.#clock = clock;
    this.#busyTimeoutMs = busyTimeoutMs;
  }

  /** @throws ProviderError "invalid" when the file cannot be opened, is no database, or cannot be kept safely */
  static async open(file: string, settings: SqliteSettings): Promise<Database> {
    const driver = await loadDriver();
    let connection: SqliteConnection;
    try {
      connection = driver.open(file);
    } catch (error) {
      throw toProviderError("open", file, error);
    }
    const database = new Database(connection, file, settings);
    try {
      await database.#whenFree("open", () => database.#configure(settings));
    } catch (error) {
      database.close();
      throw error;
    }
    return database;
  }

  /** Whether other processes can see it. */
  get isShared(): boolean {
    return this.#file !== ":memory:";
  }

  // One statement, prepared once. Rows are what the statement says they are.

  run(sql: string, ...values: SqlValue[]): number {
    return Number(this.#statement(sql).run(...values).changes);
  }

  get<Row>(sql: string, ...values: SqlValue[]): Row | undefined {
    return this.#statement(sql).get(...values) as Row | undefined;
  }

  all<Row>(sql: string, ...values: SqlValue[]): Row[] {
    return this.#statement(sql).all(...values) as Row[];
  }

  /** A script of many statements, for migrations. */
  execute(script: string): void {
    this.#connection.exec(script);
  }

  /** Runs `work` as one transaction, all or nothing. It may run again where another process got in between. */
  write<T>(operation: string, work: (db: Database) => T): Promise<T> {
    return this.#whenFree(operation, () => this.#transact("BEGIN IMMEDIATE", work)); // D1
  }

  read<T>(operation: string, work: (db: Database) => T): Promise<T> {
    return this.#whenFree(operation, () => this.#transact("BEGIN", work)); // D2
  }

  /** Differs from the last answer when another connection has committed in between. */
  dataVersion(): number {
    return this.get<{ readonly data_version: number }>("PRAGMA data_version")!.data_version;
  }

  close(): void {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    this.#statements.clear();
    this.#connection.close();
  }

  #configure({ durability, maxDatabaseBytes }: SqliteSettings): void {
    this.execute(`PRAGMA busy_timeout = ${DRIVER_BUSY_TIMEOUT_MS}`);
    if (this.isShared) this.#useWriteAheadLog();
    this.execute(PRAGMAS);
    this.execute(durability === "full" ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
    if (maxDatabaseBytes !== null) {
      const { page_size } = this.get<{ readonly page_size: number }>("PRAGMA page_size")!;
      this.execute(`PRAGMA max_page_count = ${Math.floor(maxDatabaseBytes / page_size)}`);
    }
  }

  #useWriteAheadLog(): void {
    const { journal_mode } = this.get<{ readonly journal_mode: string }>("PRAGMA journal_mode = WAL")!;
    if (journal_mode === "wal") return;
    const message = `'${this.#file}' cannot use write-ahead logging (journal mode is '${journal_mode}')`;
    throw new ProviderError("invalid", "open", `${message}. Put it on a local disk; a network drive will not do`);
  }

  #statement(sql: string): SqliteStatement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#connection.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  #transact<T>(begin: "BEGIN" | "BEGIN IMMEDIATE", work: (db: Database) => T): T {
    this.run(begin);
    try {
      const result = work(this);
      this.run("COMMIT");
      return result;
    } catch (error) {
      this.#rollBack(); // D3
      throw error;
    }
  }

  #rollBack(): void {
    try {
      this.run("ROLLBACK");
    } catch {
      // After a full disk or an I/O error SQLite has rolled back by itself, and says that there is nothing to roll back.
    }
  }

  async #whenFree<T>(operation: string, attempt: () => T): Promise<T> {
    const deadline = this.#clock.now() + this.#busyTimeoutMs;
    for (let tries = 0; ; tries += 1) {
      if (this.#closing.signal.aborted) throw closedError(operation);
      try {
        if (this.#pause === null) return attempt();
      } catch (error) {
        if (!isBusy(error)) throw toProviderError(operation, this.#file, error);
      }
      const leftMs = deadline - this.#clock.now();
      if (leftMs <= 0) throw busyError(operation, this.#file, this.#busyTimeoutMs);
      this.#pause ??= this.#sleep(Math.min(FIRST_PAUSE_MS * 2 ** tries, LONGEST_PAUSE_MS, leftMs));
      await this.#pause; // D4
    }
  }

  async #sleep(delayMs: number): Promise<void> {
    await sleep(this.#clock, delayMs, this.#closing.signal);
    this.#pause = null;
  }
}

function closedError(operation: string): ProviderError {
  return new ProviderError("invalid", operation, "the provider is closed. Open another one on the same file");
}

const PRAGMAS = `
  -- A checkpoint costs two syncs and copies every changed page once: rarer ones cost less, 16 MB of log is little.
  PRAGMA wal_autocheckpoint = 4000;
  -- After a burst the log gives its space back.
  PRAGMA journal_size_limit = 67108864;
  -- At most, and only as the pages are used.
  PRAGMA cache_size = -65536;
  PRAGMA temp_store = MEMORY;
`;
