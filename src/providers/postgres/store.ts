// providers/postgres/store.ts — what every operation is handed: statements in its schema, the time, and whom to tell.

import type { Clock } from "../../clock.js";
import { ProviderError } from "../../errors.js";
import { Effects } from "../../provider/kit/effects.js";
import type { Connections, SqlValue } from "./connections.js";
import { inSchema } from "./migrate.js";
import type { PostgresSettings } from "./options.js";

/** Who hears of what was committed: those who wait in this process, or those in other processes too. */
export type Audience = "here" | "everywhere";

/** What is in the index of locks until the next vacuum has to be passed over: not every time. */
const LOOK_BACK_MS = 250;

export class Store {
  readonly clock: Clock;
  readonly newId: () => string;
  /** Of this provider, among all that use the schema. */
  readonly id: string;
  readonly announce: (effects: Effects, audience: Audience) => void;
  /** The last who has begun to watch an instance. */
  readonly lastWatcher: () => number;
  readonly #connections: Connections;
  readonly #quotedSchema: string;
  readonly #statements = new Map<string, string>();
  readonly #lookedBackAt = { messages: Number.NaN, activities: Number.NaN };

  constructor(
    connections: Connections,
    settings: PostgresSettings,
    id: string,
    announce: (effects: Effects, audience: Audience) => void,
    lastWatcher: () => number,
  ) {
    this.#connections = connections;
    this.#quotedSchema = settings.quotedSchema;
    this.clock = settings.clock;
    this.newId = settings.newId;
    this.id = id;
    this.announce = announce;
    this.lastWatcher = lastWatcher;
  }

  /** Whether it is time to look for locks that are over, though there may be enough to do without them. */
  looksBack(queue: "messages" | "activities", now: number): boolean {
    const sinceMs = now - this.#lookedBackAt[queue];
    if (sinceMs >= 0 && sinceMs < LOOK_BACK_MS) return false;
    this.#lookedBackAt[queue] = now;
    return true;
  }

  /** One statement, in a transaction of its own. `{schema}` stands for the schema. */
  query<Row>(operation: string, statement: string, values: readonly SqlValue[] = []): Promise<readonly Row[]> {
    return this.#connections.queryOften<Row>(operation, this.#inSchema(statement), values);
  }

  /** As `query`, for what others wait for: where nobody knows whether it was committed, everybody looks. */
  async write<Row>(operation: string, statement: string, values: readonly SqlValue[]): Promise<readonly Row[]> {
    try {
      return await this.query<Row>(operation, statement, values);
    } catch (error) {
      if (error instanceof ProviderError && error.retryable) this.announce(maybeEverything(), "everywhere");
      throw error;
    }
  }

  #inSchema(statement: string): string {
    let text = this.#statements.get(statement);
    if (text === undefined) {
      text = inSchema(statement, this.#quotedSchema);
      this.#statements.set(statement, text);
    }
    return text;
  }
}

function maybeEverything(): Effects {
  const effects = new Effects();
  effects.readyMessages = Number.POSITIVE_INFINITY;
  effects.readyActivities = Number.POSITIVE_INFINITY;
  return effects;
}
