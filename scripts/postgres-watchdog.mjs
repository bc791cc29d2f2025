// scripts/postgres-watchdog.mjs — ends a server whose starter has ended, however that came about, and removes its files.
//
// A process of its own: `node postgres-watchdog.mjs DATA_FOLDER OTHER_FOLDER…`. The starter holds the other end of stdin,
// and the system lets go of it even where the starter dies by `kill -9`. Each line on stdin is the process id of the
// server, or 0 while there is none. Should the starter die before it could write the id, the server still ends: it looks
// for its lock file once a minute, and stops when that is gone.

import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";

const LOOKS = 500;
const LOOK_EVERY_MS = 20;

const folders = process.argv.slice(2);
const pid = Number((await text(process.stdin)).trim().split("\n").at(-1));
if (pid > 0 && signal(pid, "SIGQUIT")) await ended(pid, join(folders[0], "postmaster.pid"));
for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });

/** Two signs of the end: where nobody reaps it an ended process keeps its id, and one that was killed its lock file. */
async function ended(server, lockFile) {
  for (let look = 0; look < LOOKS && existsSync(lockFile) && signal(server, 0); look++) await sleep(LOOK_EVERY_MS);
}

function signal(server, name) {
  try {
    return process.kill(server, name);
  } catch {
    return false;
  }
}
