// cases/management.ts — operators see what is there.

import type { Category } from "../provider-case.js";

export const management: Category = {
  name: "management",
  about: "Operators see what is there.",
  cases: [],
};
