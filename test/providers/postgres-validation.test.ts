// The validation suite on PostgreSQL.

import { describe, test } from "vitest";
import { postgresStore } from "../../src/provider-tests/own-stores.js";
import { describeProvider } from "../../src/provider-tests/vitest.js";

const { DUROXIDE_TEST_PG_URL } = process.env;

if (DUROXIDE_TEST_PG_URL === undefined) {
  describe.skip("PostgresProvider: there is no PostgreSQL, as the test run has said", () => test("is not validated"));
} else {
  describeProvider("PostgresProvider", postgresStore(DUROXIDE_TEST_PG_URL));
}
