// fleet/worker.mjs — one worker process: boots, waits for the word, works until it is killed or told to stop.
//
//   W1. It ends by itself once it is told to stop: nothing of the runtime or the provider may keep it alive.
//   W2. It does not outlive its driver.

import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { Runtime } from "duroxide-ts";
import { PostgresProvider } from "duroxide-ts/postgres";
import { journalTo } from "./journal.mjs";
import { activities, orchestrations } from "./load.mjs";

const OPEN_AGAIN_MS = 100;

process.once("disconnect", leave);
process.send("booted");
const [{ url, journal, options, applicationName }] = await once(process, "message");
const stopped = once(process, "message");

const provider = await open();
const runtime = await Runtime.start({
  provider,
  orchestrations,
  activities,
  observers: [journalTo(journal)],
  ...options,
});
await stopped;
const outcome = await runtime.shutdown();
await provider.close();
process.send(outcome);
process.off("disconnect", leave); // W1
process.disconnect();

/** A store that is away is waited for, as whoever supervises a service would. */
async function open() {
  for (;;) {
    try {
      return await PostgresProvider.open(url, { applicationName });
    } catch (error) {
      if (error.kind !== "transient") throw error;
      await pause(OPEN_AGAIN_MS);
    }
  }
}

/** W2 */
function leave() {
  process.exit(0);
}
