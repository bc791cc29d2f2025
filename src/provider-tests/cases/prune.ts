// cases/prune.ts — old executions can be removed; the current one and a running one never are.

import type { Category } from "../provider-case.js";

export const prune: Category = {
  name: "prune",
  about: "Old executions can be removed; the current one and a running one never are.",
  cases: [],
};
