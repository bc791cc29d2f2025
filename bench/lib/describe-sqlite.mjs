// bench/lib/describe-sqlite.mjs — prints which SQLite our provider uses on the Node that runs this.

import { loadDriver } from "../../dist/providers/sqlite/driver.js";

const driver = await loadDriver();
const connection = driver.open(":memory:");
const { version } = connection.prepare("SELECT sqlite_version() AS version").get();
console.log(`${version}, by ${driver.name}`);
connection.close();
