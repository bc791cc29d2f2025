// A fleet of real processes on one real PostgreSQL: all work is done, once, whoever is killed and whatever is restarted.

import { expect, test } from "vitest";
import { postgresAvailable } from "../../scripts/postgres-server.mjs";
import { runProgram } from "./run-program.js";

/** What scripts/fleet.mjs prints with --json, as far as it is looked at here. */
interface Report {
  readonly problems: readonly string[];
  readonly completed: number;
  readonly kills: number;
  readonly cuts: number;
  readonly restarts: readonly { readonly mode: string; readonly awayMs: number; readonly turnAfterMs: number | null }[];
  readonly runs: number;
  readonly results: number;
  readonly deadlocks: number;
}

/** Each takes some 20 s; the rest is for a fleet that stands still, to say where. */
const TIMEOUT_MS = 120_000;

const missing = postgresAvailable();

test(
  "150 orchestrations of all kinds complete once, while workers are killed, connections cut, and PostgreSQL restarted",
  async ({ skip }) => {
    skip(missing !== null, String(missing));
    const load = ["--orchestrations", "150", "--workers", "3", "--in-flight", "75", "--seed", "5"];
    const report = await fleet(...load, "--kill-every-ms", "1000", "--cut-every-ms", "1000");

    expect(report).toMatchObject({ problems: [], completed: 150, deadlocks: 0 });
    expect(report.restarts.map(({ mode }) => mode)).toEqual(["fast", "immediate"]);
    expect(report.kills).toBeGreaterThanOrEqual(3);
    expect(report.cuts).toBeGreaterThanOrEqual(3);
    expect(report.runs).toBeGreaterThanOrEqual(report.results);
  },
  TIMEOUT_MS,
);

test(
  "workers go on when their PostgreSQL is back after ten seconds",
  async ({ skip }) => {
    skip(missing !== null, String(missing));
    const load = ["--orchestrations", "48", "--workers", "2", "--seed", "5"];
    const outage = ["--restarts", "fast", "--outage-ms", "10000"];
    const report = await fleet(...load, ...outage, "--kill-every-ms", "0", "--cut-every-ms", "0");

    expect(report).toMatchObject({ problems: [], completed: 48, kills: 0, cuts: 0 });
    const [{ awayMs, turnAfterMs } = { awayMs: 0, turnAfterMs: null }] = report.restarts;
    expect(awayMs).toBeGreaterThanOrEqual(10_000);
    // Loops of a runtime wait three seconds at most before they look again.
    expect(turnAfterMs).toBeLessThan(5_000);
  },
  TIMEOUT_MS,
);

async function fleet(...args: readonly string[]): Promise<Report> {
  const { stdout, stderr } = await runProgram("../../scripts/fleet.mjs", [...args, "--json"], {
    timeoutMs: TIMEOUT_MS,
  });
  expect(stderr).toBe("");
  return JSON.parse(stdout) as Report;
}
