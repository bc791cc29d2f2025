// Lets worker processes do a mixed load for minutes while they are killed all along, and says how fast it went, what went wrong,
// and whether anything grew: `npm run soak -- [--minutes 10] [--workers 3] [--seed N] [--store postgres|sqlite] [--json FILE]`.
// Ends with 1 where something is wrong. `--minute-seconds`: how long a minute is, for trials. Run with --expose-gc.

import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { STORES } from "../test/system/fleet/store.mjs";
import { runSoak } from "../test/system/soak/run-soak.mjs";
import { numberOf } from "./number-of.mjs";
import { postgresAvailable } from "./postgres-server.mjs";

const NUMBERS = { minutes: 10, workers: 3, seed: Date.now() % 1_000_000, "in-flight": 60, "minute-seconds": 60 };
const MiB = 1_048_576;
const ERRORS_SHOWN = 50;
const ERRORS_PER_MINUTE = 3;

const { json, ...options } = readArguments();
const reason = options.store === "postgres" ? postgresAvailable() : null;
if (reason !== null) {
  process.stdout.write(`A soak on PostgreSQL is not possible: ${reason}.\n`);
  process.exit(1);
}
const { minutes, store, workers, inFlight, seed } = options;
say(`${minutes} minutes on ${store}, ${workers} workers, ${inFlight} instances at once, seed ${seed}`);
const report = await runSoak({ ...options, onMinute: (minute) => say(minuteLines(minute)) });
if (json !== undefined) writeFileSync(json, `${JSON.stringify({ ...options, ...report }, null, 2)}\n`);
say(endLines(report));
process.exitCode = report.errors.length + report.growth.length === 0 ? 0 : 1;

function readArguments() {
  try {
    const texts = [...Object.keys(NUMBERS), "store", "json"].map((name) => [name, { type: "string" }]);
    const { values } = parseArgs({ options: Object.fromEntries(texts) });
    const kind = values.store ?? "postgres";
    if (!STORES.includes(kind)) throw new Error(`--store must be one of ${STORES.join(", ")}`);
    const number = (name, least) => numberOf(name, values[name] ?? NUMBERS[name], least);
    return {
      store: kind,
      minutes: number("minutes", 1),
      workers: number("workers", 2), // One is never killed.
      seed: number("seed", 0),
      inFlight: number("in-flight", 1),
      minuteMs: number("minute-seconds", 1) * 1_000,
      json: values.json,
    };
  } catch (error) {
    const usage = Object.keys(NUMBERS).map((name) => `[--${name} NUMBER]`);
    process.stderr.write(
      `${error.message}\nusage: npm run soak -- ${usage.join(" ")} [--store ${STORES.join("|")}] [--json FILE]\n`,
    );
    process.exit(2);
  }
}

function minuteLines({ minute, endedPerSecond, errors, kills, processes, tables, connections }) {
  const bytes = tables.reduce((sum, table) => sum + table.bytes, 0);
  const dead = tables.reduce((sum, table) => sum + table.dead, 0);
  const live = tables.reduce((sum, table) => sum + table.live, 0);
  const heaps = Object.entries(processes).map(([name, { heapBytes }]) => `${name} ${mib(heapBytes)}`);
  return [
    `minute ${minute}: ${endedPerSecond.toFixed(1)} instances/s, ${errors.length} errors, ${kills} kills so far`,
    ...errors.slice(0, ERRORS_PER_MINUTE).map(errorLine),
    `  heap after GC: ${heaps.join(", ")}`,
    ...Object.entries(processes).map(
      ([name, { handles }]) => `  open handles of the ${name}: ${JSON.stringify(handles)}`,
    ),
    `  store: ${mib(bytes)}, ${live} live and ${dead} dead ${connections === null ? "pages" : `rows, ${connections} connections`}`,
  ].join("\n");
}

function endLines({ errors, growth, notJudged, minutes: watched, kills, ended, failedCalls }) {
  const first = watched[0];
  const last = watched.at(-1);
  const lines = [
    `in all: ${ended} instances ended, ${kills} kills`,
    `calls of workers that failed in passing: ${JSON.stringify(failedCalls)}`,
    "size of the store, first and last minute: live, dead, bytes",
    ...last.tables.map(
      (table, place) => `  ${table.name.padEnd(20)} ${sizeText(first.tables[place])} | ${sizeText(table)}`,
    ),
    `errors: ${errors.length}`,
    ...errors.slice(0, ERRORS_SHOWN).map(errorLine),
    ...growth.map((sentence) => `growth: ${sentence}`),
    ...(notJudged === null ? [] : [notJudged]),
    errors.length + growth.length === 0 ? "all is well" : "something is wrong",
  ];
  return lines.join("\n");
}

function errorLine({ kind, message }) {
  return `  ${kind}: ${message}`;
}

function sizeText({ live, dead, bytes }) {
  return `${String(live).padStart(8)} ${String(dead).padStart(8)} ${mib(bytes).padStart(10)}`;
}

function mib(bytes) {
  return `${(bytes / MiB).toFixed(1)} MiB`;
}

function say(text) {
  process.stdout.write(`${text}\n`);
}
