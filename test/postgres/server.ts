// test/postgres/server.ts — one PostgreSQL for a whole test run. Tests find it in DUROXIDE_TEST_PG_URL.
//
// The variable reaches the processes that run the tests, and those that the tests start. Where it is not set there is no
// PostgreSQL, and the tests that need one are skipped; the run says so once, and why.

import type { TestProject } from "vitest/node";
import { openPostgres } from "../../scripts/postgres-server.mjs";

/** Every project inherits this from the configuration; the root alone does it, for all of them. */
export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (!project.isRootProject()) return undefined;
  const opened = await openPostgres();
  if (opened.kind === "missing") {
    project.vitest.logger.log(`PostgreSQL: its tests are skipped, because ${opened.reason}.`);
    return undefined;
  }
  process.env.DUROXIDE_TEST_PG_URL = opened.url;
  return () => opened.close();
}
