import type { Mutant } from "./mutant.js";

export const ERROR_HANDLING: readonly Mutant[] = [
  {
    name: "an event with an id in use replaces the one that has it",
    category: "error_handling",
    caughtBy: "duplicate_event_id_rejection",
    store: "sqlite",
    patches: [
      {
        file: "new-rows.ts",
        find: `  "(?, ?, ?, ?, ?)",
  "",`,
        replace: `  "(?, ?, ?, ?, ?)",
  "ON CONFLICT DO UPDATE SET event_type = excluded.event_type, event_data = excluded.event_data",`,
      },
    ],
  },
  {
    name: "an ack does not look at the end of its lock",
    category: "error_handling",
    caughtBy: "lock_expiration_during_ack",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: "if (instance?.lock == null || instance.lock.lockedUntil <= now)",
        replace: "if (instance?.lock == null)",
      },
    ],
  },
  {
    name: "events that cannot be decoded are left out of a history",
    category: "error_handling",
    caughtBy: "read_corrupted_history_returns_error",
    store: "sqlite",
    patches: [
      {
        file: "history.ts",
        find: "  return rows.map((row) => decodeEvent(row.event_data));",
        replace: `  return rows.flatMap((row) => {
    try {
      return [decodeEvent(row.event_data)];
    } catch {
      return [];
    }
  });`,
      },
    ],
  },
  {
    name: "a fetch rejects where the history cannot be decoded",
    category: "error_handling",
    caughtBy: "corrupt_history_is_fetched_and_counted",
    store: "sqlite",
    patches: [
      {
        file: "fetch-orchestration.ts",
        find: "if (!(error instanceof CodecError)) throw error;",
        replace: "throw error;",
      },
    ],
  },
  {
    name: "an ack reads the history that it appends to",
    category: "error_handling",
    caughtBy: "corrupt_history_can_be_ended",
    store: "sqlite",
    patches: [
      {
        file: "history.ts",
        find: `  const instanceId = toColumn(instance);
`,
        replace: `  const instanceId = toColumn(instance);
  readEvents(tx.db, operation, instance, executionId);
`,
      },
    ],
  },
  {
    name: "an activity can be acked with any message",
    category: "error_handling",
    caughtBy: "non_completion_acks_work",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: `    if (completion !== null) checkCompletion("ackWorkItem", completion);
`,
        replace: "",
      },
    ],
  },
  {
    name: "the orchestrator queue takes activities",
    category: "error_handling",
    caughtBy: "misrouted_activity",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: `    checkOrchestratorItem("enqueueForOrchestrator", item);
`,
        replace: "",
      },
    ],
  },
  {
    name: "an append does not look at the event ids that there are",
    category: "error_handling",
    caughtBy: "concurrent_append_of_same_event_id",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: `    checkEvents("appendWithExecution", execution, events);
`,
        replace: "",
      },
    ],
  },
  {
    name: "a message that cannot be decoded fails the fetch",
    category: "error_handling",
    caughtBy: "corrupt_message_starves_nobody",
    store: "sqlite",
    patches: [
      {
        file: "fetch-orchestration.ts",
        find: "      tx.effects.warnings.push(`Message row",
        replace: "      throw error; tx.effects.warnings.push(`Message row",
      },
    ],
  },
];
