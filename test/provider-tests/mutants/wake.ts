import type { Mutant } from "./mutant.js";

export const WAKE: readonly Mutant[] = [
  {
    name: "whoever stops to watch goes on hearing",
    category: "wake",
    caughtBy: "watcher_that_stopped_hears_nothing",
    store: "sqlite",
    patches: [{ file: "sqlite-provider.ts", find: "      unwatch();\n", replace: "" }],
  },
  {
    name: "only what somebody hears is counted",
    category: "wake",
    caughtBy: "changes_that_are_counted",
    store: "sqlite",
    patches: [
      {
        file: "sqlite-provider.ts",
        find: "        return watchers.changes;\n",
        replace: "        return watchers.isEmpty ? 0 : watchers.lastNr;\n",
      },
    ],
  },
  {
    name: "every end is told as a completion",
    category: "wake",
    caughtBy: "completion_that_is_told_is_true",
    store: "sqlite",
    patches: [
      {
        file: "turn-commit.ts",
        find: "  tx.effects.changed(instance, changeOf(turn, lock.executionId)); // 0 where it has not begun.\n",
        replace:
          "  tx.effects.changed(instance, isOver ? { output: turn.metadata.output ?? null } : changeOf(turn));\n",
      },
    ],
  },
  {
    name: "the end of an execution is told as that of its instance",
    category: "wake",
    caughtBy: "completion_of_another_execution_is_not_told",
    store: "sqlite",
    patches: [
      { file: "turn-commit.ts", find: "changeOf(turn, lock.executionId)", replace: "changeOf(turn, turn.executionId)" },
    ],
  },
  {
    name: "watchers hear of a turn before it is committed",
    category: "wake",
    caughtBy: "watcher_finds_the_new_state",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: "    // From here on nothing can fail (P1).",
        replace: "    this.#watchers.changed(instance.id);",
      },
      {
        file: "memory-provider.ts",
        find: "    this.#watchers.changed(instance.id, changeOf(turn, instance.row?.currentExecutionId));\n",
        replace: "",
      },
    ],
  },
];
