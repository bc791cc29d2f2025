// bench/report.mjs — how a benchmark says what it ran on and what it found.

import { createRequire } from "node:module";
import { cpus, loadavg } from "node:os";

const require = createRequire(import.meta.url);

/** `query`: asks the server. */
export async function environment(query, settings) {
  const [server] = await query(
    `SELECT current_setting('server_version') AS version, current_setting('fsync') AS fsync,
            current_setting('synchronous_commit') AS synchronous_commit`,
  );
  return {
    machine: `${cpus().length} × ${cpus()[0]?.model.trim()}, ${process.platform}`,
    load: loadavg().map((load) => Number(load.toFixed(1))),
    versions: {
      "duroxide-ts": require("../package.json").version,
      pg: require("pg/package.json").version,
      node: process.version,
      postgres: server.version,
    },
    server: `fsync ${server.fsync}, synchronous_commit ${server.synchronous_commit}`,
    settings,
  };
}

export function printTable(title, rows) {
  const heads = Object.keys(rows[0]);
  const cells = [heads, ...rows.map((row) => heads.map((head) => String(row[head])))];
  const widths = heads.map((_, column) => Math.max(...cells.map((line) => line[column].length)));
  console.log(`\n${title}`);
  for (const line of cells)
    console.log(`  ${line.map((cell, column) => cell.padEnd(widths[column])).join("  ")}`.trimEnd());
}

export function quantile(numbers, share) {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}
