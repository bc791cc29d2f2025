import type { Mutant } from "./mutant.js";

export const MANAGEMENT: readonly Mutant[] = [
  {
    name: "instances are listed oldest first",
    category: "management",
    caughtBy: "list_instances",
    store: "memory",
    patches: [{ file: "known-instances.ts", find: "this.oldestFirst().reverse()", replace: "this.oldestFirst()" }],
  },
  {
    name: "operators see the status of execution 1",
    category: "management",
    caughtBy: "list_instances_by_status",
    store: "memory",
    patches: [
      {
        file: "memory-admin.ts",
        find: 'instance.currentExecution?.status ?? "Running"',
        replace: 'instance.executions.get(1)?.status ?? "Running"',
      },
    ],
  },
  {
    name: "operators see the output of execution 1",
    category: "management",
    caughtBy: "info_of_current_execution",
    store: "memory",
    patches: [
      {
        file: "memory-admin.ts",
        find: "instance.currentExecution?.output",
        replace: "instance.executions.get(1)?.output",
      },
    ],
  },
  {
    name: "queue depths count what a lock holds",
    category: "management",
    caughtBy: "queue_depths_leave_out_locked",
    store: "memory",
    patches: [
      { file: "instance-record.ts", find: "this.isLocked(now) ? (this.lock?.batch ?? []) : []", replace: "[]" },
    ],
  },
  {
    name: "queue depths leave out what is delayed and count what is locked",
    category: "management",
    caughtBy: "queue_depths_count_delayed",
    store: "sqlite",
    patches: [
      {
        file: "admin.ts",
        find: "WHERE held_until > ? AND lock_token IS NOT NULL",
        replace: "WHERE held_until > ? AND lock_token IS NULL",
      },
    ],
  },
  {
    name: "queue depths leave out what a lock once held",
    category: "management",
    caughtBy: "queue_depths_leave_out_locked",
    store: "memory",
    patches: [
      {
        file: "worker-queue.ts",
        find: "filter((row) => isUnlocked(row, now)).length",
        replace: "filter((row) => row.lock === null).length",
      },
    ],
  },
  {
    name: "an execution that continued as new has no end",
    category: "management",
    caughtBy: "execution_has_no_end_while_it_runs",
    store: "memory",
    patches: [
      {
        file: "execution-record.ts",
        find: "this.completedAt = this.isRunning ? null : now",
        replace: 'this.completedAt = ["Completed", "Failed"].includes(this.status) ? now : null',
      },
    ],
  },
  {
    name: "a turn without a name does not count as an update",
    category: "management",
    caughtBy: "updated_with_every_turn",
    store: "sqlite",
    patches: [
      {
        file: "instances.ts",
        find: "last_commit = ?, updated_at = ?",
        replace: "last_commit = ?, updated_at = MIN(updated_at, ?)",
      },
    ],
  },
  {
    name: "the size of a history is counted in characters",
    category: "management",
    caughtBy: "get_instance_stats_history",
    store: "sqlite",
    patches: [{ file: "instances.ts", find: "OCTET_LENGTH(event_data)", replace: "LENGTH(event_data)" }],
  },
  {
    name: "an output stays when a later status comes without one",
    category: "management",
    caughtBy: "status_without_output_has_none",
    store: "sqlite",
    patches: [
      {
        file: "instances.ts",
        find: "SET status = ?, output = ?, completed_at",
        replace: "SET status = ?, output = COALESCE(?, output), completed_at",
      },
    ],
  },
  {
    name: "a cancelled timer that somebody held is subtracted twice",
    category: "management",
    caughtBy: "queue_depths_leave_out_cancelled",
    store: "memory",
    patches: [
      {
        file: "instance-record.ts",
        find: "held.filter((message) => this.messages.has(message)).length",
        replace: "held.length",
      },
    ],
  },
];
