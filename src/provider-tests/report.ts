// provider-tests/report.ts — what the suite found, as text: a line a category, then what failed and what was skipped.

import { inspect } from "node:util";
import { CATEGORIES } from "./cases/index.js";
import type { CaseResult, ValidationReport } from "./validate.js";

/**
 * The report for a terminal. Its last line is `N passed, N failed, N skipped`.
 *
 * @example
 * const found = await validate({ open: async ({ clock }) => ({ provider: new MemoryProvider({ clock }) }) });
 * process.stdout.write(`${formatReport(found)}\n`);
 */
export function formatReport(report: ValidationReport): string {
  const lines: string[] = [];
  for (const { name, about } of CATEGORIES) {
    const results = report.results.filter(({ category }) => category === name);
    if (results.length > 0) lines.push(`${name.padEnd(22)} ${countsOf(results).padEnd(34)} ${about}`);
  }
  if (report.failed > 0) lines.push("", "Broken promises:");
  for (const { category, id, promise, outcome } of report.results) {
    if (outcome.kind !== "failed") continue;
    lines.push("", `  ${category}/${id}: ${promise}`, indented(describe(outcome.error), "    "));
  }
  const skips = groupSkips(report.results);
  if (skips.size > 0) lines.push("", "Skipped:");
  for (const [reason, ids] of skips) lines.push(`  ${reason}: ${ids.join(", ")}`);
  lines.push("", `${report.passed} passed, ${report.failed} failed, ${report.skipped} skipped`);
  return lines.join("\n");
}

function countsOf(results: readonly CaseResult[]): string {
  return (["passed", "failed", "skipped"] as const)
    .map((kind) => ({ kind, count: results.filter(({ outcome }) => outcome.kind === kind).length }))
    .filter(({ count }) => count > 0)
    .map(({ kind, count }) => `${count} ${kind}`)
    .join(", ");
}

/** Ids of skipped cases by the reason. */
function groupSkips(results: readonly CaseResult[]): ReadonlyMap<string, readonly string[]> {
  const byReason = new Map<string, string[]>();
  for (const { category, id, outcome } of results) {
    if (outcome.kind !== "skipped") continue;
    const ids = byReason.get(outcome.reason) ?? [];
    ids.push(`${category}/${id}`);
    byReason.set(outcome.reason, ids);
  }
  return byReason;
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : inspect(error);
}

function indented(text: string, by: string): string {
  return text.replaceAll(/^/gm, by);
}
