// test/system/run-program.ts — runs one of the .mjs programs beside this file, on the built package, in a process of its own.

import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/clock.js";

export interface ProgramEnd {
  /** Null: a signal ended it. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Between the last word on stdout and the end. */
  readonly lingeredMs: number;
}

/** Resolves when the process has ended, by itself or after `timeoutMs`. */
export async function runProgram(
  name: string,
  args: readonly string[],
  options: { readonly nodeArgs?: readonly string[]; readonly timeoutMs?: number } = {},
): Promise<ProgramEnd> {
  const program = fileURLToPath(new URL(name, import.meta.url));
  const child = spawn(process.execPath, [...(options.nodeArgs ?? []), program, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH: process.env.PATH },
    timeout: options.timeoutMs ?? 60_000,
    killSignal: "SIGKILL",
  });
  let lastWordAt = systemClock.now();
  child.stdout.on("data", () => {
    lastWordAt = systemClock.now();
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  const [code, stdout, stderr] = await Promise.all([ended, text(child.stdout), text(child.stderr)]);
  return { code, stdout, stderr, lingeredMs: systemClock.now() - lastWordAt };
}
