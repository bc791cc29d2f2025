import type { Mutant } from "./mutant.js";

export const CONDITIONAL_START: readonly Mutant[] = [
  {
    name: "a conditional start does not see a start that is queued",
    category: "conditional_start",
    caughtBy: "starts_what_is_absent_once",
    store: "memory",
    patches: [{ file: "memory-provider.ts", find: " || instance.messages.findStart() !== null;", replace: ";" }],
  },
  {
    name: "a conditional start does not see an instance without a name",
    category: "conditional_start",
    caughtBy: "finds_unnamed_instance",
    store: "sqlite",
    patches: [
      {
        file: "instances.ts",
        find: "SELECT 1 FROM duroxide_executions WHERE instance_id = ?",
        replace: "SELECT 1 WHERE ? IS NULL",
      },
    ],
  },
  {
    name: "a conditional start looks in one operation and writes in another",
    category: "conditional_start",
    caughtBy: "one_winner_among_concurrent_starts",
    store: "sqlite",
    patches: [
      {
        file: "sqlite-provider.ts",
        find: `    checkOrchestratorItem("enqueueForOrchestrator", item);
`,
        replace: `    checkOrchestratorItem("enqueueForOrchestrator", item);
    const look = (db) => options.ifAbsent && isStartLike(item) && hasBegun(db, item.instance);
    if (await this.#database.read("enqueueForOrchestrator", look)) return "exists";
`,
      },
      {
        file: "sqlite-provider.ts",
        find: `      if (options.ifAbsent && isStartLike(item) && hasBegun(tx.db, item.instance)) return "exists";
`,
        replace: "",
      },
    ],
  },
  {
    name: "the condition of a start is applied to other messages",
    category: "conditional_start",
    caughtBy: "condition_is_for_starts_only",
    store: "sqlite",
    patches: [
      {
        file: "sqlite-provider.ts",
        find: "options.ifAbsent && isStartLike(item) && hasBegun",
        replace: "options.ifAbsent && hasBegun",
      },
    ],
  },
];
