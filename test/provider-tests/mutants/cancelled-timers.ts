import type { Mutant } from "./mutant.js";

export const CANCELLED_TIMERS: readonly Mutant[] = [
  {
    name: "timers are cancelled before those of the same turn are set",
    category: "cancelled_timers",
    caughtBy: "timer_of_the_same_turn",
    store: "sqlite",
    patches: [
      {
        file: "turn-commit.ts",
        find: "  for (const timer of turn.cancelledTimers) cancelTimer(tx, timer);\n",
        replace: "",
      },
      {
        file: "turn-commit.ts",
        find: "  for (const item of turn.orchestratorItems) {",
        replace: `  for (const timer of turn.cancelledTimers) cancelTimer(tx, timer);
  for (const item of turn.orchestratorItems) {`,
      },
    ],
  },
  {
    name: "a timer that is due can no longer be cancelled",
    category: "cancelled_timers",
    caughtBy: "due_timer_that_no_turn_had",
    store: "sqlite",
    patches: [
      {
        file: "orchestrator-queue.ts",
        find: "AND timer_execution_id = ? AND timer_id = ?",
        replace: "AND timer_execution_id = ? AND timer_id = ? AND state = 'waiting'",
      },
    ],
  },
  {
    name: "a cancelled timer takes every message of its id along",
    category: "cancelled_timers",
    caughtBy: "cancellation_takes_no_other_message",
    store: "memory",
    patches: [
      {
        file: "message-list.ts",
        find: `return item.type === "TimerFired" ?`,
        replace: `return "executionId" in item && "id" in item ?`,
      },
    ],
  },
  {
    name: "cancelled timers stay in the queue",
    category: "cancelled_timers",
    caughtBy: "cancelled_timer_never_fires",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: "owner.messages.cancelTimer(timer.executionId, timer.id);",
        replace: "",
      },
    ],
  },
  {
    name: "of a timer that was set twice only the last can be cancelled",
    category: "cancelled_timers",
    caughtBy: "timer_that_was_set_twice",
    store: "memory",
    patches: [{ file: "message-list.ts", find: "[...(this.#timers.get(key) ?? []), message]", replace: "[message]" }],
  },
  {
    name: "an ack removes as many messages as it was given, whichever are there",
    category: "cancelled_timers",
    caughtBy: "timer_of_another_instance",
    store: "memory",
    patches: [
      {
        file: "sorted-list.ts",
        find: `    if (this.#items[place] !== item) return false;
`,
        replace: "",
      },
    ],
  },
];
