// kills/load-run.mjs — plays a load (rich-load.mjs tells what that is): starts instances all along, so many at once, and
// compares what each comes to with what it must.
//
//   R1. Every instance whose start was acknowledged is waited for. Nothing is remembered of those that ended as they must.
//   R2. Where nothing ends for long, the run is given up, and says so. Before that it asks for a pause: on a slow machine, workers
//       may be killed faster than they come to anything.

import { setMaxListeners } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { Client } from "duroxide-ts";
import { patientClient } from "../fleet/patient-client.mjs";

/** Far longer than all locks and pauses together. */
const STANDSTILL_MS = 120_000;
const PAUSE_AFTER_MS = 15_000;
const LOOK_EVERY_MS = 1_000;

export class LoadRun {
  started = 0;
  ended = 0;
  retries = 0;
  /** Of { kind, message }. */
  problems = [];
  client;
  #load;
  #options;
  #givenUp = new AbortController();
  #lastEndAt = Date.now();

  /** options: `first` number, `inFlight`, and `onEnded(n, instanceId, client)`, which answers with problems. */
  constructor(load, provider, options) {
    this.#load = load;
    this.#options = options;
    setMaxListeners(0, this.#givenUp.signal); // All that is in flight listens.
    const onRetry = () => {
      this.retries += 1;
    };
    this.client = patientClient(new Client(provider), { signal: this.#givenUp.signal, onRetry });
  }

  get isGivenUp() {
    return this.#givenUp.signal.aborted;
  }

  /** Whether those who kill should wait until something has ended. R2 */
  get needsPause() {
    return Date.now() - this.#lastEndAt > PAUSE_AFTER_MS;
  }

  /** Starts instances as long as `mayStart()`, and resolves when all of them have ended, or the run is given up. */
  async run(mayStart) {
    const player = async () => {
      while (mayStart() && !this.isGivenUp) await this.#play(this.#options.first + this.started++);
    };
    const over = new AbortController();
    const watching = this.#watch(over.signal);
    await Promise.all(Array.from({ length: this.#options.inFlight }, player));
    over.abort();
    await watching;
  }

  async #play(n) {
    const { name, instanceId, input } = this.#load.start(n);
    try {
      await this.client.start(name, { instanceId, input });
      const waiting = this.client.waitForOrchestration(instanceId, { signal: this.#givenUp.signal });
      const [ended, found] = await this.#unlessGivenUp(Promise.all([waiting, this.#load.drive?.(n, this.client)]));
      if (this.#load.expected !== undefined) this.#compare(instanceId, ended, this.#load.expected(n));
      if (found) this.problems.push({ kind: "wrong", message: found });
      this.problems.push(...((await this.#options.onEnded?.(n, instanceId, this.client)) ?? []));
      this.ended += 1;
    } catch (error) {
      const kind = this.isGivenUp ? "lost" : "fault";
      this.problems.push({ kind, message: `${instanceId}: ${this.isGivenUp ? "has not ended" : error.stack}` }); // R1
    }
    this.#lastEndAt = Date.now();
  }

  #compare(instanceId, ended, expected) {
    const found = Object.fromEntries(Object.keys(expected).map((key) => [key, ended[key]]));
    if (isDeepStrictEqual(found, expected)) return;
    const came = ended.status === "Completed" ? JSON.stringify(ended.output) : `the failure '${ended.error}'`;
    this.problems.push({ kind: "wrong", message: `${instanceId} came to ${came}, not ${JSON.stringify(expected)}` });
  }

  /** R2 */
  async #watch(signal) {
    while (!signal.aborted) {
      await pause(LOOK_EVERY_MS, undefined, { signal }).catch(() => {});
      if (signal.aborted || Date.now() - this.#lastEndAt < STANDSTILL_MS) continue;
      this.problems.push({ kind: "lost", message: `nothing has ended for ${STANDSTILL_MS} ms` });
      this.#givenUp.abort();
      return;
    }
  }

  /** A race against one promise for all would keep something of every instance (R1). */
  #unlessGivenUp(work) {
    const { signal } = this.#givenUp;
    return new Promise((resolve, reject) => {
      const giveUp = () => reject(signal.reason);
      signal.addEventListener("abort", giveUp, { once: true });
      work.then(resolve, reject).finally(() => signal.removeEventListener("abort", giveUp));
    });
  }
}
