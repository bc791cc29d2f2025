// providers/postgres/dedicated-session.ts — a connection that one part has for itself: to listen.
//
//   L1. Its end is told once, to whoever asks, even when it has come before the question. Its own `close` is no loss.
//   L2. It keeps the process alive only while an answer is awaited, not while it listens.

import { type Clock, holding } from "../../clock.js";
import type { ProviderError } from "../../errors.js";
import type { DedicatedConnection } from "./connections.js";
import type { PgClient } from "./driver.js";
import { cut, type Session, type SqlValue, withinTime } from "./session.js";

export interface DedicatedOptions {
  readonly session: Session;
  readonly clock: Clock;
  readonly goodbyeMs: number;
  readonly explain: (error: unknown) => ProviderError;
  /** Whether all connections are being closed: then the end of this one is no loss either. */
  readonly isClosing: () => boolean;
}

export class DedicatedSession implements DedicatedConnection {
  readonly #client: PgClient;
  readonly #options: DedicatedOptions;
  readonly #onLost: ((error: Error) => void)[] = [];
  #awaited = 0;
  #loss: Error | null = null;
  #closed: Promise<void> | null = null;

  constructor(client: PgClient, options: DedicatedOptions) {
    this.#client = client;
    this.#options = options;
    client.unref(); // L2
    client.on("error", (error) => this.#lose(error));
    client.on("end", () => this.#lose(new Error("Connection terminated unexpectedly")));
  }

  get processId(): number | null {
    return this.#client.processID ?? null;
  }

  query<Row>(text: string, values?: readonly SqlValue[]): Promise<readonly Row[]> {
    return holding(this.#options.clock, this.#query<Row>(text, values));
  }

  onNotification(listener: (channel: string, payload: string) => void): void {
    this.#client.on("notification", ({ channel, payload }) => listener(channel, payload ?? ""));
  }

  onLost(listener: (error: Error) => void): void {
    const loss = this.#loss;
    if (loss !== null) queueMicrotask(() => listener(loss));
    else this.#onLost.push(listener);
  }

  close(): Promise<void> {
    this.#closed ??= holding(this.#options.clock, this.#end());
    return this.#closed;
  }

  async #query<Row>(text: string, values?: readonly SqlValue[]): Promise<readonly Row[]> {
    this.#awaited += 1;
    this.#client.ref(); // L2
    try {
      return await this.#options.session.query<Row>(text, values);
    } finally {
      this.#awaited -= 1;
      if (this.#awaited === 0) this.#client.unref();
    }
  }

  #lose(error: Error): void {
    if (this.#loss !== null || this.#closed !== null || this.#options.isClosing()) return; // L1
    this.#loss = this.#options.explain(error);
    cut(this.#client);
    for (const listener of this.#onLost.splice(0)) listener(this.#loss);
  }

  async #end(): Promise<void> {
    await withinTime(this.#client.end(), this.#options.goodbyeMs).catch(() => cut(this.#client));
  }
}
