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
    patches: [{ file: "database.ts", find: `this.run("ROLLBACK")`, replace: `this.run("COMMIT")` }],
  },
];
