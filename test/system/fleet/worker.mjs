// fleet/worker.mjs — one worker process: boots, waits for the word, works until it is killed or told to stop.
//
//   W1. It ends by itself once it is told to stop: nothing of the runtime or the provider may keep it alive.
//   W2. It does not outlive its driver.
//
// Its argument is the address of a module with `orchestrations` and `activities`, and perhaps `usualFacts` (journal.mjs).

import { once } from "node:events";
import { Runtime } from "duroxide-ts";
import { AimedProvider } from "../kills/aim.mjs";
import { acknowledgedTo, inLedger } from "../kills/ledger.mjs";
import { healthOfProcess } from "../soak/health.mjs";
import { journalTo } from "./journal.mjs";
import { openProvider } from "./store.mjs";

const load = await import(process.argv[2]);
process.once("disconnect", leave);
process.send("booted");
const [{ store, journal, ledger = null, options }] = await once(process, "message");
let aim = null;
const stopped = new Promise((resolve) => {
  process.on("message", (word) => {
    if (word.kind === "stop") resolve();
    else if (word.kind === "health") process.send({ health: healthOfProcess() });
    else aim = word.aim;
  });
});

const provider = await openProvider(store);
const observers = [journalTo(journal, load.usualFacts)];
if (ledger !== null) observers.push(acknowledgedTo(ledger));
const runtime = await Runtime.start({
  provider: new AimedProvider(provider, takeAim),
  orchestrations: load.orchestrations,
  activities: ledger === null ? load.activities : inLedger(load.activities, ledger),
  observers,
  ...options,
});
await stopped;
const outcome = await runtime.shutdown();
await provider.close();
process.send({ outcome });
process.off("disconnect", leave); // W1
process.disconnect();

/** The aim, once, if it is at this operation. */
function takeAim(operation) {
  if (aim?.operation !== operation) return null;
  const taken = aim;
  aim = null;
  return taken;
}

/** W2 */
function leave() {
  process.exit(0);
}
