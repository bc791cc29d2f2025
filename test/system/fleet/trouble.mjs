// fleet/trouble.mjs — everything that goes wrong, at random but by a seed: workers are killed, connections cut, and the server
// restarted at given parts of the work.
//
//   T1. Each kind of trouble has random numbers of its own: how long one takes does not change what the others do.
//   T2. Trouble goes on while the server is away.

import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { randomNumbers } from "./random-numbers.mjs";

/** Of the connections that may be cut. */
export const APPLICATION = "fleet";

const cutOne = `
  SELECT pg_terminate_backend(pid) AS is_cut
  FROM pg_stat_activity
  WHERE application_name = $1
  ORDER BY pid
  OFFSET floor($2::float8 * (SELECT count(*) FROM pg_stat_activity WHERE application_name = $1)) LIMIT 1`;

export class Trouble {
  cuts = 0;
  restarts = [];
  #server;
  #workers;
  #over = new AbortController();
  #running = [];
  #isRestarting = Promise.resolve();

  constructor(server, workers) {
    this.#server = server;
    this.#workers = workers;
  }

  /** 0: never. */
  begin({ seed, killEveryMs, cutEveryMs }) {
    const pick = randomNumbers(seed + 1);
    if (killEveryMs > 0) {
      this.#repeat(killEveryMs, randomNumbers(seed + 2), () =>
        this.#workers.kill(Math.floor(pick() * this.#workers.count)),
      );
    }
    const choose = randomNumbers(seed + 3);
    if (cutEveryMs > 0) this.#repeat(cutEveryMs, randomNumbers(seed + 4), () => this.#cut(choose()));
  }

  /** Restarts follow each other: what is asked for while one goes on happens after it. */
  restart(mode, outageMs) {
    if (this.#over.signal.aborted) return;
    this.#isRestarting = this.#isRestarting.then(async () => {
      const stoppedAt = Date.now();
      await this.#server.stop(mode);
      if (outageMs > 0) await pause(outageMs);
      await this.#server.start();
      this.restarts.push({ mode, stoppedAt, backAt: Date.now() });
    });
    this.#running.push(this.#isRestarting);
  }

  /** Resolves when nothing more goes wrong, and the server is there. */
  async end() {
    this.#over.abort();
    await Promise.all(this.#running);
  }

  #repeat(everyMs, random, strike) {
    const loop = async () => {
      while (await this.#passes(everyMs * (0.5 + random()))) await strike(); // T2
    };
    this.#running.push(loop());
  }

  /** Whether it was time, and not the end, that ended the pause. */
  async #passes(ms) {
    return pause(ms, true, { signal: this.#over.signal }).catch(() => false);
  }

  /** While the server is away there is nothing to cut. */
  async #cut(part) {
    const client = new pg.Client({ connectionString: this.#server.url });
    client.on("error", () => {});
    try {
      await client.connect();
      const { rows } = await client.query(cutOne, [APPLICATION, part]);
      if (rows[0]?.is_cut) this.cuts += 1;
    } catch (error) {
      if (error.severity === "ERROR") throw error; // Anything else is the server's absence. T2
    } finally {
      await client.end().catch(() => {});
    }
  }
}
