// Real processes and real kill -9, few of them: so that `npm run kills` works when somebody wants a thousand.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { postgresAvailable } from "../../scripts/postgres-server.mjs";
import { runProgram } from "./run-program.js";

/** What scripts/kills.mjs writes, as far as it is looked at here. */
interface Report {
  readonly problems: readonly { readonly kind: string; readonly message: string }[];
  readonly kills: number;
  readonly restarts: number;
  readonly started: number;
  readonly ended: number;
  readonly runs: number;
  readonly calls: number;
}

const KILLS = 8;
const TIMEOUT_MS = 120_000;

const missing = postgresAvailable();

test(
  `nothing is lost or done twice on SQLite when workers of random orchestrations are killed ${KILLS} times`,
  async () => {
    const report = await kills("sqlite", "random");

    expect(report).toMatchObject({ problems: [], kills: KILLS, ended: report.started });
    expect(report.runs).toBeGreaterThanOrEqual(report.calls);
  },
  TIMEOUT_MS,
);

test(
  `nothing is lost or done twice on PostgreSQL when workers are killed ${KILLS} times, and the server once`,
  async ({ skip }) => {
    skip(missing !== null, String(missing));
    const report = await kills("postgres", "rich");

    expect(report).toMatchObject({ problems: [], kills: KILLS, restarts: 1, ended: report.started });
  },
  TIMEOUT_MS,
);

async function kills(store: "sqlite" | "postgres", load: "random" | "rich"): Promise<Report> {
  const folder = mkdtempSync(join(tmpdir(), "duroxide-kills-report-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const json = join(folder, "report.json");
  const size = ["--kills", String(KILLS), "--restarts", "1", "--workers", "2", "--in-flight", "22"];
  const { stderr } = await runProgram(
    "../../scripts/kills.mjs",
    ["--store", store, "--load", load, "--seed", "5", ...size, "--every-ms", "400", "--json", json],
    { timeoutMs: TIMEOUT_MS },
  );
  expect(stderr).toBe("");
  return JSON.parse(readFileSync(json, "utf8")) as Report;
}
