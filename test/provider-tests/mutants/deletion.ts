import type { Mutant } from "./mutant.js";

export const DELETION: readonly Mutant[] = [
  {
    name: "a deletion leaves the lock",
    category: "deletion",
    caughtBy: "force_delete_prevents_ack_recreation",
    store: "sqlite",
    patches: [{ file: "deletion.ts", find: "tx.db.run(deleteLocks, these); // X1", replace: "" }],
  },
  {
    name: "a deletion leaves the lock in memory",
    category: "deletion",
    caughtBy: "force_delete_prevents_ack_recreation",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: `      this.#unlock(instance);
      this.#schedule.remove(instance);`,
        replace: "      this.#schedule.remove(instance);",
      },
    ],
  },
  {
    name: "a deletion leaves the activities",
    category: "deletion",
    caughtBy: "stale_activity_after_delete_recreate",
    store: "sqlite",
    patches: [{ file: "deletion.ts", find: "tx.db.run(deleteActivities, these)", replace: "0" }],
  },
  {
    name: "a deletion leaves the messages",
    category: "deletion",
    caughtBy: "delete_takes_messages",
    store: "sqlite",
    patches: [{ file: "deletion.ts", find: "tx.db.run(deleteMessages, these)", replace: "0" }],
  },
  {
    name: "a deletion leaves the values of the current execution",
    category: "deletion",
    caughtBy: "delete_frees_the_id",
    store: "sqlite",
    patches: [{ file: "deletion.ts", find: "tx.db.run(deleteKvDelta, these);", replace: "" }],
  },
  {
    name: "a forced deletion leaves orphans",
    category: "deletion",
    caughtBy: "delete_instances_atomic_orphan_detection",
    store: "sqlite",
    patches: [
      {
        file: "deletion.ts",
        find: "  checkNoOrphans(tx, these);",
        replace: "  if (!force) checkNoOrphans(tx, these);",
      },
    ],
  },
  {
    name: "a deletion counts the ids that it was given",
    category: "deletion",
    caughtBy: "delete_instances_atomic_nothing",
    store: "memory",
    patches: [
      { file: "memory-admin.ts", find: "instancesDeleted: doomed.length", replace: "instancesDeleted: ids.length" },
    ],
  },
  {
    name: "a deletion removes one after the other until it is refused",
    category: "deletion",
    caughtBy: "delete_instances_atomic_force",
    store: "memory",
    patches: [
      {
        file: "memory-admin.ts",
        find: "    if (running !== undefined && !force) throw",
        replace: `    if (running !== undefined && !force) this.#store.forget(doomed.filter(hasEnded));
    if (running !== undefined && !force) throw`,
      },
    ],
  },
  {
    name: "a deletion takes what waits for an instance that is not known",
    category: "deletion",
    caughtBy: "delete_instances_atomic_ignores_unknown",
    store: "sqlite",
    patches: [
      {
        file: "deletion.ts",
        find: "const these = JSON.stringify(known);",
        replace: "const these = toColumnList(instances);",
      },
    ],
  },
  {
    name: "a deletion ends all sessions",
    category: "deletion",
    caughtBy: "delete_leaves_sessions",
    store: "sqlite",
    patches: [
      {
        file: "deletion.ts",
        find: "tx.db.run(deleteKvStore, these);",
        replace: `tx.db.run(deleteKvStore, these);
  tx.db.run("DELETE FROM duroxide_sessions");`,
      },
    ],
  },
  {
    name: "a child that has not begun survives the deletion of its parent",
    category: "deletion",
    caughtBy: "unborn_children_go_with_their_parent",
    store: "sqlite",
    patches: [{ file: "deletion.ts", find: " + deleteChildStarts(tx, these)", replace: "" }],
  },
  {
    name: "whoever works on the first turn of a deleted child can commit it",
    category: "deletion",
    caughtBy: "unborn_children_go_with_their_parent",
    store: "memory",
    patches: [{ file: "memory-provider.ts", find: "      this.#unlock(child);\n", replace: "" }],
  },
  {
    name: "between two executions an instance counts as ended",
    category: "deletion",
    caughtBy: "delete_between_executions_needs_force",
    store: "memory",
    patches: [
      { file: "memory-admin.ts", find: `return status === "Completed" ||`, replace: `return status !== "Running" ||` },
    ],
  },
  {
    name: "a deletion leaves starts that were queued for instances that have begun",
    category: "deletion",
    caughtBy: "start_of_a_known_child_goes_with_its_parent",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: "for (const start of child.messages.startsFrom(parents)) child",
        replace: "if (child.row === null) for (const start of child.messages.startsFrom(parents)) child",
      },
    ],
  },
  {
    name: "a process acks its activities though it has deleted their instance",
    category: "deletion",
    caughtBy: "stale_activity_after_delete_recreate",
    store: "sqlite",
    patches: [
      {
        file: "deletion.ts",
        find: "  tx.own.forgetActivities();\n",
        replace: "",
      },
    ],
  },
  {
    name: "a process acks its turn though it has deleted the instance",
    category: "deletion",
    caughtBy: "force_delete_prevents_ack_recreation",
    store: "sqlite",
    patches: [
      {
        file: "deletion.ts",
        find: "  for (const id of known) forgetLock(tx, id);\n",
        replace: "",
      },
    ],
  },
  {
    name: "a process acks the first turn of a child though it has deleted the parent",
    category: "deletion",
    caughtBy: "unborn_children_go_with_their_parent",
    store: "sqlite",
    patches: [
      {
        file: "deletion.ts",
        find: "  for (const id of children) forgetLock(tx, id);\n",
        replace: "",
      },
    ],
  },
  {
    name: "a process believes in its locks, whoever has committed since",
    category: "deletion",
    caughtBy: "delete_by_another_process",
    store: "sqlite",
    patches: [
      {
        file: "database.ts",
        find: `    this.#lastVersion = version;
    this.#endEpoch();`,
        replace: "    this.#lastVersion = version;",
      },
    ],
  },
];
