// Starts instances on a store whose thread writes, and comes to its end without closing it.

import { start } from "../../src/provider-tests/builders.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";

const provider = await SqliteProvider.open(process.argv[2]!, { writerThread: "always" });
for (let batch = 0; batch < 3; batch += 1) {
  const names = Array.from({ length: 20 }, (_, n) => `${batch}-${n}`);
  await Promise.all(names.map((name) => provider.enqueueForOrchestrator(start(name), { ifAbsent: true })));
}
process.stdout.write("60 started\n");
