// bench/lib/store.mjs — opens the store that the runner names, and what works on it; closes all of it again.

import { join } from "node:path";
import { Client, Runtime } from "duroxide-ts";
import { PostgresProvider } from "duroxide-ts/postgres";
import { SqliteProvider } from "duroxide-ts/sqlite";
import { PROVIDER_OPTIONS } from "./settings.mjs";

/** @type {(spec: import("./measured-process.mjs").StoreSpec, options?: object) => Promise<import("duroxide-ts").Provider>} */
export function openStore(spec, options = {}) {
  const onWarning = (warning) => console.error(`the ${spec.kind} provider warns: ${warning}`);
  const common = { onWarning, ...PROVIDER_OPTIONS[spec.kind], ...options };
  switch (spec.kind) {
    case "sqlite":
      return SqliteProvider.open(databaseFile(spec), { durability: spec.durability, ...common });
    case "postgres":
      return PostgresProvider.open(spec.url, { schema: spec.schema, ...common });
    default:
      throw new Error(`there is no store of the kind '${spec.kind}'`);
  }
}

/** Where a SQLite store lies. */
export function databaseFile({ folder }) {
  return join(folder, "store.db");
}

/** A client on the store while `work` goes on; nothing runs unless `work` starts it. */
export async function withClient(spec, work) {
  const provider = await openStore(spec);
  try {
    return await work({ provider, client: new Client(provider) });
  } finally {
    await provider.close();
  }
}

/** Client and runtime in one process. `contents`: definitions and options, as `Runtime.start` takes them. */
export function withRuntime(spec, contents, work) {
  return withClient(spec, (opened) => whileRunning(opened, contents, (runtime) => work({ ...opened, runtime })));
}

/** A runtime on an open store while `work` goes on. */
export async function whileRunning({ provider }, contents, work) {
  const runtime = await Runtime.start({ provider, ...contents });
  try {
    return await work(runtime);
  } finally {
    await runtime.shutdown();
  }
}
