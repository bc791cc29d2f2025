import type { Mutant } from "./mutant.js";

export const INSTANCE_CREATION: readonly Mutant[] = [
  {
    name: "a start creates the instance when it is enqueued",
    category: "instance_creation",
    caughtBy: "no_instance_creation_on_enqueue",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: `    const instance = this.#addMessage(item, now, options.delayMs);
`,
        replace: `    const instance = this.#addMessage(item, now, options.delayMs);
    if (isStartLike(item)) {
      const { orchestration: name, version } = item;
      const rest = { currentExecutionId: 1, parentInstanceId: null, customStatus: null, customStatusVersion: 0 };
      instance.row ??= { name, version, ...rest };
    }
`,
      },
    ],
  },
  {
    name: "a turn that names only the orchestration creates the instance",
    category: "instance_creation",
    caughtBy: "half_named_instance",
    store: "memory",
    patches: [
      {
        file: "instance-record.ts",
        find: "if (name !== undefined && version !== undefined)",
        replace: "if (name !== undefined)",
      },
    ],
  },
  {
    name: "an instance without a row is what its latest start says",
    category: "instance_creation",
    caughtBy: "half_named_instance",
    store: "sqlite",
    patches: [
      {
        file: "instances.ts",
        find: "const start = latestStart(db, instance);",
        replace: "const start = messages.some(isStartLike) ? null : latestStart(db, instance);",
      },
    ],
  },
  {
    name: "the version of a start that names none is empty",
    category: "instance_creation",
    caughtBy: "null_version_handling",
    store: "sqlite",
    patches: [{ file: "start-identity.ts", find: "version: version ?? UNKNOWN", replace: `version: version ?? ""` }],
  },
  {
    name: "a turn cannot rename its instance",
    category: "instance_creation",
    caughtBy: "nameless_turn_keeps_name",
    store: "sqlite",
    patches: [
      {
        file: "instances.ts",
        find: `    orchestration_version = excluded.orchestration_version,
`,
        replace: "",
      },
    ],
  },
  {
    name: "an instance without a name is what it was first",
    category: "instance_creation",
    caughtBy: "unnamed_instance_has_name_of_latest_start",
    store: "sqlite",
    patches: [
      { file: "history.ts", find: "  ORDER BY execution_id DESC LIMIT 1", replace: "  ORDER BY execution_id LIMIT 1" },
    ],
  },
  {
    name: "the last of several starts says what an instance is",
    category: "instance_creation",
    caughtBy: "first_of_several_starts_names_instance",
    store: "sqlite",
    patches: [
      {
        file: "instances.ts",
        find: `executionId: latestExecution(db, instance) };
  const first = messages.find(isStartLike);`,
        replace: `executionId: latestExecution(db, instance) };
  const first = messages.findLast(isStartLike);`,
      },
      {
        file: "instances.ts",
        find: `newIdentity(messages: readonly WorkItem[]): Identity | null {
  const first = messages.find(isStartLike);`,
        replace: `newIdentity(messages: readonly WorkItem[]): Identity | null {
  const first = messages.findLast(isStartLike);`,
      },
    ],
  },
];
