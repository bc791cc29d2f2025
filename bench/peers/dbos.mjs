// bench/peers/dbos.mjs — DBOS on PostgreSQL: workflows run in the process that starts them, one checkpoint a step.

import { DBOS } from "@dbos-inc/dbos-sdk";
import postgres from "postgres";
import { runPeer } from "./run-peer.mjs";
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
  const { url, schema } = store;
  DBOS.setConfig({
    name: "bench",
    systemDatabaseUrl: url,
    systemDatabaseSchemaName: schema,
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
    async started() {
      const sql = postgres(url, { max: 1 });
      const [{ count }] = await sql`SELECT count(*)::int AS count FROM ${sql(schema)}.workflow_status`;
      await sql.end();
      return count;
    },
    close: () => DBOS.shutdown(),
  };
});
