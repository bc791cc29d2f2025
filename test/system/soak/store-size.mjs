// soak/store-size.mjs — how large the store is, what of it is dead, and who is connected.

import { existsSync, statSync } from "node:fs";
import { basename } from "node:path";
import { lookInto } from "../fleet/store.mjs";

const tables = `
  SELECT relname AS name, n_live_tup::int AS live, n_dead_tup::int AS dead, pg_total_relation_size(relid)::float8 AS bytes
  FROM pg_stat_user_tables WHERE schemaname = 'duroxide' ORDER BY relname`;
const connections = `SELECT count(*)::int AS count FROM pg_stat_activity WHERE application_name <> '' AND datname IS NOT NULL`;

/** Of tables: living and dead rows, and bytes with their indexes. Of files: pages. `connections` is null where there are none. */
export async function sizeOf(spec) {
  return lookInto(spec, async (query) => {
    if (spec.kind === "sqlite") return { tables: await filesOf(spec.file, query), connections: null };
    const [{ count }] = await query(connections);
    return { tables: await query(tables), connections: count };
  });
}

async function filesOf(file, query) {
  const [{ page_count: pages }] = await query("PRAGMA page_count");
  const [{ freelist_count: free }] = await query("PRAGMA freelist_count");
  const log = `${file}-wal`;
  return [
    { name: basename(file), live: pages - free, dead: free, bytes: statSync(file).size },
    { name: basename(log), live: 0, dead: 0, bytes: existsSync(log) ? statSync(log).size : 0 },
  ];
}
