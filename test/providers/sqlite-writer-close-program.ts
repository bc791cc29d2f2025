// Closes a store whose thread is about to begin, and goes on: nothing else keeps the process alive until then.

import { start } from "../../src/provider-tests/builders.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";

for (let rounds = 0; rounds < 5; rounds += 1) {
  const provider = await SqliteProvider.open(`${process.argv[2]}-${rounds}`, { writerThread: "always" });
  await provider.enqueueForOrchestrator(start("first"));
  const last = provider.enqueueForOrchestrator(start("last"), { ifAbsent: true });
  for (let round = 0; round < rounds; round += 1) await new Promise((resolve) => setImmediate(resolve));
  const closed = provider.close();
  await Promise.allSettled([last, closed]);
}
process.stdout.write("closed\n");
