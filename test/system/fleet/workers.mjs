// fleet/workers.mjs — so many worker processes at any time, whoever is killed; and some booted ones in the wings, because a
// process takes longer to boot than a worker lives.
//
//   P1. Nobody ends but by our doing. Whoever does, or says anything, is a problem.

import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const PROGRAM = fileURLToPath(new URL("worker.mjs", import.meta.url));
const IN_THE_WINGS = 3;
/** A shutdown takes the rest of an activity, and a goodbye to the server. */
const LONGEST_STOP_MS = 15_000;

export class Workers {
  kills = 0;
  problems = [];
  #startOf;
  #atWork = [];
  #wings = [];
  #expected = new Set();

  /** `startOf(place)`: what the worker at that place is told. */
  static async start(count, startOf) {
    const workers = new Workers(startOf);
    for (let n = 0; n < IN_THE_WINGS; n += 1) workers.#wings.push(workers.#boot());
    for (let place = 0; place < count; place += 1) await workers.#enter(place);
    return workers;
  }

  constructor(startOf) {
    this.#startOf = startOf;
  }

  get count() {
    return this.#atWork.length;
  }

  async kill(place) {
    await this.#end(this.#atWork[place]);
    this.kills += 1;
    await this.#enter(place);
  }

  /** Lets those at work finish, and answers how each came to its end. */
  async stop() {
    await this.#clearWings();
    return Promise.all(this.#atWork.map((worker) => this.#stopOne(worker)));
  }

  /** Whatever is left goes. */
  async close() {
    await this.#clearWings();
    await Promise.all(this.#atWork.map((worker) => this.#end(worker)));
  }

  async #enter(place) {
    this.#wings.push(this.#boot());
    const worker = await this.#wings.shift();
    this.#atWork[place] = worker;
    worker.send(this.#startOf(place));
  }

  async #clearWings() {
    for (const worker of await Promise.all(this.#wings.splice(0))) await this.#end(worker);
  }

  async #stopOne(worker) {
    this.#expected.add(worker);
    if (hasEnded(worker)) return "gone";
    let outcome = "no answer";
    worker.once("message", (word) => {
      outcome = word;
    });
    const ended = once(worker, "exit");
    worker.send("stop");
    const [code] = await Promise.race([ended, pause(LONGEST_STOP_MS, ["no end"], { ref: false })]);
    return `${outcome}, code ${code}`;
  }

  async #end(worker) {
    this.#expected.add(worker);
    if (hasEnded(worker)) return;
    const ended = once(worker, "exit");
    worker.kill("SIGKILL");
    await ended;
  }

  /** Resolves when the process is ready for the word. */
  async #boot() {
    const worker = fork(PROGRAM, [], { stdio: ["ignore", "pipe", "pipe", "ipc"], execArgv: [] });
    for (const stream of [worker.stdout, worker.stderr]) {
      stream.on("data", (text) => this.problems.push(`a worker said: ${text}`));
    }
    worker.once("exit", (code, signal) => {
      if (!this.#expected.has(worker)) this.problems.push(`a worker ended by itself: ${signal ?? `code ${code}`}`);
    });
    worker.on("error", (error) => {
      if (!this.#expected.has(worker)) this.problems.push(`a worker cannot be reached: ${error.message}`);
    });
    await Promise.race([once(worker, "message"), once(worker, "exit")]);
    return worker;
  }
}

function hasEnded(worker) {
  return worker.exitCode !== null || worker.signalCode !== null;
}
