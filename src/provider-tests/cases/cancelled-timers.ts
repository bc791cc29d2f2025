// cases/cancelled-timers.ts — a cancelled timer never fires.

import type { Category } from "../provider-case.js";

export const cancelledTimers: Category = {
  name: "cancelled_timers",
  about: "A cancelled timer never fires.",
  cases: [],
};
