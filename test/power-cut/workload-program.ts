// The program that is recorded: a store with a runtime and a client, that writes down every acknowledgement.
//
//   node scripts/run-typescript.mjs test/power-cut/workload-program.ts FILE MARKS DURABILITY INSTANCES first|second
//
// It runs twice. The first process ends as a deployment does, in the midst of its work; the second takes over, comes to the
// end, and is killed. An application with a table of its own lives in the same file: what it writes fills the log, so that
// the log is emptied into the database and begun anew while orchestrations are on their way.

import { openSync } from "node:fs";
import { type SqliteDurability, SqliteProvider } from "../../src/providers/sqlite/index.js";
import { TestWorld } from "../../src/testing/test-world.js";
import { openConnection } from "../providers/sqlite-connection.js";
import { AcknowledgingProvider } from "./evidence.js";
import { DEFINITIONS, type Order, orderAt, place } from "./workload.js";

/** The first process has a part of the load, and leaves in the midst of it. */
const FIRST_PART = 1 / 6;
const FIRST_MS = 20;
/** About 150 pages. */
const APPLICATION_BYTES = 600_000;
/** The second begins later than the first ends. */
const BEGIN_MS = { first: 1_700_000_000_000, second: 1_700_000_001_000 };

const [file, marks, durability, instances, life] = process.argv.slice(3) as [
  string,
  string,
  SqliteDurability,
  string,
  keyof typeof BEGIN_MS,
];
const orders = Array.from({ length: Number(instances) }, (_, n) => orderAt(n));
const first = Math.ceil(orders.length * FIRST_PART);
const descriptor = openSync(marks, "a");

const world = await TestWorld.open({
  startMs: BEGIN_MS[life],
  patienceMs: 0,
  provider: async ({ clock, newId }) => {
    const options = { durability, clock, newId: () => `${life} ${newId()}`, crossProcessPollMs: 0 };
    return new AcknowledgingProvider(await SqliteProvider.open(file, options), clock, descriptor);
  },
});
await world.start(DEFINITIONS);
const application = await openConnection(file);
application.exec(`
  PRAGMA synchronous = ${durability === "full" ? "FULL" : "NORMAL"};
  PRAGMA wal_autocheckpoint = 0; -- Checkpoints are the store's.
  CREATE TABLE IF NOT EXISTS application (id INTEGER PRIMARY KEY, data BLOB);
`);
if (life === "first") await beginAndLeave();
else await comeToTheEnd();

async function beginAndLeave(): Promise<void> {
  await placeAll(orders.slice(0, first));
  await world.advance(FIRST_MS);
  application.close();
  await world[Symbol.asyncDispose]();
}

async function comeToTheEnd(): Promise<void> {
  await placeAll(orders.slice(first));
  const handles = orders.map(({ instanceId }) => world.client.getHandle(instanceId));
  await world.settle(Promise.all(handles.map((handle) => handle.result())));
  process.kill(process.pid, "SIGKILL");
}

async function placeAll(placed: readonly Order[]): Promise<void> {
  for (const order of placed) {
    await place(world.client, order, new Set());
    application.exec(`INSERT OR REPLACE INTO application VALUES (1, randomblob(${APPLICATION_BYTES}))`);
    await world.advance(1);
  }
}
