// cases/fidelity.ts — what is stored comes back as it was written.

import type { Category } from "../provider-case.js";

export const fidelity: Category = {
  name: "fidelity",
  about: "What is stored comes back as it was written.",
  cases: [],
};
