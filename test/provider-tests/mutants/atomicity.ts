import type { Mutant } from "./mutant.js";

export const ATOMICITY: readonly Mutant[] = [
  {
    name: "a refused ack has queued its activities already",
    category: "atomicity",
    caughtBy: "atomicity_failure_rollback",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: "    checkEvents(operation, instance.executions.get(turn.executionId) ?? null, turn.events); // P7",
        replace: `    for (const item of turn.workerItems) this.#work.add(item, now);
    checkEvents(operation, instance.executions.get(turn.executionId) ?? null, turn.events);`,
      },
    ],
  },
  {
    name: "a refused operation is committed as far as it got",
    category: "atomicity",
    caughtBy: "atomicity_failure_rollback",
    store: "sqlite",
    patches: [{ file: "database.ts", find: `this.#runNow("ROLLBACK")`, replace: `this.#runNow("COMMIT")` }],
  },
  {
    name: "a refused ack has released its lock already",
    category: "atomicity",
    caughtBy: "lock_released_only_on_successful_ack",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: "    const { instance, lock } = this.#requireInstanceLock(operation, lockToken, now); // P6",
        replace: `    const { instance, lock } = this.#requireInstanceLock(operation, lockToken, now);
    this.#unlock(instance);
    this.#reschedule([instance], now);`,
      },
    ],
  },
  {
    name: "an ack leaves its lock behind",
    category: "atomicity",
    caughtBy: "concurrent_ack_prevention",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: `    this.#unlock(instance);

    this.#reschedule(changed, now);`,
        replace: "    this.#reschedule(changed, now);",
      },
    ],
  },
  {
    name: "an event id that is taken is passed over in silence",
    category: "atomicity",
    caughtBy: "duplicate_within_turn",
    store: "sqlite",
    patches: [
      {
        file: "new-rows.ts",
        find: `  "(?, ?, ?, ?, ?)",
  "",`,
        replace: `  "(?, ?, ?, ?, ?)",
  "ON CONFLICT DO NOTHING",`,
      },
    ],
  },
  {
    name: "a turn may have an event with id 0",
    category: "atomicity",
    caughtBy: "event_id_zero",
    store: "sqlite",
    patches: [
      {
        file: "history.ts",
        find: `  checkEventIds(operation, events);
`,
        replace: "",
      },
    ],
  },
  {
    name: "a turn may send an activity to the orchestrator queue",
    category: "atomicity",
    caughtBy: "misrouted_activity_in_turn",
    store: "sqlite",
    patches: [
      {
        file: "turn-commit.ts",
        find: `    checkOrchestratorItem(OPERATION, item);
`,
        replace: "",
      },
    ],
  },
  {
    name: "the completion of a child goes to whatever it calls its instance",
    category: "atomicity",
    caughtBy: "sub_orchestration_completion_routed_to_parent",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: "this.#instance(targetInstance(item))",
        replace: "this.#instance(item.instance)",
      },
    ],
  },
];
