// Takes everything that both queues of a file have, as fast as it can, and says what it got.

import { NAMED, started, turn } from "../../src/provider-tests/builders.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";
import { nextLine } from "./sqlite-line.js";

const provider = await SqliteProvider.open(process.argv[2]!);
process.stdout.write("ready\n");
await nextLine();

const instances: string[] = [];
const activities: number[] = [];
const errors: string[] = [];
const loops = [claimInstances, claimInstances, claimActivities, claimActivities];
await Promise.all(loops.map((claim) => claim().catch((error: unknown) => errors.push(String(error)))));
process.stdout.write(`${JSON.stringify({ instances, activities, errors })}\n`);
await provider.close();

async function claimInstances(): Promise<void> {
  for (;;) {
    const locked = await provider.fetchOrchestrationItem({ lockTimeoutMs: 60_000 });
    if (locked === null) return;
    instances.push(locked.item.instance);
    const events = [started(locked.item.instance)];
    await provider.ackOrchestrationItem(locked.lockToken, turn({ events, metadata: NAMED }));
  }
}

async function claimActivities(): Promise<void> {
  for (;;) {
    const locked = await provider.fetchWorkItem({ lockTimeoutMs: 60_000 });
    if (locked === null) return;
    activities.push(locked.item.id);
    await provider.ackWorkItem(locked.lockToken, null);
  }
}
