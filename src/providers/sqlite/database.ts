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
//       came round; or, while something that is written down is on its way, when that is answered.
//   D9. A write transaction may be left open, and be finished later. Until it has ended, everybody else waits for that; who only
//       reads does not wait for one that is only written down.
//  D10. A write transaction may be written down, for the writer's thread to execute while the next one is made. It relies on what is
//       remembered of this epoch, and on those before it; the thread executes it only if nobody else has committed since. Where
//       one is refused, the epoch ends, and it is run here.

import { type Clock, holding } from "../../clock.js";
import { ProviderError } from "../../errors.js";
import { loadDriver, type SqliteConnection, type SqliteDriver, type SqliteStatement, type SqlValue } from "./driver.js";
import { busyError, closedError, isBusy, isConstraintViolation, toProviderError } from "./driver-errors.js";
import { isFileUri, type SqliteSettings } from "./options.js";
import { NoTransaction, Patience } from "./patience.js";
import { BUSY_TIMEOUT, setUpOf } from "./set-up.js";
import { type Known, type ManyRows, Statements, type Tables } from "./statements.js";
import { ANY_NUMBER, LogRefused, type WriteLog } from "./write-log.js";
import { Writer } from "./writer.js";
import type { WriterAnswer } from "./writer-program.js";
import { identityOf, WriterThread } from "./writer-thread.js";

// Captured at load, so that the fake timers of a test framework do not make it lie.
const immediate = setImmediate;
const tick = process.nextTick.bind(process);

/** Who has not seen others commit for so long is alone, as far as that can be known. */
export const ALONE_AFTER_MS = 1_000;

/** In one statement. Sizes are powers of two, so that a handful of statements is prepared for each table. */
const MOST_ROWS = 32;

/** Writes that wait for company. */
export interface KeptWrites {
  /** Of which tables. */
  readonly tables: Tables;
  write(tables: Tables): void;
}

const ALL_TABLES: Tables = -1;
const NOTHING_KEPT: KeptWrites = { tables: 0, write: () => undefined };

/** Whether it was committed. False: nothing has happened. */
type Commit = true | Promise<boolean>;

/** A write transaction that was left open. D9 */
export interface OpenTransaction {
  /** Goes on with `work`, and commits. What it throws, or a commit that fails, has taken it back: then it must be replaced. */
  finish<T>(work: () => T): { readonly result: T; readonly isCommitted: Commit };
  /** By another transaction, before all who wait for it to end. */
  replace<T>(work: (db: Database) => T): Promise<T>;
}

/** What `writeOrLeaveOpen` has begun. One of both is null. */
export interface Begun<T> {
  readonly result: T;
  readonly open: OpenTransaction | null;
  readonly isCommitted: Commit | null;
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

/** How many connections this process has to each file. */
const CONNECTIONS = new Map<string, number>();

export class Database {
  readonly #connection: SqliteConnection;
  readonly #file: string;
  readonly #clock: Clock;
  readonly #busyTimeoutMs: number;
  readonly #patience: Patience;
  readonly #statements: Statements;
  /** Of the file, when it was opened. */
  #identity = "";
  readonly #writer: Writer;
  /** What is being written down just now. Null: whatever runs, runs here. D10 */
  #log: WriteLog | null = null;
  /** Whether transactions are written down: the thread knows what this epoch relies on. */
  #isThere = false;
  /** Resolves when that has changed. Null: it does not change. */
  #changing: Promise<void> | null = null;
  /** Where transactions are written down, it tells whether others have committed. */
  #othersSeen = 0;
  /** Whether nothing was written down since somebody last asked that. */
  #isIdleThere = false;
  #kept = NOTHING_KEPT;
  #still: Tables = 0;
  #epoch = 0;
  #lastVersion = 0;
  /** Whether it was compared since the event loop last came round. */
  #isVersionFresh = false;
  /** Whether the snapshot of whoever reads is what the last write transaction here has left. */
  #isOurs = false;
  readonly #closing = new AbortController();
  /** Resolves when the transaction that was left open has ended. Null: there is none. D9 */
  #open: Promise<void> | null = null;
  /** Whether that one is only written down. */
  #isOpenThere = false;
  #othersAt = Number.NEGATIVE_INFINITY;
  /** Those who have asked, and have not been let in. D2 */
  #readers: Reader[] = [];
  #lastFrom = 0;
  #changes = 0;
  #isClosed = false;

  private constructor(connection: SqliteConnection, file: string, driver: SqliteDriver, settings: SqliteSettings) {
    const { clock, busyTimeoutMs, writerThread } = settings;
    this.#connection = connection;
    this.#file = file;
    this.#clock = clock;
    this.#busyTimeoutMs = busyTimeoutMs;
    this.#patience = new Patience(clock, busyTimeoutMs, this.#closing.signal);
    this.#statements = new Statements(connection);
    const startThread = () => new WriterThread(driver, file, this.#identity, setUpOf(settings, this.#pageBytes()));
    const choice = this.isShared && !isFileUri(file) ? writerThread : "never";
    this.#writer = new Writer(choice, driver.isSafeInThreads, clock, startThread);
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
    const database = new Database(connection, file, driver, settings);
    try {
      await database.#patience.whenUnlocked(() => database.#configure(settings));
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

  /** Of how many rows it has changed nobody asks: it may be written down. */
  runBlindly(sql: string, ...values: SqlValue[]): void {
    if (this.#log === null) this.run(sql, ...values);
    else this.#writeDown(this.#log, sql, ANY_NUMBER, values, 0, values.length);
  }

  /**
   * Many rows with few statements, in their order, each of which changes its row. `values`: of one row after the other. Answers how many
   * it has changed.
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
      if (this.#log === null) {
        changes += this.run(statement.sql(size), ...values.slice(from * width, (from + size) * width));
      } else {
        this.#writeDown(this.#log, statement.sql(size), size, values, from * width, (from + size) * width, stirs);
        changes += size;
      }
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
    if (!this.#isStillBefore(table, look) && this.get(look) !== undefined) return true;
    this.#still |= table;
    return false;
  }

  /** Where what is not executed yet makes nothing ready, nothing is ready if nothing was before it. D10 */
  #isStillBefore(table: Tables, look: string): boolean {
    if (this.#log === null || ((this.#log.stirs | this.#writer.stirs) & table) !== 0) return false;
    return this.#statements.prepared(look).get() === undefined;
  }

  /** Whether nothing is ready in the table as of the last commit, whoever made it. Between transactions. D8 */
  isStill(table: Tables): boolean {
    return (this.#still & table) !== 0 && (this.#open === null || this.#isOpenThere) && this.#isAlone();
  }

  /** Whether nobody else has committed since the last transaction here. Who cannot tell says no. */
  #isAlone(): boolean {
    if (this.#isClosed) return false;
    if (this.#isVersionFresh || (this.#isThere && this.#writer.underWay > 0)) return true; // D10
    if (this.#versionNow() !== this.#lastVersion) return false;
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

  /** Rows of this instance in these tables are written, or will be, in this transaction. */
  touch(instanceId: string, tables: Tables): void {
    this.#log?.touch(instanceId, tables);
  }

  /** As `get`, for a statement that reads rows of this instance only. What is not touched may be read at any time. */
  getOf<Row>(instanceId: string, sql: string, ...values: SqlValue[]): Row | undefined {
    const known = this.#statements.known(sql);
    const touched = this.#log === null ? -1 : this.#log.touchedOf(instanceId) | this.#writer.touchedOf(instanceId);
    if ((known.tables & touched) !== 0) return this.get(sql, ...values);
    return this.#statements.prepared(sql, known).get(...values) as Row | undefined;
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
    if (this.#log !== null) this.#bringHere(this.#log);
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

  /** As `write`, for calls that were let in before, and always here. Rejects with what `explain` explains to each of them. */
  writeForMany<T>(work: (db: Database) => T): Promise<T> {
    return this.#whenNobodyWrites(() => this.#transact(work)); // D1
  }

  /**
   * As `writeForMany`, and leaves the transaction open where `staysOpen` says so: then it must be finished. D9. It may only be written
   * down: then `work` may run twice. D10
   */
  writeOrLeaveOpen<T>(work: (db: Database) => T, staysOpen: (result: T) => boolean): Promise<Begun<T>> {
    return this.#isWriterWanted() ? this.#beginThere(work, staysOpen) : this.#beginHere(work, staysOpen);
  }

  #beginHere<T>(work: (db: Database) => T, staysOpen: (result: T) => boolean): Promise<Begun<T>> {
    return this.#whenNobodyWrites(() => {
      const result = this.#begin(work);
      if (staysOpen(result)) return { result, open: this.#leaveOpen(), isCommitted: null };
      this.#commit();
      return { result, open: null, isCommitted: true };
    });
  }

  /** Calls that share a transaction: from how many on it pays to write it down. D10 */
  sawBatchOf(calls: number): void {
    this.#writer.saw(calls);
  }

  /** Whether what calls write just now is written down. */
  get isWritingDown(): boolean {
    return this.#log !== null;
  }

  /** How many transactions are written down, and not executed yet. Null: they are run here. */
  get underWay(): number | null {
    return this.#isThere ? this.#writer.underWay : null;
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

  /** A number that changes when another connection has committed. For whoever asks time after time. */
  othersVersion(): number {
    if (!this.#isThere) return this.#othersSeen + this.dataVersion();
    if (this.#isIdleThere && this.#open === null && this.#changing === null) void this.#change(() => this.#comeBack());
    this.#isIdleThere = this.#writer.underWay === 0;
    return this.#othersSeen + (this.#isIdleThere ? this.dataVersion() : this.#lastVersion);
  }

  async #readAll(): Promise<void> {
    const readers = this.#readers;
    this.#readers = [];
    if (readers.length === 0) return;
    try {
      const before = () => (this.#isOpenThere ? null : this.#open); // D9
      await this.#patience.whenUnlocked(() => this.#look(() => readAlone(readers)), before);
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

  /** When nothing is pending any more. */
  async endWriter(): Promise<void> {
    await this.#writer.close();
  }

  close(): void {
    if (this.#isClosed) return;
    this.beginClosing();
    void this.#readAll(); // D5
    this.#isClosed = true;
    this.#patience.end();
    const others = (CONNECTIONS.get(this.#file) ?? 0) - 1;
    if (others > 0) CONNECTIONS.set(this.#file, others);
    else CONNECTIONS.delete(this.#file);
    this.#statements.clear();
    this.#connection.close();
  }

  #configure(settings: SqliteSettings): void {
    this.execute(BUSY_TIMEOUT);
    if (this.isShared) this.#useWriteAheadLog();
    for (const script of setUpOf(settings, this.#pageBytes())) this.execute(script);
    if (this.isShared && !isFileUri(this.#file)) this.#identity = identityOf(this.#file);
  }

  #pageBytes(): number {
    return this.get<{ readonly page_size: number }>("PRAGMA page_size")!.page_size;
  }

  #useWriteAheadLog(): void {
    const { journal_mode } = this.get<{ readonly journal_mode: string }>("PRAGMA journal_mode = WAL")!;
    if (journal_mode === "wal") return;
    const message = `'${this.#file}' cannot use write-ahead logging (journal mode is '${journal_mode}')`;
    throw new ProviderError("invalid", "open", `${message}. Put it on a local disk; a network drive will not do`);
  }

  #statement(sql: string): SqliteStatement {
    const known = this.#meet(sql);
    if (this.#log !== null && !this.#isAsItWillBe(this.#log, known)) this.#bringHere(this.#log);
    return this.#statements.prepared(sql, known);
  }

  /** Whatever is written down. */
  #runNow(sql: string, ...values: SqlValue[]): number {
    return Number(this.#statements.prepared(sql).run(...values).changes);
  }

  /** D6 */
  #meet(sql: string): Known {
    const known = this.#statements.known(sql);
    if ((known.tables & this.#kept.tables) !== 0) this.#kept.write(known.tables);
    this.#still &= ~known.stirs;
    return known;
  }

  /** Whether the tables of a statement that only reads have what is not executed yet. D10 */
  #isAsItWillBe(log: WriteLog, { tables, isReading }: Known): boolean {
    return isReading && (tables & (log.tables | this.#writer.tables)) === 0;
  }

  #writeDown(
    log: WriteLog,
    sql: string,
    rows: number,
    values: readonly SqlValue[],
    from: number,
    to: number,
    stirs = true,
  ): void {
    const known = this.#meet(sql);
    log.add(sql, known.tables, rows, values, from, to);
    if (stirs) log.stirs |= known.stirs;
    this.#changes += Math.max(1, rows);
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
    const end = this.#keepOthersWaiting(false);
    return {
      finish: (work) => {
        const result = this.#orUndo(work);
        this.#commit();
        end();
        return { result, isCommitted: true };
      },
      replace: (work) => this.#patience.whenUnlocked(() => this.#transact(work)).finally(end),
    };
  }

  /** Answers how to end that. */
  #keepOthersWaiting(isOpenThere: boolean): () => void {
    let hasEnded!: () => void;
    this.#open = new Promise((resolve) => {
      hasEnded = resolve;
    });
    this.#isOpenThere = isOpenThere;
    return () => {
      this.#open = null;
      this.#isOpenThere = false;
      hasEnded();
    };
  }

  // Transactions that are written down. D10

  #isWriterWanted(): boolean {
    if (this.#closing.signal.aborted || !this.#writer.isWanted(this.#isThere)) return false;
    return this.isOnlyOne && this.#clock.now() - this.#othersAt >= ALONE_AFTER_MS;
  }

  async #beginThere<T>(work: (db: Database) => T, staysOpen: (result: T) => boolean): Promise<Begun<T>> {
    for (let tries = 0; ; ) {
      if (this.#open !== null) await this.#open;
      else if (this.#changing !== null) await this.#changing;
      else if (this.#isThere) break;
      else if (tries > 0) return this.#beginHere(work, staysOpen);
      else {
        tries += 1;
        await this.#change(() => this.#goThere());
      }
    }
    const log = this.#writer.newLog();
    try {
      const result = this.#writingDown(log, NOTHING_KEPT, () => work(this));
      if (staysOpen(result)) return { result, open: this.#leaveLogOpen(log), isCommitted: null };
      return { result, open: null, isCommitted: this.#conclude(log) };
    } catch (error) {
      if (!(error instanceof LogRefused) && !isBusy(error)) throw error;
      return this.#beginHere(work, staysOpen); // Which has patience. D4
    }
  }

  #leaveLogOpen(log: WriteLog): OpenTransaction {
    if (this.#log === null) return this.#leaveOpen(); // It was brought here.
    const kept = this.#kept;
    this.#log = null;
    this.#kept = NOTHING_KEPT;
    const end = this.#keepOthersWaiting(true);
    let hasEnded = false;
    return {
      finish: (work) => {
        const result = this.#writingDown(log, kept, work);
        const isCommitted = this.#conclude(log);
        hasEnded = true;
        end();
        return { result, isCommitted };
      },
      replace: async (work) => {
        if (hasEnded) return this.writeForMany(work);
        try {
          if (this.#isThere) await this.#change(() => this.#comeBack());
          return await this.#patience.whenUnlocked(() => this.#transact(work));
        } finally {
          end();
        }
      },
    };
  }

  /** Goes on to be written down, unless it was brought here. */
  #writingDown<T>(log: WriteLog, kept: KeptWrites, step: () => T): T {
    this.#log = log;
    this.#kept = kept;
    try {
      return step();
    } catch (error) {
      this.#takeBack();
      throw error;
    }
  }

  #takeBack(): void {
    const wasHere = this.#log === null;
    this.#log = null;
    this.#kept = NOTHING_KEPT;
    this.#endEpoch();
    if (wasHere) this.#rollBack();
  }

  /** Hands it over; or commits it, where it was brought here. */
  #conclude(log: WriteLog): Commit {
    if (this.#log === null) {
      this.#commit();
      return this.#changing === null ? true : this.#changing.then(() => true);
    }
    this.#writingDown(log, this.#kept, () => this.#kept.write(ALL_TABLES)); // D6
    this.#log = null;
    this.#kept = NOTHING_KEPT;
    return this.#handOver(log);
  }

  async #handOver(log: WriteLog): Promise<boolean> {
    this.#isIdleThere = false;
    const answer = await holding(this.#clock, this.#writer.execute(log));
    if (answer === "yes") {
      if (this.#isThere && this.#writer.underWay === 0) this.#noteVersion();
      return true;
    }
    if (answer === "others") this.#othersAt = this.#clock.now();
    if (this.#isThere) this.#refused(answer === "others");
    return false;
  }

  /**
   * What is written down needs an answer: from now on it is run here, after all that was handed over. Everything stands still for that, which is no
   * longer than if all of it had been run here. @throws LogRefused
   */
  #bringHere(log: WriteLog): void {
    this.#writer.pause();
    if (!this.#isThere) throw new LogRefused();
    const kept = this.#kept;
    const answer = this.#beginAfterThread();
    if (answer !== "yes") {
      this.#refused(answer === "others");
      throw new LogRefused();
    }
    this.#isThere = false;
    void this.#change(() => this.#answered());
    this.#log = null;
    this.#kept = NOTHING_KEPT;
    this.#takeForOurs(this.dataVersion());
    this.#replay(log);
    this.#kept = kept;
  }

  /** What is there already is refused, too: whoever runs it again asks at once, and knows whose it is. @throws LogRefused */
  #replay(log: WriteLog): void {
    let isAsExpected: boolean;
    try {
      isAsExpected = log.replay((sql, values) => this.#runNow(sql, ...values));
    } catch (error) {
      throw isConstraintViolation(error) ? new LogRefused() : error;
    }
    if (!isAsExpected) throw new LogRefused();
  }

  /** Under the write lock nobody commits any more. Unless it answers yes, nothing has begun. */
  #beginAfterThread(): WriterAnswer {
    const answer = this.#writer.compareNow();
    if (answer !== "yes") return answer;
    try {
      this.#runNow("BEGIN IMMEDIATE");
    } catch (error) {
      if (isBusy(error)) return "no"; // Whoever runs it again has patience. D4
      throw error;
    }
    const answerNow = this.#writer.compareNow();
    if (answerNow !== "yes") this.#rollBack();
    return answerNow;
  }

  /** What was written down since relies on what has not happened: it is refused, too. */
  #refused(isForOthers: boolean): void {
    this.#isThere = false;
    this.#forgetVersion(isForOthers);
    this.#writer.pause();
  }

  #forgetVersion(isForOthers: boolean): void {
    if (isForOthers) this.#othersAt = this.#clock.now();
    this.#othersSeen += 1;
    this.#lastVersion = 0;
    this.#isVersionFresh = false;
    this.#endEpoch();
  }

  #change(step: () => Promise<void>): Promise<void> {
    this.#changing = holding(this.#clock, step()).finally(() => {
      this.#changing = null;
    });
    return this.#changing;
  }

  /** Resolves when all who had something handed over have had their answers: what comes after it is told after it. */
  async #answered(): Promise<void> {
    await this.#writer.idle();
    await new Promise<void>((resolve) => void immediate(resolve));
  }

  /** The thread marks what the file has; where that is what was left here, it is what this epoch relies on. */
  async #goThere(): Promise<void> {
    const answer = await this.#writer.mark();
    this.#isThere = answer === "yes" && this.#versionNow() === this.#lastVersion;
    if (!this.#isThere) this.#writer.pause();
  }

  /** After all that was handed over. Where the thread has seen nobody else, whatever was committed since is its own. */
  async #comeBack(): Promise<void> {
    await this.#writer.idle();
    if (!this.#isThere) return;
    const version = this.#versionNow();
    const answer = await this.#writer.compare();
    if (!this.#isThere) return;
    this.#isThere = false;
    if (answer === "yes" && version !== null) this.#takeForOurs(version);
    else this.#forgetVersion(answer === "others");
  }

  /**
   * What others commit from now on, whoever asks between transactions hears of. D8. What they have committed since the thread did, he hears of
   * later: from the thread.
   */
  #noteVersion(): void {
    const version = this.#versionNow();
    if (version !== null) this.#takeForOurs(version);
  }

  /** Whatever has been committed until then, the thread has. */
  #takeForOurs(version: number): void {
    this.#othersSeen += this.#lastVersion - version; // So that nobody takes it for somebody else's.
    this.#lastVersion = version;
    this.#isVersionFresh = false;
  }

  /** Null: it cannot be told. Whoever looks for something hears why, in the words of the contract. */
  #versionNow(): number | null {
    try {
      return this.#isClosed ? null : this.dataVersion();
    } catch {
      return null;
    }
  }

  /** D2 */
  #look(work: () => void): void {
    this.run("BEGIN");
    try {
      // While transactions are written down, only the thread could tell.
      this.#isOurs = !this.#isThere && this.#open === null && this.dataVersion() === this.#lastVersion;
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
      this.#runNow("ROLLBACK");
    } catch {
      // After a full disk or an I/O error SQLite has rolled back by itself, and says that there is nothing to roll back.
    }
  }

  /** Here, after whatever is under way. */
  #whenNobodyWrites<T>(attempt: () => T): Promise<T> {
    return this.#patience.whenUnlocked(attempt, () => this.#underWay());
  }

  /** What a transaction here must wait for. Null: nothing. */
  #underWay(): Promise<void> | null {
    if (this.#open !== null) return this.#open; // D9
    if (this.#changing !== null) return this.#changing;
    return this.#isThere ? this.#change(() => this.#comeBack()) : null;
  }
}
