// providers/sqlite/writer-thread.ts — a thread with a connection of its own, which executes write logs.
//
//   T1. Answers come in the order of the messages. A thread that has ended answers everything with no.
//   T2. It keeps the process alive only as long as somebody waits for an answer.

import { Worker } from "node:worker_threads";
import type { SqliteDriver } from "./driver.js";
import { StatementNumbers, WriteLog } from "./write-log.js";
import {
  ANSWERED_COUNT,
  LAST_ANSWER,
  WRITER_ANSWERS,
  WRITER_PROGRAM,
  type WriterAnswer,
  type WriterData,
  type WriterMessage,
} from "./writer-program.js";

/** One that does not answer for so long never will. */
const LONGEST_STANDSTILL_MS = 10_000;

export class WriterThread {
  readonly #worker: Worker;
  readonly #numbers = new StatementNumbers();
  readonly #asked: ((answer: WriterAnswer) => void)[] = [];
  /** Written by the thread. */
  readonly #answers = new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT));
  #messages = 0;
  #hasEnded = false;

  /** @throws whatever keeps a thread from being started */
  constructor({ name }: SqliteDriver, file: string, setUp: readonly string[]) {
    const workerData: WriterData = { driver: name, requireFrom: import.meta.url, file, setUp, answered: this.#answers };
    this.#worker = new Worker(WRITER_PROGRAM, { eval: true, execArgv: [], name: "duroxide-sqlite", workerData });
    this.#worker.unref();
    this.#worker.on("message", (answers: readonly WriterAnswer[]) => this.#answered(answers));
    this.#worker.on("error", () => this.#ended());
    this.#worker.on("exit", () => this.#ended());
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  newLog(): WriteLog {
    return new WriteLog(this.#numbers);
  }

  /** What the file has now is what later logs rely on. */
  mark(): Promise<WriterAnswer> {
    return this.#ask({ kind: "mark" });
  }

  /** Whether nobody else has committed since the mark. */
  compare(): Promise<WriterAnswer> {
    return this.#ask({ kind: "compare" });
  }

  execute({ entries }: WriteLog): Promise<WriterAnswer> {
    return this.#ask({ kind: "execute", texts: this.#numbers.takeUntold(), entries });
  }

  /** As `compare`, and everything stands still until all is answered. */
  compareNow(): WriterAnswer {
    if (this.#hasEnded) return "no"; // T1
    void this.compare();
    const answers = this.#answers;
    const until = performance.now() + LONGEST_STANDSTILL_MS;
    for (let count = Atomics.load(answers, ANSWERED_COUNT); count !== this.#messages; ) {
      const leftMs = until - performance.now();
      if (leftMs <= 0) return "no";
      Atomics.wait(answers, ANSWERED_COUNT, count, leftMs);
      count = Atomics.load(answers, ANSWERED_COUNT);
    }
    return WRITER_ANSWERS[Atomics.load(answers, LAST_ANSWER)]!;
  }

  /** After what it was asked before. */
  async close(): Promise<void> {
    if (this.#hasEnded) return;
    const ended = new Promise<void>((resolve) => {
      this.#worker.once("exit", () => resolve());
    });
    this.#worker.ref();
    this.#worker.postMessage({ kind: "close" } satisfies WriterMessage);
    await ended;
  }

  #ask(message: WriterMessage): Promise<WriterAnswer> {
    if (this.#hasEnded) return Promise.resolve("no"); // T1
    return new Promise((resolve) => {
      if (this.#asked.length === 0) this.#worker.ref(); // T2
      this.#asked.push(resolve);
      this.#messages = (this.#messages + 1) | 0; // As the counter does.
      this.#worker.postMessage(message);
    });
  }

  #answered(answers: readonly WriterAnswer[]): void {
    const asked = this.#asked.splice(0, answers.length);
    if (this.#asked.length === 0) this.#worker.unref(); // T2
    for (const [place, resolve] of asked.entries()) resolve(answers[place]!);
  }

  #ended(): void {
    this.#hasEnded = true;
    for (const resolve of this.#asked.splice(0)) resolve("no"); // T1
  }
}
