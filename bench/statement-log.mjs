// bench/statement-log.mjs — counts what a PostgreSQL server is asked, by its own log.
//
//   L1. Every statement that a client sends is one; those inside of functions are none.
//   L2. The server's last 200 lines are all there is to read, so they are read often. Lines that were missed are counted:
//       each line has a number in its session.

/** With which a server must be started to be read. */
export const LOG_SETTINGS = {
  log_statement: "all",
  log_line_prefix: "%p %l %a|",
  log_parameter_max_length: "0", // One line for each statement, without its values.
};

const LINE = /^(\d+) (\d+) (.*?)\|LOG: {2}(?:statement|execute [^:]*): (.*)/;
const NUMBERED = /^(\d+) (\d+) .*?\|/;
const READ_EVERY_MS = 100;

export class StatementLog {
  #server;
  #from;
  #timer;
  #lastLine = new Map();
  #counts = new Map();
  #missed = 0;

  /** Counts what clients send that call themselves `from`. */
  constructor(server, from) {
    this.#server = server;
    this.#from = from;
    this.#read();
    this.#timer = setInterval(() => this.#read(), READ_EVERY_MS);
  }

  /** Counts from zero. */
  reset() {
    this.#read();
    this.#counts = new Map();
    this.#missed = 0;
  }

  /** How many of each kind, the most frequent first. */
  counts() {
    this.#read();
    const counts = [...this.#counts].toSorted(([, one], [, other]) => other - one);
    return { counts, missed: this.#missed };
  }

  close() {
    clearInterval(this.#timer);
  }

  #read() {
    for (const line of this.#server.tail().split("\n")) {
      const [, pid, number] = NUMBERED.exec(line) ?? [];
      if (pid === undefined) continue;
      const last = this.#lastLine.get(pid) ?? 0;
      if (Number(number) <= last) continue;
      this.#missed += Number(number) - last - 1; // L2
      this.#lastLine.set(pid, Number(number));
      this.#count(line);
    }
  }

  #count(line) {
    const [, , , from, text] = LINE.exec(line) ?? [];
    if (from !== this.#from) return;
    const kind = kindOf(text);
    this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + 1);
  }
}

/** The function of the schema that is called, or else the statement itself. */
function kindOf(text) {
  return /"\.(\w+)\(/.exec(text)?.[1] ?? /pg_notify/.exec(text)?.[0] ?? text.slice(0, 40);
}
