// providers/sqlite/writer-thread.ts — a thread with a connection of its own, which executes write logs.
//
//   T1. Answers come in the order of the messages. A thread that has ended answers everything with no, but for the logs that it had
//       committed: of those it has left word. So does one to which something could not be sent: what comes later relies on that.
//   T2. It keeps the process alive only as long as somebody waits for an answer, or for its end.
//   T3. It has nothing of what the user's process was started with: no flags, no preloaded modules, no environment.

import { statSync } from "node:fs";
import { Worker } from "node:worker_threads";
import type { SqliteDriver } from "./driver.js";
import { StatementNumbers, WriteLog } from "./write-log.js";
import {
  ANSWERED_COUNT,
  COMMITTED_COUNT,
  LAST_ANSWER,
  PROGRESS_BYTES,
  WRITER_ANSWERS,
  WRITER_PROGRAM,
  type WriterAnswer,
  type WriterData,
  type WriterMessage,
} from "./writer-program.js";

/** One that does not answer for so long never will. */
const LONGEST_STANDSTILL_MS = 10_000;

interface Asked {
  readonly kind: WriterMessage["kind"];
  readonly resolve: (answer: WriterAnswer) => void;
}

/** Of a file, whatever its name. @throws where there is none */
export function identityOf(file: string): string {
  const { dev, ino } = statSync(file, { bigint: true });
  return `${dev}:${ino}`;
}

export class WriterThread {
  readonly #worker: Worker;
  readonly #numbers = new StatementNumbers();
  readonly #asked: Asked[] = [];
  /** Written by the thread. */
  readonly #progress = new Int32Array(new SharedArrayBuffer(PROGRESS_BYTES));
  #messages = 0;
  /** Logs of which it has said so. */
  #committed = 0;
  #isClosing = false;
  /** Something could not be sent. T1 */
  #isCutOff = false;
  #hasEnded = false;

  /**
   * `identity`: of the file, as `identityOf` tells; `program`: what it runs.
   *
   * @throws whatever keeps a thread from being started
   */
  constructor(
    { name }: SqliteDriver,
    file: string,
    identity: string,
    setUp: readonly string[],
    program = WRITER_PROGRAM,
  ) {
    const found = { driver: name, requireFrom: import.meta.url, file, identity };
    const workerData: WriterData = { ...found, setUp, progress: this.#progress };
    const nothing = { execArgv: [], env: {} }; // T3
    this.#worker = new Worker(program, { eval: true, ...nothing, name: "duroxide-sqlite", workerData });
    this.#worker.unref();
    this.#worker.on("message", (answers: readonly WriterAnswer[]) => this.#answered(answers));
    this.#worker.on("error", () => this.#ended());
    this.#worker.on("exit", () => this.#ended());
  }

  get hasEnded(): boolean {
    return this.#hasEnded || this.#isCutOff;
  }

  newLog(): WriteLog {
    return new WriteLog(this.#numbers);
  }

  /** What the file has now is what later logs rely on. */
  mark(): Promise<WriterAnswer> {
    return this.#ask(() => ({ kind: "mark" }));
  }

  /** Whether nobody else has committed since the mark. */
  compare(): Promise<WriterAnswer> {
    return this.#ask(() => ({ kind: "compare" }));
  }

  execute(log: WriteLog): Promise<WriterAnswer> {
    return this.#ask(() => ({ kind: "execute", log: log.packed(), statements: this.#numbers.takeUntold() }));
  }

  /** As `compare`, and everything stands still until all is answered. */
  compareNow(): WriterAnswer {
    if (this.hasEnded) return "no"; // T1
    void this.compare();
    const progress = this.#progress;
    for (let count = this.#answeredCount(); count !== this.#messages; count = this.#answeredCount()) {
      if (Atomics.wait(progress, ANSWERED_COUNT, count, LONGEST_STANDSTILL_MS) === "timed-out") return "no";
    }
    return WRITER_ANSWERS[Atomics.load(progress, LAST_ANSWER)]!;
  }

  /** After what it was asked before. */
  async close(): Promise<void> {
    if (this.#hasEnded) return;
    const ended = new Promise<void>((resolve) => {
      this.#worker.once("exit", () => resolve());
    });
    this.#isClosing = true;
    this.#worker.ref();
    this.#worker.postMessage({ kind: "close" } satisfies WriterMessage);
    await ended;
  }

  /** What cannot be sent, because it is too large, is answered with no: whoever runs it himself finds out what is wrong. */
  #ask(make: () => WriterMessage): Promise<WriterAnswer> {
    if (this.hasEnded) return Promise.resolve("no"); // T1
    let message: WriterMessage;
    try {
      message = make();
      this.#worker.postMessage(message);
    } catch {
      this.#isCutOff = true;
      return Promise.resolve("no");
    }
    this.#messages = (this.#messages + 1) | 0; // As the counter does.
    return new Promise((resolve) => {
      if (this.#asked.length === 0) this.#worker.ref(); // T2
      this.#asked.push({ kind: message.kind, resolve });
    });
  }

  #answered(answers: readonly WriterAnswer[]): void {
    const asked = this.#asked.splice(0, answers.length);
    if (this.#asked.length === 0 && !this.#isClosing) this.#worker.unref(); // T2
    for (const [place, { kind, resolve }] of asked.entries()) {
      const answer = answers[place]!;
      if (kind === "execute" && answer === "yes") this.#committed = (this.#committed + 1) | 0;
      resolve(answer);
    }
  }

  /** T1. Where one is not committed, none of those after it is. */
  #ended(): void {
    this.#hasEnded = true;
    let untold = (Atomics.load(this.#progress, COMMITTED_COUNT) - this.#committed) | 0;
    this.#committed = Atomics.load(this.#progress, COMMITTED_COUNT);
    for (const { kind, resolve } of this.#asked.splice(0)) {
      const isCommitted = kind === "execute" && untold > 0;
      if (isCommitted) untold -= 1;
      resolve(isCommitted ? "yes" : "no");
    }
  }

  #answeredCount(): number {
    return Atomics.load(this.#progress, ANSWERED_COUNT);
  }
}
