// Runs the validation suite on a provider of this package: `npm run validate -- memory|sqlite|postgres [category …]`.
// PostgreSQL is the server that DUROXIDE_PG_URL names, or one that is started for the purpose.

import { formatReport, validate } from "duroxide-ts/provider-tests";
import { memoryStore, postgresStore, sqliteFileStore, TestSchemas } from "../dist/provider-tests/own-stores.js";
import { openPostgres } from "./postgres-server.mjs";

/** What is left behind on a server that others use, too. */
let schemas = null;

const FACTORIES = {
  memory: () => memoryStore,
  sqlite: () => sqliteFileStore(),
  async postgres() {
    const opened = await openPostgres();
    if (opened.kind !== "missing") {
      schemas = new TestSchemas(opened.url);
      return postgresStore(opened.url, {}, schemas);
    }
    process.stdout.write(`Validation of postgres is not possible: ${opened.reason}.\n`);
    process.exit(1);
  },
};

const [store, ...categories] = process.argv.slice(2);
if (store === undefined) refuse("name a store");
if (!Object.hasOwn(FACTORIES, store)) refuse(`there is no store '${store}' here`);
const factory = await FACTORIES[store]();
const startedAt = performance.now();
const report = await validate(factory, categories.length === 0 ? {} : { categories }).catch((error) => {
  if (error.code === "DUROXIDE_INVALID_OPTIONS") refuse(error.message);
  throw error;
});
process.stdout.write(`Validation of ${store}, ${((performance.now() - startedAt) / 1_000).toFixed(1)} s\n\n`);
process.stdout.write(`${formatReport(report)}\n`);
process.exitCode = report.failed === 0 ? 0 : 1;
await schemas?.remove();

function refuse(message) {
  const usage = `usage: npm run validate -- ${Object.keys(FACTORIES).join("|")} [category …]`;
  process.stderr.write(`${message}\n${usage}\n`);
  process.exit(2);
}
