// bench/lib/worker.mjs — one worker process of our workloads. argv: { store, runtime }, the latter options, as JSON.

import { Runtime } from "duroxide-ts";
import { runUntilStopped } from "../worker-process.mjs";
import { CONTENTS } from "./orchestrations.mjs";
import { openStore } from "./store.mjs";

const settings = JSON.parse(process.argv[2]);
const provider = await openStore(settings.store);
runUntilStopped(provider, await Runtime.start({ provider, ...CONTENTS, ...settings.runtime }));
