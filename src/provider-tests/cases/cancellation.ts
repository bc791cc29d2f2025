// cases/cancellation.ts — a cancelled activity is taken away from its worker, and a worker learns that its execution is over.

import type { Category } from "../provider-case.js";

export const cancellation: Category = {
  name: "cancellation",
  about: "A cancelled activity is taken away from its worker, and a worker learns that its execution is over.",
  cases: [],
};
