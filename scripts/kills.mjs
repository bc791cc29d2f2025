// Kills worker processes, as `kill -9` does, while they work on one store, and says whether anything was lost or done twice:
// `npm run kills -- --store sqlite|postgres [--kills 1000] [--seed N]`.
// `--every-ms`: the mean time between two kills. `--restarts`: how often PostgreSQL is stopped at once, in between. `--load`:
// rich (the default), random (the orchestrations of the simulation), or a module as test/system/kills/rich-load.mjs describes it. `--json FILE`: the report, for programs.

import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { STORES } from "../test/system/fleet/store.mjs";
import { RICH_LOAD, runKills } from "../test/system/kills/run-kills.mjs";
import { bundleLoad } from "./bundle-load.mjs";
import { numberOf } from "./number-of.mjs";
import { postgresAvailable } from "./postgres-server.mjs";

const NUMBERS = {
  kills: 1_000,
  seed: Date.now() % 1_000_000,
  workers: 4,
  "in-flight": 100,
  "every-ms": 450,
  restarts: 10,
};
const RANDOM_LOAD = fileURLToPath(new URL("../test/system/kills/random-load.ts", import.meta.url));
const PROBLEMS_SHOWN = 50;
const TELL_EVERY = 50;

const { json, ...options } = readArguments();
const reason = options.store === "postgres" ? postgresAvailable() : null;
if (reason !== null) {
  process.stdout.write(`Kills on PostgreSQL are not possible: ${reason}.\n`);
  process.exit(1);
}
const { load, remove } = await openLoad(options.load);
const report = await runKills({ ...options, load, onProgress: tell }).finally(remove);
if (json !== undefined) writeFileSync(json, `${JSON.stringify({ ...options, ...report }, null, 2)}\n`);
process.stdout.write(format(report));
process.exitCode = report.problems.length === 0 ? 0 : 1;

function readArguments() {
  try {
    const texts = [...Object.keys(NUMBERS), "store", "load", "json"].map((name) => [name, { type: "string" }]);
    const { values } = parseArgs({ options: Object.fromEntries(texts) });
    if (!STORES.includes(values.store)) throw new Error(`--store must be one of ${STORES.join(", ")}`);
    const number = (name, least = 0) => numberOf(name, values[name] ?? NUMBERS[name], least);
    return {
      store: values.store,
      load: values.load ?? "rich",
      kills: number("kills", 1),
      seed: number("seed"),
      workers: number("workers", 1),
      inFlight: number("in-flight", 1),
      everyMs: number("every-ms", 1),
      restarts: values.store === "postgres" ? number("restarts") : 0,
      json: values.json,
    };
  } catch (error) {
    const usage = Object.keys(NUMBERS).map((name) => `[--${name} NUMBER]`);
    process.stderr.write(
      `${error.message}\nusage: npm run kills -- --store ${STORES.join("|")} ${usage.join(" ")} [--load rich|random|FILE] [--json FILE]\n`,
    );
    process.exit(2);
  }
}

/** The address of the module, and what is to be done when it is not needed any more. */
async function openLoad(name) {
  if (name === "random") return bundleLoad(RANDOM_LOAD);
  return { load: name === "rich" ? RICH_LOAD : pathToFileURL(resolve(name)).href, remove: () => {} };
}

function tell(done, ended) {
  if (done % TELL_EVERY === 0) process.stderr.write(`${done} kills, ${ended} instances ended\n`);
}

function format({ problems, ...report }) {
  const { store, kills, seed, workers, inFlight, everyMs, load: name } = options;
  const count = (kind) => problems.filter((problem) => problem.kind === kind).length;
  const lines = [
    [
      "asked for",
      `${kills} kills on ${store}, one every ${everyMs} ms, of ${workers} workers; load ${name}, seed ${seed}`,
    ],
    ["kills", `${report.kills}, in ${(report.wallMs / 1_000).toFixed(1)} s, the rest of the work included`],
    ["  at a moment of the work", JSON.stringify(report.aimed)],
    ["restarts of the server", report.restarts],
    ["instances", `${report.ended} of ${report.started} ended as they must, at most ${inFlight} at once`],
    ["  with children", `${report.instances}, ${report.executions} executions, ${report.events} events`],
    ["activities", `${report.runs} runs of ${report.calls} calls, ${report.results} recorded outcomes`],
    ["turns", report.turns],
    ["calls of workers that failed", JSON.stringify(report.failedCalls)],
    ["calls made again by the driver", report.driverRetries],
    ["lost", count("lost")],
    ["doubled", count("doubled")],
    ["wrong outcomes", count("wrong")],
    ["faulty histories", count("history")],
    ["left in queues, locks, sessions", count("left")],
    ["faults of workers or server", count("fault")],
  ];
  const width = Math.max(...lines.map(([name]) => name.length));
  const shown = problems.slice(0, PROBLEMS_SHOWN).map(({ kind, message }) => `  ${kind}: ${message}`);
  return `${[...lines.map(([name, value]) => `${name.padEnd(width)}  ${value}`), ...shown].join("\n")}\n`;
}
