// bench/lib/machine.mjs — what the benchmarks run on, in words.

import { execFileSync } from "node:child_process";
import { statfsSync } from "node:fs";
import { cpus, loadavg, totalmem } from "node:os";
import { fileURLToPath } from "node:url";

const GiB = 1_073_741_824;

/** As `statfs` numbers them. A commit that is synced to memory has waited for nothing. */
const FILE_SYSTEMS = new Map([
  [0xef53, "ext4"],
  [0x58465342, "xfs"],
  [0x9123683e, "btrfs"],
  [0x2fc12fc1, "zfs"],
  [0x794c7630, "overlay"],
  [0x01021994, "tmpfs: in memory, where fsync waits for no disk"],
]);

/**
 * `node`: the file of the Node that the measured processes run on.
 *
 * @type {(stores: import("./fresh-stores.mjs").FreshStores, node: string) => Promise<Record<string, string>>}
 */
export async function describeMachine(stores, node) {
  return {
    machine: `${cpus().length} × ${cpus()[0]?.model.trim()}, ${(totalmem() / GiB).toFixed(0)} GiB, ${process.platform}`,
    node: outputOf(node, "--version"),
    SQLite: outputOf(node, fileURLToPath(new URL("describe-sqlite.mjs", import.meta.url))),
    "files of SQLite": `${stores.folder} (${fileSystemOf(stores.folder)})`,
    PostgreSQL: await describePostgres(stores),
    "load at the beginning": describeLoad(),
  };
}

/** Of the last 1, 5 and 15 minutes. */
export function describeLoad() {
  return loadavg()
    .map((load) => load.toFixed(1))
    .join(", ");
}

function outputOf(node, argument) {
  return execFileSync(node, [argument], { encoding: "utf8" }).trim();
}

function fileSystemOf(folder) {
  const { type } = statfsSync(folder);
  return FILE_SYSTEMS.get(type) ?? `file system 0x${type.toString(16)}`;
}

async function describePostgres(stores) {
  const rows = await stores.ask(
    `SELECT current_setting('server_version') AS version, current_setting('fsync') AS fsync,
            current_setting('synchronous_commit') AS synchronous_commit,
            current_setting('shared_buffers') AS shared_buffers`,
  );
  if (rows === null) return "not used";
  const [{ version, fsync, synchronous_commit, shared_buffers }] = rows;
  return `${version}, fsync ${fsync}, synchronous_commit ${synchronous_commit}, shared_buffers ${shared_buffers}`;
}
