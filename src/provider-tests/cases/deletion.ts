// cases/deletion.ts — a tree is deleted as a whole, and nothing of it comes back.

import type { Category } from "../provider-case.js";

export const deletion: Category = {
  name: "deletion",
  about: "A tree is deleted as a whole, and nothing of it comes back.",
  cases: [],
};
