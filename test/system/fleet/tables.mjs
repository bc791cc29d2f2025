// fleet/tables.mjs — what must hold of the tables when all is over and nobody works any more. Every sentence is a problem.
//
//   O3. Nothing is left: no message, no activity, no lock; sessions end by their time, and can be removed.

import { setTimeout as pause } from "node:timers/promises";
import { lookInto, tableIn } from "./store.mjs";

/** By store: the tables of what is under way. */
const UNDER_WAY = {
  postgres: ["schedule", "messages", "activities", "kv_delta"],
  sqlite: ["orchestrator_queue", "worker_queue", "instance_locks", "kv_delta"],
};
const ROWS_SHOWN = 5;

/** O3 */
export async function checkTables(provider, spec, sessionLockTimeoutMs) {
  const problems = [];
  const { orchestratorQueue, workerQueue } = await provider.admin.getQueueDepths();
  if (orchestratorQueue !== 0 || workerQueue !== 0) problems.push(`queues: ${orchestratorQueue}, ${workerQueue}`);
  await lookInto(spec, async (query) => {
    for (const table of UNDER_WAY[spec.kind]) {
      const rows = await query(`SELECT * FROM ${tableIn(spec, table)} LIMIT ${ROWS_SHOWN}`);
      problems.push(...rows.map((row) => `left in ${table}: ${JSON.stringify(row)}`));
    }
    problems.push(...(await checkSessions(provider, spec, query, sessionLockTimeoutMs)));
  });
  return problems;
}

async function checkSessions(provider, spec, query, lockTimeoutMs) {
  const sessions = tableIn(spec, "sessions");
  const longest = Date.now() + lockTimeoutMs;
  const kept = await query(`SELECT * FROM ${sessions} WHERE locked_until > ${longest}`);
  await pause(lockTimeoutMs);
  await provider.cleanupOrphanedSessions({ idleTimeoutMs: 0 });
  const left = await query(`SELECT * FROM ${sessions} LIMIT ${ROWS_SHOWN}`);
  return [
    ...kept.map((row) => `locked for too long: ${JSON.stringify(row)}`),
    ...left.map((row) => `left in sessions: ${JSON.stringify(row)}`),
  ];
}
