// bench/peers/systems.mjs — which peers there are, how they are set up, and how one of them is run.
//
// It works without any of them installed, and then says what to do about it.

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { DBOS_SETTINGS, OPENWORKFLOW_SETTINGS, RESTATE_SETTINGS } from "./settings.mjs";

/**
 * @typedef {object} PeerSystem
 * @property {string} system
 * @property {string} version
 * @property {object} settings
 * @property {readonly string[]} workloads
 * @property {readonly string[]} stores
 * @property {(args: object) => { file: string, argv: readonly string[] }} command
 * @property {string | null} missing   what to do before it can be run; null: nothing
 */

const WORKLOADS = Object.freeze(["W1", "W3", "W7"]);
const INSTALL = "run npm ci --prefix bench/peers";

/** What Restate's SDK needs, and openworkflow for its SQLite. */
const LEAST_NODE = 22;
const NO_NODE = `run the benchmarks on Node ${LEAST_NODE} or later: npm has none for ${process.platform}-${process.arch}`;

/** @returns {Promise<readonly PeerSystem[]>} */
export async function peerSystems() {
  const node = nodeForPeers();
  const nodeVersion = node === null ? "none" : execFileSync(node, ["--version"], { encoding: "utf8" }).trim();
  /** The version that is told is that of the first package. */
  const peer = ({ system, packages, settings, stores }) => ({
    system,
    version: wantedVersion(packages[0]),
    settings: { node: nodeVersion, ...settings },
    workloads: WORKLOADS,
    stores,
    command: (args) => ({ file: node, argv: [fileOf(`${system}.mjs`), JSON.stringify(args)] }),
    missing: packages.every(isInstalled) ? (node === null ? NO_NODE : null) : INSTALL,
  });
  return [
    peer({
      system: "dbos",
      packages: ["@dbos-inc/dbos-sdk", "postgres"],
      settings: DBOS_SETTINGS,
      stores: ["postgres"],
    }),
    peer({
      system: "openworkflow",
      packages: ["openworkflow", "postgres"],
      settings: OPENWORKFLOW_SETTINGS,
      stores: ["sqlite-full", "postgres"],
    }),
    peer({
      system: "restate",
      packages: [
        "@restatedev/restate-server",
        `@restatedev/restate-server-${process.platform}-${process.arch}`,
        "@restatedev/restate-sdk",
        "@restatedev/restate-sdk-clients",
      ],
      settings: { sdk: wantedVersion("@restatedev/restate-sdk"), ...RESTATE_SETTINGS },
      // It has a store of its own, a log and RocksDB. Like SQLite's that is on the local disk, and every write is synced.
      stores: ["sqlite-full"],
    }),
  ];
}

/** The one that runs this if it is new enough; else the one that npm has installed here. Null: there is none. */
export function nodeForPeers() {
  if (Number.parseInt(process.versions.node, 10) >= LEAST_NODE) return process.execPath;
  const installed = fileOf(`node_modules/node-${process.platform}-${process.arch}/bin/node`);
  return existsSync(installed) ? installed : null;
}

function isInstalled(name) {
  return existsSync(fileOf(`node_modules/${name}/package.json`));
}

/** Exact, in package.json, and thus the installed one. */
function wantedVersion(name) {
  return JSON.parse(readFileSync(fileOf("package.json"), "utf8")).dependencies[name];
}

function fileOf(path) {
  return fileURLToPath(new URL(path, import.meta.url));
}
