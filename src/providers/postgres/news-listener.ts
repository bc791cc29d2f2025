// providers/postgres/news-listener.ts — keeps a connection that listens while somebody waits, and opens another when it
// is lost.
//
// Its states, and the ways out of each:
//   off      there is no connection. `want` opens one, but not before the time that the last failure set.
//   opening  it stands → hearing; it fails → pausing while somebody waits, else off.
//   hearing  it is lost → pausing while somebody waits, else off. `rest` leaves it open for a while.
//   unsure   hearing, but nobody waited for so long that nobody knows: its first answer → hearing; none → lost.
//   pausing  the time is over → opening; `rest` → off.
//
//   H1. Whenever it begins to hear, it says so: what was told before was not heard, so everybody looks.
//   H2. When it cannot hear, it says so, and warns once; not again until a connection has stood for a while.
//   H3. Nobody waits: there is no timer and nothing is asked. A connection that nobody has needed for a while is closed
//       when the next notification comes to it. Until then it costs nothing.
//   H4. Failures make the pauses longer, and only a connection that stands for a while makes them short again. Waiters
//       that come and go do not cut a pause short.

import type { Timer } from "../../clock.js";
import type { Connections } from "./connections.js";
import { ListenConnection, NobodyWaitsError, UndeliveredError } from "./listen-connection.js";
import { channelOf } from "./news.js";
import type { PostgresSettings } from "./options.js";

export interface NewsListenerOptions {
  readonly settings: Pick<PostgresSettings, "clock" | "schema" | "pollIntervalMs" | "onWarning">;
  readonly connections: Pick<Connections, "query" | "dedicated">;
  /** The id of this process, as hexadecimal digits. */
  readonly from: string;
  readonly onPayload: (payload: string) => void;
  readonly onHearing: () => void;
  readonly onDeaf: () => void;
}

type Trouble = "lost" | "undelivered";

/** A connection that stood so long was a good one. And so long one stays open that nobody needs. */
const A_WHILE_MS = 60_000;
const SHORTEST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 10_000;
/** A pooler that does not deliver is not replaced every second. */
const UNDELIVERED_PAUSE_MS = 60_000;

export class NewsListener {
  readonly #options: NewsListenerOptions;
  #isWanted = false;
  #isClosed = false;
  #connection: ListenConnection | null = null;
  #isHearing = false;
  #stoodSince = 0;
  #restsSince = 0;
  #opening: Promise<void> | null = null;
  /** Aborted when nobody waits any more. */
  #patience = new AbortController();
  #pause: Timer | null = null;
  #pauseUntil = Number.NEGATIVE_INFINITY;
  #failures = 0;
  readonly #warnedOf = new Set<Trouble>();

  constructor(options: NewsListenerOptions) {
    this.#options = options;
  }

  /** Whether what is told now will be heard. */
  get isHearing(): boolean {
    return this.#isHearing;
  }

  /** Somebody waits. */
  want(): void {
    if (this.#isWanted || this.#isClosed) return;
    this.#isWanted = true;
    if (this.#connection === null) return this.#openWhenDue();
    this.#isHearing = this.#connection.isSure;
    this.#connection.watch();
  }

  /** Nobody waits. */
  rest(): void {
    if (!this.#isWanted) return;
    this.#isWanted = false;
    this.#restsSince = this.#options.settings.clock.now();
    this.#patience.abort();
    this.#pause?.clear();
    this.#connection?.unwatch();
  }

  async close(): Promise<void> {
    this.rest();
    this.#isClosed = true;
    this.#isHearing = false;
    await this.#connection?.close();
    await this.#opening;
  }

  #openWhenDue(): void {
    if (!this.#isWanted || this.#connection !== null || this.#opening !== null) return;
    const { clock } = this.#options.settings;
    const pauseMs = this.#pauseUntil - clock.now();
    this.#pause?.clear();
    if (pauseMs > 0)
      this.#pause = clock.setTimer(pauseMs, () => this.#openWhenDue()); // H4
    else this.#opening = this.#open();
  }

  async #open(): Promise<void> {
    const { settings, connections, from } = this.#options;
    this.#patience = new AbortController();
    try {
      const connection = await ListenConnection.open(
        {
          clock: settings.clock,
          connections,
          channel: channelOf(settings.schema),
          from,
          onPayload: (payload) => this.#hears(payload),
          onAlive: () => this.#isAlive(),
          onLost: (error) => this.#isLost(error),
        },
        this.#patience.signal,
      );
      if (this.#isClosed) await connection.close();
      else this.#stands(connection);
    } catch (error) {
      this.#failed(error);
    }
    this.#opening = null;
    this.#openWhenDue();
  }

  #stands(connection: ListenConnection): void {
    this.#connection = connection;
    this.#stoodSince = this.#options.settings.clock.now();
    if (this.#isWanted) connection.watch();
    this.#isAlive();
  }

  #isAlive(): void {
    if (this.#isHearing || this.#isClosed) return;
    this.#isHearing = true;
    this.#options.onHearing(); // H1
  }

  #hears(payload: string): void {
    if (!this.#isWanted && this.#options.settings.clock.now() - this.#restsSince > A_WHILE_MS) this.#drop(); // H3
    this.#options.onPayload(payload);
  }

  #drop(): void {
    void this.#connection?.close();
    this.#connection = null;
    this.#isHearing = false;
  }

  #isLost(error: Error): void {
    this.#connection = null;
    this.#isHearing = false;
    if (this.#options.settings.clock.now() - this.#stoodSince >= A_WHILE_MS) {
      this.#failures = 0; // H4
      this.#warnedOf.clear();
    }
    this.#failed(error);
    this.#openWhenDue();
  }

  #failed(error: unknown): void {
    if (error instanceof NobodyWaitsError) return;
    const trouble: Trouble = error instanceof UndeliveredError ? "undelivered" : "lost";
    this.#pauseUntil = this.#options.settings.clock.now() + this.#pauseAfter(trouble);
    if (this.#isWanted) this.#warnOnce(trouble, error);
    this.#options.onDeaf(); // H2
  }

  #pauseAfter(trouble: Trouble): number {
    if (trouble === "undelivered") return UNDELIVERED_PAUSE_MS;
    const pauseMs = Math.min(SHORTEST_PAUSE_MS * 2 ** this.#failures, LONGEST_PAUSE_MS);
    this.#failures += 1;
    // Each process has a share of its own, so that after a restart of the server not all come back at one moment.
    const share = Number.parseInt(this.#options.from.slice(0, 8), 16) / 2 ** 32;
    return pauseMs * (0.75 + share / 2);
  }

  #warnOnce(trouble: Trouble, error: unknown): void {
    if (this.#warnedOf.has(trouble)) return;
    this.#warnedOf.add(trouble);
    const { onWarning, pollIntervalMs } = this.#options.settings;
    try {
      onWarning(trouble === "lost" ? lostWarning(error, pollIntervalMs) : undeliveredWarning(pollIntervalMs));
    } catch {
      // A listener that throws does not stop the reconnecting.
    }
  }
}

function lostWarning(error: unknown, pollIntervalMs: number): string {
  const why = error instanceof Error ? error.message : String(error);
  return (
    `PostgreSQL: the connection that listens for the work of other processes is not there (${why}). ` +
    `It is opened again as soon as possible; until then their work is noticed up to ${pollIntervalMs} ms late.`
  );
}

function undeliveredWarning(pollIntervalMs: number): string {
  return (
    "PostgreSQL: notifications do not arrive on this connection. This is so behind a pooler in transaction " +
    `mode, such as PgBouncer. The work of other processes is looked for instead, and noticed up to ${pollIntervalMs} ms ` +
    'late. Set listenConnectionString to a connection that does not go through the pooler, or wakeUps: "poll" if this ' +
    "is as it should be."
  );
}
