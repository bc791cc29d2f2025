import type { Mutant } from "./mutant.js";

export const CUSTOM_STATUS: readonly Mutant[] = [
  {
    name: "every update of the custom status is a version of its own",
    category: "custom_status",
    caughtBy: "two_updates_in_one_turn",
    store: "sqlite",
    patches: [
      {
        file: "turn-commit.ts",
        find: "customStatus = event.status;",
        replace: "recordCustomStatus(tx, instance, event.status);",
      },
    ],
  },
  {
    name: "the first update of the custom status in a turn counts",
    category: "custom_status",
    caughtBy: "two_updates_in_one_turn",
    store: "memory",
    patches: [{ file: "instance-record.ts", find: "events.findLast(", replace: "events.find(" }],
  },
  {
    name: "a custom status of null changes nothing",
    category: "custom_status",
    caughtBy: "custom_status_clear",
    store: "sqlite",
    patches: [
      { file: "turn-commit.ts", find: "if (customStatus !== undefined)", replace: "if (customStatus != null)" },
    ],
  },
  {
    name: "a turn without a custom status clears it",
    category: "custom_status",
    caughtBy: "custom_status_none_preserves",
    store: "sqlite",
    patches: [
      {
        file: "turn-commit.ts",
        find: "if (customStatus !== undefined) recordCustomStatus(tx, instance, customStatus);",
        replace: "recordCustomStatus(tx, instance, customStatus ?? null);",
      },
    ],
  },
  {
    name: "a custom status that was seen is told again",
    category: "custom_status",
    caughtBy: "custom_status_polling_no_change",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: "row.customStatusVersion <= lastSeenVersion",
        replace: "row.customStatusVersion < lastSeenVersion",
      },
    ],
  },
  {
    name: "an empty custom status is taken for none",
    category: "custom_status",
    caughtBy: "custom_status_empty_text",
    store: "memory",
    patches: [
      {
        file: "instance-record.ts",
        find: "this.row.customStatus = update.status;",
        replace: "this.row.customStatus = update.status || null;",
      },
    ],
  },
  {
    name: "a custom status is refused where the instance has no name",
    category: "custom_status",
    caughtBy: "custom_status_of_unnamed_instance",
    store: "memory",
    patches: [
      {
        file: "instance-record.ts",
        find: "if (this.row === null || update?.type",
        replace: `if (this.row === null && update !== undefined) throw new Error("nobody has named the instance");
    if (this.row === null || update?.type`,
      },
    ],
  },
];
