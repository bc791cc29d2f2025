// fleet/workers.mjs — so many worker processes at any time, whoever is killed; and some booted ones in the wings, because a
// process takes longer to boot than a worker lives.
//
//   P1. Nobody ends but by our doing. Whoever does, or says anything, is a problem.
//   P2. An aim that is not reached in time is a kill like any other.

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
  #load;
  #startOf;
  #execArgv;
  #atWork = [];
  #wings = [];
  #expected = new Set();

  /**
   * `load`: the address of the module that says what they work on. `startOf(place)`: what the worker at that place is told.
   * `execArgv`: for Node.
   */
  static async start(count, { load, startOf, execArgv = [] }) {
    const workers = new Workers(load, startOf, execArgv);
    for (let n = 0; n < IN_THE_WINGS; n += 1) workers.#wings.push(workers.#boot());
    for (let place = 0; place < count; place += 1) await workers.#enter(place);
    return workers;
  }

  constructor(load, startOf, execArgv) {
    this.#load = load;
    this.#startOf = startOf;
    this.#execArgv = execArgv;
  }

  get count() {
    return this.#atWork.length;
  }

  async kill(place) {
    await this.#end(this.#atWork[place]);
    this.kills += 1;
    await this.#enter(place);
  }

  /** Lets it die at a moment of its own work (aim.mjs), or after `patienceMs` at any (P2). Answers whether it was the former. */
  async killAt(place, aim, patienceMs) {
    const worker = this.#atWork[place];
    const over = new AbortController();
    const patience = pause(patienceMs, false, { signal: over.signal }).catch(() => false);
    const isReached = await Promise.race([this.#dies(worker, { kind: "aim", aim }), patience]);
    over.abort();
    await this.kill(place);
    return isReached;
  }

  /** How the process at that place is: what worker.mjs answers. Null: it has ended. */
  async health(place) {
    const worker = this.#atWork[place];
    if (hasEnded(worker)) return null;
    const over = new AbortController();
    const answered = once(worker, "message", over).then(([{ health }]) => health);
    const ended = once(worker, "exit", over).then(() => null);
    worker.send({ kind: "health" });
    try {
      return await Promise.race([answered, ended]);
    } finally {
      for (const waiting of [answered, ended]) waiting.catch(() => {}); // One of them is given up.
      over.abort();
    }
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
    worker.send({ kind: "start", ...this.#startOf(place) });
  }

  async #clearWings() {
    for (const worker of await Promise.all(this.#wings.splice(0))) await this.#end(worker);
  }

  async #stopOne(worker) {
    if (hasEnded(worker)) return "gone";
    this.#expected.add(worker);
    let outcome = "no answer";
    worker.once("message", (answer) => {
      outcome = answer.outcome;
    });
    const ended = once(worker, "exit");
    worker.send({ kind: "stop" });
    const [code] = await Promise.race([ended, pause(LONGEST_STOP_MS, ["no end"], { ref: false })]);
    return `${outcome}, code ${code}`;
  }

  /** Tells it something of which it is to die. */
  async #dies(worker, word) {
    if (hasEnded(worker)) return false;
    this.#expected.add(worker);
    const ended = once(worker, "exit");
    worker.send(word);
    const [code, signal] = await ended;
    if (signal !== "SIGKILL")
      throw new Error(`A worker that was to be killed has ended by itself, with ${code ?? signal}.`);
    return true;
  }

  async #end(worker) {
    if (hasEnded(worker)) return;
    this.#expected.add(worker);
    const ended = once(worker, "exit");
    worker.kill("SIGKILL");
    await ended;
  }

  /** Resolves when the process is ready for the word. */
  async #boot() {
    const worker = fork(PROGRAM, [this.#load], {
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      execArgv: this.#execArgv,
    });
    for (const stream of [worker.stdout, worker.stderr]) {
      stream.on("data", (text) => this.problems.push(`a worker said: ${text}`));
    }
    worker.once("exit", (code, signal) => {
      if (!this.#expected.has(worker)) this.problems.push(`a worker ended by itself: ${signal ?? `code ${code}`}`);
      this.#expected.delete(worker);
    });
    worker.on("error", (error) => {
      if (!hasEnded(worker) && !this.#expected.has(worker))
        this.problems.push(`a worker cannot be reached: ${error.message}`);
    });
    await Promise.race([once(worker, "message"), once(worker, "exit")]);
    return worker;
  }
}

function hasEnded(worker) {
  return worker.exitCode !== null || worker.signalCode !== null;
}
