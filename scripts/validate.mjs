// Runs the validation suite on a provider of this package: `npm run validate -- memory` or `npm run validate -- sqlite`.

import { formatReport, validate } from "duroxide-ts/provider-tests";
import { memoryStore, sqliteFileStore } from "../dist/provider-tests/own-stores.js";

const FACTORIES = { memory: memoryStore, sqlite: sqliteFileStore() };

const [store, ...categories] = process.argv.slice(2);
const factory = Object.hasOwn(FACTORIES, store ?? "") ? FACTORIES[store] : null;
if (factory === null) {
  process.stderr.write(`usage: npm run validate -- ${Object.keys(FACTORIES).join("|")} [category …]\n`);
  process.exit(2);
}
const startedAt = performance.now();
const report = await validate(factory, categories.length === 0 ? {} : { categories });
process.stdout.write(`Validation of ${store}, ${((performance.now() - startedAt) / 1_000).toFixed(1)} s\n\n`);
process.stdout.write(`${formatReport(report)}\n`);
process.exitCode = report.failed === 0 ? 0 : 1;
