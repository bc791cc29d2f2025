// providers/postgres/listen-connection.ts — one connection that hears a channel, from LISTEN until it is lost or closed.
//
//   L1. It stands when a probe has come back that another connection sent: a pooler in transaction mode takes a LISTEN
//       and delivers nothing, unless something is asked at that moment. So behind a pooler nothing is asked meanwhile.
//   L2. While somebody waits it is asked now and then whether it lives. One that does not answer is lost: the other end
//       of a half-open connection is gone, and nobody says so.
//   L3. It is lost once, and never after it was closed.
//   L4. Where a pooler gives the server's processes around, there is no LISTEN: it would stay behind in a process that
//       others use, and the pooler would complain in its log of every notification.
//   L5. It has timers only while it opens or is watched, and a dedicated connection by itself keeps no process alive.

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

/** LISTEN is of no use: nothing is delivered. */
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
const PROCESS = "SELECT pg_backend_pid() AS pid";

interface ProcessRow {
  readonly pid: number;
}

/** How often one looks whether a pooler gives processes around. In a busy one the first look shows it, or the second. */
const MOST_LOOKS = 5;

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
    const own = await this.#ask<ProcessRow>(PROCESS, this.#over.signal);
    const isPooled = own !== undefined && own.pid !== this.#connection.processId;
    if (isPooled && (await this.#isGivenAround(own.pid))) throw new UndeliveredError(); // L4
    await this.#ask(`LISTEN "${channel}"`, this.#over.signal);
    await connections.query("listen", NOTIFY, [channel, probe]);
    // What was sent before usually comes with the answer. L1
    if (!isPooled) await this.#ask(HEARTBEAT, this.#over.signal);
    if (!arrival.signal.aborted) {
      await sleep(clock, PROBE_MS, AbortSignal.any([arrival.signal, patience, this.#over.signal]));
    }
    if (this.#loss !== null) throw this.#loss;
    if (arrival.signal.aborted) return;
    throw patience.aborted ? new NobodyWaitsError() : new UndeliveredError();
  }

  /** Whether the server's process works for others between two of our statements: theirs run in it, or ours in another. */
  async #isGivenAround(own: number): Promise<boolean> {
    const { connections } = this.#options;
    for (let look = 1; look <= MOST_LOOKS; look += 1) {
      const [others] = await connections.query<ProcessRow>("listen", PROCESS);
      if (others?.pid === own) return true;
      const ours = await this.#ask<ProcessRow>(PROCESS, this.#over.signal);
      if (ours?.pid !== own) return true;
    }
    return false;
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

  /** Resolves to the first row when it has answered, or early, to nothing, when `end` aborts. */
  async #ask<Row>(text: string, end: AbortSignal): Promise<Row | undefined> {
    const { clock } = this.#options;
    const answered = new AbortController();
    const answer = this.#connection.query<Row>(text).then(([row]) => {
      this.#aliveAt = clock.now();
      return { row };
    });
    const patience = sleep(clock, ANSWER_MS, AbortSignal.any([answered.signal, end])).then(() => "late" as const);
    try {
      const outcome = await Promise.race([answer, patience]);
      if (this.#loss !== null) throw this.#loss;
      if (outcome !== "late") return outcome.row;
      if (!end.aborted) throw new Error(`the connection has not answered for ${ANSWER_MS} ms`);
      return undefined;
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
