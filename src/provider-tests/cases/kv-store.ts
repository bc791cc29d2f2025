// cases/kv-store.ts — key-values are read as committed, and replayed as of the end of the previous execution.

import type { Category } from "../provider-case.js";

export const kvStore: Category = {
  name: "kv_store",
  about: "Key-values are read as committed, and replayed as of the end of the previous execution.",
  cases: [],
};
