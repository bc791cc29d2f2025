// fleet/server-log.mjs — what PostgreSQL complained of, from a log of which only the last lines are kept.
//
//   L1. It is looked at often: lines carry their time and process, so that none counts twice.

const LOOK_EVERY_MS = 50;
const COMPLAINT = /\b(ERROR|PANIC): {2}/;

export class ServerLog {
  #server;
  #complaints = new Set();
  #looking;

  constructor(server) {
    this.#server = server;
    this.#looking = setInterval(() => this.look(), LOOK_EVERY_MS);
  }

  look() {
    for (const line of this.#server.tail().split("\n")) if (COMPLAINT.test(line)) this.#complaints.add(line); // L1
  }

  get complaints() {
    this.look();
    return [...this.#complaints];
  }

  get deadlocks() {
    return this.complaints.filter((line) => line.includes("deadlock detected")).length;
  }

  close() {
    clearInterval(this.#looking);
  }
}
