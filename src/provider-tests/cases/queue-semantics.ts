// cases/queue-semantics.ts — both queues deliver what they were given, in order, when it is due.

import type { Category } from "../provider-case.js";

export const queueSemantics: Category = {
  name: "queue_semantics",
  about: "Both queues deliver what they were given, in order, when it is due.",
  cases: [],
};
