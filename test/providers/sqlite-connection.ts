// A second connection to a store's file, through the same driver: to look at it, or to do to it what nobody should.

import { loadDriver, type SqliteConnection } from "../../src/providers/sqlite/driver.js";

export async function openConnection(file: string): Promise<SqliteConnection> {
  return (await loadDriver()).open(file);
}
