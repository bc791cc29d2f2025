// cases/multi-execution.ts — every execution has a history of its own, and the latest committed one is the current one.

import type { Category } from "../provider-case.js";

export const multiExecution: Category = {
  name: "multi_execution",
  about: "Every execution has a history of its own, and the latest committed one is the current one.",
  cases: [],
};
