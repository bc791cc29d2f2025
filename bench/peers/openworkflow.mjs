// bench/peers/openworkflow.mjs — openworkflow on PostgreSQL or SQLite: workers that poll, two writes a step.
//
//   O1. Its client asks for a result once a second, which no option changes: 100 in flight would be at most 100 chains a
//       second. So the worker's write of the end is listened to instead, and the result taken from what it returns. That
//       costs no statement and no time at all.

import { join } from "node:path";
import { OpenWorkflow } from "openworkflow";
import { BackendPostgres } from "openworkflow/postgres";
import postgres from "postgres";
import { runPeer } from "./run-peer.mjs";
import { analyzeTables } from "./schema-admin.mjs";
import { OPENWORKFLOW_SETTINGS } from "./settings.mjs";

await runPeer(async ({ workload, store, settings }) => {
  const { connections, workers, concurrency } = {
    ...OPENWORKFLOW_SETTINGS,
    ...OPENWORKFLOW_SETTINGS[workload],
    ...settings,
  };
  const backend = store.kind === "sqlite" ? await openSqlite(store) : await openPostgres(store, connections);
  const endOf = listenToEnds(backend);
  const client = new OpenWorkflow({ backend });
  const workflow = client.defineWorkflow({ name: "chain" }, chain);
  const running = Array.from({ length: workers }, () => client.newWorker({ concurrency }));
  for (const worker of running) await worker.start();
  return {
    async run(steps, input) {
      const { workflowRun } = await workflow.run({ steps, input });
      return endOf(workflowRun.id);
    },
    start: (input) => workflow.run({ steps: 1, input }),
    started: async () => (await backend.countWorkflowRuns()).pending,
    ...(store.kind === "postgres" && { analyze: () => analyzeTables(store) }),
    async close() {
      await Promise.all(running.map((worker) => worker.stop()));
      await backend.stop();
    },
  };
});

async function chain({ input: { steps, input }, step }) {
  let value = input;
  for (let n = 0; n < steps; n += 1) {
    const given = value;
    value = await step.run({ name: `step-${n}` }, async () => given + 1);
  }
  return value;
}

/** The migrations run over a connection of their own. */
async function openPostgres({ url, schema }, connections) {
  await (await BackendPostgres.connect(url, { schema })).stop();
  const pool = postgres(url, { max: connections, transform: { column: { from: postgres.toCamel } } });
  return BackendPostgres.fromPool(pool, { schema });
}

/** It opens the database in WAL mode and leaves `synchronous` at what SQLite was built with. */
async function openSqlite({ folder, durability }) {
  if (durability !== "full") throw new Error(`openworkflow is not measured with durability ${durability}`);
  const { BackendSqlite } = await import("openworkflow/sqlite");
  const backend = BackendSqlite.connect(join(folder, "openworkflow.db"));
  const { synchronous } = backend.db.prepare("PRAGMA synchronous").get();
  if (synchronous !== 2) throw new Error(`synchronous is ${synchronous}, not FULL`);
  return backend;
}

/** O1. A function that resolves with the output of the run of that id once it has ended. */
function listenToEnds(backend) {
  const outputs = new Map();
  const waiting = new Map();
  const complete = backend.completeWorkflowRun.bind(backend);
  backend.completeWorkflowRun = async (params) => {
    const run = await complete(params);
    outputs.set(run.id, run.output);
    waiting.get(run.id)?.();
    waiting.delete(run.id);
    return run;
  };
  return async (id) => {
    if (!outputs.has(id)) await new Promise((resolve) => waiting.set(id, resolve));
    const output = outputs.get(id);
    outputs.delete(id);
    return output;
  };
}
