import type { Mutant } from "./mutant.js";

export const MULTI_EXECUTION: readonly Mutant[] = [
  {
    name: "a history holds the earlier executions as well",
    category: "multi_execution",
    caughtBy: "execution_isolation",
    store: "sqlite",
    patches: [
      {
        file: "history.ts",
        find: "WHERE instance_id = ? AND execution_id = ?\n  ORDER BY event_id\n",
        replace: "WHERE instance_id = ? AND execution_id <= ?\n  ORDER BY event_id\n",
      },
    ],
  },
  {
    name: "a read gives the first execution",
    category: "multi_execution",
    caughtBy: "latest_execution_detection",
    store: "sqlite",
    patches: [{ file: "history.ts", find: "MAX(execution_id)", replace: "MIN(execution_id)" }],
  },
  {
    name: "a late turn takes the current execution back",
    category: "multi_execution",
    caughtBy: "current_execution_never_goes_back",
    store: "memory",
    patches: [
      {
        file: "instance-record.ts",
        find: "Math.max(this.row.currentExecutionId, executionId)",
        replace: "executionId",
      },
    ],
  },
  {
    name: "a turn without a name does not begin an execution",
    category: "multi_execution",
    caughtBy: "nameless_turn_begins_execution",
    store: "sqlite",
    patches: [
      {
        file: "instances.ts",
        find: `    tx.db.runBlindly(advanceInstance, executionId, lock.secret, tx.now, instanceId);
`,
        replace: "",
      },
    ],
  },
  {
    name: "the execution that a start speaks of is the current one",
    category: "multi_execution",
    caughtBy: "execution_id_sequencing",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: `    executionId: instance.currentExecutionId,
    history:`,
        replace: `    executionId: batch.find(({ item }) => item.executionId > 1)?.item.executionId ?? instance.currentExecutionId,
    history:`,
      },
    ],
  },
  {
    name: "an append makes its execution the current one",
    category: "multi_execution",
    caughtBy: "append_makes_no_execution_current",
    store: "memory",
    patches: [
      {
        file: "instance-record.ts",
        find: "return this.row?.currentExecutionId ?? this.latestExecutionId;",
        replace: "return this.latestExecutionId;",
      },
    ],
  },
  {
    name: "an append sets values",
    category: "multi_execution",
    caughtBy: "append_writes_history_only",
    store: "memory",
    patches: [
      {
        file: "instance-record.ts",
        find: `    execution.append(events);
`,
        replace: `    execution.append(events);
    for (const event of events) this.kv.apply(event);
`,
      },
    ],
  },
  {
    name: "executions are listed as they came",
    category: "multi_execution",
    caughtBy: "executions_in_any_order",
    store: "memory",
    patches: [{ file: "memory-admin.ts", find: ".sort((a, b) => a.executionId - b.executionId)", replace: "" }],
  },
];
