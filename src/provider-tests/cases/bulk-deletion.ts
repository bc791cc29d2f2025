// cases/bulk-deletion.ts — many ended trees can be deleted at once, and nothing that runs.

import type { Category } from "../provider-case.js";

export const bulkDeletion: Category = {
  name: "bulk_deletion",
  about: "Many ended trees can be deleted at once, and nothing that runs.",
  cases: [],
};
