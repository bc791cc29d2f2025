import type { Mutant } from "./mutant.js";

export const PRUNE: readonly Mutant[] = [
  {
    name: "the current execution is pruned",
    category: "prune",
    caughtBy: "prune_safety",
    store: "sqlite",
    patches: [
      {
        file: "deletion.ts",
        find: `    AND e.execution_id <> i.current_execution_id
`,
        replace: "",
      },
    ],
  },
  {
    name: "an execution that was never ended is pruned",
    category: "prune",
    caughtBy: "prune_never_takes_running",
    store: "memory",
    patches: [
      {
        file: "memory-admin.ts",
        find: "execution.isRunning || execution === instance.currentExecution",
        replace: "execution === instance.currentExecution",
      },
    ],
  },
  {
    name: "what ended in the very millisecond is pruned",
    category: "prune",
    caughtBy: "prune_completed_before",
    store: "memory",
    patches: [{ file: "memory-admin.ts", find: "completedAt < timeMs", replace: "completedAt <= timeMs" }],
  },
  {
    name: "a pruned execution leaves its history",
    category: "prune",
    caughtBy: "prune_removes_histories",
    store: "sqlite",
    patches: [{ file: "deletion.ts", find: "tx.db.run(pruneHistories, id, these)", replace: "0" }],
  },
  {
    name: "the executions to keep are counted without the current one",
    category: "prune",
    caughtBy: "prune_options_combinations",
    store: "memory",
    patches: [{ file: "memory-admin.ts", find: "options.keepLast ?? 0", replace: "(options.keepLast ?? 0) + 1" }],
  },
  {
    name: "running instances are not pruned in bulk",
    category: "prune",
    caughtBy: "prune_bulk_includes_running_instances",
    store: "sqlite",
    patches: [
      { file: "admin.ts", find: "filter.completedBeforeMs === undefined ? LONG_AGO : ALWAYS", replace: "ALWAYS" },
    ],
  },
  {
    name: "running instances are pruned in bulk by the time of their end",
    category: "prune",
    caughtBy: "prune_bulk_completed_before",
    store: "sqlite",
    patches: [
      { file: "admin.ts", find: "filter.completedBeforeMs === undefined ? LONG_AGO : ALWAYS", replace: "LONG_AGO" },
    ],
  },
  {
    name: "among named instances, what ends at the given time ended before it",
    category: "prune",
    caughtBy: "prune_bulk_completed_before",
    store: "sqlite",
    patches: [
      {
        file: "admin.ts",
        find: `WHERE COALESCE(e.completed_at, ?) < ?
    AND (SELECT COUNT(*) FROM duroxide_executions AS x WHERE x.instance_id = i.instance_id) > ?
    AND`,
        replace: `WHERE COALESCE(e.completed_at, ?) <= ?
    AND (SELECT COUNT(*) FROM duroxide_executions AS x WHERE x.instance_id = i.instance_id) > ?
    AND`,
      },
    ],
  },
];
