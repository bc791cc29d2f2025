// Lets a fleet of worker processes do its work on one PostgreSQL while workers are killed, connections cut and the server
// restarted, and says whether all of it was done, once: `npm run fleet -- [--orchestrations 2000] [--workers 4] [--seed N]`.
// `--restarts fast,immediate`: at even parts of the work; `--outage-ms`: how long the server is away at each of them.
// `--kill-every-ms` and `--cut-every-ms`: 0 is never. `--in-flight`: how many orchestrations at once. `--json`: for programs.

import { parseArgs } from "node:util";
import { runFleet } from "../test/system/fleet/run-fleet.mjs";
import { WORKER_OPTIONS } from "../test/system/fleet/worker-options.mjs";
import { numberOf } from "./number-of.mjs";
import { postgresAvailable } from "./postgres-server.mjs";

const NUMBERS = {
  orchestrations: 2_000,
  workers: 4,
  seed: Date.now() % 1_000_000,
  "in-flight": 400,
  "kill-every-ms": 500,
  "cut-every-ms": 1_000,
  "outage-ms": 0,
};
const MODES = ["fast", "immediate"];
const PROBLEMS_SHOWN = 50;

const { isJson, ...options } = readArguments();
const reason = postgresAvailable();
if (reason !== null) {
  process.stdout.write(`Fleet skipped: ${reason}.\n`);
  process.exit(0);
}
const report = await runFleet(options);
process.stdout.write(isJson ? `${JSON.stringify(report)}\n` : format(report));
process.exitCode = report.problems.length === 0 ? 0 : 1;

function readArguments() {
  try {
    const numbers = Object.keys(NUMBERS).map((name) => [name, { type: "string" }]);
    const others = { restarts: { type: "string" }, json: { type: "boolean" } };
    const { values } = parseArgs({ options: { ...Object.fromEntries(numbers), ...others } });
    const number = (name) => numberOf(name, values[name] ?? NUMBERS[name]);
    return {
      isJson: values.json ?? false,
      orchestrations: number("orchestrations"),
      workers: number("workers"),
      seed: number("seed"),
      inFlight: number("in-flight"),
      killEveryMs: number("kill-every-ms"),
      cutEveryMs: number("cut-every-ms"),
      restarts: restartsOf(values.restarts?.split(",") ?? MODES, number("outage-ms")),
    };
  } catch (error) {
    const usage = Object.keys(NUMBERS).map((name) => `[--${name} NUMBER]`);
    process.stderr.write(
      `${error.message}\nusage: npm run fleet -- ${usage.join(" ")} [--restarts ${MODES}] [--json]\n`,
    );
    process.exit(2);
  }
}

function restartsOf(modes, outageMs) {
  const unknown = modes.find((mode) => !MODES.includes(mode));
  if (unknown !== undefined) throw new Error(`--restarts: there is no mode '${unknown}'`);
  return modes.map((mode, index) => ({ mode, after: (index + 1) / (modes.length + 1), outageMs }));
}

function format({ problems, ...report }) {
  const { orchestrations, workers, inFlight, seed, killEveryMs, cutEveryMs } = options;
  const seconds = (ms) => (ms === null ? "never" : `${(ms / 1_000).toFixed(1)} s`);
  const lines = [
    ["load", `${orchestrations} orchestrations, at most ${inFlight} at once; ${workers} workers; seed ${seed}`],
    ["trouble asked for", `a kill every ${killEveryMs} ms, a cut every ${cutEveryMs} ms, about`],
    ["workers' options", JSON.stringify(WORKER_OPTIONS)],
    ["completed", `${report.completed}, in ${seconds(report.wallMs)}`],
    ["kills", report.kills],
    ["connections cut", report.cuts],
    ...report.restarts.map(({ mode, atMs, awayMs, turnAfterMs }) => [
      `restart, ${mode}`,
      `at ${seconds(atMs)}, away for ${seconds(awayMs)}, next turn after ${seconds(turnAfterMs)}`,
    ]),
    ["activities", `${report.runs} runs for ${report.results} recorded results`],
    ["turns", report.turns],
    ["longest without a turn", `${seconds(report.longestPause.ms)}, at ${seconds(report.longestPause.atMs)}`],
    ["calls of workers that failed", JSON.stringify(report.failedCalls)],
    ["calls made again by the driver", report.driverRetries],
    ["deadlocks", report.deadlocks],
    ["problems", problems.length],
  ];
  const width = Math.max(...lines.map(([name]) => name.length));
  const shown = problems.slice(0, PROBLEMS_SHOWN).map((problem) => `  ${problem}`);
  return `${[...lines.map(([name, value]) => `${name.padEnd(width)}  ${value}`), ...shown].join("\n")}\n`;
}
