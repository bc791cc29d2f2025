// PostgreSQL fleet — many workers, one database: whoever has a hand free takes the next piece of work.
//
//   npx tsx node_modules/duroxide-ts/examples/postgres-fleet.ts
//   npm run example -- postgres-fleet   (in a checkout of the repository)
//
// It needs the driver (npm install pg) and a database: DATABASE_URL=postgres://user:password@localhost/database. As it is, it
// starts two workers and gives them an album to do. With `worker` behind it, it is a worker and nothing else: start as many as
// you like, on any machine that reaches the database; each stops in good order at Ctrl+C. Whoever starts work needs no worker
// in its own process. A worker that dies is not missed for long: when its locks lapse, the others do what it had begun.

import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { activity, Client, orchestration, Runtime } from "duroxide-ts";
import { PostgresProvider } from "duroxide-ts/postgres";

/** Answers who has done it. */
export const resize = activity("Resize", async (_ctx, _photo: string): Promise<string> => {
  await pause(50); // stands in for what keeps a worker busy
  return `worker ${process.pid}`;
});

export const resizeAlbum = orchestration("ResizeAlbum", async (ctx, photos: readonly string[]) => {
  const workers = await ctx.all(photos.map((photo) => ctx.scheduleActivity(resize, photo)));
  return { photos: photos.length, workers: [...new Set(workers)] };
});

/** What a worker runs. Small numbers, only to show that the work is shared out. */
export const work = { orchestrations: [resizeAlbum], activities: [resize], workerConcurrency: 2 };

function openStore(): Promise<PostgresProvider> {
  const url = process.env.DATABASE_URL;
  if (!url) throw new Error("Say where the database is: DATABASE_URL=postgres://user:password@localhost/database");
  // The first to come makes the schema. Beside other programs a few connections are enough: calls share them.
  return PostgresProvider.open(url, { schema: "duroxide_example", maxConnections: 4, onWarning: console.warn });
}

async function runWorker(): Promise<void> {
  const stopped = Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
  await using provider = await openStore();
  await using _runtime = await Runtime.start({ provider, ...work });
  process.send?.("ready"); // to whoever has started us, if that is a program
  await stopped;
}

async function runStarter(): Promise<void> {
  await using provider = await openStore();
  const workers = [1, 2].map(() => fork(import.meta.filename, ["worker"])); // in real life: services on many machines
  try {
    const signal = AbortSignal.timeout(30_000);
    await Promise.all(workers.map((worker) => once(worker, "message", { signal }))); // "ready"
    const photos = Array.from({ length: 12 }, (_, index) => `photo-${index + 1}.jpg`);
    const handle = await new Client(provider).start(resizeAlbum, { input: photos });
    const album = await handle.result();
    console.log(`${album.photos} photos, resized by ${album.workers.sort().join(" and ")}`);
  } finally {
    for (const worker of workers) worker.kill("SIGTERM");
  }
}

export async function main(): Promise<void> {
  await (process.argv.at(-1) === "worker" ? runWorker() : runStarter());
}

if (process.argv[1] === import.meta.filename) await main();
