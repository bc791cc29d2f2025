// cases/wake.ts — whoever watches an instance hears of its commits.

import type { Category } from "../provider-case.js";

export const wake: Category = {
  name: "wake",
  about: "Whoever watches an instance hears of its commits.",
  cases: [],
};
