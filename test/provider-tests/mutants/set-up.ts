import type { Mutant } from "./mutant.js";

export const SET_UP: readonly Mutant[] = [
  {
    name: "the provider lives by a clock of its own",
    category: "set_up",
    caughtBy: "lives_by_the_clock",
    store: "memory",
    patches: [
      { file: "memory-provider.ts", find: "    this.#clock = clock;\n", replace: "    this.#clock = systemClock;\n" },
    ],
  },
];
