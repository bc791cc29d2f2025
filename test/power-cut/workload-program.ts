// The program that is recorded: a store with a runtime and a client, that writes down every acknowledgement.
//
//   node scripts/run-typescript.mjs test/power-cut/workload-program.ts FILE MARKS DURABILITY INSTANCES WRITER first|second
//
// It runs twice. The first process ends as a deployment does, in the midst of its work; the second takes over, comes to the
// end, and is killed. An application with a table of its own lives in the same file: what it writes fills the log, so that
// the log is emptied into the database and begun anew while orchestrations are on their way.

import { openSync } from "node:fs";
import { ALONE_AFTER_MS } from "../../src/providers/sqlite/database.js";
import { type SqliteDurability, SqliteProvider, type WriterChoice } from "../../src/providers/sqlite/index.js";
import { TestWorld } from "../../src/testing/test-world.js";
import { openConnection } from "../providers/sqlite-connection.js";
import { AcknowledgingProvider } from "./evidence.js";
import { DEFINITIONS, type Order, orderAt, place } from "./workload.js";

/** The first process has a part of the load, and leaves in the midst of it. */
const FIRST_PART = 1 / 6;
const FIRST_MS = 20;
/** About 150 pages. */
const APPLICATION_BYTES = 600_000;
/** With a writer's thread: so many orders share one silence of the application, which fills the log so often before. */
const GROUP = 8;
const FILLS = 5;
/** Not enough for all of them: the application speaks again while some are on their way. */
const GROUP_MS = 60;
/** The second begins later than the first ends. */
const BEGIN_MS = { first: 1_700_000_000_000, second: 1_700_000_010_000 };

const [file, marks, durability, instances, writerThread, life] = process.argv.slice(3) as [
  string,
  string,
  SqliteDurability,
  string,
  WriterChoice,
  keyof typeof BEGIN_MS,
];
const orders = Array.from({ length: Number(instances) }, (_, n) => orderAt(n));
const first = Math.ceil(orders.length * FIRST_PART);
const descriptor = openSync(marks, "a");

const world = await TestWorld.open({
  startMs: BEGIN_MS[life],
  patienceMs: 0,
  provider: async ({ clock, newId }) => {
    const options = { durability, writerThread, clock, newId: () => `${life} ${newId()}`, crossProcessPollMs: 0 };
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
  if (writerThread !== "never") await world.advance(0); // What its thread has begun, it ends: half a call cannot be told.
  process.kill(process.pid, "SIGKILL");
}

async function placeAll(placed: readonly Order[]): Promise<void> {
  if (writerThread !== "never") return placeForThread(placed);
  for (const order of placed) {
    await place(world.client, order, new Set());
    fillLog();
    await world.advance(1);
  }
}

/**
 * The thread writes only while nobody else has written for a while. The application's writes the store notices when it commits next: that is
 * the single order. All of it happens while the thread rests, as time does not pass while it works: so nobody writes at once.
 */
async function placeForThread(placed: readonly Order[]): Promise<void> {
  for (let from = 0; from < placed.length; from += GROUP) {
    const [single, ...others] = placed.slice(from, from + GROUP);
    if (from > 0) await world.advance(GROUP_MS);
    for (let each = 0; each < FILLS; each += 1) fillLog();
    await place(world.client, single!, new Set());
    await world.advance(ALONE_AFTER_MS);
    await Promise.all(others.map((order) => place(world.client, order, new Set())));
  }
}

function fillLog(): void {
  application.exec(`INSERT OR REPLACE INTO application VALUES (1, randomblob(${APPLICATION_BYTES}))`);
}
