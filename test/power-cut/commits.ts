// test/power-cut/commits.ts — which commits a store has made, and what the database was after each of them.
//
//   C1. Read from what was written, not from what SQLite says: the frames of the log, and the end of a rollback journal.
//   C2. A state of the database is told by the sum of its pages. Two states with the same pages are the same.
//
// The format of the log: https://www.sqlite.org/fileformat2.html#walformat

import { createHash } from "node:crypto";
import { Content } from "./disk.js";
import { DATABASE, JOURNAL, LOG, type Operation } from "./operation.js";

const LOG_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;

export class Commits {
  readonly #database = new Content();
  readonly #log = new Content();
  readonly #pages = new Pages();
  /** By the sum of its pages: the last commit after which the database was so. */
  readonly #states = new Map<string, number>([[new Pages().sum, 0]]);
  /** Frames of the log that belong to commits. */
  #committedFrames = 0;
  #count = 0;

  /** How many there are so far. */
  get count(): number {
    return this.#count;
  }

  apply(operation: Operation): void {
    if (operation.kind === "unlink" && operation.file === JOURNAL) return this.#commitJournal();
    if (operation.kind !== "write" && operation.kind !== "truncate") return;
    if (operation.file === DATABASE) this.#database.apply(operation);
    if (operation.file !== LOG) return;
    this.#log.apply(operation);
    if (operation.kind === "write") this.#written(operation.offset, operation.data.length);
  }

  /** After how many commits the database was in this state; null: never. */
  numberOf(database: Buffer): number | null {
    const pages = new Pages();
    pages.takeAll(database);
    return this.#states.get(pages.sum) ?? null;
  }

  #commitJournal(): void {
    this.#pages.takeAll(this.#database.bytes());
    this.#committed();
  }

  #written(offset: number, length: number): void {
    if (offset === 0) this.#committedFrames = 0; // The log begins anew.
    const log = this.#log.bytes();
    const pageBytes = log.readUInt32BE(8);
    const frameBytes = FRAME_HEADER_BYTES + pageBytes;
    const end = offset + length - LOG_HEADER_BYTES;
    if (end <= 0 || end % frameBytes !== 0) return;
    const frames = end / frameBytes;
    const sizeInPages = log.readUInt32BE(LOG_HEADER_BYTES + (frames - 1) * frameBytes + 4);
    if (sizeInPages === 0) return; // The transaction goes on.
    for (let frame = this.#committedFrames; frame < frames; frame += 1) {
      const at = LOG_HEADER_BYTES + frame * frameBytes;
      const data = at + FRAME_HEADER_BYTES;
      this.#pages.take(log.readUInt32BE(at), log.subarray(data, data + pageBytes));
    }
    this.#pages.cut(sizeInPages);
    this.#committedFrames = frames;
    this.#committed();
  }

  #committed(): void {
    this.#count += 1;
    this.#states.set(this.#pages.sum, this.#count);
  }
}

/** The pages of a database, and one text for all of them. C2 */
class Pages {
  readonly #sums = new Map<number, Buffer>();
  readonly #sum = Buffer.alloc(SUM_BYTES);

  get sum(): string {
    return this.#sum.toString("hex");
  }

  /** A whole file, whose first page says how large they are. */
  takeAll(database: Buffer): void {
    if (database.length === 0) return;
    const pageBytes = database.readUInt16BE(16) === 1 ? 65_536 : database.readUInt16BE(16);
    for (let at = 0; at < database.length; at += pageBytes) {
      this.take(at / pageBytes + 1, database.subarray(at, at + pageBytes));
    }
  }

  take(number: number, page: Buffer): void {
    this.#drop(number);
    if (page.every((byte) => byte === 0)) return; // As if it had never been written.
    const sum = createHash("sha256").update(`${number} `).update(page).digest().subarray(0, SUM_BYTES);
    this.#sums.set(number, sum);
    this.#add(sum);
  }

  /** None after this one. */
  cut(lastPage: number): void {
    for (const number of this.#sums.keys()) if (number > lastPage) this.#drop(number);
  }

  #drop(number: number): void {
    const sum = this.#sums.get(number);
    if (sum === undefined) return;
    this.#sums.delete(number);
    this.#add(sum); // To add a second time is to take away.
  }

  #add(sum: Buffer): void {
    for (let place = 0; place < SUM_BYTES; place += 1) this.#sum[place]! ^= sum[place]!;
  }
}

const SUM_BYTES = 16;
