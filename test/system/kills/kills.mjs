// kills/kills.mjs — kills workers, so many times, by a seed: half of them at any moment, half at a moment of their work.
//
//   T1. Each place has random numbers of its own: how long one takes does not change what happens at the others.
//   T2. Some live so short that they hold nothing yet, others nearly twice the mean.

import { setTimeout as pause } from "node:timers/promises";
import { randomNumbers } from "../fleet/random-numbers.mjs";
import { randomAim } from "./aim.mjs";

/** So long an aim is waited for: a call of each kind is made all the time. */
const PATIENCE_MS = 1_500;

export class Kills {
  /** By operation and moment: how many died there. */
  aimed = {};
  #workers;
  #options;
  #begun = 0;
  #done = 0;
  #over = new AbortController();

  /** options: `kills`, the mean time between two of them `everyMs`, `seed`, `onKill(done)`, and `needsPause()`. */
  constructor(workers, options) {
    this.#workers = workers;
    this.#options = options;
  }

  get isDone() {
    return this.#over.signal.aborted || this.#done >= this.#options.kills;
  }

  async run() {
    await Promise.all(Array.from({ length: this.#workers.count }, (_, place) => this.#killAt(place)));
  }

  /** No more of them. */
  end() {
    this.#over.abort();
  }

  async #killAt(place) {
    const random = randomNumbers(this.#options.seed * 100 + place); // T1
    const meanMs = this.#options.everyMs * this.#workers.count;
    while (this.#begun < this.#options.kills) {
      await pause(meanMs * 2 * random(), undefined, { signal: this.#over.signal }).catch(() => {}); // T2
      if (this.isDone || this.#begun >= this.#options.kills) return;
      if (this.#options.needsPause()) continue;
      this.#begun += 1;
      if (random() < 0.5) await this.#workers.kill(place);
      else await this.#killAimed(place, randomAim(random));
      this.#done += 1;
      this.#options.onKill(this.#done);
    }
  }

  async #killAimed(place, aim) {
    if (!(await this.#workers.killAt(place, aim, PATIENCE_MS))) return;
    const where = `${aim.moment} ${aim.operation}`;
    this.aimed[where] = (this.aimed[where] ?? 0) + 1;
  }
}
