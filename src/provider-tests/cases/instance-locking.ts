// cases/instance-locking.ts — at most one dispatcher works on an instance.

import type { Category } from "../provider-case.js";

export const instanceLocking: Category = {
  name: "instance_locking",
  about: "At most one dispatcher works on an instance.",
  cases: [],
};
