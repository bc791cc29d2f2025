// Presses a provider of this package: `npm run stress -- memory|sqlite|postgres [--duration SECONDS] [--config NAME]`.
// PostgreSQL is the server that DUROXIDE_PG_URL names, or one that is started for the purpose, with every commit synced.

import { parseArgs } from "node:util";
import { systemClock } from "duroxide-ts/provider";
import { formatStressReport, runStressSuite, STRESS_CONFIGURATIONS } from "duroxide-ts/provider-tests";
import {
  memoryStore,
  postgresStore,
  sqliteFileStore,
  sqliteMemoryStore,
  TestSchemas,
} from "../dist/provider-tests/own-stores.js";
import { openPostgres } from "./postgres-server.mjs";

/** What is left behind on a server that others use, too. */
let schemas = null;

const STORES = {
  memory: () => memoryStore,
  "sqlite-memory": () => sqliteMemoryStore,
  "sqlite-file": () => sqliteFileStore(),
  async postgres() {
    const opened = await openPostgres({ durable: true });
    if (opened.kind !== "missing") {
      schemas = new TestSchemas(opened.url);
      return postgresStore(opened.url, {}, schemas);
    }
    process.stdout.write(`Stress of postgres is not possible: ${opened.reason}.\n`);
    process.exit(1);
  },
};

const LONGEST_MS = 86_400_000;
const GENERAL = ["infra-check", "infra-check-large-payload", "ci-quick", "baseline", "concurrency", "large-payload"];
const SUITE = ["sqlite-suite-1-1", "sqlite-suite-2-2"];

/** By store, what is run there. A configuration that is asked for by name and stands nowhere here runs on the last. */
const PLANS = {
  memory: { memory: GENERAL },
  sqlite: { "sqlite-memory": SUITE, "sqlite-file": [...GENERAL, ...SUITE] },
  postgres: { postgres: GENERAL },
};

const { plan, durationMs } = readArguments();
const factories = new Map();
for (const { store } of plan) if (!factories.has(store)) factories.set(store, await STORES[store]());
const runs = plan.map(({ store, configuration }) => ({
  store,
  configuration,
  durationMs: durationMs ?? STRESS_CONFIGURATIONS[configuration].config.durationMs,
  open: () => factories.get(store).open({ clock: systemClock }),
}));
const report = await runStressSuite(runs, ({ store, configuration, durationMs: ms }) =>
  process.stderr.write(`${store} ${configuration}, ${ms / 1_000} s\n`),
);
process.stdout.write(`\n${formatStressReport(report)}\n`);
process.exitCode = report.isPassed ? 0 : 1;
await schemas?.remove();

function readArguments() {
  try {
    const options = { duration: { type: "string" }, config: { type: "string" } };
    const { values, positionals } = parseArgs({ options, allowPositionals: true });
    if (positionals.length !== 1) throw new Error("name one store");
    if (!Object.hasOwn(PLANS, positionals[0])) throw new Error(`there is no store '${positionals[0]}' here`);
    return { plan: planOf(PLANS[positionals[0]], values.config), durationMs: durationOf(values.duration) };
  } catch (error) {
    const stores = Object.keys(PLANS).join("|");
    process.stderr.write(`${error.message}\nusage: npm run stress -- ${stores} [--duration SECONDS] [--config NAME]\n`);
    process.stderr.write(`configurations: ${Object.keys(STRESS_CONFIGURATIONS).join(", ")}\n`);
    process.exit(2);
  }
}

function planOf(stores, only) {
  const all = Object.entries(stores).flatMap(([store, names]) =>
    names.map((configuration) => ({ store, configuration })),
  );
  if (only === undefined) return all;
  if (!Object.hasOwn(STRESS_CONFIGURATIONS, only)) throw new Error(`there is no configuration '${only}'`);
  const chosen = all.filter(({ configuration }) => configuration === only);
  return chosen.length > 0 ? chosen : [{ store: Object.keys(stores).at(-1), configuration: only }];
}

function durationOf(seconds) {
  if (seconds === undefined) return undefined;
  const ms = Math.round(Number(seconds) * 1_000);
  if (!(ms >= 1 && ms <= LONGEST_MS))
    throw new Error(`--duration must be from 0.001 to 86400 seconds, not '${seconds}'`);
  return ms;
}
