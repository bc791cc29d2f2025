// kills/rest.mjs — waits until nothing is left to do: a cancelled instance ends before its children hear of it.

import { setTimeout as pause } from "node:timers/promises";

const LOOK_EVERY_MS = 100;
/** Far longer than all locks together. Whoever looks afterwards finds what is left. */
const LONGEST_MS = 60_000;

export async function untilAtRest(provider) {
  const until = Date.now() + LONGEST_MS;
  while (!(await isAtRest(provider)) && Date.now() < until) await pause(LOOK_EVERY_MS);
}

async function isAtRest({ admin }) {
  const { orchestratorQueue, workerQueue } = await admin.getQueueDepths();
  const { totalInstances, completedInstances, failedInstances } = await admin.getSystemMetrics();
  return orchestratorQueue + workerQueue === 0 && completedInstances + failedInstances === totalInstances;
}
