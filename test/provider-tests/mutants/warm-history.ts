import type { Mutant } from "./mutant.js";

export const WARM_HISTORY: readonly Mutant[] = [
  {
    name: "a warm fetch does not look for the remembered event",
    category: "warm_history",
    caughtBy: "remembers_more_than_there_is",
    store: "memory",
    patches: [
      {
        file: "execution-record.ts",
        find: "return this.#history[index]?.eventId === eventId ? this.#history.slice(index) : null;",
        replace: "return this.#history.slice(index);",
      },
    ],
  },
  {
    name: "a warm fetch does not look at the remembered execution",
    category: "warm_history",
    caughtBy: "remembers_another_execution",
    store: "sqlite",
    patches: [
      { file: "fetch-orchestration.ts", find: "mark?.executionId === executionId ?", replace: "mark !== undefined ?" },
    ],
  },
  {
    name: "a warm fetch begins behind the remembered event",
    category: "warm_history",
    caughtBy: "remembers_all",
    store: "sqlite",
    patches: [
      {
        file: "fetch-orchestration.ts",
        find: "tail[0]?.eventId === mark.lastEventId ? tail : null",
        replace: "tail[0]?.eventId === mark.lastEventId ? tail.slice(1) : null",
      },
    ],
  },
  {
    name: "a fetch whose mark is of no use has no values",
    category: "warm_history",
    caughtBy: "remembers_another_execution",
    store: "memory",
    patches: [
      { file: "memory-provider.ts", find: "kvSnapshot: tail === null ?", replace: "kvSnapshot: mark === undefined ?" },
    ],
  },
];
