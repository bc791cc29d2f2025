// Opens a file as somebody who may only read it, or as whoever it is, and says how it went.

import { ProviderError } from "../../src/errors.js";
import { loadDriver } from "../../src/providers/sqlite/driver.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";

const [file, role] = process.argv.slice(2);
await loadDriver();
// The rights of a file mean nothing to root.
if (role === "reader" && process.getuid?.() === 0) process.setuid?.("nobody");
try {
  const provider = await SqliteProvider.open(file!);
  await provider.close();
  process.stdout.write(`${JSON.stringify({ outcome: "opened" })}\n`);
} catch (error) {
  const kind = error instanceof ProviderError ? error.kind : null;
  process.stdout.write(`${JSON.stringify({ outcome: "refused", kind, message: String(error) })}\n`);
}
