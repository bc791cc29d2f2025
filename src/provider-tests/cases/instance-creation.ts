// cases/instance-creation.ts — an instance comes into being with its first committed turn, and not before.

import type { Category } from "../provider-case.js";

export const instanceCreation: Category = {
  name: "instance_creation",
  about: "An instance comes into being with its first committed turn, and not before.",
  cases: [],
};
