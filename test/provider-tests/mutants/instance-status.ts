import type { Mutant } from "./mutant.js";

export const INSTANCE_STATUS: readonly Mutant[] = [
  {
    name: "an instance has the status of its first execution",
    category: "instance_status",
    caughtBy: "that_of_current_execution",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: 'instance.currentExecution?.status ?? "Pending"',
        replace: 'instance.executions.get(1)?.status ?? "Pending"',
      },
    ],
  },
  {
    name: "an instance whose start is delayed has no status",
    category: "instance_status",
    caughtBy: "pending_while_start_is_queued",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: "instance?.identify() ?? null",
        replace: "instance?.identify(this.#clock.now()) ?? null",
      },
    ],
  },
  {
    name: "a turn that says nothing of the status sets it back",
    category: "instance_status",
    caughtBy: "kept_by_turn_that_says_nothing",
    store: "memory",
    patches: [
      {
        file: "execution-record.ts",
        find: `    if (metadata.status === undefined) return;
    this.status = metadata.status;`,
        replace: '    this.status = metadata.status ?? "Running";',
      },
    ],
  },
  {
    name: "an instance without a name has the status of another",
    category: "instance_status",
    caughtBy: "unnamed_instance_has_its_own",
    store: "sqlite",
    patches: [
      {
        file: "instances.ts",
        find: "SELECT status, output FROM duroxide_executions WHERE instance_id = ? AND",
        replace: "SELECT status, output FROM duroxide_executions WHERE instance_id = ? OR",
      },
    ],
  },
];
