// providers/postgres/listen-connection.ts — one connection that hears a channel, from LISTEN until it is lost or closed.
//
//   L1. It stands when a probe has come back that another connection sent: a pooler in transaction mode takes a LISTEN
//       and never delivers anything.
//   L2. While somebody waits it is asked now and then whether it lives. One that does not answer is lost: the other end
//       of a half-open connection is gone, and nobody says so.
//   L3. It is lost once, and never after it was closed.
//   L4. It has timers only while it opens or is watched, and a dedicated connection by itself keeps no process alive.

import { randomUUID } from "node:crypto";
import { type Clock, sleep } from "../../clock.js";
import type { Connections, DedicatedConnection } from "./connections.js";
import { writeProbe } from "./news.js";

export interface ListenOptions {
  readonly clock: Clock;
  readonly connections: Pick<Connections, "query" | "dedicated">;
  readonly channel: string;
  /** The id of this process. */
  readonly from: string;
  readonly onPayload: (payload: string) => void;
  /** It has just shown that it lives. */
  readonly onAlive: () => void;
  /** It stood, and does no longer. */
  readonly onLost: (error: Error) => void;
}

/** LISTEN was accepted, but nothing is delivered. */
export class UndeliveredError extends Error {
  override readonly name = "UndeliveredError";
}

/** Nobody wants to know any more whether the connection is any good. */
export class NobodyWaitsError extends Error {
  override readonly name = "NobodyWaitsError";
}

/** How long a notification may take from one connection to the other. */
const PROBE_MS = 5_000;
/** Between two questions. Routers forget a silent connection after minutes. */
const HEARTBEAT_MS = 30_000;
/** How long an answer may take. A server that is too busy for this is not heard from in time anyway. */
const ANSWER_MS = 10_000;

const NOTIFY = "SELECT pg_notify($1, $2)";
const HEARTBEAT = "SELECT 1";

export class ListenConnection {
  readonly #options: ListenOptions;
  readonly #connection: DedicatedConnection;
  /** Aborted with the connection's end. */
  readonly #over = new AbortController();
  #loss: Error | null = null;
  #hasStood = false;
  #aliveAt: number;
  #watch: AbortController | null = null;

  private constructor(options: ListenOptions, connection: DedicatedConnection) {
    this.#options = options;
    this.#connection = connection;
    this.#aliveAt = options.clock.now();
  }

  /**
   * Resolves when the connection stands (L1).
   *
   * @param patience aborts when nobody waits any more: then a probe that is late is not waited for
   * @throws UndeliveredError, NobodyWaitsError, and whatever the server or the way to it says
   */
  static async open(options: ListenOptions, patience: AbortSignal): Promise<ListenConnection> {
    const listening = new ListenConnection(options, await options.connections.dedicated("listen"));
    try {
      await listening.#listen(patience);
      listening.#hasStood = true;
      return listening;
    } catch (error) {
      void listening.close();
      throw error;
    }
  }

  /** Whether it has shown lately that it lives. */
  get isSure(): boolean {
    return this.#options.clock.now() - this.#aliveAt < HEARTBEAT_MS + ANSWER_MS;
  }

  /** Somebody waits: a loss must not stay unnoticed (L2). */
  watch(): void {
    if (this.#watch !== null || this.#over.signal.aborted) return;
    this.#watch = new AbortController();
    void this.#beat(this.#watch.signal);
  }

  /** Nobody waits. */
  unwatch(): void {
    this.#watch?.abort();
    this.#watch = null;
  }

  async close(): Promise<void> {
    this.unwatch();
    this.#over.abort();
    try {
      await this.#connection.close();
    } catch {
      // It is gone, which is all that was wanted.
    }
  }

  async #listen(patience: AbortSignal): Promise<void> {
    const { clock, connections, channel, from, onPayload } = this.#options;
    const probe = writeProbe(from, randomUUID());
    const arrival = new AbortController();
    this.#connection.onLost((error) => this.#lose(error));
    this.#connection.onNotification((where, payload) => {
      if (where !== channel) return;
      if (payload === probe) arrival.abort();
      else onPayload(payload);
    });
    await this.#ask(`LISTEN "${channel}"`, this.#over.signal);
    await connections.query("listen", NOTIFY, [channel, probe]);
    await this.#ask(HEARTBEAT, this.#over.signal); // What was sent before usually comes with the answer.
    if (!arrival.signal.aborted) {
      await sleep(clock, PROBE_MS, AbortSignal.any([arrival.signal, patience, this.#over.signal]));
    }
    if (this.#loss !== null) throw this.#loss;
    if (arrival.signal.aborted) return;
    throw patience.aborted ? new NobodyWaitsError() : new UndeliveredError();
  }

  async #beat(end: AbortSignal): Promise<void> {
    const { clock, onAlive } = this.#options;
    for (;;) {
      await sleep(clock, this.#aliveAt + HEARTBEAT_MS - clock.now(), end);
      if (end.aborted) return;
      try {
        await this.#ask(HEARTBEAT, end);
      } catch (error) {
        return this.#lose(error instanceof Error ? error : new Error(String(error)));
      }
      if (end.aborted) return;
      onAlive();
    }
  }

  /** Resolves when it has answered, or early when `end` aborts. */
  async #ask(text: string, end: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const answered = new AbortController();
    const answer = this.#connection.query(text).then(() => {
      this.#aliveAt = clock.now();
      return "answered" as const;
    });
    const patience = sleep(clock, ANSWER_MS, AbortSignal.any([answered.signal, end])).then(() => "late" as const);
    try {
      const outcome = await Promise.race([answer, patience]);
      if (this.#loss !== null) throw this.#loss;
      if (outcome === "late" && !end.aborted) throw new Error(`the connection has not answered for ${ANSWER_MS} ms`);
    } finally {
      answered.abort();
    }
  }

  #lose(error: Error): void {
    if (this.#over.signal.aborted) return; // L3
    this.#loss = error;
    void this.close();
    if (this.#hasStood) this.#options.onLost(error);
  }
}
