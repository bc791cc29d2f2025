// demo/demo.ts — places an order, kills its worker twice with SIGKILL, and shows that nothing was lost or doubled.
//
//   npm run demo             runs it
//   npm run demo -- --keep   leaves the database in .demo/

import { type ChildProcess, fork } from "node:child_process";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Client, type Event } from "duroxide-ts";
import { SqliteProvider } from "duroxide-ts/sqlite";
import { placeOrder } from "./order.js";

const FOLDER = ".demo";
const DATABASE = join(FOLDER, "demo.db");
const LEDGER = join(FOLDER, "ledger.txt");
const INSTANCE = "order-1";
const keep = process.argv.includes("--keep");

rmSync(FOLDER, { recursive: true, force: true });
mkdirSync(FOLDER, { recursive: true });

const provider = await SqliteProvider.open(DATABASE);
const client = new Client(provider);
let worker = await startWorker();
const handle = await client.start(placeOrder, { instanceId: INSTANCE, input: { item: "book", amount: 12 } });
say(`order placed as instance '${INSTANCE}' in ${DATABASE}`);

await until(() => ledger().some((line) => line.startsWith("Charge attempt 1") && line.endsWith("begins")));
await pause(300);
await killWorker("in the middle of activity Charge");
worker = await startWorker();

await until(async () => {
  const status = await handle.status();
  return status.status === "Running" && status.customStatus === "charged";
});
await pause(300);
await killWorker("between turns, while a timer is running");
worker = await startWorker();

const result = await handle.result({ timeoutMs: 60_000 });
worker.kill("SIGTERM");
await exitOf(worker);

say("the order is done:");
for (const line of result) console.log(`    ${line}`);
const history = await client.readHistory(INSTANCE);
printTimeline(history);
console.log("\nWhat the outside world saw (the ledger that the activities write):");
for (const line of ledger()) console.log(`    ${line}`);
checkNothingDoubled(history);

await provider[Symbol.asyncDispose]();
if (keep) console.log(`\nThe database is kept: ${DATABASE}`);
else rmSync(FOLDER, { recursive: true, force: true });

async function startWorker(): Promise<ChildProcess> {
  const child = fork(fileURLToPath(new URL("./worker.js", import.meta.url)), [DATABASE], {
    env: { ...process.env, DEMO_LEDGER: LEDGER },
  });
  await new Promise((resolve, reject) => {
    child.once("message", resolve);
    child.once("exit", (code) => reject(new Error(`the worker ended with code ${code} before it was ready`)));
  });
  say(`worker started, pid ${child.pid}`);
  return child;
}

async function killWorker(when: string): Promise<void> {
  const exited = exitOf(worker);
  worker.kill("SIGKILL");
  const signal = await exited;
  say(`worker killed ${when}: pid ${worker.pid}, signal ${signal}`);
}

function exitOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => child.once("exit", (code, signal) => resolve(signal ?? `code ${code}`)));
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await pause(20);
}

function ledger(): string[] {
  try {
    return readFileSync(LEDGER, "utf8").trim().split("\n");
  } catch {
    return [];
  }
}

function printTimeline(events: readonly Event[]): void {
  console.log("\nThe history, as the database has it:");
  const start = events[0]?.timestampMs ?? 0;
  for (const event of events) {
    const { eventId, sourceEventId, timestampMs, type, instanceId, executionId, duroxideVersion, ...payload } = event;
    const time = `+${((timestampMs - start) / 1_000).toFixed(3)}s`.padStart(10);
    const answers = sourceEventId === null ? "" : ` (answers ${sourceEventId})`;
    console.log(`${time}  ${String(eventId).padStart(3)}  ${type}${answers} ${JSON.stringify(payload)}`);
  }
}

function checkNothingDoubled(events: readonly Event[]): void {
  const answered = events.filter(({ type }) => type === "ActivityCompleted").map(({ sourceEventId }) => sourceEventId);
  const isDoubled = new Set(answered).size !== answered.length;
  const charges = ledger().filter((line) => line.startsWith("Charge") && line.endsWith("begins"));
  console.log(`\n${answered.length} activity results recorded, ${isDoubled ? "SOME TWICE" : "none twice"}.`);
  console.log(`Charge was started ${charges.length} times and recorded once, as attempt ${charges.length}.`);
  if (isDoubled || answered.length !== 3 || charges.length !== 2) process.exitCode = 1;
}

function say(text: string): void {
  console.log(`[demo] ${text}`);
}
