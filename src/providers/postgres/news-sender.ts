// providers/postgres/news-sender.ts — sends what was committed to those who listen: soon, in few notifications.
//
//   S1. The first news goes at once, together with all that is told in the same turn of the event loop. What is told
//       while it is on its way goes together, a few milliseconds after it. Nothing is ever sent in two at a time.
//   S2. Telling never throws and never waits. News that could not be sent goes with the next. Whoever listens has most likely
//       lost the connection as well, and looks when it is back; else it looks when its long poll ends.
//   S3. Closing sends what was told: a program that starts an orchestration and ends is heard at once.

import { type Clock, sleep } from "../../clock.js";
import { isNothing, type News, NewsBundle } from "./news.js";

/** Between the beginnings of two notifications. Nobody notices 5 ms; two hundred notifications a second are no load. */
const PAUSE_MS = 5;

// Captured at load, so that fake timers in a user's test do not stop it.
const immediate = setImmediate;

export class NewsSender {
  readonly #clock: Clock;
  readonly #send: (news: News) => Promise<unknown>;
  readonly #bundle = new NewsBundle();
  readonly #closing = new AbortController();
  /** Something was told since the last notification began. */
  #isTold = false;
  #sending: Promise<void> | null = null;

  constructor(clock: Clock, send: (news: News) => Promise<unknown>) {
    this.#clock = clock;
    this.#send = send;
  }

  tell(news: News): void {
    if (this.#closing.signal.aborted || isNothing(news)) return;
    this.#bundle.add(news);
    this.#isTold = true;
    this.#sending ??= this.#sendAll();
  }

  /** Resolves when all that was told is sent, or could not be. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#sending;
  }

  async #sendAll(): Promise<void> {
    await new Promise<void>((resolve) => void immediate(resolve)); // S1
    while (this.#isTold) {
      const startedAt = this.#clock.now();
      await this.#sendBundle();
      await sleep(this.#clock, startedAt + PAUSE_MS - this.#clock.now(), this.#closing.signal);
    }
    this.#sending = null;
  }

  async #sendBundle(): Promise<void> {
    this.#isTold = false;
    const news = this.#bundle.take();
    try {
      await this.#send(news);
    } catch {
      this.#bundle.add(news); // S2
    }
  }
}
