// providers/sqlite/set-up.ts — what every connection to the file is told first.

import type { SqliteSettings } from "./options.js";

/** How long the library itself may block its thread for another process's lock: about the length of a commit. */
const DRIVER_BUSY_TIMEOUT_MS = 20;

export const BUSY_TIMEOUT = `PRAGMA busy_timeout = ${DRIVER_BUSY_TIMEOUT_MS}`;

const PRAGMAS = `
  -- As SQLite has it. Four times as many pages cost no less in all, but fifteen milliseconds at a time instead of four.
  PRAGMA wal_autocheckpoint = 1000;
  -- After a burst the log gives its space back.
  PRAGMA journal_size_limit = 67108864;
  -- 4 MB. SQLite goes through its whole cache at the end of a transaction that has rearranged pages, 50 ns a page: with 64 MB
  -- that is longer than the commit itself. What does not fit the system has in memory, for 2 µs a page.
  PRAGMA cache_size = -4096;
  PRAGMA temp_store = MEMORY;
`;

/** As scripts. */
export function setUpOf({ durability, maxDatabaseBytes }: SqliteSettings, pageBytes: number): readonly string[] {
  const setUp = [BUSY_TIMEOUT, PRAGMAS, `PRAGMA synchronous = ${durability === "full" ? "FULL" : "NORMAL"}`];
  if (maxDatabaseBytes !== null) setUp.push(`PRAGMA max_page_count = ${Math.floor(maxDatabaseBytes / pageBytes)}`);
  return setUp;
}
