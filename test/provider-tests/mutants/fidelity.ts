import type { Mutant } from "./mutant.js";

export const FIDELITY: readonly Mutant[] = [
  {
    name: "events are stamped with the time of their commit",
    category: "fidelity",
    caughtBy: "every_event_comes_back",
    store: "sqlite",
    patches: [
      { file: "history.ts", find: "encodeEvent(event))", replace: "encodeEvent({ ...event, timestampMs: tx.now }))" },
    ],
  },
  {
    name: "events are made to belong to the instance that is locked",
    category: "fidelity",
    caughtBy: "events_belong_where_they_are_committed",
    store: "sqlite",
    patches: [
      {
        file: "history.ts",
        find: "encodeEvent(event))",
        replace: "encodeEvent({ ...event, instanceId: instance, executionId }))",
      },
    ],
  },
  {
    name: "the tag of an activity is kept only beside it",
    category: "fidelity",
    caughtBy: "every_activity_comes_back",
    store: "sqlite",
    patches: [
      {
        file: "worker-queue.ts",
        find: `    encodeWorkItem(item),
`,
        replace: `    encodeWorkItem({ ...item, tag: undefined }),
`,
      },
    ],
  },
  {
    name: "event ids are compared as text",
    category: "fidelity",
    caughtBy: "history_is_ascending",
    store: "sqlite",
    patches: [
      {
        file: "history.ts",
        find: `  ORDER BY event_id
`,
        replace: `  ORDER BY CAST(event_id AS TEXT)
`,
      },
    ],
  },
  {
    name: "a history is handed out as the store itself has it",
    category: "fidelity",
    caughtBy: "history_is_a_snapshot",
    store: "memory",
    patches: [{ file: "execution-record.ts", find: "return this.#history.slice();", replace: "return this.#history;" }],
  },
  {
    name: "text is stored as the driver takes it",
    category: "fidelity",
    caughtBy: "any_text_in_values",
    store: "sqlite",
    patches: [
      { file: "text-column.ts", find: "NEEDS_ESCAPING.test(text) ? JSON.stringify(text) : text", replace: "text" },
    ],
  },
  {
    name: "ids are compared without regard to case",
    category: "fidelity",
    caughtBy: "similar_ids_are_different_instances",
    store: "sqlite",
    patches: [
      {
        file: "schema.ts",
        find: "instance_id           TEXT    NOT NULL PRIMARY KEY,",
        replace: "instance_id           TEXT    NOT NULL COLLATE NOCASE PRIMARY KEY,",
      },
    ],
  },
  {
    name: "ids are compared without regard to spaces at their end",
    category: "fidelity",
    caughtBy: "similar_ids_are_different_instances",
    store: "sqlite",
    patches: [
      {
        file: "schema.ts",
        find: "PRIMARY KEY (instance_id, execution_id, event_id)",
        replace: "PRIMARY KEY (instance_id COLLATE RTRIM, execution_id, event_id)",
      },
    ],
  },
];
