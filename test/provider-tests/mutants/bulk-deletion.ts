import type { Mutant } from "./mutant.js";

export const BULK_DELETION: readonly Mutant[] = [
  {
    name: "a bulk deletion takes running instances",
    category: "bulk_deletion",
    caughtBy: "delete_instance_bulk_safety_and_limits",
    store: "memory",
    patches: [{ file: "memory-admin.ts", find: "hasEnded(instance) && ", replace: "" }],
  },
  {
    name: "a bulk deletion takes what ended in the very millisecond",
    category: "bulk_deletion",
    caughtBy: "delete_instance_bulk_completed_before_filter",
    store: "sqlite",
    patches: [
      {
        file: "admin.ts",
        find: "filter.completedBeforeMs ?? ALWAYS",
        replace: "(filter.completedBeforeMs ?? ALWAYS) + 1",
      },
    ],
  },
  {
    name: "a bulk deletion ignores its limit",
    category: "bulk_deletion",
    caughtBy: "delete_instance_bulk_safety_and_limits",
    store: "memory",
    patches: [{ file: "memory-admin.ts", find: ".slice(0, filter.limit)", replace: "" }],
  },
  {
    name: "a limit of 0 is no limit",
    category: "bulk_deletion",
    caughtBy: "bulk_delete_limit_zero",
    store: "memory",
    patches: [
      { file: "memory-admin.ts", find: ".slice(0, filter.limit)", replace: ".slice(0, filter.limit || undefined)" },
    ],
  },
  {
    name: "a limit counts what is passed over",
    category: "bulk_deletion",
    caughtBy: "bulk_delete_limit_oldest_first",
    store: "memory",
    patches: [
      {
        file: "memory-admin.ts",
        find: "known.oldestFirst().filter(",
        replace: "known.oldestFirst().slice(0, filter.limit).filter(",
      },
    ],
  },
  {
    name: "a bulk deletion takes the newest first",
    category: "bulk_deletion",
    caughtBy: "bulk_delete_limit_oldest_first",
    store: "memory",
    patches: [{ file: "memory-admin.ts", find: "known.oldestFirst().filter(", replace: "known.newestFirst().filter(" }],
  },
  {
    name: "a bulk deletion takes children",
    category: "bulk_deletion",
    caughtBy: "bulk_delete_skips_children",
    store: "memory",
    patches: [{ file: "memory-admin.ts", find: " && !this.#hasParent(instance)", replace: "" }],
  },
  {
    name: "a bulk deletion leaves children of deleted parents for ever",
    category: "bulk_deletion",
    caughtBy: "bulk_delete_takes_child_of_deleted_parent",
    store: "memory",
    patches: [
      {
        file: "memory-admin.ts",
        find: "!this.#hasParent(instance)",
        replace: "instance.row.parentInstanceId === null",
      },
    ],
  },
  {
    name: "an empty list of ids is no list",
    category: "bulk_deletion",
    caughtBy: "delete_instance_bulk_filter_combinations",
    store: "memory",
    patches: [
      {
        file: "memory-admin.ts",
        find: "filter.instanceIds === undefined ? null",
        replace: "!filter.instanceIds?.length ? null",
      },
    ],
  },
  {
    name: "a running child goes with its ended root",
    category: "bulk_deletion",
    caughtBy: "bulk_delete_passes_over_running_descendants",
    store: "sqlite",
    patches: [{ file: "deletion.ts", find: "  if (!force) checkNoneRuns(tx, these);\n", replace: "" }],
  },
];
