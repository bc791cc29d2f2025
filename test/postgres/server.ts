// test/postgres/server.ts — one PostgreSQL for a whole test run. Tests find it in DUROXIDE_TEST_PG_URL.
//
// The variable reaches the processes that run the tests, and those that the tests start. Where it is not set there is no
// PostgreSQL, and the tests that need one are skipped; the run says so once, and why.

import pg from "pg";
import type { TestProject } from "vitest/node";
import { openPostgres } from "../../scripts/postgres-server.mjs";
import { TEST_SCHEMA_PREFIX } from "../../src/provider-tests/own-stores.js";

/** Every project inherits this from the configuration; the root alone does it, for all of them. */
export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (!project.isRootProject()) return undefined;
  const opened = await openPostgres();
  if (opened.kind === "missing") {
    project.vitest.logger.log(`PostgreSQL: its tests are skipped, because ${opened.reason}.`);
    return undefined;
  }
  process.env.DUROXIDE_TEST_PG_URL = opened.url;
  return async () => {
    if (opened.kind === "given") await removeTestSchemas(opened.url);
    await opened.close();
  };
}

/** A server that was there before is left as it was. */
async function removeTestSchemas(url: string): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    const { rows } = await client.query<{ readonly name: string }>(
      "SELECT nspname AS name FROM pg_namespace WHERE starts_with(nspname, $1)",
      [TEST_SCHEMA_PREFIX],
    );
    for (const { name } of rows) await client.query(`DROP SCHEMA ${pg.escapeIdentifier(name)} CASCADE`);
  } finally {
    await client.end();
  }
}
