// bench/peers/dbos.mjs — DBOS on PostgreSQL: workflows run in the process that starts them, one checkpoint a step.

import { DBOS } from "@dbos-inc/dbos-sdk";
import { runPeer } from "./run-peer.mjs";
import { analyzeTables, countRows } from "./schema-admin.mjs";
import { DBOS_SETTINGS } from "./settings.mjs";

const NOBODYS_QUEUE = "nobodys-queue";

/** Stdout is for the result alone. */
const LOGGER = { debug() {}, info() {}, warn: console.error, error: console.error };

const chain = DBOS.registerWorkflow(
  async (steps, input) => {
    let value = input;
    for (let n = 0; n < steps; n += 1) {
      const given = value;
      value = await DBOS.runStep(async () => given + 1, { name: "step" });
    }
    return value;
  },
  { name: "chain" },
);

await runPeer(async ({ store, settings }) => {
  DBOS.setConfig({
    name: "bench",
    systemDatabaseUrl: store.url,
    systemDatabaseSchemaName: store.schema,
    logger: LOGGER,
    listenQueues: [],
    ...DBOS_SETTINGS,
    ...settings,
  });
  await DBOS.launch();
  return {
    async run(steps, input) {
      const handle = await DBOS.startWorkflow(chain)(steps, input);
      return handle.getResult();
    },
    start: (input) => DBOS.startWorkflow(chain, { queueName: NOBODYS_QUEUE })(1, input),
    started: () => countRows(store, "workflow_status"),
    analyze: () => analyzeTables(store),
    close: () => DBOS.shutdown(),
  };
});
