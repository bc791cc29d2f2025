// Closes stores whose threads have just begun, and goes on: nothing else keeps the process alive until then.

import { start } from "../../src/provider-tests/builders.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";

const BURST = 600;

for (let bursts = 1; bursts <= 5; bursts += 1) {
  const provider = await SqliteProvider.open(`${process.argv[2]}-${bursts}`, { durability: "process-crash" });
  for (let burst = 0; burst < bursts; burst += 1) {
    const names = Array.from({ length: BURST }, (_, n) => `${burst}-${n}`);
    await Promise.all(names.map((name) => provider.enqueueForOrchestrator(start(name), { ifAbsent: true })));
  }
  await provider.close();
}
process.stdout.write("closed\n");
