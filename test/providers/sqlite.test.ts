import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { describeProviderContract } from "./contract/index.js";
import { openConnection } from "./sqlite-connection.js";

describeProviderContract("SqliteProvider in memory", async () => {
  const clock = new VirtualClock();
  return { clock, provider: await SqliteProvider.open(":memory:", { clock }) };
});

describeProviderContract("SqliteProvider on a file", async () => {
  const clock = new VirtualClock();
  const directory = await mkdtemp(join(tmpdir(), "duroxide-sqlite-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const file = join(directory, "store.db");
  return {
    clock,
    // Hundreds of files in a row: the contract is the same with fewer syncs.
    provider: await SqliteProvider.open(file, { clock, durability: "process-crash" }),
    async corruptHistory(instance: string) {
      const connection = await openConnection(file);
      connection.prepare("UPDATE duroxide_history SET event_data = '{' WHERE instance_id = ?").run(instance);
      connection.close();
    },
  };
});
