// bench/floor/postgres-floor.mjs — writes the rows of W1 into a schema in PostgreSQL, over a few connections.

import pg from "pg";
import { makeChains, STAGES } from "./chain.mjs";
import { STATEMENTS } from "./postgres-rows.mjs";

/** Rows are found by index, whatever the planner believes of tables that it has not looked at yet; it plans once. */
const SETTINGS = [
  "enable_seqscan=off",
  "enable_hashjoin=off",
  "enable_mergejoin=off",
  "enable_bitmapscan=off",
  "jit=off",
  "plan_cache_mode=force_generic_plan",
];

/** How many at once are tried. On a loopback, more only share the cores that there are. */
const CONNECTIONS = [1, 2, 4];

/** What is written between two looks at the clock, at least: the connections do not all end at the same time. */
const LEAST_CHAINS = 1_000;
const LEAST_GROUPS_PER_CONNECTION = 2;

/** The store has its tables, and nothing in them. */
export async function openPostgresFloor({ url, schema }) {
  const options = SETTINGS.map((setting) => `-c ${setting}`).join(" ");
  const clients = Array.from(
    { length: Math.max(...CONNECTIONS) },
    () => new pg.Client({ connectionString: url, options }),
  );
  await Promise.all(clients.map((client) => client.connect()));
  return new PostgresFloor(clients, statementsIn(schema));
}

function statementsIn(schema) {
  return STAGES.map((stage, index) => {
    const { sql, columns } = STATEMENTS[stage.kind](stage);
    return { name: `stage-${index}`, text: sql.replaceAll("{schema}", pg.escapeIdentifier(schema)), columns };
  });
}

class PostgresFloor {
  /** How many may be used at once. */
  connections = CONNECTIONS;
  manners = ["twelve"];
  #clients;
  #statements;

  constructor(clients, statements) {
    this.#clients = clients;
    this.#statements = statements;
  }

  /** Writes new chains, `size` of them a commit, over that many connections. Answers how many, and in what time. */
  async write(size, connections) {
    const perConnection = Math.max(LEAST_GROUPS_PER_CONNECTION, Math.ceil(LEAST_CHAINS / size / connections));
    const groups = Array.from({ length: perConnection * connections }, () => this.#prepare(size));
    const startedAt = performance.now();
    const left = groups.values();
    await Promise.all(this.#clients.slice(0, connections).map((client) => commitAll(client, left)));
    return { chains: groups.length * size, ms: performance.now() - startedAt };
  }

  async close() {
    await Promise.all(this.#clients.map((client) => client.end()));
  }

  /** The transactions of new chains, one statement for each stage: the values made, as the server reads them. */
  #prepare(size) {
    return makeChains(size).map((steps, stage) => {
      const { name, text, columns } = this.#statements[stage];
      return { name, text, values: columns.map((column) => arrayLiteral(steps.map(column))) };
    });
  }
}

/** One group after the other, of those that no other connection has taken. */
async function commitAll(client, groups) {
  for (const transactions of groups) {
    for (const statement of transactions) await client.query(statement);
  }
}

function arrayLiteral(values) {
  return `{${values.map((value) => (typeof value === "number" ? value : quoted(value))).join(",")}}`;
}

/** In a text without control characters, JSON escapes just what the server wants to be escaped. */
function quoted(text) {
  return JSON.stringify(text);
}
