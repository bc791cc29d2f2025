// npm run golden:record -- --new name [name …] — records golden histories of programs that have none yet: see CONTRIBUTING.md.

import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { importTypeScript } from "./import-typescript.mjs";

const { values, positionals } = parseArgs({ options: { new: { type: "boolean" } }, allowPositionals: true });

if (values.new !== true || positionals.length === 0) {
  console.error("Which? npm run golden:record -- --new name [name …]");
  process.exit(2);
}

const { record } = await importTypeScript(fileURLToPath(new URL("../test/golden/record.ts", import.meta.url)));
try {
  for (const file of await record(positionals)) console.log(`test/golden/histories/${file}`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
