import type { Mutant } from "./mutant.js";

export const WARM_HISTORY: readonly Mutant[] = [
  {
    name: "whatever is remembered is called up to date",
    category: "warm_history",
    caughtBy: "somebody_else_has_committed",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: "lastCommit !== undefined && lastCommit === instance.row?.lastCommit ?",
        replace: "lastCommit !== undefined ?",
      },
    ],
  },
  {
    name: "a turn that decides nothing does not count as the last",
    category: "warm_history",
    caughtBy: "somebody_else_has_committed",
    store: "sqlite",
    patches: [
      {
        file: "instances.ts",
        find: "last_commit = ?, updated_at = ?",
        replace: "last_commit = COALESCE(last_commit, ?), updated_at = ?",
      },
    ],
  },
  {
    name: "events that are appended beside all turns are overlooked",
    category: "warm_history",
    caughtBy: "something_was_appended",
    store: "sqlite",
    patches: [{ file: "instances.ts", find: "  tx.db.run(forgetLastCommit, instanceId);\n", replace: "" }],
  },
  {
    name: "a warm fetch hands out the values once more",
    category: "warm_history",
    caughtBy: "last_turn_was_its_own",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: "kvSnapshot: warmAsOf === null ? instance.kv.snapshot() : NO_VALUES",
        replace: "kvSnapshot: instance.kv.snapshot()",
      },
    ],
  },
];
