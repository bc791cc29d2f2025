// demo/worker.ts — a worker process: opens the database, runs what it finds there, until it is told to stop or killed.

import { Runtime } from "duroxide-ts";
import { SqliteProvider } from "duroxide-ts/sqlite";
import { charge, placeOrder, reserve, ship } from "./order.js";

const [, , file = "demo.db"] = process.argv;

const provider = await SqliteProvider.open(file);
const runtime = await Runtime.start({
  provider,
  orchestrations: [placeOrder],
  activities: [reserve, charge, ship],
  // Short, so that the work of a killed worker is taken over while you watch. The default is 30 s.
  workerLockTimeoutMs: 2_000,
  orchestratorLockTimeoutMs: 1_000,
});
process.send?.("ready");

process.on("SIGTERM", async () => {
  await runtime.shutdown();
  await provider[Symbol.asyncDispose]();
  process.exit(0);
});
