import type { Mutant } from "./mutant.js";

export const CANCELLATION: readonly Mutant[] = [
  {
    name: "activities are cancelled before those of the same turn are queued",
    category: "cancellation",
    caughtBy: "same_activity_in_worker_items_and_cancelled_is_noop",
    store: "sqlite",
    patches: [
      {
        file: "turn-commit.ts",
        find: "  for (const activity of turn.cancelledActivities) cancelActivity(tx, activity);\n",
        replace: "",
      },
      {
        file: "turn-commit.ts",
        find: "  for (const item of turn.workerItems) {",
        replace: `  for (const activity of turn.cancelledActivities) cancelActivity(tx, activity);
  for (const item of turn.workerItems) {`,
      },
    ],
  },
  {
    name: "a cancellation spares an activity that a worker holds",
    category: "cancellation",
    caughtBy: "cancelled_activity_is_lost_to_its_worker",
    store: "sqlite",
    patches: [
      {
        file: "worker-queue.ts",
        find: "AND execution_id = ? AND activity_id = ?",
        replace: "AND execution_id = ? AND activity_id = ? AND lock_token IS NULL",
      },
    ],
  },
  {
    name: "a cancellation takes the activities of all executions",
    category: "cancellation",
    caughtBy: "cancellation_takes_no_other_of_the_same_id",
    store: "sqlite",
    patches: [
      {
        file: "worker-queue.ts",
        find: "AND execution_id = ? AND activity_id = ?",
        replace: "AND ? IS NOT NULL AND activity_id = ?",
      },
    ],
  },
  {
    name: "the ack of an activity that is gone succeeds",
    category: "cancellation",
    caughtBy: "ack_work_item_fails_when_entry_deleted",
    store: "sqlite",
    patches: [
      {
        file: "worker-queue.ts",
        find: `if (row === undefined) throw lockLost("ackWorkItem", token);`,
        replace: "if (row === undefined) return;",
      },
    ],
  },
  {
    name: "a worker that renews never hears that its execution is over",
    category: "cancellation",
    caughtBy: "renew_returns_terminal_when_orchestration_completed",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: "return this.#executionState(row.item);",
        replace: `return "running";`,
      },
    ],
  },
  {
    name: "an execution that continued as new still counts as running",
    category: "cancellation",
    caughtBy: "activity_of_an_earlier_execution",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: "const isCurrent = item.executionId === instance.row.currentExecutionId;",
        replace: "const isCurrent = true;",
      },
    ],
  },
  {
    name: "an instance that is not known counts as over",
    category: "cancellation",
    caughtBy: "fetch_returns_missing_state_when_instance_deleted",
    store: "sqlite",
    patches: [
      {
        file: "instances.ts",
        find: `if (row === undefined) return "running";`,
        replace: `if (row === undefined) return "terminated";`,
      },
    ],
  },
  {
    name: "of an activity that was scheduled twice only the last can be cancelled",
    category: "cancellation",
    caughtBy: "activity_that_was_scheduled_twice",
    store: "memory",
    patches: [
      {
        file: "worker-queue.ts",
        find: "(this.#byActivity.get(key) ?? new Set()).add(row)",
        replace: "new Set<WorkRow>().add(row)",
      },
    ],
  },
  {
    name: "a cancellation does not see the activities of its own commit",
    category: "cancellation",
    caughtBy: "same_activity_in_worker_items_and_cancelled_is_noop",
    store: "sqlite",
    patches: [
      {
        file: "worker-queue.ts",
        find: `  tx.newActivities.writeAll();
  const gone =`,
        replace: "  const gone =",
      },
    ],
  },
  {
    name: "an activity that its process has acked can be acked again",
    category: "cancellation",
    caughtBy: "ack_work_item_fails_when_entry_deleted",
    store: "sqlite",
    patches: [
      {
        file: "own-locks.ts",
        find: "this.#activities.delete(id);\n    return lock.attempts;",
        replace: "return lock.attempts;",
      },
    ],
  },
];
