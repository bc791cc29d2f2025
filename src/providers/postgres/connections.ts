// providers/postgres/connections.ts — the pool, and a connection of its own for whoever listens.
//
//   C1. Only what certainly has no effect is done again by itself: a statement that was never sent, or that the server
//       answered with an error which undoes it. When a connection is lost after a statement was sent, nobody knows; that
//       fails as `transient`.
//   C2. A connection whose state is not known is closed, and never used again.
//   C3. No error of a connection that nobody uses at the moment reaches the process as an unhandled one.
//   C4. Virtual time stands still while we wait for the server. What limits that waiting, and the pauses after a conflict
//       with others, is real time: the server knows no other.
//   C5. A connection on which nothing is on its way keeps no process alive: as with a file, what is not closed ends with
//       the process.
//   C6. After `close` no connection is left, whatever the server does.

import { setMaxListeners } from "node:events";
import { holding, sleep, systemClock } from "../../clock.js";
import { messageOf, ProviderError } from "../../errors.js";
import { DedicatedSession } from "./dedicated-session.js";
import {
  columnTypes,
  loadDriver,
  type PgClient,
  type PgClientClass,
  type PgClientConfig,
  type PgDriver,
  type PgPool,
  type PgPooledClient,
} from "./driver.js";
import {
  isCertainlyUndone,
  isConflict,
  isTlsRefused,
  PasswordFunctionError,
  PasswordMissingError,
  toProviderError,
} from "./driver-errors.js";
import type { PostgresSettings } from "./options.js";
import { checkServer, type ServerFacts, selectServerFacts } from "./server-check.js";
import { cut, Session, type SqlValue, withinTime } from "./session.js";
import { StatementNames } from "./statement-names.js";
import type { PostgresTarget } from "./target.js";

export type { SqlValue } from "./session.js";

/** One statement; its rows. */
export type Query = <Row>(text: string, values?: readonly SqlValue[]) => Promise<readonly Row[]>;

/** A connection that one part has for itself, outside of the pool. */
export interface DedicatedConnection {
  /** The server's process at its other end, as was said when it was opened. A pooler says a number of its own. */
  readonly processId: number | null;
  query<Row>(text: string, values?: readonly SqlValue[]): Promise<readonly Row[]>;
  onNotification(listener: (channel: string, payload: string) => void): void;
  /** Told once, when the connection is over without our doing; at once, if it already is. */
  onLost(listener: (error: Error) => void): void;
  close(): Promise<void>;
}

/** `resting`: in the pool, and nobody uses it. */
type ClientState = "busy" | "resting";
type Clients = Map<PgClient, ClientState>;

/** What the answer of a server that is about to give up on a statement may take to arrive. */
const ANSWER_GRACE_MS = 5_000;
/** When a network has swallowed the other side, the first question comes after this. */
const KEEP_ALIVE_MS = 10_000;
const MOST_CONFLICTS = 3;
const SHORTEST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 50;
/** How long `close` waits for calls on their way, and then for sockets to say goodbye. */
const CLOSE_GRACE_MS = 3_000;
const GOODBYE_MS = 1_000;

export class Connections {
  readonly #settings: PostgresSettings;
  readonly #driver: PgDriver;
  readonly #ssl: PgClientConfig["ssl"];
  readonly #pool: PgPool;
  /** All that have a socket: in the pool, beside it, and on the way there. */
  readonly #clients: Clients = new Map();
  readonly #clientClass: PgClientClass;
  readonly #onTheirWay = new Set<Promise<unknown>>();
  readonly #names = new StatementNames();
  /** Aborted when `close` waits no longer. */
  readonly #cut = new AbortController();
  #closed: Promise<void> | null = null;

  private constructor(settings: PostgresSettings, driver: PgDriver, ssl: PgClientConfig["ssl"]) {
    this.#settings = settings;
    this.#driver = driver;
    this.#ssl = ssl;
    this.#clientClass = clientClassOf(driver, this.#clients);
    setMaxListeners(0, this.#cut.signal); // Every waiting call is one; Node warns of more than ten.
    this.#pool = new driver.Pool({
      ...this.#configOf(settings.target, ssl),
      max: settings.maxConnections,
      idleTimeoutMillis: settings.idleTimeoutMs,
      allowExitOnIdle: true, // C5
      Client: this.#clientClass,
    });
    this.#pool.on("error", () => {}); // C3: the pool has dropped that connection already.
  }

  /**
   * Connects once, so that a wrong address or password is heard of at once.
   *
   * @throws ProviderError
   */
  static async open(settings: PostgresSettings): Promise<Connections> {
    const driver = await loadDriver();
    return withTlsOf(settings.target, async (ssl) => {
      const connections = new Connections(settings, driver, ssl);
      try {
        await connections.#checkServer();
        return connections;
      } catch (error) {
        await connections.close();
        throw error;
      }
    });
  }

  /** One statement on any connection of the pool, in a transaction of its own. C1. */
  query<Row>(operation: string, text: string, values?: readonly SqlValue[]): Promise<readonly Row[]> {
    return this.#call(operation, () => this.#onAny(operation, (session) => session.query<Row>(text, values)));
  }

  /** As `query`, of a statement that comes again and again: one of few texts. */
  queryOften<Row>(operation: string, text: string, values: readonly SqlValue[]): Promise<readonly Row[]> {
    return this.#call(operation, () =>
      this.#onAny(operation, async (session, client) => {
        const name = await this.#names.of(text, client, session);
        try {
          return await session.query<Row>(text, values, name);
        } catch (error) {
          if (name === null || !this.#names.refuses(error)) throw error;
          return session.query<Row>(text, values);
        }
      }),
    );
  }

  /** Several statements on one connection, all or nothing. After a conflict with others, `work` runs again. C1. */
  transaction<T>(operation: string, work: (query: Query) => Promise<T>): Promise<T> {
    return this.#call(operation, () => this.#onAny(operation, (session) => transact(session, work)));
  }

  /** A connection to listen on. */
  dedicated(operation: string): Promise<DedicatedConnection> {
    const { target, listenTarget } = this.#settings;
    const connect = (ssl: PgClientConfig["ssl"]) => this.#connectDedicated(operation, ssl);
    return this.#call(operation, () =>
      listenTarget === target ? connect(this.#ssl) : withTlsOf(listenTarget, connect),
    );
  }

  /** Waits a few seconds for calls on their way, then cuts them off. Calling it again does nothing more. */
  close(): Promise<void> {
    this.#closed ??= holding(this.#settings.clock, this.#shutDown());
    return this.#closed;
  }

  async #checkServer(): Promise<void> {
    const [facts] = await this.query<ServerFacts>("open", selectServerFacts);
    checkServer(facts!, this.#settings.target.label);
  }

  // Calls.

  #call<T>(operation: string, attempt: () => Promise<T>): Promise<T> {
    if (this.#closed !== null) return Promise.reject(closedError(operation));
    const call = holding(this.#settings.clock, this.#attempts(operation, attempt)); // C4
    const arrive = (): boolean => this.#onTheirWay.delete(call);
    this.#onTheirWay.add(call);
    call.then(arrive, arrive);
    return call;
  }

  /** C1 */
  async #attempts<T>(operation: string, attempt: () => Promise<T>): Promise<T> {
    let conflicts = 0;
    let losses = 0;
    for (;;) {
      if (this.#cut.signal.aborted) throw closedError(operation);
      try {
        return await attempt();
      } catch (error) {
        if (isConflict(error) && conflicts < MOST_CONFLICTS) {
          conflicts += 1;
          await sleep(systemClock, pauseMs(conflicts), this.#cut.signal);
        } else if (isCertainlyUndone(error) && losses === 0) {
          losses += 1;
          this.#cutResting();
        } else {
          throw error;
        }
      }
    }
  }

  async #onAny<T>(operation: string, use: (session: Session, client: PgClient) => Promise<T>): Promise<T> {
    const client = await this.#acquire(operation);
    const session = this.#sessionOn(client, operation, this.#settings.target);
    try {
      return await use(session, client);
    } finally {
      this.#release(client, session.isBroken);
    }
  }

  async #acquire(operation: string): Promise<PgPooledClient> {
    try {
      for (;;) {
        const client = await this.#unlessCut(this.#pool.connect());
        this.#mark(client, "busy");
        if (client.connection?.stream.writable !== false) return client;
        this.#release(client, true); // It ended while nobody used it, and its pool has yet to hear of it.
      }
    } catch (error) {
      throw this.#explain(operation, error, this.#settings.target);
    }
  }

  /** The pool forgets those who wait when it is closed. Whoever comes too late goes back. */
  #unlessCut(acquired: Promise<PgPooledClient>): Promise<PgPooledClient> {
    const { signal } = this.#cut;
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        reject(new Error("closed while waiting for a connection"));
        acquired.then(
          (client) => this.#release(client, true),
          () => {},
        );
      };
      if (signal.aborted) return giveUp();
      signal.addEventListener("abort", giveUp, { once: true });
      acquired.then(resolve, reject).finally(() => signal.removeEventListener("abort", giveUp));
    });
  }

  /** C2 */
  #release(client: PgPooledClient, isBroken: boolean): void {
    this.#mark(client, "resting");
    client.release(isBroken);
  }

  /** What has ended in the meantime stays forgotten. */
  #mark(client: PgClient, state: ClientState): void {
    if (this.#clients.has(client)) this.#clients.set(client, state);
  }

  /** What has ended one connection may have ended all, and we have yet to hear of it. The next call gets a new one. */
  #cutResting(): void {
    for (const [client, state] of this.#clients) if (state === "resting") cut(client);
  }

  #sessionOn(client: PgClient, operation: string, target: PostgresTarget): Session {
    const { statementTimeoutMs } = this.#settings;
    return new Session(client, {
      answerTimeoutMs: statementTimeoutMs === 0 ? 0 : statementTimeoutMs + ANSWER_GRACE_MS,
      explain: (error) => this.#explain(operation, error, target),
    });
  }

  #explain(
    operation: string,
    error: unknown,
    { label, database, user, isPasswordAsked }: PostgresTarget,
  ): ProviderError {
    if (this.#cut.signal.aborted) return cutError(operation, error);
    return toProviderError(operation, error, { ...this.#settings, label, database, user, isPasswordAsked });
  }

  // Connections.

  #configOf(target: PostgresTarget, ssl: PgClientConfig["ssl"]): PgClientConfig {
    const { applicationName, statementTimeoutMs, connectTimeoutMs } = this.#settings;
    const { host, port, database, user, startupOptions, channelBinding } = target;
    return {
      host,
      port,
      database,
      user,
      password: () => passwordOf(target),
      ssl,
      application_name: applicationName,
      options: startupOptions ?? undefined,
      statement_timeout: statementTimeoutMs,
      connectionTimeoutMillis: connectTimeoutMs,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
      enableChannelBinding: channelBinding,
      types: columnTypes(this.#driver),
    };
  }

  async #connectDedicated(operation: string, ssl: PgClientConfig["ssl"]): Promise<DedicatedConnection> {
    const { clock, listenTarget } = this.#settings;
    const client = new this.#clientClass(this.#configOf(listenTarget, ssl));
    try {
      await new Promise<void>((resolve, reject) => {
        client.connect((error) => (error ? reject(error) : resolve()));
      });
    } catch (error) {
      throw this.#explain(operation, error, listenTarget);
    }
    return new DedicatedSession(client, {
      session: this.#sessionOn(client, operation, listenTarget),
      clock,
      goodbyeMs: GOODBYE_MS,
      explain: (error) => this.#explain(operation, error, listenTarget),
      isClosing: () => this.#closed !== null,
    });
  }

  /** C6 */
  async #shutDown(): Promise<void> {
    await withinTime(Promise.allSettled(this.#onTheirWay), CLOSE_GRACE_MS).catch(() => {});
    this.#cut.abort();
    await Promise.all([...this.#clients].map(([client, state]) => (state === "resting" ? end(client) : cut(client))));
    await withinTime(this.#pool.end(), GOODBYE_MS).catch(() => {}); // It waits for whoever has yet to give one back.
  }
}

async function transact<T>(session: Session, work: (query: Query) => Promise<T>): Promise<T> {
  let failure: unknown = null;
  await session.query("BEGIN");
  try {
    const result = await work(async (text, values) => {
      try {
        return await session.query(text, values);
      } catch (error) {
        failure ??= error;
        throw error;
      }
    });
    // To commit what has failed is to roll it back, and the server calls that a success.
    if (failure !== null) throw failure;
    await session.query("COMMIT");
    return result;
  } catch (error) {
    if (!session.isBroken) await session.query("ROLLBACK").catch(() => {}); // If that fails too, the session is broken.
    throw error;
  }
}

/** Longer after each, and never the same for two that are in each other's way. */
function pauseMs(conflicts: number): number {
  return SHORTEST_PAUSE_MS + Math.random() * LONGEST_PAUSE_MS * conflicts;
}

/** @throws PasswordFunctionError, PasswordMissingError */
async function passwordOf({ password, user }: PostgresTarget): Promise<string> {
  if (password === null) throw new PasswordMissingError(`none was given for user '${user}'`);
  let answer: unknown;
  try {
    answer = await password();
  } catch (error) {
    throw new PasswordFunctionError(messageOf(error), { cause: error });
  }
  if (typeof answer === "string" && answer !== "") return answer;
  throw new PasswordFunctionError(
    answer === "" ? "it answered with an empty text" : `it answered with ${typeof answer}`,
  );
}

/** With TLS, without, or whichever the server can. */
async function withTlsOf<T>(target: PostgresTarget, connect: (ssl: PgClientConfig["ssl"]) => Promise<T>): Promise<T> {
  if (target.tlsMode === "disable") return connect(false);
  try {
    return await connect({ ...target.tls });
  } catch (error) {
    if (target.tlsMode === "prefer" && isTlsRefused(error)) return connect(false);
    throw error;
  }
}

/** The driver's client; but we know of each from its beginning to its end, and none is left half-open or unheard. */
function clientClassOf(driver: PgDriver, clients: Clients): PgClientClass {
  return class extends driver.Client {
    constructor(config: PgClientConfig) {
      super(config);
      this.on("error", () => {}); // C3: whoever waits for an answer is told by its promise.
      this.on("end", () => clients.delete(this));
    }

    override connect(callback: (error?: Error | null) => void): void {
      clients.set(this, "busy");
      super.connect((error) => {
        // The driver leaves a socket open on which no login came about.
        if (error) cut(this);
        callback(error);
      });
    }
  };
}

/** Says goodbye to the server; if that takes long, without its answer. */
async function end(client: PgClient): Promise<void> {
  await withinTime(client.end(), GOODBYE_MS).catch(() => cut(client));
}

function closedError(operation: string): ProviderError {
  return new ProviderError("invalid", operation, "the provider is closed. Open another one on the same database");
}

function cutError(operation: string, cause: unknown): ProviderError {
  const message = "the provider was closed before an answer came. Whether the call took effect is not known";
  return new ProviderError("invalid", operation, message, { cause });
}
