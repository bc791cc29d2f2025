// providers/sqlite/writer.ts — whether transactions are written down for the writer's thread, or run here.
//
// While its thread writes and syncs, the event loop makes the next transaction, and whatever users have to do. That pays where many
// calls share a transaction; a single one would only wait longer, for what crosses between the threads.
//
//   E1. Logs are executed in the order in which they were handed over. One that is refused has changed nothing, and neither has any
//       that was handed over after it.
//   E2. It goes there where batches have been large for a while, and comes back where they are small; and for a moment after a
//       transaction that could not be written down, a longer one each time that comes soon.
//       It never goes there by itself on a computer with a single core, with a library that ends the process badly if a thread ends
//       with it, nor where somebody drives the time, who wants everything to happen in the same order each time.
//   E3. Whatever the thread does not do is done here: where there can be none, where it has ended, what it refuses.

import { availableParallelism } from "node:os";
import type { Clock } from "../../clock.js";
import type { WriterChoice } from "./options.js";
import type { Tables } from "./statements.js";
import type { WriteLog } from "./write-log.js";
import type { WriterAnswer } from "./writer-program.js";
import type { WriterThread } from "./writer-thread.js";

/** Calls in a batch, on average. */
const LARGE = 32;
const SMALL = 8;
/** How many batches the average looks back. */
const BATCHES = 16;

const SHORTEST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 3_200;
/** What comes after so many pauses is not soon. */
const SOON = 4;

export class Writer {
  readonly #choice: WriterChoice;
  readonly #clock: Clock;
  readonly #startThread: () => WriterThread;
  #thread: WriterThread | null = null;
  #isUp = false;
  #isImpossible = false;
  /** Handed over, and not answered: one or two, in order. No set: it would keep what it no longer holds (decision 0007). */
  readonly #logs: WriteLog[] = [];
  #last: Promise<unknown> = Promise.resolve();
  #load = 0;
  #pauseMs = SHORTEST_PAUSE_MS;
  #pausesUntil = Number.NEGATIVE_INFINITY;

  /** `isSafe`: the library may be torn down in a thread at any moment, as `process.exit` does. */
  constructor(choice: WriterChoice, isSafe: boolean, clock: Clock, startThread: () => WriterThread) {
    this.#choice = choice === "auto" && !(isSafe && couldPay(clock)) ? "never" : choice;
    this.#clock = clock;
    this.#startThread = startThread;
  }

  /** A batch of so many calls. */
  saw(calls: number): void {
    this.#load += (calls - this.#load) / BATCHES;
  }

  /** Whether transactions should be written down. `isThere`: they are. E2 */
  isWanted(isThere: boolean): boolean {
    if (this.#choice === "never") return false;
    if (this.#choice === "auto") {
      if (this.#load < (isThere ? SMALL : LARGE) || this.#clock.now() < this.#pausesUntil) return false;
    }
    return this.#isReady();
  }

  /** A transaction could not be written down, or was refused. E2 */
  pause(): void {
    const now = this.#clock.now();
    const isSoon = now < this.#pausesUntil + SOON * this.#pauseMs;
    this.#pauseMs = isSoon ? Math.min(2 * this.#pauseMs, LONGEST_PAUSE_MS) : SHORTEST_PAUSE_MS;
    this.#pausesUntil = now + this.#pauseMs;
  }

  newLog(): WriteLog {
    return this.#thread!.newLog();
  }

  mark(): Promise<WriterAnswer> {
    return this.#thread!.mark();
  }

  compare(): Promise<WriterAnswer> {
    return this.#thread!.compare();
  }

  /** After all that was handed over, and everything stands still until then. */
  compareNow(): WriterAnswer {
    return this.#thread!.compareNow();
  }

  async execute(log: WriteLog): Promise<WriterAnswer> {
    this.#logs.push(log);
    const answering = this.#thread!.execute(log);
    this.#last = answering;
    const answer = await answering;
    this.#logs.splice(this.#logs.indexOf(log), 1);
    return answer;
  }

  /** Resolves when all that was handed over is answered. */
  async idle(): Promise<void> {
    await this.#last;
  }

  /** How many logs are not answered. */
  get underWay(): number {
    return this.#logs.length;
  }

  /** What logs that are not answered write. */
  get tables(): Tables {
    let tables = 0;
    for (const log of this.#logs) tables |= log.tables;
    return tables;
  }

  /** Where those may make something ready. */
  get stirs(): Tables {
    let stirs = 0;
    for (const log of this.#logs) stirs |= log.stirs;
    return stirs;
  }

  touchedOf(instanceId: string): Tables {
    let tables = 0;
    for (const log of this.#logs) tables |= log.touchedOf(instanceId);
    return tables;
  }

  async close(): Promise<void> {
    await this.#thread?.close();
  }

  /** E3 */
  #isReady(): boolean {
    if (this.#thread === null && !this.#isImpossible) this.#start();
    return this.#thread !== null && !this.#thread.hasEnded && (this.#isUp || this.#choice === "always");
  }

  #start(): void {
    try {
      this.#thread = this.#startThread();
    } catch {
      this.#isImpossible = true;
      return;
    }
    void this.#thread.compare().then(() => {
      this.#isUp = true;
    });
  }
}

/** E2 */
function couldPay(clock: Clock): boolean {
  return clock.holdWhile === undefined && availableParallelism() > 1;
}
