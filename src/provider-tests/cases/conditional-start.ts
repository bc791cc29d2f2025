// cases/conditional-start.ts — a start can be made once, however many try.

import type { Category } from "../provider-case.js";

export const conditionalStart: Category = {
  name: "conditional_start",
  about: "A start can be made once, however many try.",
  cases: [],
};
