// bench/postgres-drivers.mjs — two PostgreSQL drivers, `pg` and `postgres`, at the work of the PostgreSQL provider.
//
//   B1. Every driver sends the same text with the same parameters, over as many connections, to the same functions.
//   B2. The candidates of one case take turns in every round, each round starting with another one, so that whatever
//       else the machine does meets all of them. What is printed is the median of the rounds.
//   B3. Nothing of the provider is measured: no JSON is written or read here, and the functions touch no table.
//
// What it measures and what not: bench/README.md. What followed from it: docs/decisions/0004-postgres-driver.md.

import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { cpus } from "node:os";
import { parseArgs } from "node:util";
import { openPostgres } from "../scripts/postgres-server.mjs";

const usage = `usage: node bench/postgres-drivers.mjs [--url postgres://user@host:port/database] [--rounds 9] [--slice-ms 400] [--json FILE]

Without a URL: the server of DUROXIDE_PG_URL, or else one of our own. It gets a schema, which is dropped at the end.
A driver that is not installed is left out; to have it: npm i --no-save postgres`;

const { values: flags } = parseArgs({
  options: {
    url: { type: "string" },
    rounds: { type: "string", default: "9" },
    "slice-ms": { type: "string", default: "400" },
    json: { type: "string" },
    help: { type: "boolean", default: false },
  },
});

if (flags.help) {
  console.log(usage);
  process.exit(0);
}

const server = flags.url === undefined ? await openPostgres() : { url: flags.url, close: async () => {} };
if (server.url === undefined) reportAndExit(new Error(server.reason));
const url = server.url;
const rounds = Number(flags.rounds);
const sliceMs = Number(flags["slice-ms"]);
const schema = `bench_drivers_${process.pid}`;

// --- The statements: as the provider's, one call of a function each -------------------------------------------------

const answerColumns = `call_index int, kind "char", at_ms bigint, instance text, body text`;

const createFunctions = `
  CREATE SCHEMA ${schema};
  CREATE FUNCTION ${schema}.tiny(now_ms bigint, tags text[]) RETURNS TABLE (${answerColumns}) LANGUAGE plpgsql AS $$
  BEGIN
    RETURN QUERY SELECT 1, 'a'::"char", now_ms, tags[1], tags[2];
  END $$;
  CREATE FUNCTION ${schema}.batch(now_ms bigint, tags text[], calls text) RETURNS TABLE (${answerColumns}) LANGUAGE plpgsql AS $$
  BEGIN
    RETURN QUERY SELECT c.nr::int, 'b'::"char", now_ms, c.call->>'instance', c.call->>'token'
      FROM jsonb_array_elements(calls::jsonb) WITH ORDINALITY AS c(call, nr);
  END $$;
  CREATE FUNCTION ${schema}.history(now_ms bigint, tags text[], events int) RETURNS TABLE (${answerColumns}) LANGUAGE plpgsql AS $$
  BEGIN
    RETURN QUERY SELECT n, 'h'::"char", now_ms + n, tags[1], repeat('event ', 50)
      FROM generate_series(1, events) AS n;
  END $$`;

const nowMs = 1_760_000_000_000;
const tags = ["gpu", 'with "quotes" and, commas'];
const calls = JSON.stringify(
  Array.from({ length: 100 }, (_, index) => ({
    instance: `order-${index}`,
    token: `lock-${index}`,
    event: JSON.stringify({ name: "charge", input: "x".repeat(420) }),
  })),
);

const statements = {
  tiny: { text: `SELECT * FROM ${schema}.tiny($1, $2)`, values: [nowMs, tags], rows: 1 },
  batch: { text: `SELECT * FROM ${schema}.batch($1, $2, $3)`, values: [nowMs, tags, calls], rows: 100 },
  history: { text: `SELECT * FROM ${schema}.history($1, $2, $3)`, values: [nowMs, tags, 2_000], rows: 2_000 },
};

// --- The drivers ------------------------------------------------------------------------------------------------------

const require = createRequire(import.meta.url);

/** The module, or nothing if it is not installed; any other failure is one. */
async function installed(name) {
  try {
    return await import(name);
  } catch (error) {
    if (error.code !== "ERR_MODULE_NOT_FOUND") throw error;
    console.log(`${name} is not installed and left out; to have it: npm i --no-save ${name}`);
    return undefined;
  }
}

/** `pg`: a pool that hands a connection to one statement at a time. */
function nodePostgres({ default: pg }) {
  return {
    name: `pg ${require("pg/package.json").version}`,
    short: "pg",
    openPool(connections, isNamed) {
      const pool = new pg.Pool({ connectionString: url, max: connections, keepAlive: true });
      pool.on("error", reportAndExit);
      return {
        run: async ({ text, values, name }) =>
          (await pool.query({ text, values, name: isNamed ? name : undefined })).rows,
        close: () => pool.end(),
      };
    },
    async openPipeline(isNamed) {
      const client = new pg.Client({ connectionString: url, pipeline: true, keepAlive: true });
      client.on("error", reportAndExit);
      await client.connect();
      return {
        run: async ({ text, values, name }) =>
          (await client.query({ text, values, name: isNamed ? name : undefined })).rows,
        close: () => client.end(),
      };
    },
    async listen(channel, onMessage) {
      const client = new pg.Client({ connectionString: url, keepAlive: true });
      client.on("error", reportAndExit);
      client.on("notification", ({ payload }) => onMessage(payload));
      await client.connect();
      await client.query(`LISTEN ${channel}`);
      return { close: () => client.end() };
    },
  };
}

/** `postgres`: a pool that, once every connection is busy, writes further prepared statements behind the running ones. */
function postgresJs({ default: postgres }) {
  const openPool = (connections, isNamed) => {
    const sql = postgres(url, { max: connections, prepare: isNamed });
    return {
      run: ({ text, values }) => sql.unsafe(text, values, { prepare: isNamed }),
      close: () => sql.end({ timeout: 5 }),
    };
  };
  return {
    name: `postgres ${packageVersion("postgres")}`,
    short: "postgres",
    openPool,
    openPipeline: async (isNamed) => openPool(1, isNamed),
    async listen(channel, onMessage) {
      const sql = postgres(url, { max: 1 });
      await sql.listen(channel, onMessage);
      return { close: () => sql.end({ timeout: 5 }) };
    },
  };
}

/** `postgres` does not export its package.json. */
function packageVersion(name) {
  const entry = require.resolve(name);
  const root = entry.slice(0, entry.lastIndexOf(`node_modules/${name}/`) + `node_modules/${name}/`.length);
  return require(`${root}package.json`).version;
}

function reportAndExit(error) {
  console.error(error);
  process.exit(1);
}

// --- Measuring --------------------------------------------------------------------------------------------------------

/** Keeps `inFlight` statements under way for one slice of time; what it cost. */
async function measureSlice(connection, statement, inFlight) {
  let done = 0;
  const cpuBefore = process.cpuUsage();
  const start = performance.now();
  const lane = async () => {
    while (performance.now() - start < sliceMs) {
      const rows = await connection.run(statement);
      if (rows.length !== statement.rows) throw new Error(`${rows.length} rows, not ${statement.rows}`);
      done++;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, lane));
  const elapsedMs = performance.now() - start;
  const { user, system } = process.cpuUsage(cpuBefore);
  return {
    perSecond: (done * 1_000) / elapsedMs,
    microsEach: (elapsedMs * 1_000 * inFlight) / done,
    cpuMsPerThousand: (user + system) / done,
  };
}

/** B2. `candidates` are `{ label, open }`; the answer is one row for each. */
async function measureCase(name, statement, inFlight, candidates) {
  const opened = [];
  for (const { label, open } of candidates) opened.push({ label, connection: await open(), slices: [] });
  for (const { connection } of opened) await warmUp(connection, statement, inFlight);
  for (let round = 0; round < rounds; round++) {
    for (let turn = 0; turn < opened.length; turn++) {
      const { connection, slices } = opened[(round + turn) % opened.length];
      slices.push(await measureSlice(connection, statement, inFlight));
    }
  }
  for (const { connection } of opened) await connection.close();
  return opened.map(({ label, slices }) => ({
    case: name,
    inFlight,
    candidate: label,
    perSecond: median(slices.map((slice) => slice.perSecond)),
    microsEach: median(slices.map((slice) => slice.microsEach)),
    cpuMsPerThousand: median(slices.map((slice) => slice.cpuMsPerThousand)),
    cpuSpread: spread(slices.map((slice) => slice.cpuMsPerThousand)),
  }));
}

/** Long enough that V8 has compiled what is measured. */
async function warmUp(connection, statement, inFlight) {
  for (let slice = 0; slice < 3; slice++) await measureSlice(connection, statement, inFlight);
}

const named = (statement, name) => ({ ...statement, name });
const poolCandidates = (drivers, connections) =>
  drivers.flatMap((driver) => [
    { label: `${driver.short}, unnamed`, open: () => driver.openPool(connections, false) },
    { label: `${driver.short}, named`, open: () => driver.openPool(connections, true) },
  ]);

async function measureStatements(drivers) {
  const results = [];
  for (const [name, inFlights] of Object.entries({ tiny: [1, 4, 8], batch: [1, 4], history: [1, 4] })) {
    for (const inFlight of inFlights) {
      const statement = named(statements[name], name);
      results.push(...(await measureCase(name, statement, inFlight, poolCandidates(drivers, inFlight))));
    }
  }
  return results;
}

/** The same load over a connection each, over half as many, and over a single one that takes them one behind the other. */
async function measurePipelining(drivers) {
  const results = [];
  for (const [name, inFlight] of [
    ["tiny", 4],
    ["tiny", 8],
    ["batch", 4],
  ]) {
    const candidates = drivers.flatMap((driver) => [
      { label: `${driver.short}, ${inFlight} connections`, open: () => driver.openPool(inFlight, true) },
      { label: `${driver.short}, ${inFlight / 2} connections`, open: () => driver.openPool(inFlight / 2, true) },
      { label: `${driver.short}, 1 pipeline`, open: () => driver.openPipeline(true) },
    ]);
    results.push(...(await measureCase(`${name}, named`, named(statements[name], name), inFlight, candidates)));
  }
  return results;
}

/** From the call that sends NOTIFY on one connection to the listener's callback on another, one at a time. */
async function measureNotifications(drivers) {
  const opened = [];
  for (const driver of drivers) {
    let arrived = () => {};
    const channel = `${schema}_${driver.short}`;
    const listener = await driver.listen(channel, () => arrived());
    const pool = driver.openPool(1, false);
    const once = async () => {
      const start = performance.now();
      const arrival = new Promise((resolve) => {
        arrived = () => resolve(performance.now() - start);
      });
      const [latency] = await Promise.all([arrival, pool.run({ text: `NOTIFY ${channel}, 'wake'`, values: [] })]);
      return latency * 1_000;
    };
    opened.push({ driver, once, latencies: [], close: () => Promise.all([listener.close(), pool.close()]) });
  }
  for (let round = -1; round < rounds; round++) {
    for (const { once, latencies } of opened) {
      for (let nr = 0; nr < 200; nr++) {
        const latency = await once();
        if (round >= 0) latencies.push(latency);
      }
    }
  }
  for (const { close } of opened) await close();
  return opened.map(({ driver, latencies }) => ({
    candidate: driver.short,
    p50Micros: quantile(latencies, 0.5),
    p99Micros: quantile(latencies, 0.99),
    samples: latencies.length,
  }));
}

function quantile(numbers, share) {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

function median(numbers) {
  return quantile(numbers, 0.5);
}

/** How far the middle half of the rounds lie apart, as a share of the median: how much to trust the digits. */
function spread(numbers) {
  return (quantile(numbers, 0.75) - quantile(numbers, 0.25)) / median(numbers);
}

// --- Printing ---------------------------------------------------------------------------------------------------------

function printTable(title, rows) {
  const heads = Object.keys(rows[0]);
  const cells = [heads, ...rows.map((row) => heads.map((head) => String(row[head])))];
  const widths = heads.map((_, column) => Math.max(...cells.map((line) => line[column].length)));
  console.log(`\n${title}`);
  for (const line of cells)
    console.log(`  ${line.map((cell, column) => cell.padEnd(widths[column])).join("  ")}`.trimEnd());
}

const printable = (result) => ({
  case: result.case,
  "in flight": result.inFlight,
  candidate: result.candidate,
  "per s": Math.round(result.perSecond),
  "µs each": Math.round(result.microsEach),
  "CPU ms per 1,000": result.cpuMsPerThousand.toFixed(1),
  "± CPU": `${Math.round(result.cpuSpread * 50)} %`,
});

const modules = [
  [nodePostgres, await installed("pg")],
  [postgresJs, await installed("postgres")],
];
const drivers = modules.filter(([, module]) => module !== undefined).map(([driver, module]) => driver(module));
if (drivers.length === 0) reportAndExit(new Error("no driver is installed"));

const admin = drivers[0].openPool(1, false);
const [{ server_version: serverVersion }] = await admin.run({ text: "SHOW server_version", values: [] });
await admin.run({ text: createFunctions, values: [] });

const environment = {
  drivers: drivers.map((driver) => driver.name),
  node: process.version,
  server: serverVersion,
  machine: `${cpus().length} × ${cpus()[0]?.model.trim()}, ${process.platform}`,
  settings: { rounds, sliceMs, batchBytes: Buffer.byteLength(calls) },
};
console.log(environment);

try {
  const statementResults = await measureStatements(drivers);
  printTable("Statements, one connection for each in flight", statementResults.map(printable));
  const pipeliningResults = await measurePipelining(drivers);
  printTable("Pipelining", pipeliningResults.map(printable));
  const notifications = await measureNotifications(drivers);
  printTable(
    "LISTEN/NOTIFY",
    notifications.map((row) => ({
      ...row,
      p50Micros: Math.round(row.p50Micros),
      p99Micros: Math.round(row.p99Micros),
    })),
  );
  if (flags.json !== undefined) {
    const report = { environment, statements: statementResults, pipelining: pipeliningResults, notifications };
    writeFileSync(flags.json, `${JSON.stringify(report, undefined, 2)}\n`);
  }
} finally {
  await admin.run({ text: `DROP SCHEMA ${schema} CASCADE`, values: [] });
  await admin.close();
  await server.close();
}
