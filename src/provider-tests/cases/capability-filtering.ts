// cases/capability-filtering.ts — a dispatcher is given only what it can replay.

import type { Category } from "../provider-case.js";

export const capabilityFiltering: Category = {
  name: "capability_filtering",
  about: "A dispatcher is given only what it can replay.",
  cases: [],
};
