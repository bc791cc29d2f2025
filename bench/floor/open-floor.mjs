// bench/floor/open-floor.mjs — the floor of a store: makes the tables as the provider does, then does without it.

import { expectEqual } from "../lib/measured-process.mjs";
import { openStore } from "../lib/store.mjs";
import { EVENTS_PER_CHAIN, instanceId, OUTPUT } from "./chain.mjs";
import { openPostgresFloor } from "./postgres-floor.mjs";
import { openSqliteFloor } from "./sqlite-floor.mjs";

/** `store`: a new one, as the runner names it. */
export async function openFloor(store) {
  await (await openStore(store)).close();
  return store.kind === "sqlite" ? openSqliteFloor(store) : openPostgresFloor(store);
}

/** A floor that writes something else than chains that have ended would be none. */
export async function checkChains(store, count) {
  const provider = await openStore(store);
  try {
    const { totalInstances, completedInstances, totalEvents } = await provider.admin.getSystemMetrics();
    expectEqual(totalInstances, count, "the number of instances");
    expectEqual(completedInstances, count, "the number of instances that have ended");
    expectEqual(totalEvents, count * EVENTS_PER_CHAIN, "the number of events");
    const { orchestratorQueue, workerQueue } = await provider.admin.getQueueDepths();
    expectEqual(orchestratorQueue + workerQueue, 0, "the number of rows in the queues");
    const history = await provider.read(instanceId(count));
    expectEqual(history.length, EVENTS_PER_CHAIN, "the length of the last history");
    expectEqual(history.at(-1).output, OUTPUT, "its last event's output");
    expectEqual((await provider.getInstanceStatus(instanceId(count))).output, OUTPUT, "the last instance's output");
  } finally {
    await provider.close();
  }
}
