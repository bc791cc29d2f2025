// fleet/server-log.mjs — what PostgreSQL complained of, from a log of which only the last lines are kept.
//
//   L1. It is looked at often: lines carry their time and process, so that none counts twice.
//   L2. A claim that was in others' way for too long and was undone, to look again, is as it should be (S5 of the schema).
//   L3. What the server adds to a complaint belongs to it: lines of the same process, and those that are indented.

const LOOK_EVERY_MS = 50;
const COMPLAINT = / (ERROR|PANIC): {2}/;
const AS_IT_SHOULD_BE = "canceling statement due to lock timeout"; // L2
const ADDITION = / (DETAIL|HINT|CONTEXT|STATEMENT): {2}/;

export class ServerLog {
  #server;
  /** By its first line. */
  #complaints = new Map();
  #looking;

  constructor(server) {
    this.#server = server;
    this.#looking = setInterval(() => this.look(), LOOK_EVERY_MS);
  }

  look() {
    const lines = this.#server.tail().split("\n");
    for (const [index, line] of lines.entries()) {
      if (COMPLAINT.test(line) && !line.includes(AS_IT_SHOULD_BE))
        this.#complaints.set(line, [line, ...additions(lines.slice(index + 1))]); // L1
    }
  }

  get complaints() {
    this.look();
    return [...this.#complaints.values()].map((lines) => lines.join("\n"));
  }

  get deadlocks() {
    return this.complaints.filter((line) => line.includes("deadlock detected")).length;
  }

  close() {
    clearInterval(this.#looking);
  }
}

/** L2 */
function additions(lines) {
  const end = lines.findIndex((line) => !ADDITION.test(line) && !line.startsWith("\t"));
  return end === -1 ? lines : lines.slice(0, end);
}
