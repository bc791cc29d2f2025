// providers/sqlite/database.ts — one connection: transactions, prepared statements, and patience with other processes.
//
//   D1. `write` takes the write lock before it reads anything, so what it decides on is still true when it commits.
//   D2. `read` sees one snapshot and takes no write lock. Those who ask before anything else can happen share one, which is made
//       after the last of them has asked: what was committed before it asked, each of them sees.
//   D3. A failed transaction has changed nothing.
//   D4. While another process holds the lock, the event loop runs: the library waits for moments only, the rest of the
//       waiting is asynchronous, and one of the waiting tries for all of them.
//   D5. Once it is closing nobody is let in any more, and those who are in have one last try.
//   D6. A statement meets its tables as if every write that is kept had been written: those of its tables are, first.
//   D7. What write transactions have seen and written is as they left it while the epoch lasts. It ends when another
//       connection has committed, and when a transaction is taken back.
//   D8. Who asks between transactions whether anything is ready hears of what others have committed until the event loop last
//       came round.
//   D9. A write transaction may be left open, and be finished later. Until it has ended, everybody else waits for that.

import { type Clock, sleep } from "../../clock.js";
import { ProviderError } from "../../errors.js";
import { loadDriver, type SqliteConnection, type SqliteStatement, type SqlValue } from "./driver.js";
import { busyError, closedError, isBusy, toProviderError } from "./driver-errors.js";
import type { SqliteSettings } from "./options.js";

// Captured at load, so that the fake timers of a test framework do not make it lie.
const immediate = setImmediate;
const tick = process.nextTick.bind(process);

/** How long the library itself may block the event loop for another process's lock: about the length of a commit. */
const DRIVER_BUSY_TIMEOUT_MS = 20;
const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 100;

/** In one statement. Sizes are powers of two, so that a handful of statements is prepared for each table. */
const MOST_ROWS = 32;

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

/** Tables, one bit each. */
export type Tables = number;

/** Writes that wait for company. */
export interface KeptWrites {
  /** Of which tables. */
  readonly tables: Tables;
  write(tables: Tables): void;
}

const ALL_TABLES: Tables = -1;
const NOTHING_KEPT: KeptWrites = { tables: 0, write: () => undefined };

interface Prepared {
  readonly statement: SqliteStatement;
  readonly tables: Tables;
  /** In which of them it may make something ready. What is deleted is not. */
  readonly stirs: Tables;
}

const STIRRING = /^\s*(INSERT|UPDATE)/;

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

/** A write transaction that was left open. D9 */
export interface OpenTransaction {
  /** Goes on with `work`, and commits. What it throws has taken it back: then it must be replaced. */
  finish<T>(work: () => T): T;
  /** By another transaction, before all who wait for it to end. */
  replace<T>(work: (db: Database) => T): Promise<T>;
}

/** Somebody who reads. */
interface Reader {
  readonly read: () => void;
  readonly fail: (error: unknown) => void;
}

/** What is wrong with one of them is its own affair. But a file that is busy is so for all, who may then try again. */
function readAlone(readers: readonly Reader[]): void {
  for (const { read, fail } of readers) {
    try {
      read();
    } catch (error) {
      if (isBusy(error)) throw error;
      fail(error);
    }
  }
}

/** Why no transaction came about. Whoever wanted one is told in the words of its operation, by `explain`. */
export class NoTransaction extends Error {
  constructor(readonly reason: "busy" | "closed") {
    super(`No transaction: ${reason}.`);
  }
}

/** How many connections this process has to each file. */
const CONNECTIONS = new Map<string, number>();

export class Database {
  readonly #connection: SqliteConnection;
  readonly #file: string;
  readonly #clock: Clock;
  readonly #busyTimeoutMs: number;
  readonly #statements = new Map<string, Prepared>();
  #kept = NOTHING_KEPT;
  #still: Tables = 0;
  #epoch = 0;
  #lastVersion = 0;
  /** Whether it was compared since the event loop last came round. */
  #isVersionFresh = false;
  /** Whether the snapshot of whoever reads is what the last write transaction here has left. */
  #isOurs = false;
  readonly #closing = new AbortController();
  #pause: Promise<void> | null = null;
  /** Resolves when the transaction that was left open has ended. Null: there is none. D9 */
  #open: Promise<void> | null = null;
  #othersAt = Number.NEGATIVE_INFINITY;
  /** Those who have asked, and have not been let in. D2 */
  #readers: Reader[] = [];
  #lastFrom = 0;
  #changes = 0;
  #isClosed = false;

  private constructor(connection: SqliteConnection, file: string, { clock, busyTimeoutMs }: SqliteSettings) {
    this.#connection = connection;
    this.#file = file;
    this.#clock = clock;
    this.#busyTimeoutMs = busyTimeoutMs;
    CONNECTIONS.set(file, (CONNECTIONS.get(file) ?? 0) + 1);
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
      await database.#whenFree(() => database.#configure(settings));
    } catch (error) {
      database.close();
      throw database.explain("open", error);
    }
    return database;
  }

  /** Whether other processes can see it. */
  get isShared(): boolean {
    return this.#file !== ":memory:";
  }

  // One statement, prepared once. Rows are what the statement says they are.

  /** Answers how many rows it has changed. */
  run(sql: string, ...values: SqlValue[]): number {
    const changes = Number(this.#statement(sql).run(...values).changes);
    this.#changes += changes;
    return changes;
  }

  /**
   * Many rows with few statements, in their order. `values`: of one row after the other. Answers how many it has changed.
   * `stirs`: whether one of them may be ready.
   */
  runMany(statement: ManyRows, values: readonly SqlValue[], stirs = true): number {
    const { width } = statement;
    const rows = values.length / width;
    let changes = 0;
    for (let from = 0; from < rows; ) {
      this.#lastFrom = from;
      const size = Math.min(MOST_ROWS, 2 ** (31 - Math.clz32(rows - from)));
      const still = this.#still;
      changes += this.run(statement.sql(size), ...values.slice(from * width, (from + size) * width));
      if (!stirs) this.#still = still;
      from += size;
    }
    return changes;
  }

  /** The row with which the last statement of the last `runMany` began. What comes before has been written. */
  get lastFrom(): number {
    return this.#lastFrom;
  }

  /** Changes when what was remembered of earlier write transactions may no longer be true. D7 */
  get epoch(): number {
    return this.#epoch;
  }

  /** Whether `look` finds something ready in the table. That it found nothing is true until something is made ready there. */
  hasReady(table: Tables, look: string): boolean {
    if ((this.#still & table) !== 0) return false;
    if (this.get(look) !== undefined) return true;
    this.#still |= table;
    return false;
  }

  /** Whether nothing is ready in the table as of the last commit, whoever made it. Between transactions. D8 */
  isStill(table: Tables): boolean {
    return (this.#still & table) !== 0 && this.#open === null && this.#isAlone();
  }

  /** Whether nobody else has committed since the last transaction here. Who cannot tell says no. */
  #isAlone(): boolean {
    if (this.#isClosed) return false;
    if (this.#isVersionFresh) return true;
    try {
      if (this.dataVersion() !== this.#lastVersion) return false;
    } catch {
      return false; // Whoever looks then hears of it in the words of the contract.
    }
    this.#isVersionFresh = true;
    immediate(() => {
      this.#isVersionFresh = false;
    });
    return true;
  }

  /** Of whoever reads: whether what write transactions here remember of this epoch is true of its snapshot. D7 */
  get isAsWeLeftIt(): boolean {
    return this.#isOurs;
  }

  /** Until the end of the transaction. D6 */
  keep(writes: KeptWrites): void {
    this.#kept = writes;
  }

  /** For statements that only read. */
  get<Row>(sql: string, ...values: SqlValue[]): Row | undefined {
    return this.#statement(sql).get(...values) as Row | undefined;
  }

  /** For a statement that writes at most one row, and returns it. */
  change<Row>(sql: string, ...values: SqlValue[]): Row | undefined {
    const row = this.#statement(sql).get(...values) as Row | undefined;
    if (row !== undefined) this.#changes += 1;
    return row;
  }

  /** For a statement that writes rows, and returns them. */
  changeAll<Row>(sql: string, ...values: SqlValue[]): Row[] {
    const rows = this.#statement(sql).all(...values) as Row[];
    this.#changes += rows.length;
    return rows;
  }

  all<Row>(sql: string, ...values: SqlValue[]): Row[] {
    return this.#statement(sql).all(...values) as Row[];
  }

  /** A script of many statements, for migrations. */
  execute(script: string): void {
    this.#connection.exec(script);
  }

  /** How many rows this connection has inserted, updated and deleted, ever. */
  get changes(): number {
    return this.#changes;
  }

  /** Runs `work` as one transaction, all or nothing. It may run again where another process got in between. */
  async write<T>(operation: string, work: (db: Database) => T): Promise<T> {
    this.#checkOpen(operation);
    try {
      return await this.writeForMany(work);
    } catch (error) {
      throw this.explain(operation, error);
    }
  }

  /** As `write`, for calls that were let in before. Rejects with what `explain` explains to each of them. */
  writeForMany<T>(work: (db: Database) => T): Promise<T> {
    return this.#whenFree(() => this.#transact(work)); // D1
  }

  /** As `writeForMany`, and leaves the transaction open where `staysOpen` says so: then it must be finished. D9 */
  writeOrLeaveOpen<T>(
    work: (db: Database) => T,
    staysOpen: (result: T) => boolean,
  ): Promise<{ readonly result: T; readonly open: OpenTransaction | null }> {
    return this.#whenFree(() => {
      const result = this.#begin(work);
      if (staysOpen(result)) return { result, open: this.#leaveOpen() };
      this.#commit();
      return { result, open: null };
    });
  }

  /** Whether this process has no other connection to the file. */
  get isOnlyOne(): boolean {
    return !this.isShared || CONNECTIONS.get(this.#file) === 1;
  }

  /** When another connection was last seen to have committed. */
  get othersAt(): number {
    return this.#othersAt;
  }

  /** D2 */
  read<T>(operation: string, work: (db: Database) => T): Promise<T> {
    const refusal = this.refusal(operation);
    if (refusal !== null) return Promise.reject(refusal);
    return new Promise((resolve, reject) => {
      const read = () => resolve(work(this));
      this.#readers.push({ read, fail: (error) => reject(this.explain(operation, error)) });
      if (this.#readers.length === 1) tick(() => this.#readAll());
    });
  }

  async #readAll(): Promise<void> {
    const readers = this.#readers;
    this.#readers = [];
    if (readers.length === 0) return;
    try {
      await this.#whenFree(() => this.#look(() => readAlone(readers)));
    } catch (error) {
      for (const { fail } of readers) fail(error);
    }
  }

  /** Null; ProviderError "invalid" once it is closing. D5 */
  refusal(operation: string): ProviderError | null {
    return this.#closing.signal.aborted ? closedError(operation) : null;
  }

  #checkOpen(operation: string): void {
    const refusal = this.refusal(operation);
    if (refusal !== null) throw refusal;
  }

  /** Why an operation failed, in the words of the contract. */
  explain(operation: string, error: unknown): unknown {
    if (!(error instanceof NoTransaction)) return toProviderError(operation, this.#file, error);
    return error.reason === "busy" ? busyError(operation, this.#file, this.#busyTimeoutMs) : closedError(operation);
  }

  /** Differs from the last answer when another connection has committed in between. */
  dataVersion(): number {
    const { data_version } = this.get<{ readonly data_version: number }>("PRAGMA data_version")!;
    if (data_version !== this.#lastVersion) this.#isVersionFresh = false; // D8
    return data_version;
  }

  /** Ends the waiting for other processes. D5 */
  beginClosing(): void {
    this.#closing.abort();
  }

  close(): void {
    if (this.#isClosed) return;
    this.beginClosing();
    void this.#readAll(); // D5
    this.#isClosed = true;
    const others = (CONNECTIONS.get(this.#file) ?? 0) - 1;
    if (others > 0) CONNECTIONS.set(this.#file, others);
    else CONNECTIONS.delete(this.#file);
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
    let prepared = this.#statements.get(sql);
    if (prepared === undefined) {
      const tables = tablesIn(sql);
      prepared = { statement: this.#connection.prepare(sql), tables, stirs: STIRRING.test(sql) ? tables : 0 };
      this.#statements.set(sql, prepared);
    }
    if ((prepared.tables & this.#kept.tables) !== 0) this.#kept.write(prepared.tables); // D6
    this.#still &= ~prepared.stirs;
    return prepared.statement;
  }

  #transact<T>(work: (db: Database) => T): T {
    const result = this.#begin(work);
    this.#commit();
    return result;
  }

  #begin<T>(work: (db: Database) => T): T {
    this.run("BEGIN IMMEDIATE");
    return this.#orUndo(() => {
      this.#noticeOthers();
      return work(this);
    });
  }

  #commit(): void {
    this.#orUndo(() => {
      this.#kept.write(ALL_TABLES); // D6
      this.run("COMMIT");
    });
    this.#kept = NOTHING_KEPT;
  }

  #orUndo<T>(step: () => T): T {
    try {
      return step();
    } catch (error) {
      this.#kept = NOTHING_KEPT;
      this.#endEpoch();
      this.#rollBack(); // D3
      throw error;
    }
  }

  /** D9 */
  #leaveOpen(): OpenTransaction {
    let hasEnded!: () => void;
    this.#open = new Promise((resolve) => {
      hasEnded = resolve;
    });
    const end = (): void => {
      this.#open = null;
      hasEnded();
    };
    return {
      finish: (work) => {
        const result = this.#orUndo(work);
        this.#commit();
        end();
        return result;
      },
      replace: (work) => this.#whenWritable(() => this.#transact(work)).finally(end),
    };
  }

  /** D2 */
  #look(work: () => void): void {
    this.run("BEGIN");
    try {
      this.#isOurs = this.dataVersion() === this.#lastVersion;
      work();
    } finally {
      this.#rollBack();
    }
  }

  /** D7 */
  #noticeOthers(): void {
    const version = this.dataVersion();
    if (version === this.#lastVersion) return;
    if (this.#lastVersion !== 0) this.#othersAt = this.#clock.now();
    this.#lastVersion = version;
    this.#endEpoch();
  }

  #endEpoch(): void {
    this.#epoch += 1;
    this.#still = 0;
  }

  #rollBack(): void {
    try {
      this.run("ROLLBACK");
    } catch {
      // After a full disk or an I/O error SQLite has rolled back by itself, and says that there is nothing to roll back.
    }
  }

  async #whenFree<T>(attempt: () => T): Promise<T> {
    while (this.#open !== null) await this.#open; // D9
    return this.#whenWritable(attempt);
  }

  async #whenWritable<T>(attempt: () => T): Promise<T> {
    const deadline = this.#clock.now() + this.#busyTimeoutMs;
    for (let tries = 0; ; tries += 1) {
      if (this.#isClosed) throw new NoTransaction("closed");
      try {
        if (this.#pause === null) return attempt();
      } catch (error) {
        if (!isBusy(error)) throw error;
      }
      if (this.#closing.signal.aborted) throw new NoTransaction("closed"); // D5
      const leftMs = deadline - this.#clock.now();
      if (leftMs <= 0) throw new NoTransaction("busy");
      this.#pause ??= this.#sleep(Math.min(FIRST_PAUSE_MS * 2 ** tries, LONGEST_PAUSE_MS, leftMs));
      await this.#pause; // D4
    }
  }

  async #sleep(delayMs: number): Promise<void> {
    await sleep(this.#clock, delayMs, this.#closing.signal);
    this.#pause = null;
  }
}

const PRAGMAS = `
  -- As SQLite has it. Four times as many pages cost no less in all, but fifteen milliseconds at a time instead of four.
  PRAGMA wal_autocheckpoint = 1000;
  -- After a burst the log gives its space back.
  PRAGMA journal_size_limit = 67108864;
  -- 4 MB. SQLite goes through its whole cache at the end of a transaction that has rearranged pages, 50 ns a page: with 64 MB
  -- that is longer than the commit itself. What does not fit the system has in memory, for 2 µs a page.
  PRAGMA cache_size = -4096;
  PRAGMA temp_store = MEMORY;
`;
