// Runs one of the `sqlite-*-program.ts` in a process of its own, and talks to it in lines.

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

/** Vite compiles the program: no Node that we support runs all of TypeScript by itself. */
const RUN = `
  import { runnerImport } from "vite";
  await runnerImport(process.argv[1], { configFile: false, logLevel: "error" });
`;

export class ChildProgram {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #lines: AsyncIterator<string>;
  #stderr = "";

  /** `name` as in `sqlite-<name>-program.ts`. The process ends with the test, if not before. */
  constructor(name: string, ...args: readonly string[]) {
    const program = fileURLToPath(new URL(`./sqlite-${name}-program.ts`, import.meta.url));
    this.#child = spawn(process.execPath, ["--input-type=module", "--eval", RUN, program, ...args]);
    this.#child.stderr.on("data", (chunk) => {
      this.#stderr += String(chunk);
    });
    this.#lines = createInterface(this.#child.stdout)[Symbol.asyncIterator]();
    onTestFinished(() => void this.#child.kill("SIGKILL"));
  }

  /** The next line that it prints. Null: it has ended. */
  async next(): Promise<string | null> {
    const { value, done } = await this.#lines.next();
    return done ? null : value;
  }

  /** As `next`, where there must be one. */
  async line(): Promise<string> {
    const line = await this.next();
    if (line === null) throw new Error(`the program ended without another line: ${this.#stderr}`);
    return line;
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  send(line: string): void {
    this.#child.stdin.write(`${line}\n`);
  }

  /** Waits for its end. */
  async ended(): Promise<{ readonly signal: NodeJS.Signals | null; readonly stderr: string }> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) await once(this.#child, "close");
    return { signal: this.#child.signalCode, stderr: this.#stderr };
  }
}
