// Writes to a file, and is killed as soon as it has been told that everything is written.

import { kvSet, NAMED, start, started, turn } from "../../src/provider-tests/builders.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";

const provider = await SqliteProvider.open(process.argv[2]!);
await provider.enqueueForOrchestrator(start("killed"));
const locked = await provider.fetchOrchestrationItem({ lockTimeoutMs: 60_000 });
const events = [started("killed"), kvSet("killed", 2, "step", "1")];
await provider.ackOrchestrationItem(locked!.lockToken, turn({ events, metadata: NAMED }));
process.kill(process.pid, "SIGKILL");
