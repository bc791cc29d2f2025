// bench/lib/measure.mjs — runs one measured process and reads what it found.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";

/** How much of what a failed process says is shown. */
const CHARACTERS_SHOWN = 2_000;

/**
 * Everything runs as in production, ours without the determinism guard, unless `env` says otherwise.
 *
 * @type {(command: { file: string, argv: readonly string[], env?: Record<string, string> }, limitSeconds: number,
 *   signal: AbortSignal) => Promise<readonly import("./measured-process.mjs").Metric[]>}
 */
export async function measure({ file, argv, env = {} }, limitSeconds, signal) {
  const child = spawn(file, argv, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, NODE_ENV: "production", ...env },
  });
  const end = () => child.kill("SIGKILL");
  const limit = setTimeout(end, limitSeconds * 1_000);
  signal.addEventListener("abort", end);
  try {
    const [out, errors, [code, endedBy]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, "exit"),
    ]);
    if (code === 0) return metricsIn(out);
    const why =
      endedBy === null ? `it ended with code ${code}` : `it was ended by ${endedBy} (after ${limitSeconds} s?)`;
    throw new Error(`${why}\n${errors.slice(-CHARACTERS_SHOWN).trim()}`);
  } finally {
    clearTimeout(limit);
    signal.removeEventListener("abort", end);
  }
}

function metricsIn(out) {
  const lines = out.trim().split("\n");
  if (lines.length !== 1) throw new Error(`it printed ${lines.length} lines instead of one`);
  return JSON.parse(lines[0]);
}
