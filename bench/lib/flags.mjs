// bench/lib/flags.mjs — what `npm run bench` can be told. What it does not understand is an error, never ignored.

import { parseArgs } from "node:util";
import { familyOf, STORES, workloads } from "./workloads.mjs";

const DEFAULT_ROUNDS = 3;
const DEFAULT_MINUTES = 10;
/** The last minute is compared with the second. */
const LEAST_MINUTES = 3;

export const USAGE = `usage: npm run bench -- [flags]

  --quick            W1, W3, W4 at 1,000 steps, W7 and the floor, on sqlite-full and postgres, in under three minutes
  --only W1,W4       these workloads only: ${[...new Set(workloads(DEFAULT_MINUTES).map(familyOf))].join(", ")},
                     or one of several sizes: ${workloads(DEFAULT_MINUTES)
                       .filter(({ family }) => family !== undefined)
                       .map(({ name }) => name)
                       .join(", ")}
  --stores LIST      on these stores only: ${STORES.join(", ")}
  --rounds N         medians of so many rounds (default ${DEFAULT_ROUNDS}); W9 and steady take one
  --peers            with --quick, too, measure the other systems
  --no-peers         leave the other systems out
  --minutes N        how long steady takes (default ${DEFAULT_MINUTES})
  --folder FOLDER    where the files of SQLite lie (default: the system's folder for temporary files)
  --json FILE        write all values there
  --help

PostgreSQL is the server that DUROXIDE_PG_URL names, or one that is started for the purpose, with every commit synced.
The other systems are installed by: npm ci --prefix bench/peers`;

/** What was asked for cannot be. */
export class UsageError extends Error {}

/** @throws UsageError */
export function readFlags(argv) {
  const given = parse(argv);
  if (given.help) return { isHelp: true };
  if (given.peers && given["no-peers"]) throw new UsageError("--peers and --no-peers exclude each other");
  const isQuick = given.quick ?? false;
  const minutes = numberOf("minutes", given.minutes, DEFAULT_MINUTES, LEAST_MINUTES);
  return {
    isHelp: false,
    isQuick,
    workloads: workloadsOf(given.only, isQuick, minutes),
    stores: given.stores === undefined ? storesOf(isQuick) : listOf("stores", given.stores, STORES),
    rounds: numberOf("rounds", given.rounds, DEFAULT_ROUNDS, 1),
    hasPeers: isQuick ? (given.peers ?? false) : !given["no-peers"],
    folder: given.folder,
    json: given.json,
  };
}

function parse(argv) {
  const text = { type: "string" };
  const yes = { type: "boolean" };
  const options = { quick: yes, peers: yes, "no-peers": yes, help: yes, only: text, stores: text, rounds: text };
  try {
    return parseArgs({ args: argv, options: { ...options, minutes: text, folder: text, json: text } }).values;
  } catch (error) {
    throw new UsageError(error.message, { cause: error });
  }
}

function workloadsOf(only, isQuick, minutes) {
  const all = workloads(minutes);
  if (only === undefined) return isQuick ? all.filter((workload) => workload.isQuick) : all;
  const names = listOf("only", only, [...new Set(all.flatMap((workload) => [workload.name, familyOf(workload)]))]);
  const chosen = all.filter((workload) => names.includes(workload.name) || names.includes(familyOf(workload)));
  const needed = chosen.flatMap(({ needs = [] }) => needs);
  return all.filter((workload) => chosen.includes(workload) || needed.includes(workload.name));
}

function storesOf(isQuick) {
  return isQuick ? ["sqlite-full", "postgres"] : STORES;
}

function listOf(flag, text, allowed) {
  const names = text.split(",").map((name) => name.trim());
  const unknown = names.find((name) => !allowed.includes(name));
  if (unknown !== undefined) {
    throw new UsageError(`--${flag}: there is no '${unknown}' here; there are ${allowed.join(", ")}`);
  }
  return allowed.filter((name) => names.includes(name));
}

function numberOf(flag, text, otherwise, least) {
  if (text === undefined) return otherwise;
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < least) {
    throw new UsageError(`--${flag} must be a whole number from ${least} up, not '${text}'`);
  }
  return number;
}
