// Real processes, a real file, real kill -9: all work is done, once, however often the workers die.

import { type ChildProcess, fork } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { Client } from "../../src/client/client.js";
import { sleep, systemClock } from "../../src/clock.js";
import { checkHistory } from "../../src/history/valid-history.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";

const CHAINS = 100;
const KILL_EVERY_MS = 200;
const FEWEST_KILLS = 20;
/** Short locks, so that a dead worker's work is soon taken over; attempts enough for a world this cruel. */
const SETTINGS = { workerLockTimeoutMs: 1_000, orchestratorLockTimeoutMs: 1_000, maxAttempts: 100 };

test(`${CHAINS} chains of five activities complete while a random worker is killed every ${KILL_EVERY_MS} ms`, async () => {
  const folder = mkdtempSync(join(tmpdir(), "duroxide-kill-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "chains.db");
  await using provider = await SqliteProvider.open(file);
  const client = new Client(provider);
  const handles = await Promise.all(
    Array.from({ length: CHAINS }, (_, n) => client.start<number[]>("Chain", { instanceId: `chain-${n}`, input: n })),
  );

  await using fleet = await Fleet.start(file);
  let isDone = false;
  let kills = 0;
  const results = Promise.allSettled(handles.map((handle) => handle.result())).finally(() => {
    isDone = true;
  });
  while (!isDone || kills < FEWEST_KILLS) {
    await sleep(systemClock, KILL_EVERY_MS);
    await fleet.kill(Math.floor(Math.random() * 2));
    kills += 1;
  }

  const right = (n: number): number[] => [0, 1, 2, 3, 4].map((step) => n * 10 + step);
  expect(await results).toEqual(Array.from({ length: CHAINS }, (_, n) => ({ status: "fulfilled", value: right(n) })));
  for (const { instanceId } of handles) {
    const history = await client.readHistory(instanceId);
    checkHistory(history);
    expect(history.map(({ type }) => type)).toEqual([
      "OrchestrationStarted",
      ...Array.from({ length: 5 }, () => ["ActivityScheduled", "ActivityCompleted"]).flat(),
      "OrchestrationCompleted",
    ]);
  }
  expect(kills).toBeGreaterThanOrEqual(FEWEST_KILLS);
}, 300_000);

/** Two workers at any time, and a few booted processes in the wings: a node takes longer to start than a worker lives. */
class Fleet implements AsyncDisposable {
  readonly #file: string;
  readonly #workers: ChildProcess[] = [];
  readonly #wings: Promise<ChildProcess>[] = [];

  static async start(file: string): Promise<Fleet> {
    const fleet = new Fleet(file);
    for (let n = 0; n < 4; n += 1) fleet.#wings.push(boot(file));
    for (let n = 0; n < 2; n += 1) await fleet.#enter(n);
    return fleet;
  }

  private constructor(file: string) {
    this.#file = file;
  }

  async kill(place: number): Promise<void> {
    this.#workers[place]!.kill("SIGKILL");
    await this.#enter(place);
  }

  async #enter(place: number): Promise<void> {
    this.#wings.push(boot(this.#file));
    const worker = await this.#wings.shift()!;
    worker.send("go");
    this.#workers[place] = worker;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of [...this.#workers, ...(await Promise.all(this.#wings))]) child.kill("SIGKILL");
  }
}

function boot(file: string): Promise<ChildProcess> {
  const program = fileURLToPath(new URL("./chain-worker.mjs", import.meta.url));
  const child = fork(program, [file, JSON.stringify(SETTINGS)], { stdio: "ignore", execArgv: [] });
  return new Promise((resolve, reject) => {
    const fail = (code: number | null): void => reject(new Error(`a worker ended before it was ready: code ${code}`));
    child.once("exit", fail);
    child.once("error", reject);
    child.once("message", () => {
      child.off("exit", fail);
      resolve(child);
    });
  });
}
