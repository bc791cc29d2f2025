// What `npm audit` prints (npm 11), and what a build makes of it.

import { describe, expect, test } from "vitest";
import { type AuditVerdict, auditVerdict } from "../../scripts/audit-verdict.mjs";

function report(found: Readonly<Record<string, string>>): string {
  const counts: Record<string, number> = { info: 0, low: 0, moderate: 0, high: 0, critical: 0, total: 0 };
  for (const severity of Object.values(found)) {
    counts[severity]! += 1;
    counts.total! += 1;
  }
  const vulnerabilities = Object.fromEntries(
    Object.entries(found).map(([name, severity]) => [name, { name, severity, isDirect: true, via: [], range: "*" }]),
  );
  return JSON.stringify({ auditReportVersion: 2, vulnerabilities, metadata: { vulnerabilities: counts } }, null, 2);
}

function noAnswer(message: string, more: object = {}): string {
  return JSON.stringify({ message, ...more, error: { summary: "", detail: "" } });
}

const ENDPOINT = "https://packages.test/audit";

describe("a dependency audit", () => {
  test.each<[what: string, output: string, verdict: AuditVerdict]>([
    ["passes where nothing is known", report({}), { kind: "clean", message: "0 known, none of them high or critical" }],
    [
      "passes what is not severe",
      report({ a: "low", b: "moderate" }),
      { kind: "clean", message: "2 known, none of them high or critical" },
    ],
    [
      "fails for what is severe, and names it",
      report({ a: "high", b: "low", c: "critical" }),
      { kind: "vulnerable", message: "a (high), c (critical)" },
    ],
    [
      "says so where the registry offers none",
      noAnswer(`405 Method Not Allowed - POST ${ENDPOINT}`, { method: "POST", uri: ENDPOINT, statusCode: 405 }),
      { kind: "unanswered", message: "405 Method Not Allowed - POST the registry" },
    ],
    [
      "says so where the registry is out of order",
      noAnswer(`500 Internal Server Error - POST ${ENDPOINT}`, { statusCode: 500, body: "boom" }),
      { kind: "unanswered", message: "500 Internal Server Error - POST the registry" },
    ],
    [
      "says so where the registry cannot be reached",
      noAnswer(`request to ${ENDPOINT} failed, reason: connect ECONNREFUSED 127.0.0.1:9`),
      {
        kind: "unanswered",
        message: "request to the registry failed, reason: connect ECONNREFUSED 127.0.0.1:9",
      },
    ],
    [
      "fails where npm could not ask",
      JSON.stringify({
        error: { code: "ENOLOCK", summary: "This command requires an existing lockfile.", detail: "" },
      }),
      { kind: "broken", message: "ENOLOCK: This command requires an existing lockfile." },
    ],
    ["fails where npm printed no JSON", "npm: not found\n", { kind: "broken", message: "no JSON: npm: not found" }],
    ["fails where npm printed nothing", "", { kind: "broken", message: "no JSON: nothing at all" }],
    ["fails for JSON that is no answer", "null", { kind: "broken", message: "no JSON: null" }],
    ["fails for an answer of neither kind", "{}", { kind: "broken", message: "neither a report nor an error: {}" }],
  ])("%s", (_what, output, verdict) => {
    expect(auditVerdict(output)).toEqual(verdict);
  });
});
