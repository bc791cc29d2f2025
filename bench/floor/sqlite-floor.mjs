// bench/floor/sqlite-floor.mjs — writes the rows of W1 into a SQLite file, as the provider's connection would.

import { Database } from "../../dist/providers/sqlite/database.js";
import { loadDriver } from "../../dist/providers/sqlite/driver.js";
import { resolveOptions } from "../../dist/providers/sqlite/options.js";
import { PROVIDER_OPTIONS } from "../lib/settings.mjs";
import { databaseFile } from "../lib/store.mjs";
import { makeChains, STAGES } from "./chain.mjs";
import { WRITES } from "./sqlite-rows.mjs";

/** What the provider may have set on its connection, and the file does not remember. */
const PRAGMAS = [
  "synchronous",
  "wal_autocheckpoint",
  "journal_size_limit",
  "cache_size",
  "temp_store",
  "mmap_size",
  "locking_mode",
];

/** The store has its tables, and nothing in them. */
export async function openSqliteFloor(store) {
  const file = databaseFile(store);
  const pragmas = await providerPragmas(file, { durability: store.durability, ...PROVIDER_OPTIONS.sqlite });
  const connection = (await loadDriver()).open(file);
  connection.exec(pragmas.join(";"));
  return new SqliteFloor(connection);
}

/** Read from a connection of the provider's, so that they are the same whatever it chooses. */
async function providerPragmas(file, options) {
  const database = await Database.open(file, resolveOptions(file, options));
  try {
    return PRAGMAS.map((name) => `PRAGMA ${name} = ${Object.values(database.get(`PRAGMA ${name}`))[0]}`);
  } finally {
    database.close();
  }
}

class SqliteFloor {
  /** How many may be used at once: there is one writer at a time. */
  connections = [1];
  manners = ["twelve", "six"];
  #connection;
  #statements = new Map();
  #begin;
  #commit;

  constructor(connection) {
    this.#connection = connection;
    this.#begin = connection.prepare("BEGIN IMMEDIATE");
    this.#commit = connection.prepare("COMMIT");
  }

  /** Writes a group of new chains, `size` of them a commit. Answers how many chains that were, and in what time. */
  async write(size, _connections, manner) {
    const transactions = manner === "six" ? this.#prepareSix(size) : this.prepare(size);
    const startedAt = performance.now();
    for (const transaction of transactions) this.commit(transaction);
    return { chains: size, ms: performance.now() - startedAt };
  }

  /** The transactions of new chains, one for each stage: the statements prepared, the values made. */
  prepare(size) {
    return makeChains(size).map((steps, stage) =>
      WRITES[STAGES[stage].kind](STAGES[stage]).map((write) => this.#call(write, steps)),
    );
  }

  /** As `prepare`, with two stages in each transaction: what the first sends to the second is never written. */
  #prepareSix(size) {
    const calls = makeChains(size).map((steps, stage) =>
      WRITES[STAGES[stage].kind](STAGES[stage])
        .filter(({ isPassing }) => !isPassing)
        .map((write) => this.#call(write, steps)),
    );
    return calls.flatMap((first, stage) => (stage % 2 === 0 ? [[...first, ...calls[stage + 1]]] : []));
  }

  /** One transaction that `prepare` made. */
  commit(transaction) {
    this.#begin.run();
    for (const { statement, values } of transaction) statement.run(...values);
    this.#commit.run();
  }

  async close() {
    this.#connection.close();
  }

  /** One statement, whatever the number of chains: many small ones take longer. */
  #call({ sql, row, values }, steps) {
    const statement = this.#statement(sql.replace("*", Array(steps.length).fill(row).join(", ")));
    return { statement, values: steps.flatMap(values) };
  }

  #statement(sql) {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#connection.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}
