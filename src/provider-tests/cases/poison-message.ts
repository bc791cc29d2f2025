// cases/poison-message.ts — every fetch counts as an attempt, so that work that cannot be done is found out.

import type { Category } from "../provider-case.js";

export const poisonMessage: Category = {
  name: "poison_message",
  about: "Every fetch counts as an attempt, so that work that cannot be done is found out.",
  cases: [],
};
