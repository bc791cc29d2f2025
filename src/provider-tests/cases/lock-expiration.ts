// cases/lock-expiration.ts — a lock lives as long as it says: it can be renewed, given back, and taken over when it has ended.

import type { Category } from "../provider-case.js";

export const lockExpiration: Category = {
  name: "lock_expiration",
  about: "A lock lives as long as it says: it can be renewed, given back, and taken over when it has ended.",
  cases: [],
};
