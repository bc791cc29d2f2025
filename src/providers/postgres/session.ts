// providers/postgres/session.ts — one connection and what is said on it.
//
//   S1. One statement at a time: the driver queues others, and prints a warning about it.
//   S2. A statement without an answer in time gives up the connection: whatever comes later would be taken for the answer
//       to the next one.
//   S3. A connection that failed in a way that leaves its state unknown is broken, and stays so.
//   S4. Statements have no names unless somebody gives them one (`statement-names.ts`).

import { systemClock } from "../../clock.js";
import type { ProviderError } from "../../errors.js";
import type { PgClient, PgResult, PgStatement } from "./driver.js";
import { isFatal, NoAnswerError } from "./driver-errors.js";

/** What we bind; a buffer is a parameter in binary form. Null characters in texts are refused by the server. */
export type SqlValue = string | number | boolean | null | readonly (string | null)[] | readonly number[] | Uint8Array;

export interface SessionOptions {
  /** How long to wait for an answer. 0: as long as it takes. */
  readonly answerTimeoutMs: number;
  readonly explain: (error: unknown) => ProviderError;
}

export class Session {
  readonly #client: PgClient;
  readonly #options: SessionOptions;
  #last: Promise<unknown> = Promise.resolve();
  #isBroken = false;

  constructor(client: PgClient, options: SessionOptions) {
    this.#client = client;
    this.#options = options;
  }

  get isBroken(): boolean {
    return this.#isBroken;
  }

  /** @throws ProviderError */
  query<Row>(text: string, values: readonly SqlValue[] = [], name: string | null = null): Promise<readonly Row[]> {
    const answer = this.#last.then(() => this.#send({ text, values, ...(name === null ? {} : { name }) })); // S1
    this.#last = answer.catch(() => {});
    return answer as Promise<readonly Row[]>;
  }

  async #send(statement: PgStatement): Promise<readonly unknown[]> {
    try {
      const result = await withinTime(this.#client.query(statement), this.#options.answerTimeoutMs);
      return lastOf(result).rows;
    } catch (error) {
      this.#isBroken ||= isFatal(error); // S3
      if (error instanceof NoAnswerError) cut(this.#client); // S2
      throw this.#options.explain(error);
    }
  }
}

/** Ends a connection without a word to the server. What waits for an answer fails. */
export function cut(client: PgClient): void {
  client.connection?.stream.destroy();
}

/** Answers as `work` does, or rejects when that takes too long. Real time, as it is about real networks. 0: no limit. */
export function withinTime<T>(work: Promise<T>, limitMs: number): Promise<T> {
  if (limitMs === 0) return work;
  return new Promise((resolve, reject) => {
    const timer = systemClock.setTimer(limitMs, () => reject(new NoAnswerError(limitMs)));
    work.then(
      (answer) => {
        timer.clear();
        resolve(answer);
      },
      (error: unknown) => {
        timer.clear();
        reject(error);
      },
    );
  });
}

/** A script of several statements has a result for each. */
function lastOf(result: PgResult | readonly PgResult[]): PgResult {
  return Array.isArray(result) ? result.at(-1)! : (result as PgResult);
}
