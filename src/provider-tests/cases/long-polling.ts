// cases/long-polling.ts — a fetch waits for work no longer than it may, and not when there is some.

import type { Category } from "../provider-case.js";

export const longPolling: Category = {
  name: "long_polling",
  about: "A fetch waits for work no longer than it may, and not when there is some.",
  cases: [],
};
