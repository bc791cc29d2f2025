// cases/warm-history.ts — a dispatcher that remembers a part of the history may be given only the rest.

import type { Category } from "../provider-case.js";

export const warmHistory: Category = {
  name: "warm_history",
  about: "A dispatcher that remembers a part of the history may be given only the rest.",
  cases: [],
};
