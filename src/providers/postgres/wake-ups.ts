// providers/postgres/wake-ups.ts — what one process commits, the others that share its schema hear of at once.
//
//   W1. It is a hint and nothing else: whoever is woken looks for itself. Nothing is wrong if a wake-up is lost, only late.
//   W2. Nobody waits: nothing is polled, nothing is asked, no timer runs, and a process may end.
//   W3. Whoever enters and then looks hears of every later commit: by LISTEN, and where nothing is heard by polling.
//       When a connection begins to hear, everybody looks once.
//   W4. A process does not act on its own notifications: it has told itself already.
//   W5. Telling never throws and never waits. Listening, polling and their failures never surface in anybody's call.
//   W6. `local`: nothing is told and nothing is heard. `poll`: it is told, for those who listen, but not listened to.
//
// The parts: `NewsSender` tells, `NewsListener` hears, `BackingOffPoller` looks while it does not.

import { randomBytes } from "node:crypto";
import { sleep } from "../../clock.js";
import { BackingOffPoller } from "./backing-off-poller.js";
import type { Connections } from "./connections.js";
import { channelOf, EVERYTHING, type News, readNote, writeNews } from "./news.js";
import { NewsListener } from "./news-listener.js";
import { NewsSender } from "./news-sender.js";
import type { PostgresSettings } from "./options.js";

export type { News } from "./news.js";

export interface WakeUpsOptions {
  readonly settings: Pick<PostgresSettings, "clock" | "schema" | "wakeUps" | "pollIntervalMs" | "onWarning">;
  readonly connections: Pick<Connections, "query" | "dedicated">;
  /** Somebody else committed, or may have. */
  readonly onNews: (news: News) => void;
}

/** What was told last should be sent, but a server that is gone keeps nobody from closing. */
const LONGEST_CLOSE_MS = 2_000;

/** A hint need not survive a power cut: nobody waits for the disk. W1 */
const NOTIFY = "SELECT pg_catalog.set_config('synchronous_commit', 'off', true), pg_catalog.pg_notify($1, $2)";

export class WakeUps {
  readonly #options: WakeUpsOptions;
  /** Random, and not by the user's `newId`: two processes of one id would never hear each other. */
  readonly #id = randomBytes(8).toString("hex");
  readonly #sender: NewsSender;
  readonly #poller: BackingOffPoller;
  readonly #listener: NewsListener;
  #waiting = 0;
  #isClosed = false;

  constructor(options: WakeUpsOptions) {
    const { settings, connections } = options;
    const channel = channelOf(settings.schema);
    this.#options = options;
    this.#sender = new NewsSender(settings.clock, (news) =>
      connections.query("notify", NOTIFY, [channel, writeNews(this.#id, news)]),
    );
    this.#poller = new BackingOffPoller(settings.clock, settings.pollIntervalMs, () =>
      this.#options.onNews(EVERYTHING),
    );
    this.#listener = new NewsListener({
      settings,
      connections,
      from: this.#id,
      onPayload: (payload) => this.#hears(payload),
      onHearing: () => this.#beginsToHear(),
      onDeaf: () => this.#pollIfNeeded(),
    });
  }

  /** After a commit. Told to the other processes soon, together with what else is to be told. */
  tell(news: News): void {
    if (this.#isClosed || this.#isLocal) return;
    this.#sender.tell(news);
    this.#poller.hurry();
  }

  /** Somebody begins to wait for news. Returns the way to stop; a second call of it does nothing. */
  enter(): () => void {
    if (this.#isClosed || this.#isLocal) return () => {};
    this.#waiting += 1;
    if (this.#options.settings.wakeUps === "listen") this.#listener.want();
    this.#pollIfNeeded();
    this.#poller.hurry();
    let isWaiting = true;
    return () => {
      if (!isWaiting) return;
      isWaiting = false;
      this.#waiting -= 1;
      if (this.#waiting > 0) return;
      this.#poller.stop(); // W2
      this.#listener.rest();
    };
  }

  /** Sends what was told, and ends everything. Afterwards nothing is told or heard. The connections must still be open. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#poller.stop();
    const ended = new AbortController();
    const all = Promise.all([this.#sender.close(), this.#listener.close()]).finally(() => ended.abort());
    await Promise.race([all, sleep(this.#options.settings.clock, LONGEST_CLOSE_MS, ended.signal)]);
  }

  get #isLocal(): boolean {
    return this.#options.settings.wakeUps === "local"; // W6
  }

  #beginsToHear(): void {
    this.#poller.stop();
    this.#options.onNews(EVERYTHING); // W3
  }

  #pollIfNeeded(): void {
    if (this.#waiting > 0 && !this.#isClosed && !this.#listener.isHearing) this.#poller.start(); // W3
  }

  #hears(payload: string): void {
    if (this.#isClosed) return;
    const note = readNote(payload);
    if (note === null) return this.#options.onNews(EVERYTHING);
    if (note.kind === "news" && note.from !== this.#id) this.#options.onNews(note.news); // W4
  }
}
