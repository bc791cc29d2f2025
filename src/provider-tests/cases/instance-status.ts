// cases/instance-status.ts — where an instance stands can be read without its history.

import type { Category } from "../provider-case.js";

export const instanceStatus: Category = {
  name: "instance_status",
  about: "Where an instance stands can be read without its history.",
  cases: [],
};
