// cases/custom-status.ts — the custom status is what the last turn that spoke of it said, one version a turn.

import type { Category } from "../provider-case.js";

export const customStatus: Category = {
  name: "custom_status",
  about: "The custom status is what the last turn that spoke of it said, one version a turn.",
  cases: [],
};
