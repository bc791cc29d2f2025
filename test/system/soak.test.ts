// A soak of seconds: so that `npm run soak` works when somebody wants minutes. And how it judges, with made-up figures.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { postgresAvailable } from "../../scripts/postgres-server.mjs";
import { runProgram } from "./run-program.js";
import { growth, summaryOf, whyNotJudged } from "./soak/judge.mjs";

const MiB = 1_048_576;
const TIMEOUT_MS = 120_000;

/** What scripts/soak.mjs writes, as far as it is looked at here. */
interface Report {
  readonly errors: readonly unknown[];
  readonly kills: number;
  readonly ended: number;
  readonly minutes: readonly {
    readonly processes: Readonly<Record<string, { readonly heapBytes: number; readonly handles: object }>>;
    readonly tables: readonly { readonly name: string; readonly live: number; readonly bytes: number }[];
    readonly connections: number | null;
  }[];
}

const missing = postgresAvailable();

test(
  "a soak on PostgreSQL comes to its end without errors, and tells of heaps, handles, tables and connections",
  async ({ skip }) => {
    skip(missing !== null, String(missing));
    const folder = mkdtempSync(join(tmpdir(), "duroxide-soak-report-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const json = join(folder, "report.json");
    const { stderr } = await runProgram(
      "../../scripts/soak.mjs",
      ["--minutes", "2", "--minute-seconds", "4", "--workers", "2", "--in-flight", "22", "--seed", "5", "--json", json],
      { nodeArgs: ["--expose-gc"], timeoutMs: TIMEOUT_MS },
    );
    const report = JSON.parse(readFileSync(json, "utf8")) as Report;

    expect(stderr).toBe("");
    expect(report.errors).toEqual([]);
    expect(report.kills).toBeGreaterThan(0);
    expect(report.ended).toBeGreaterThan(0);
    expect(report.minutes).toHaveLength(2);
    const last = report.minutes.at(-1)!;
    expect(Object.keys(last.processes)).toEqual(["long-lived worker", "driver"]);
    for (const { heapBytes } of Object.values(last.processes)) expect(heapBytes).toBeGreaterThan(MiB);
    expect(last.tables.map(({ name }) => name)).toContain("history");
    expect(last.connections).toBeGreaterThan(0);
  },
  TIMEOUT_MS,
);

describe("the judgement of a soak", () => {
  const steady = { heapBytes: 20 * MiB, handles: { TCPSocketWrap: 3, Timeout: 40 } };
  const minutesTo = (last: typeof steady) => [steady, steady, last].map((worker) => ({ worker }));

  test("lets a process pass whose last minute is like its second", () => {
    expect(growth(minutesTo(steady))).toEqual([]);
    expect(growth(minutesTo({ ...steady, heapBytes: 21.9 * MiB }))).toEqual([]);
  });

  test("names a heap that grew by more than a tenth", () => {
    expect(growth(minutesTo({ ...steady, heapBytes: 25 * MiB }))).toEqual([
      "the heap of the worker grew by 25 %, from 20.0 MiB to 25.0 MiB",
    ]);
  });

  test("names handles that become more and more", () => {
    expect(growth(minutesTo({ ...steady, handles: { TCPSocketWrap: 20, Timeout: 200 } }))).toEqual([
      "open handles of the worker grow: TCPSocketWrap, from 3 to 20",
      "open handles of the worker grow: Timeout, from 40 to 200",
    ]);
  });

  test("says so where a soak was too short to be judged", () => {
    expect(whyNotJudged([steady, steady])).toContain("not judged");
    expect(whyNotJudged([steady, steady, steady])).toBeNull();
  });

  test("takes the median of a minute, not a single moment", () => {
    const samples = [1, 9, 2].map((heapBytes) => ({ heapBytes, handles: { Timeout: heapBytes } }));
    expect(summaryOf([...samples, { heapBytes: 2, handles: {} }])).toEqual({ heapBytes: 2, handles: { Timeout: 2 } });
  });
});
