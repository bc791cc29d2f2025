import type { Mutant } from "./mutant.js";

/** What is done to a file when it is opened, after its tables were brought to this version. */
function whenOpened(statement: string): Mutant["patches"] {
  return [
    {
      file: "sqlite-provider.ts",
      find: "      await migrate(database, settings.clock.now());\n",
      replace: `      await migrate(database, settings.clock.now());\n      database.run("${statement}");\n`,
    },
  ];
}

export const DURABILITY: readonly Mutant[] = [
  {
    name: "whoever opens the store frees all instances: their dispatchers may still be alive",
    category: "durability",
    caughtBy: "locks_survive",
    store: "sqlite",
    patches: whenOpened("DELETE FROM duroxide_instance_locks"),
  },
  {
    name: "attempts are forgotten when the store is opened",
    category: "durability",
    caughtBy: "messages_survive",
    store: "sqlite",
    patches: whenOpened("UPDATE duroxide_orchestrator_queue SET attempt_count = 0"),
  },
  {
    name: "sessions are forgotten when the store is opened",
    category: "durability",
    caughtBy: "sessions_survive",
    store: "sqlite",
    patches: whenOpened("DELETE FROM duroxide_sessions"),
  },
  {
    name: "key-values of the running execution are kept in memory only",
    category: "durability",
    caughtBy: "instances_survive",
    store: "sqlite",
    patches: whenOpened("DELETE FROM duroxide_kv_delta"),
  },
];
