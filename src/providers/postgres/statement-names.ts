// providers/postgres/statement-names.ts — which statements the server may remember under a name, so that it parses and plans them once.
//
//   N1. Only where the server's process is at the other end of the connection, which is so if it has the number that was said when
//       the connection was opened. A pooler says a number of its own: behind it the next statement may go to another process, which
//       has never heard of the name.
//   N2. A name says what its statement is: whoever has given it before meant the same.
//   N3. Where a server refuses a name all the same, or what it remembers is out of date, nothing was executed. From then on there
//       are none.

import { createHash } from "node:crypto";
import type { PgClient } from "./driver.js";
import { sqlStateOf } from "./driver-errors.js";
import type { Session } from "./session.js";

const PROCESS = "SELECT pg_catalog.pg_backend_pid() AS pid";

/** There is no such statement; there is already; what it answers has another form by now. */
const REFUSALS: ReadonlySet<string | null> = new Set(["26000", "42P05", "0A000"]);

export class StatementNames {
  readonly #names = new Map<string, string>();
  readonly #direct = new WeakMap<PgClient, boolean>();
  #areRefused = false;

  /** Null: without a name. */
  async of(text: string, client: PgClient, session: Session): Promise<string | null> {
    if (this.#areRefused) return null;
    const isDirect = this.#direct.get(client) ?? (await this.#look(client, session)); // N1
    return isDirect ? this.#nameOf(text) : null;
  }

  /** Whether this error of a statement with a name was about the name: then nothing has happened. N3 */
  refuses(error: unknown): boolean {
    const isRefused = REFUSALS.has(sqlStateOf(error));
    this.#areRefused ||= isRefused;
    return isRefused;
  }

  async #look(client: PgClient, session: Session): Promise<boolean> {
    const [row] = await session.query<{ readonly pid: number }>(PROCESS);
    const isDirect = client.processID != null && row?.pid === client.processID;
    this.#direct.set(client, isDirect);
    return isDirect;
  }

  /** N2 */
  #nameOf(text: string): string {
    let name = this.#names.get(text);
    if (name === undefined) {
      name = `duroxide_${createHash("sha256").update(text).digest("hex").slice(0, 32)}`;
      this.#names.set(text, name);
    }
    return name;
  }
}
